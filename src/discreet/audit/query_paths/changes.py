"""Tables that differ in one unit, each pair in another way that has broken query paths."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from discreet.audit.query_paths.observation import Columns
from discreet.errors import DataError, ParameterError
from discreet.privacy import Neighbours, Unit

__all__ = ["KINDS", "Subject", "columns_of", "pair_of", "unit_column"]

Row = dict[str, Any]

_MANY = 1_000  # rows of one unit that has very many
_SOME = 40
_LARGEST, _WIDEST = 2**63 - 1, 1.7976931348623157e308
_MALFORMED = "\x00\x1b[2J\u202e'\";--%s{0}\\" + "\N{GRINNING FACE}" * 50


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A table in which units come and go; ``unit`` is the column that names them, if any."""

    table: Columns
    unit: str | None

    @property
    def rows(self) -> list[Row]:
        names = list(self.table)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*self.table.values(), strict=True)
        ]

    @property
    def typical(self) -> list[Row]:
        """The rows of the unit in the middle, by how many it has."""
        rows = self.rows
        if not rows:
            raise DataError("an audit needs a table with at least one unit in it.")
        if self.unit is None:
            return [rows[len(rows) // 2]]
        by_unit: dict[Any, list[Row]] = {}
        for row in rows:
            by_unit.setdefault(row[self.unit], []).append(row)
        known = sorted((own for key, own in by_unit.items() if key is not None), key=len)
        if not known:
            raise DataError("an audit needs a table with at least one unit in it.")
        return known[len(known) // 2]

    def are(self, kind: type | tuple[type, ...]) -> list[str]:
        """Return the columns, other than the unit's, whose values are all of a kind."""
        return [
            name
            for name, values in self.table.items()
            if name != self.unit
            and any(value is not None for value in values)
            and all(
                isinstance(value, kind) and not isinstance(value, bool)
                for value in values
                if value is not None
            )
        ]

    def newcomer(self, count: int = 1, **changed: Any) -> list[Row]:
        """Return rows of a unit that is not in the table: a typical one, with columns changed."""
        row = {**self.typical[0], **changed}
        if self.unit is None:
            return [row]  # a record is a unit of its own
        row[self.unit] = _stranger(self.table[self.unit])
        return [dict(row) for _ in range(count)]


def columns_of(data: Any) -> Columns:
    """Return a table as columns of Python values: from a dict, or an Arrow, pandas or Polars frame.

    >>> columns_of({"person": (1, 2)})
    {'person': [1, 2]}
    """
    if hasattr(data, "to_pydict"):
        data = data.to_pydict()
    elif hasattr(data, "to_dict"):
        data = {name: data[name] for name in data.columns}
    if not isinstance(data, Mapping) or not data:
        raise ParameterError(
            "data must be a table: a dict of columns, or an Arrow, pandas or Polars frame.",
            parameter="data",
        )
    found = {
        str(name): list(column.tolist() if hasattr(column, "tolist") else column)
        for name, column in data.items()
    }
    if len({len(column) for column in found.values()}) != 1:
        raise DataError("the columns of a table must be equally long.")
    return found


def _stranger(known: list[Any]) -> Any:
    """Return a name that no unit has, of the type that they have."""
    names = [name for name in known if name is not None]
    if names and all(isinstance(name, int) for name in names):
        return max(names) + 1
    return "a stranger " + "x" * max((len(str(name)) for name in names), default=0)


def _same(subject: Subject, value: Any, *kinds: type) -> dict[str, Any]:
    return dict.fromkeys(subject.are(kinds), value)


def _heavy(subject: Subject) -> list[Row]:
    return subject.newcomer(_MANY)


def _alone(subject: Subject) -> list[Row]:
    return subject.newcomer(_SOME, **_same(subject, "a key of nobody else", str))


def _spread(subject: Subject) -> list[Row]:
    rows = subject.newcomer(_SOME)
    texts = subject.are(str)
    return [{**row, **dict.fromkeys(texts, f"key {i} of one")} for i, row in enumerate(rows)]


def _largest(subject: Subject) -> list[Row]:
    ends = {**_same(subject, _WIDEST, int, float), **_same(subject, _LARGEST, int)}
    return subject.newcomer(_SOME, **ends)


def _smallest(subject: Subject) -> list[Row]:
    ends = {**_same(subject, -_WIDEST, int, float), **_same(subject, -_LARGEST, int)}
    return subject.newcomer(_SOME, **ends)


def _nulls(subject: Subject) -> list[Row]:
    return subject.newcomer(_SOME, **{n: None for n in subject.table if n != subject.unit})


def _not_finite(subject: Subject) -> list[Row]:
    floats = subject.are((int, float))
    floats = [name for name in floats if name not in subject.are(int)]
    rows = subject.newcomer(3)
    odd = (math.nan, math.inf, -math.inf)
    return [{**row, **dict.fromkeys(floats, value)} for row, value in zip(rows, odd, strict=False)]


def _malformed(subject: Subject) -> list[Row]:
    return subject.newcomer(_SOME, **_same(subject, _MALFORMED, str))


_NEWCOMERS: Final[dict[str, Callable[[Subject], list[Row]]]] = {
    "many rows": _heavy,
    "alone in a key": _alone,
    "many keys": _spread,
    "largest values": _largest,
    "smallest values": _smallest,
    "nulls": _nulls,
    "not finite": _not_finite,
    "malformed text": _malformed,
    "duplicates": lambda subject: subject.newcomer(_SOME),
    "only value": lambda subject: subject.newcomer(_SOME),
    "only unit": lambda subject: subject.newcomer(),
}

#: The ways in which two neighbouring tables differ.
KINDS: Final = ("typical unit", *_NEWCOMERS)


def pair_of(kind: str, subject: Subject, neighbours: Neighbours) -> tuple[Columns, Columns]:
    """Return two neighbouring tables: with the unit, and without it or with a typical one.

    >>> subject = Subject(table={"person": [1, 2], "x": [5, 5]}, unit="person")
    >>> pair_of("only unit", subject, Neighbours.add_remove)
    ({'person': [3], 'x': [5]}, {'person': [], 'x': []})
    """
    names = list(subject.table)
    own, others = _own(kind, subject), _others(kind, subject)
    instead: list[Row] = []
    if neighbours is not Neighbours.add_remove:
        name = own[0][subject.unit] if subject.unit else None
        instead = [
            {**row, **({subject.unit: name} if subject.unit else {})} for row in subject.typical
        ]
        if instead == own:  # then by one whose numbers are the other way round
            instead = [{**row, **_negative(row, subject)} for row in own]
    return _columns([*others, *own], names), _columns([*others, *instead], names)


def _own(kind: str, subject: Subject) -> list[Row]:
    return subject.typical if kind == "typical unit" else _NEWCOMERS[kind](subject)


def _others(kind: str, subject: Subject) -> list[Row]:
    if kind == "only unit":
        return []
    if kind == "typical unit" and subject.unit is not None:
        gone = subject.typical[0][subject.unit]
        return [row for row in subject.rows if row[subject.unit] != gone]
    if kind == "typical unit":
        middle = len(subject.rows) // 2
        return [row for place, row in enumerate(subject.rows) if place != middle]
    if kind == "only value":
        return [
            {name: value if name == subject.unit else None for name, value in row.items()}
            for row in subject.rows
        ]
    return subject.rows


def _negative(row: Row, subject: Subject) -> Row:
    return {name: -row[name] for name in subject.are((int, float)) if row[name] is not None}


def _columns(rows: list[Row], names: list[str]) -> Columns:
    return {name: [row[name] for row in rows] for name in names}


def unit_column(unit: Unit | str, table: Columns) -> str | None:
    """Return the column that says whose row it is; None where each row is a unit."""
    found = Unit.of(unit)
    if found.period is not None:
        raise ParameterError(
            "a unit with a period is not audited as a whole: its rows of all periods would go at "
            "once. Take a table of one period, and the unit without it.",
            parameter="unit",
        )
    if found.name is not None and found.name not in table:
        raise ParameterError(f"the table has no column {found.name!r}.", parameter="unit")
    return found.name
