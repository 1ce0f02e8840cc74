"""Whose row a row is: the unit of privacy as one column of each protected table."""

from sqlglot import exp

from discreet.ledger import period_label
from discreet.privacy import Period
from discreet.tables.model.catalog import Column, Table
from discreet.tables.model.scalar import Call, Cast, ColumnRef, Literal, Scalar
from discreet.tables.model.types import kind_of
from discreet.tables.model.unit_forms import common_form, exact_unit
from discreet.tables.sql.expressions.term import total_column
from discreet.tables.sql.question.context import ReadingContext, fold

__all__ = ["is_unit_column", "unit_of"]


def unit_of(
    question: ReadingContext, table: Table, node: exp.Expression
) -> tuple[Scalar | None, tuple[Scalar, ...]]:
    """Return a table's unit, and the conditions that its rows must meet.

    With periods, the unit is a text of the period's label, a bar, and the unit: labels have no
    bar, so different pairs have different texts. Units are compared exactly, and not as questions
    see the column: there, very large numbers and fractions of a microsecond are rounded.
    """
    unit = question.catalog.unit
    if unit.kind == "record":
        return None, ()
    column = _column(table, unit.name or "")
    form = None if column is None else common_form(_types(question))
    if column is None or form is None:
        raise question.refuse("unit", node, table=table.name, word=unit.name)
    plain = exact_unit(ColumnRef(column.name), column.type, form)
    is_someone = Call("not", (Call("is_null", (plain,)),))
    if unit.period is None:
        return plain, (is_someone,)
    labels = _labels(question, node)
    time = _time(question, table, node)
    moment = total_column(ColumnRef(time.name), time.type)
    assert moment is not None  # _time() returns columns with dates only
    label = Call("period_label", (moment.node, Literal(str(unit.period), "text")))
    tagged = Call("tagged", (label, Cast(plain, "text", widens=True)))
    return tagged, (is_someone, Call("in", (label, *labels)))


def is_unit_column(question: ReadingContext, column: Column) -> bool:
    """Whether a column alone is the unit: with periods it is only a part of it."""
    unit = question.catalog.unit
    same = unit.name is not None and fold(column.name) == fold(unit.name)
    return same and unit.period is None


def _column(table: Table, wanted: str) -> Column | None:
    return next((c for c in table.columns if fold(c.name) == fold(wanted)), None)


def _types(question: ReadingContext) -> list[str]:
    """Return the types of the unit's column in all protected tables."""
    wanted = question.catalog.unit.name or ""
    private = [table for table in question.catalog.tables if not table.is_public]
    return [c.type for c in (_column(table, wanted) for table in private) if c is not None]


def _labels(question: ReadingContext, node: exp.Expression) -> list[Literal]:
    period = question.catalog.unit.period
    assert period is not None
    if not question.periods:
        example = period_label("2026-11-15", Period.day)
        example = {Period.month: "2026-11", Period.year: "2026", Period.week: "2026-W46"}.get(
            period, example
        )
        raise question.refuse("periods", node, period=str(period), example=example)
    labels = sorted({period_label(one, period) for one in question.periods})
    return [Literal(label, "text") for label in labels]


def _time(question: ReadingContext, table: Table, node: exp.Expression) -> Column:
    unit = question.catalog.unit
    if unit.time is not None:
        found = [c for c in table.columns if fold(c.name) == fold(unit.time)]
    else:
        found = list(table.columns)
    found = [c for c in found if kind_of(c.type) in ("date", "timestamp")]
    if len(found) != 1:
        raise question.refuse("period_time", node, table=table.name, period=str(unit.period))
    return found[0]
