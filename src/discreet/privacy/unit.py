"""Who is protected: a record, a person, a person in a period, a household, a group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, final

from discreet._exact import whole
from discreet.errors import ParameterError

Kind = Literal["record", "column", "household"]
_KINDS = ("record", "column", "household")
_FIELDS = ("kind", "name", "period", "time", "size")


class Period(StrEnum):
    """Name a calendar period, in the time zone in which the time column is stored.

    Weeks begin on Monday.

    >>> Period("day") is Period.day
    True
    """

    day = "day"
    week = "week"
    month = "month"
    year = "year"


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Unit:
    """Say whose records may change together: the unit of privacy.

    Build one with :meth:`record`, :meth:`column`, :meth:`household` or :meth:`of`, and narrow or
    widen it with :meth:`per` and :meth:`group`.

    >>> print(Unit.column("user_id"))
    all records of one user_id
    >>> print(Unit.column("user_id").per("day", time="visited"))
    all records of one user_id in one day of visited
    >>> Unit.from_dict({"kind": "household", "name": "household_id"})
    Unit.household('household_id')
    """

    kind: Kind
    name: str | None = None
    period: Period | None = None
    time: str | None = None
    size: int = 1

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise _refuse("kind", f"kind must be one of {', '.join(_KINDS)}, got {self.kind!r}.")
        if self.kind == "record":
            self._check_record()
        else:
            _check_column(self.name, "name")
        if self.period is not None:
            object.__setattr__(self, "period", _period(self.period))
        if self.time is not None:
            _check_column(self.time, "time")
            if self.period is None:
                raise _refuse("time", "time names the column of a period; say .per('day', time=).")
        object.__setattr__(self, "size", whole(self.size, name="size"))

    def _check_record(self) -> None:
        if self.name is not None:
            raise _refuse("name", "a record has no column; use Unit.column(name) for one.")
        if self.period is not None:
            raise _refuse(
                "period",
                "a single record needs no period. Use Unit.column(name).per(period) to protect "
                "all that one person does in it.",
            )

    @classmethod
    def record(cls) -> "Unit":
        """Protect each row by itself; a person with many rows is protected less.

        >>> print(Unit.record())
        one record
        """
        return cls(kind="record")

    @classmethod
    def column(cls, name: str) -> "Unit":
        """Protect all rows that share a value of this column, such as a person's.

        >>> Unit.column("user_id")
        Unit.column('user_id')
        """
        return cls(kind="column", name=name)

    @classmethod
    def household(cls, name: str) -> "Unit":
        """Protect all people of a household, whose records are correlated, as one.

        >>> print(Unit.household("household_id"))
        all records of one household (household_id)
        """
        return cls(kind="household", name=name)

    @classmethod
    def of(cls, unit: "Unit | str") -> "Unit":
        """Return a unit as it is, and a string as the column of that name, whatever the name.

        >>> Unit.of("record")
        Unit.column('record')
        """
        return unit if isinstance(unit, Unit) else cls.column(unit)

    def per(self, period: Period | str, *, time: str | None = None) -> "Unit":
        """Protect what the unit does in any one period; periods then add up.

        Whoever is active in d periods is protected as a group of d: see ``Guarantee.group``.
        ``time`` names the column that dates a row, where there is more than one.

        >>> Unit.column("user_id").per("week")
        Unit.column('user_id').per('week')
        """
        return replace(self, period=_period(period), time=time)

    def group(self, k: int) -> "Unit":
        """Protect any k of these units together.

        >>> print(Unit.record().group(5))
        any 5 records
        """
        return replace(self, size=self.size * whole(k, name="k"))

    def to_dict(self) -> dict[str, str | int]:
        """Return the unit as JSON-ready data, defaults left out.

        >>> Unit.column("user_id").per("day").to_dict()
        {'kind': 'column', 'name': 'user_id', 'period': 'day'}
        """
        data: dict[str, str | int] = {"kind": self.kind}
        if self.name is not None:
            data["name"] = self.name
        if self.period is not None:
            data["period"] = str(self.period)
        if self.time is not None:
            data["time"] = self.time
        if self.size != 1:
            data["size"] = self.size
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Unit":
        """Read back what :meth:`to_dict` wrote, checking everything.

        >>> Unit.from_dict({"kind": "record", "size": 2}) == Unit.record().group(2)
        True
        """
        if "kind" not in data:
            raise _refuse("unit", "a unit is a mapping with a 'kind', such as {'kind': 'record'}.")
        unknown = sorted(str(key) for key in data if key not in _FIELDS)
        if unknown:
            # An unknown key may narrow the unit in a newer version: never guess past it.
            raise _refuse("unit", f"a unit has the keys {', '.join(_FIELDS)}, not {unknown}.")
        return cls(**data)  # type: ignore[arg-type]  # every field is checked on construction

    def __repr__(self) -> str:
        text = f"Unit.{self.kind}({'' if self.name is None else repr(self.name)})"
        if self.period is not None:
            time = "" if self.time is None else f", time={self.time!r}"
            text += f".per({str(self.period)!r}{time})"
        return text if self.size == 1 else f"{text}.group({self.size})"

    def __str__(self) -> str:
        if self.kind == "record":
            return "one record" if self.size == 1 else f"any {self.size} records"
        when = "" if self.period is None else f" in one {self.period}"
        when += "" if self.time is None else f" of {self.time}"
        if self.kind == "household":
            who = "one household" if self.size == 1 else f"any {self.size} households"
            return f"all records of {who} ({self.name}){when}"
        who = f"one {self.name}" if self.size == 1 else f"any {self.size} values of {self.name}"
        return f"all records of {who}{when}"


def _refuse(parameter: str, message: str) -> ParameterError:
    return ParameterError(message, parameter=parameter)


def _check_column(name: object, parameter: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise _refuse(
            parameter,
            f"{parameter} must be the name of a column, got {name!r}. "
            "Unit.record() protects single rows.",
        )


def _period(period: Period | str) -> Period:
    try:
        return Period(period)
    except ValueError:
        choices = ", ".join(Period)
        raise _refuse("period", f"period must be one of {choices}, got {period!r}.") from None
