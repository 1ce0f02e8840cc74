"""Windows and subqueries over groups: what is released first, and what is computed of it then."""

from typing import Final, final

from sqlglot import exp

from discreet.tables.sql.aggregate_calls import has_aggregate
from discreet.tables.sql.composites.grouping_sets import resolver, titled
from discreet.tables.sql.question.context import DIALECT, ReadingContext, fold

__all__ = ["RELEASED", "lifted", "needs_lifting", "outside_windows"]

RELEASED: Final = "released"
_LATER: Final = (exp.Window, exp.Query)


def needs_lifting(select: exp.Select) -> bool:
    """Whether a grouped SELECT has windows or subqueries over its groups.

    >>> import sqlglot
    >>> text = "SELECT a, RANK() OVER (ORDER BY COUNT(*)) FROM t GROUP BY a"
    >>> needs_lifting(sqlglot.parse_one(text))
    True
    """
    is_grouped = select.args.get("group") is not None or any(
        has_aggregate(part) for item in select.expressions for part in outside_windows(item)
    )
    return is_grouped and any(_is_later(part) for part in _posts(select))


def lifted(question: ReadingContext, select: exp.Select) -> tuple[exp.Select, exp.Select]:
    """Return what is released first, and the SELECT over it, whose FROM is still to be filled in.

    The first has one column for each aggregate, key and other expression that the second needs.
    """
    lifting = _Lifting(question, select)
    outer = exp.Select(
        expressions=[
            exp.alias_(lifting.of(item.unalias()), titled(item), quoted=True)
            for item in select.expressions
        ]
    )
    having = select.args.get("having")
    is_moved = False
    if having is not None and _is_later(having):
        is_moved = True
        outer.set("where", exp.Where(this=lifting.of(having.this)))
    qualify, order = select.args.get("qualify"), select.args.get("order")
    if qualify is not None:
        outer.set("qualify", exp.Qualify(this=lifting.of(qualify.this)))
    if order is not None:
        outer.set("order", lifting.of(order))
    outer.set("windows", [lifting.of(one) for one in select.args.get("windows") or []])
    for clause in ("limit", "offset", "distinct"):
        outer.set(clause, select.args.get(clause))
    return lifting.core(is_having_kept=not is_moved), outer


def outside_windows(node: exp.Expression) -> list[exp.Expression]:
    """Return the parts of an item that aggregate rows, and not released groups."""
    if isinstance(node, exp.Window):
        order = node.args.get("order")
        own = [*(node.args.get("partition_by") or []), *([] if order is None else [order])]
        return [*own, *node.this.iter_expressions()]
    if node.find(exp.Window) is None:
        return [node]
    return [part for child in node.iter_expressions() for part in outside_windows(child)]


def _posts(select: exp.Select) -> list[exp.Expression]:
    parts = [*select.expressions, *(select.args.get("windows") or [])]
    clauses = (select.args.get(clause) for clause in ("having", "qualify", "order"))
    return [*parts, *(clause for clause in clauses if clause is not None)]


def _is_later(node: exp.Expression) -> bool:
    return any(isinstance(part, _LATER) for part in node.walk())


@final
class _Lifting:
    """Moves expressions from over groups to over the released table."""

    def __init__(self, question: ReadingContext, select: exp.Select) -> None:
        self.select, self.resolve = select, resolver(question, select)
        self.columns: dict[str, exp.Expression] = {}
        self.titles = {
            fold(i.alias): i.this for i in select.expressions if isinstance(i, exp.Alias)
        }

    def of(self, node: exp.Expression) -> exp.Expression:
        """Return an expression over the released table."""
        node = node.transform(self._named)
        if not _is_later(node) and not isinstance(node, exp.Order | exp.Ordered):
            return self._plain(node)
        made = node.copy()
        if isinstance(made, exp.Query):
            return made  # by itself: it is made of releases of its own
        inner = made.this if isinstance(made, exp.Window) else None
        for child in list(made.iter_expressions()):
            if child is inner and not isinstance(child, exp.Identifier):
                for argument in list(child.iter_expressions()):
                    argument.replace(self.of(argument))
            elif not isinstance(child, exp.Identifier | exp.WindowSpec | exp.TableAlias):
                child.replace(self.of(child))
        return made

    def core(self, *, is_having_kept: bool) -> exp.Select:
        """Return the SELECT that is released."""
        core = self.select.copy()
        for clause in ("qualify", "windows", "order", "limit", "offset", "distinct"):
            core.set(clause, None)
        if not is_having_kept:
            core.set("having", None)
        group = core.args.get("group")
        if group is not None:  # names and numbers of a SELECT list that is another now
            core.set("group", group.transform(self._resolved))
        shown = [exp.alias_(node.copy(), f"c{i}") for i, node in enumerate(self.columns.values())]
        core.set("expressions", shown or [exp.alias_(exp.Count(this=exp.Star()), "c0")])
        return core

    def _named(self, node: exp.Expression) -> exp.Expression:
        """Return what a name of the SELECT list stands for."""
        if not isinstance(node, exp.Column) or node.table:
            return node
        named = self.titles.get(fold(node.name))
        if named is None or (not _is_later(named) and not has_aggregate(named)):
            return self._resolved(node)
        return exp.Paren(this=named.copy())

    def _resolved(self, node: exp.Expression) -> exp.Expression:
        found = self.resolve(node)
        return node if found is node else found.copy()

    def _plain(self, node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Identifier | exp.Literal | exp.Star | exp.Null | exp.Boolean):
            return node.copy()
        if has_aggregate(node) or node.find(exp.Column) is not None:
            return self._column(node)
        return node.copy()

    def _column(self, node: exp.Expression) -> exp.Expression:
        text = node.sql(DIALECT)
        self.columns.setdefault(text, node)
        place = list(self.columns).index(text)
        return exp.column(f"c{place}", table=RELEASED, quoted=True)
