"""MODE(x): the groups of x are released with their numbers of rows, and the largest is chosen."""

from sqlglot import exp

from discreet.tables.sql.aggregate_calls import is_aggregate
from discreet.tables.sql.composites.grouping_sets import has_sets, resolver, titled
from discreet.tables.sql.question.context import ReadingContext

__all__ = ["over_modes"]


def over_modes(
    question: ReadingContext, select: exp.Select
) -> tuple[exp.Select, exp.Select] | None:
    """Return what is released for the modes of a SELECT, and the SELECT over it without its FROM.

    None where it asks for no mode, for several, or for other aggregates beside it. Whichever group
    has the largest noisy number is chosen from what was released, so nothing more is paid for it.
    """
    clauses = [select.args.get(word) for word in ("having", "qualify", "windows", "distinct")]
    shown = [*select.expressions, *([select.args["order"]] if select.args.get("order") else [])]
    asked = {_value(one) for item in shown for one in _outermost(item)}
    if any(clauses) or has_sets(select) or len(asked) != 1 or None in asked:
        return None
    (value,) = asked
    assert value is not None
    group, resolve = select.args.get("group"), resolver(question, select)
    keys = [resolve(key) for key in (group.expressions if group is not None else [])]
    inner = select.copy()
    for clause in ("order", "limit", "offset"):
        inner.set(clause, None)
    named = [exp.alias_(key.copy(), f"c{i}") for i, key in enumerate(keys)]
    counted = exp.alias_(exp.Count(this=exp.Star()), "n")
    inner.set("expressions", [*named, exp.alias_(value.copy(), "v"), counted])
    inner.set("group", exp.Group(expressions=[key.copy() for key in (*keys, value)]))
    columns = [exp.column(f"c{i}") for i in range(len(keys))]

    def moved(node: exp.Expression) -> exp.Expression:
        if _value(node) is not None:
            return exp.ArgMax(this=exp.column("v"), expression=exp.column("n"))
        for key, column in zip(keys, columns, strict=True):
            if isinstance(node, exp.Column | type(key)) and resolve(node) == key:
                return column.copy()
        made = node.copy()
        for child in list(made.iter_expressions()):
            child.replace(moved(child))
        return made

    items = [exp.alias_(moved(i.unalias()), titled(i), quoted=True) for i in select.expressions]
    outer = exp.Select(expressions=items)
    outer.set("where", exp.Where(this=exp.column("v").is_(exp.Null()).not_()))
    if keys:
        outer.set("group", exp.Group(expressions=columns))
    if select.args.get("order") is not None:
        outer.set("order", moved(select.args["order"]))
    for clause in ("limit", "offset"):
        outer.set(clause, select.args.get(clause))
    return inner, outer


def _outermost(node: exp.Expression) -> list[exp.Expression]:
    """Return the aggregates in an expression, those inside others left out."""
    if is_aggregate(node):
        return [node]
    return [one for child in node.iter_expressions() for one in _outermost(child)]


def _value(node: exp.Expression) -> exp.Expression | None:
    """Return what MODE(x), or MODE() WITHIN GROUP (ORDER BY x), is about; None: it is another."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode):
        order = node.expression.expressions
        return order[0].this if len(order) == 1 and node.this.this is None else None
    return (
        node.this if isinstance(node, exp.Mode) and isinstance(node.this, exp.Expression) else None
    )
