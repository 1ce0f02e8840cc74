"""Whose row a row is: the unit of privacy as one column of each protected table."""

from typing import Final, Protocol

from sqlglot import exp

from discreet.ledger import period_label
from discreet.privacy import Period
from discreet.tables.model.catalog import Column, ForeignKey, Table
from discreet.tables.model.relation import UNIT, Columns, GroupedRows, Joined, Scan, Select
from discreet.tables.model.scalar import Call, Cast, ColumnRef, Fold, Literal, Scalar
from discreet.tables.model.types import kind_of
from discreet.tables.model.unit_forms import common_form, exact_unit
from discreet.tables.sql.expressions.term import total_column
from discreet.tables.sql.question.context import ReadingContext, fold

__all__ = ["OWN", "owner_labels", "owner_names", "rows_of"]

OWN: Final = ""  # the label of the unit's own column; those of keys have a dot
_KEY: Final = "k0"


class RowsOfTable(Protocol):
    """Makes some columns of a protected table's rows, with the unit as another one before them."""

    def __call__(self, columns: Columns, /, *, is_whole: bool = False) -> Select:
        """Return rows that belong to somebody; ``is_whole`` leaves periods that are not asked."""


def rows_of(question: ReadingContext, table: Table, node: exp.Expression) -> RowsOfTable:
    """Return what makes the rows of a table, each with its unit.

    With periods, the unit is a text of the period's label, a bar, and the unit: labels have no
    bar, so different pairs have different texts. Units are compared exactly, and not as questions
    see the column: there, very large numbers and fractions of a microsecond are rounded.
    """
    question.read.add(table.name)
    unit = question.catalog.unit
    if unit.kind == "record":
        return lambda columns, is_whole=False: Select(Scan(table.name), columns)
    if isinstance(table.unit, ForeignKey):
        return _through(question, table, table.unit, node)
    column = _column(table, table.unit or unit.name or "")
    form = None if column is None else common_form(_types(question))
    if column is None or form is None:
        raise question.refuse("unit", node, table=table.name, word=table.unit or unit.name)
    plain = exact_unit(ColumnRef(column.name), column.type, form)
    is_someone = Call("not", (Call("is_null", (plain,)),))
    if unit.period is None:
        return lambda columns, is_whole=False: Select(
            Scan(table.name), ((UNIT, plain), *columns), (is_someone,)
        )
    labels = _labels(question, node)
    time = _time(question, table, node)
    moment = total_column(ColumnRef(time.name), time.type)
    assert moment is not None  # _time() returns columns with dates only
    label = Call("period_label", (moment.node, Literal(str(unit.period), "text")))
    tagged = Call("tagged", (label, Cast(plain, "text", widens=True)))
    in_time = Call("in", (label, *labels))
    at_any_time = Call("not", (Call("is_null", (label,)),))
    return lambda columns, is_whole=False: Select(
        Scan(table.name),
        ((UNIT, tagged), *columns),
        (is_someone, at_any_time if is_whole else in_time),
    )


def _through(
    question: ReadingContext, table: Table, key: ForeignKey, node: exp.Expression
) -> RowsOfTable:
    """Return what makes the rows of a table whose unit another table tells.

    :class:`ForeignKey` says whose they are. Each row has one partner at most, so that none is
    multiplied, and owners are those of all periods, so that they do not depend on what is asked.
    """
    other = question.tables[fold(key.table)]
    own, target = _column(table, key.column), _column(other, key.key)
    form = None if own is None or target is None else common_form([own.type, target.type])
    if own is None or target is None or form is None:
        raise question.refuse("unit", node, table=table.name, word=key.column)
    others = rows_of(question, other, node)
    of_other = ((_KEY, exact_unit(ColumnRef(target.name), target.type, form)),)
    part = Joined(alias="s0", rows=others(of_other, is_whole=True))
    has_key = Call("not", (Call("is_null", (ColumnRef(_KEY, "s0"),)),))
    named = ((_KEY, ColumnRef(_KEY, "s0")), ("v0", ColumnRef(UNIT, "s0")))
    owners = GroupedRows(
        Select((part,), named, (has_key,)),
        by=(_KEY,),
        columns=((_KEY, ColumnRef(_KEY)), ("v0", Fold("minimum", ColumnRef("v0")))),
    )
    owner = ColumnRef("v0", "s1")
    in_time: tuple[Scalar, ...] = ()
    if question.catalog.unit.period is not None:
        label = Call("split_part", (owner, Literal("|", "text"), Literal(1, "int32")))
        in_time = (Call("in", (label, *_labels(question, node))),)

    def make(columns: Columns, /, *, is_whole: bool = False) -> Select:
        inner = _KEY
        while inner in {name for name, _ in columns}:
            inner += "_"
        mine = exact_unit(ColumnRef(own.name), own.type, form)
        rows = Select(Scan(table.name), ((inner, mine), *columns))
        on = (Call("equal", (ColumnRef(inner, "s0"), ColumnRef(_KEY, "s1"))),)
        parts = (Joined(alias="s0", rows=rows), Joined(alias="s1", rows=owners, on=on))
        shown = tuple((name, ColumnRef(name, "s0")) for name, _ in columns)
        return Select(parts, ((UNIT, owner), *shown), () if is_whole else in_time)

    return make


def owner_labels(question: ReadingContext, table: Table, column: Column) -> frozenset[str]:
    """Return what a column says of whose row it is: see ``owner`` of ``Term``."""
    unit = question.catalog.unit
    if table.is_public or unit.kind == "record":
        return frozenset()
    found = set()
    if isinstance(table.unit, ForeignKey):
        if fold(column.name) == fold(table.unit.column):
            found.add(fold(table.unit.label))
    elif fold(column.name) == fold(table.unit or unit.name or ""):
        found.add(OWN)
    for other in question.catalog.tables:
        means = other.unit if isinstance(other.unit, ForeignKey) else None
        if means is not None and fold(means.label) == fold(f"{table.name}.{column.name}"):
            found.add(fold(means.label))
    return frozenset(found)


def owner_names(question: ReadingContext) -> set[str]:
    """Return the names of all columns that say whose rows they are."""
    return {
        fold(column.name)
        for table in question.catalog.tables
        for column in table.columns
        if owner_labels(question, table, column)
    }


def _column(table: Table, wanted: str) -> Column | None:
    return next((c for c in table.columns if fold(c.name) == fold(wanted)), None)


def _types(question: ReadingContext) -> list[str]:
    """Return the types of the unit's column in all protected tables that have one."""
    usual = question.catalog.unit.name or ""
    names = {
        table: table.unit or usual
        for table in question.catalog.tables
        if not table.is_public and not isinstance(table.unit, ForeignKey)
    }
    found = [_column(table, str(name)) for table, name in names.items()]
    return [column.type for column in found if column is not None]


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
