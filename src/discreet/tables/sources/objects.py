"""Columns of Python objects: one type for all, and NULL where an object does not fit."""

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from discreet.tables.model.types import plain_type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NEARLY", "from_objects"]

NEARLY: Final = 0.9  # of the values that are there: a few bad ones are NULL
_WIDEST: Final = "DECIMAL(38,9)"
_ZONED: Final = "TIMESTAMP WITH TIME ZONE"
_ABSENT: Final = frozenset(["NoneType", "NAType", "NaTType"])


def from_objects(values: Iterable[Any], type_: str | None = None) -> "pa.Array":
    """Return objects as an Arrow array of a type in SQL: the one given, else a guessed one.

    The guess is the first type that nearly all objects have.

    >>> array = from_objects([1, 2, None, 3, 4, 5, 6, 7, 8, 9, 10, "eleven"])
    >>> str(array.type), array.null_count
    ('int64', 2)
    """
    import pyarrow as pa

    listed = list(values)
    name = plain_type(type_) if type_ else _guessed(listed)
    if name not in _TYPES and not name.startswith("DECIMAL"):
        name = "VARCHAR"
    if name.startswith("DECIMAL"):
        digits, scale = _digits(name)
        wanted, fit = pa.decimal128(digits, scale), _decimal(digits, scale)
    else:
        alias, fit = _TYPES[name]
        wanted = pa.timestamp("us", "UTC") if alias == "zoned" else pa.type_for_alias(alias)
    return pa.array([_fitted(value, fit) for value in listed], wanted)


def _guessed(values: list[Any]) -> str:
    found: dict[str, int] = {}
    for value in values:
        name = _name(value)
        found[name] = found.get(name, 0) + 1
    filled = sum(count for name, count in found.items() if name)
    for type_, names in _GUESSES.items():
        if filled and sum(found.get(name, 0) for name in names) >= NEARLY * filled:
            return type_
    return "VARCHAR"


def _name(value: Any) -> str:
    """Sort an object by its class alone; nothing of it is called that could raise."""
    if type(value).__name__ in _ABSENT:
        return ""
    value = _plain(value)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else "huge"
    if isinstance(value, float):
        return "" if math.isnan(value) else "float"
    if isinstance(value, datetime):
        return "moment" if value.tzinfo is None else "zoned"
    kinds = ((str, "text"), (Decimal, "decimal"), (date, "day"), (UUID, "text"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "other")


_GUESSES: Final[dict[str, tuple[str, ...]]] = {
    "BOOLEAN": ("bool",),
    "BIGINT": ("int",),
    _WIDEST: ("decimal",),
    "DOUBLE": ("int", "huge", "float", "decimal"),
    "DATE": ("day",),
    "TIMESTAMP": ("moment", "day"),
    _ZONED: ("zoned",),
    "VARCHAR": ("text",),
    "BLOB": ("other",),  # of no use to questions, as whatever it holds
}


def _plain(value: Any) -> Any:
    """Return numpy's scalars as Python's."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def _fitted(value: Any, fit: Callable[[Any], Any]) -> Any:
    try:
        return fit(_plain(value)) if _name(value) else None
    except Exception:  # an object of any class: whatever it raises, it does not fit
        return None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(low: int, high: int) -> Callable[[Any], int | None]:
    def fit(value: Any) -> int | None:
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return int(value) if is_number and value == int(value) and low <= value <= high else None

    return fit


def _double(value: Any) -> float | None:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else None


def _digits(name: str) -> tuple[int, int]:
    found = [int(part) for part in re.findall(r"\d+", name)] or [18, 3]
    digits, scale = found[0], (found[1:] or [0])[0]
    return (digits, scale) if 1 <= digits <= 38 and scale <= digits else (38, 9)


def _decimal(digits: int, scale: int) -> Callable[[Any], Decimal | None]:
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)

    def fit(value: Any) -> Decimal | None:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return None
        exact = value if isinstance(value, Decimal) else Decimal(repr(value))
        return exact.quantize(Decimal(1).scaleb(-scale), context=context)  # raises beyond digits

    return fit


def _day(value: Any) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else None


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, datetime):
        return datetime.combine(value, time.min) if isinstance(value, date) else None
    plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    # A datetime proper, without the nanoseconds that subclasses have.
    return datetime.combine(plain.date(), plain.time())


def _zoned(value: Any) -> datetime | None:
    found = _moment(value)
    return None if found is None else found.replace(tzinfo=UTC)


def _text(value: Any) -> str | None:
    kinds = str | int | float | Decimal | date | UUID
    text = str(value) if isinstance(value, kinds) else None
    if text is not None:
        text.encode()  # half a surrogate pair is no text
    return text


_TYPES: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "BOOLEAN": ("bool", _boolean),
    **{
        f"{sign}{name}": (
            f"{'u' if sign else ''}int{bits}",
            _integer(0, 2**bits - 1) if sign else _integer(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        )
        for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64))
        for sign in ("", "U")
    },
    "FLOAT": ("float32", _double),
    "DOUBLE": ("float64", _double),
    "DATE": ("date32", _day),
    "TIMESTAMP": ("timestamp[us]", _moment),
    _ZONED: ("zoned", _zoned),
    "VARCHAR": ("string", _text),
    "BLOB": ("binary", lambda value: value if isinstance(value, bytes) else None),
}
