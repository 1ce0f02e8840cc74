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


def _is_step(node: exp.Expression) -> bool:
    is_word = isinstance(node, exp.Var | exp.Literal) or (
        isinstance(node, exp.Column) and not node.table
    )
    return is_word and node.name.lower().rstrip("s") in _STEPS


def _column(unit: exp.Expression) -> exp.Expression:
    """Return what the parser took for the name of a unit as the column that it is."""
    return exp.column(unit.name) if isinstance(unit, exp.Var) else unit
