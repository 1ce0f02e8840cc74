"""Questions that can have no rows, whatever else they say: no index, no trigger, no key is here.

Tools ask long questions about such things. Most need no answer but the names of their columns.
"""

from functools import cache

from sqlglot import exp

from discreet.service.wire.catalogue.metadata import DatasetMetadata
from discreet.service.wire.catalogue.relations import column_types, relation_named
from discreet.service.wire.catalogue.titles import column_titles

__all__ = ["empty_columns", "without_empty_parts"]


def empty_columns(tree: exp.Expr) -> list[str] | None:
    """Return the names of the columns of a question that can have no rows, None for any other.

    >>> import sqlglot
    >>> asked = "SELECT c.relname AS name FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
    >>> empty_columns(sqlglot.parse_one(asked, read="postgres"))
    ['name']
    """
    if not isinstance(tree, exp.Query) or not _is_empty(tree):
        return None
    return column_titles(tree)


def without_empty_parts(tree: exp.Query) -> exp.Query:
    """Replace subqueries that can have no rows by what they are then: NULL, or false."""
    for inner in reversed(list(tree.find_all(exp.Subquery, exp.Exists))):
        if isinstance(inner, exp.Exists):
            if isinstance(inner.this, exp.Query) and _is_empty(inner.this):
                inner.replace(exp.false())
            continue
        is_value = not isinstance(inner.parent, exp.From | exp.Join | exp.SetOperation | exp.CTE)
        if not is_value or not isinstance(inner.this, exp.Query) or not _is_empty(inner.this):
            continue
        if isinstance(inner.parent, exp.In):
            inner.parent.replace(exp.false())
        elif not isinstance(inner.parent, exp.Any | exp.All | exp.Array):
            inner.replace(exp.cast(exp.null(), "text"))
    return tree


@cache
def _empty_relations() -> frozenset[str]:
    filled = DatasetMetadata(dataset="", who="", datasets=()).rows()
    return frozenset(column_types()) - frozenset(filled)


def _is_empty(query: exp.Expr) -> bool:
    if isinstance(query, exp.Union):
        return _is_empty(query.left) and _is_empty(query.right)
    if isinstance(query, exp.Subquery):
        return isinstance(query.this, exp.Query) and _is_empty(query.this)
    if isinstance(query, exp.Table):
        return relation_named(query.db, query.name) in _empty_relations()
    if not isinstance(query, exp.Select) or query.args.get("with_"):
        return False
    aggregates = any(one.find(exp.AggFunc) for one in query.expressions)
    if aggregates and not query.args.get("group"):
        return False  # one row, of nothing
    joins = query.args.get("joins") or []
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        return False
    first = query.args.get("from_")
    sources = [first.this] if first else []
    sources += [join.this for join in joins if not join.side]
    return any(_is_empty(source) for source in sources)
