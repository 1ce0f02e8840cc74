"""Whose row a row is: the unit of privacy as one column of each protected table."""

from typing import Final

from sqlglot import exp

from discreet.ledger import period_label
from discreet.privacy import Period
from discreet.tables.model.catalog import Column, Table
from discreet.tables.model.unit_forms import common_form, exact_unit
from discreet.tables.sql.expressions.literals import text_literal
from discreet.tables.sql.expressions.term import kind_of, name, total_column
from discreet.tables.sql.question.context import Question, fold

__all__ = ["is_unit_column", "unit_of"]

_FORMATS: Final = {
    Period.day: "%Y-%m-%d",
    Period.week: "%G-W%V",
    Period.month: "%Y-%m",
    Period.year: "%Y",
}


def unit_of(question: Question, table: Table, node: exp.Expression) -> tuple[str | None, list[str]]:
    """Return the SQL of a table's unit, and the conditions that its rows must meet.

    With periods, the unit is a text of the period's label, a bar, and the unit: labels have no
    bar, so different pairs have different texts. Units are compared exactly, and not as questions
    see the column: there, very large numbers and fractions of a microsecond are rounded.
    """
    unit = question.catalog.unit
    if unit.kind == "record":
        return None, []
    column = _column(table, unit.name or "")
    form = None if column is None else common_form(_types(question))
    if column is None or form is None:
        raise question.refuse("unit", node, table=table.name, word=unit.name)
    plain = exact_unit(name(column.name), column.type, form)
    conditions = [f"{plain} IS NOT NULL"]
    if unit.period is None:
        return plain, conditions
    labels = _labels(question, node)
    moment = total_column(*_time(question, table, node))
    assert moment is not None  # _time() returns columns with dates only
    # Years before 1000 come without leading zeros from some versions: pad to the label's width.
    width = {Period.day: 10, Period.week: 8, Period.month: 7, Period.year: 4}[unit.period]
    label = f"lpad(strftime({moment.sql}, '{_FORMATS[unit.period]}'), {width}, '0')"
    conditions.append(f"{label} IN ({', '.join(labels)})")
    return f"concat({label}, '|', CAST({plain} AS VARCHAR))", conditions


def is_unit_column(question: Question, column: Column) -> bool:
    """Whether a column alone is the unit: with periods it is only a part of it."""
    unit = question.catalog.unit
    same = unit.name is not None and fold(column.name) == fold(unit.name)
    return same and unit.period is None


def _column(table: Table, wanted: str) -> Column | None:
    return next((c for c in table.columns if fold(c.name) == fold(wanted)), None)


def _types(question: Question) -> list[str]:
    """Return the types of the unit's column in all protected tables."""
    wanted = question.catalog.unit.name or ""
    private = [table for table in question.catalog.tables if not table.is_public]
    return [c.type for c in (_column(table, wanted) for table in private) if c is not None]


def _labels(question: Question, node: exp.Expression) -> list[str]:
    period = question.catalog.unit.period
    assert period is not None
    if not question.periods:
        example = period_label("2026-11-15", Period.day)
        example = {Period.month: "2026-11", Period.year: "2026", Period.week: "2026-W46"}.get(
            period, example
        )
        raise question.refuse("periods", node, period=str(period), example=example)
    return sorted({text_literal(period_label(p, period)).sql for p in question.periods})


def _time(question: Question, table: Table, node: exp.Expression) -> tuple[str, str]:
    unit = question.catalog.unit
    if unit.time is not None:
        found = [c for c in table.columns if fold(c.name) == fold(unit.time)]
    else:
        found = list(table.columns)
    found = [c for c in found if kind_of(c.type) in ("date", "timestamp")]
    if len(found) != 1:
        raise question.refuse("period_time", node, table=table.name, period=str(unit.period))
    return name(found[0].name), found[0].type
