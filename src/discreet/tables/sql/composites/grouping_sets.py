"""ROLLUP, CUBE and GROUPING SETS: one SELECT for each set, put under one another."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

from sqlglot import exp

from discreet.tables.sql.aggregate_calls import is_aggregate
from discreet.tables.sql.question.context import DIALECT, ReadingContext, fold

__all__ = ["expanded_sets", "has_sets", "resolver", "titled"]

_MOST_SETS = 64
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)

Set = tuple[exp.Expression, ...]
Resolve = Callable[[exp.Expression], exp.Expression]


def has_sets(select: exp.Select) -> bool:
    """Whether GROUP BY asks for several groupings."""
    clause = select.args.get("group")
    if clause is None:
        return False
    words = ("rollup", "cube", "grouping_sets")
    return any(isinstance(one, _SETS) for one in clause.expressions) or any(
        clause.args.get(word) for word in words
    )


def titled(item: exp.Expression) -> str:
    """Return the name of a column of the SELECT list.

    >>> import sqlglot
    >>> [titled(one) for one in sqlglot.parse_one("SELECT a AS x, b, COUNT(*) FROM t").expressions]
    ['x', 'b', 'count(*)']
    """
    if isinstance(item, exp.Alias | exp.Column):
        return str(item.alias_or_name)
    return item.sql(DIALECT, comments=False, normalize_functions="lower")


def expanded_sets(question: ReadingContext, select: exp.Select) -> exp.Select:
    """Return the same question as a UNION ALL of plain groupings.

    In each of them a key that it does not group by is NULL, and GROUPING() is a number.
    """
    resolve = resolver(question, select)
    sets = _sets(question, select.args["group"], resolve)
    if len(sets) > _MOST_SETS:
        raise question.refuse("too_complex", select.args["group"])
    keys = list(dict.fromkeys(key for one in sets for key in one))
    items = [(titled(item), item.unalias()) for item in select.expressions]
    titles = [title for title, _ in items]
    order = select.args.get("order")
    sorted_by: list[exp.Expression] = []
    for one in order.expressions if order is not None else []:
        plain = one.this
        is_title = isinstance(plain, exp.Column) and fold(plain.name) in map(fold, titles)
        is_number = isinstance(plain, exp.Literal) and not plain.is_string
        if not is_title and not is_number:
            items.append((f"sorted_{len(sorted_by)}", plain))
            sorted_by.append(plain)
    if not any(_is_over_rows(part) for _, node in items for part in node.walk()):
        items.append(("of_all", exp.Count(this=exp.Star())))  # the set of no keys has one row
    branches = [_branch(select, items, one, keys, resolve) for one in sets]
    whole: exp.Expression = branches[0]
    for branch in branches[1:]:
        whole = exp.Union(this=whole, expression=branch, distinct=False)
    found = exp.Select(expressions=[exp.column(title, quoted=True) for title in titles])
    found.set("from_", exp.From(this=exp.Subquery(this=whole, alias=_alias("sets"))))
    if order is not None:
        found.set("order", _moved(order, sorted_by))
    for clause in ("limit", "offset"):
        found.set(clause, select.args.get(clause))
    return found


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name))


def _moved(order: exp.Expression, sorted_by: list[exp.Expression]) -> exp.Expression:
    moved = order.copy()
    names = {one.sql(DIALECT): f"sorted_{i}" for i, one in enumerate(sorted_by)}
    for one in moved.expressions:
        name = names.get(one.this.sql(DIALECT))
        if name is not None:
            one.set("this", exp.column(name, quoted=True))
    return moved


def resolver(question: ReadingContext, select: exp.Select) -> Resolve:
    """Return what turns a name or number of the SELECT list into the expression it stands for."""
    named = {fold(i.alias): i.this for i in select.expressions if isinstance(i, exp.Alias)}
    columns = {fold(c.name) for table in question.catalog.tables for c in table.columns}

    def resolve(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            written = str(node.this)
            if written.isdecimal() and 1 <= int(written[:9]) <= len(select.expressions):
                return select.expressions[int(written) - 1].unalias()  # type: ignore[no-any-return]
        if isinstance(node, exp.Column) and not node.table and fold(node.name) not in columns:
            return named.get(fold(node.name), node)  # type: ignore[no-any-return]
        return node

    return resolve


def _sets(
    question: ReadingContext,
    clause: exp.Expression,
    resolve: Resolve,
) -> list[Set]:
    """Return all sets of a GROUP BY, the product of those of its elements."""
    elements = list(clause.expressions)
    words = {"rollup": exp.Rollup, "cube": exp.Cube}
    parts: list[list[Set]] = []
    for word, kind in words.items():
        if clause.args.get(word):  # GROUP BY a, b WITH ROLLUP
            given = [one for part in clause.args[word] for one in part.expressions]
            parts.append(list(_of(kind(expressions=given or elements), resolve)))
            elements = elements if given else []
    for part in clause.args.get("grouping_sets") or []:
        parts.append(list(_of(part, resolve)))
    parts = [list(_of(one, resolve)) for one in elements] + parts
    size = 1
    for part in parts:
        size *= len(part)
        if size > _MOST_SETS:
            raise question.refuse("too_complex", clause)
    return [
        tuple(dict.fromkeys(key for one in chosen for key in one)) for chosen in product(*parts)
    ]


def _of(node: exp.Expression, resolve: Resolve) -> Iterator[Set]:
    """Yield the sets of one element of GROUP BY."""
    if isinstance(node, exp.GroupingSets):
        for one in node.expressions:
            yield from _of(one, resolve)
        return
    if isinstance(node, exp.Rollup | exp.Cube):
        units = [next(_of(one, resolve)) for one in node.expressions]
        sizes = range(len(units), -1, -1)
        chosen: Iterator[Sequence[Set]] = (
            (units[:size] for size in sizes)
            if isinstance(node, exp.Rollup)
            else (some for size in sizes for some in combinations(units, size))
        )
        for some in chosen:
            yield tuple(key for unit in some for key in unit)
        return
    if isinstance(node, exp.Paren):
        yield (resolve(node.this),)
    elif isinstance(node, exp.Tuple):
        yield tuple(resolve(one) for one in node.expressions)
    else:
        yield (resolve(node),)


def _branch(
    select: exp.Select,
    items: list[tuple[str, exp.Expression]],
    keys: Set,
    every: list[exp.Expression],
    resolve: Resolve,
) -> exp.Select:
    there = {key.sql(DIALECT) for key in keys}
    missing = {key.sql(DIALECT) for key in every} - there
    branch = select.copy()
    for clause in ("order", "limit", "offset", "group", "with_"):
        branch.set(clause, None)
    if keys:
        branch.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    shown = [(title, _without(node, missing, resolve)) for title, node in items]
    branch.set("expressions", [exp.alias_(node, title, quoted=True) for title, node in shown])
    having = select.args.get("having")
    if having is not None:
        branch.set("having", exp.Having(this=_without(having.this, missing, resolve)))
    return branch


def _is_over_rows(node: exp.Expression) -> bool:
    return is_aggregate(node) and not isinstance(node, exp.Grouping | exp.GroupingId)


def _without(node: exp.Expression, missing: set[str], resolve: Resolve) -> exp.Expression:
    """Return an expression with the keys that a set leaves out being NULL."""
    if isinstance(node, exp.Grouping | exp.GroupingId):
        keys = [resolve(key).sql(DIALECT) for key in node.expressions]
        bits = ["1" if key in missing else "0" for key in keys]
        return exp.Literal.number(int("".join(bits) or "0", 2))
    if not isinstance(node, exp.Literal) and resolve(node).sql(DIALECT) in missing:
        return exp.Null()
    if is_aggregate(node):
        return node.copy()  # over rows, which have all columns
    made = node.copy()
    for child in list(made.iter_expressions()):
        child.replace(_without(child, missing, resolve))
    return made
