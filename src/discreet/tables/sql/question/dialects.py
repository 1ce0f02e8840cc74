"""What other databases write, turned into what the parser makes of it in DuckDB's SQL."""

from typing import Final

from sqlglot import exp

__all__ = ["normalised"]

_STEPS: Final = frozenset({
    "year", "quarter", "month", "week", "isoweek", "day", "hour", "minute", "second", "dow",
    "dayofweek", "dayofyear", "doy", "isodow", "isoyear", "epoch", "epoch_second",
})  # fmt: skip
_FIRST: Final = frozenset({"dateadd", "datepart", "date_part", "timestampadd"})


def normalised(tree: exp.Expression) -> exp.Expression:
    """Return a question in which every word for a part of a date stands where DuckDB has it.

    >>> import sqlglot
    >>> asked = sqlglot.parse_one("SELECT DATE_TRUNC(d, MONTH), DATEADD(day, 1, d)", read="duckdb")
    >>> normalised(asked).sql("duckdb")
    "SELECT DATE_TRUNC('MONTH', D), DATEADD(day, 1, d)"
    """
    for bracket in list(tree.find_all(exp.Bracket)):
        meant = _element(bracket)
        if meant is not None:
            meant.meta.update(bracket.this.meta)
            bracket.replace(meant)
    for node in list(tree.find_all(exp.Anonymous, exp.TimestampTrunc, exp.DateDiff, exp.DateAdd)):
        unit = node.args.get("unit")
        if isinstance(node, exp.Anonymous):
            first = node.expressions[0] if node.expressions else None
            if first is not None and str(node.this).lower() in _FIRST and _is_step(first):
                first.replace(exp.Var(this=first.name))
        elif isinstance(node, exp.DateAdd):  # DATE_ADD('day', 1, d)
            if unit is not None and _is_step(node.this):
                word, count = node.this.name, node.expression
                node.replace(exp.Anonymous(
                    this="DATEADD", expressions=[exp.Var(this=word), count, _column(unit)]
                ))  # fmt: skip
        elif unit is not None and not _is_step(unit) and _is_step(node.this):
            word = node.this.name  # DATE_TRUNC(d, MONTH), DATE_DIFF(b, a, DAY)
            node.set("this", _column(unit))
            node.set("unit", exp.Var(this=word.upper()))
    return tree


def _element(node: exp.Bracket) -> exp.Expression | None:
    """Return APPROX_QUANTILES(x, 100)[OFFSET(90)] and SPLIT(x, '-')[1] as what they choose."""
    made, index = node.this, node.expressions[0]
    word = str(index.this).upper() if isinstance(index, exp.Anonymous) else ""
    if isinstance(index, exp.Anonymous) and len(index.expressions) == 1:
        index = index.expressions[0]
    if not isinstance(index, exp.Literal) or not str(index.this).isdecimal():
        return None
    place = int(str(index.this)) - (word.endswith("ORDINAL"))  # from 0; the parser sees to others
    if isinstance(made, exp.Split) and place >= 0:
        number = exp.Literal.number(place + 1)
        return exp.SplitPart(this=made.this, delimiter=made.expression, part_index=number)
    parts = made.args.get("expression") if isinstance(made, exp.ApproxQuantiles) else None
    if isinstance(parts, exp.Literal) and str(parts.this).isdecimal() and int(parts.this) > 0:
        if place in (0, int(parts.this)):
            return (exp.Min if place == 0 else exp.Max)(this=made.this)
        share = exp.Div(this=exp.Literal.number(place), expression=parts.copy())
        return exp.Quantile(this=made.this, quantile=share)
    return None


def _is_step(node: exp.Expression) -> bool:
    is_word = isinstance(node, exp.Var | exp.Literal) or (
        isinstance(node, exp.Column) and not node.table
    )
    return is_word and node.name.lower().rstrip("s") in _STEPS


def _column(unit: exp.Expression) -> exp.Expression:
    """Return what the parser took for the name of a unit as the column that it is."""
    return exp.column(unit.name) if isinstance(unit, exp.Var) else unit
