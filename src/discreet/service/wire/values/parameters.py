"""Values of parameters to literals of SQL: nodes of a tree, never text that is put into text."""

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from sqlglot import exp

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.values.types import BY_OID

__all__ = ["decoded", "literal", "sample"]

_WHOLE: Final = {"int2": "!h", "int4": "!i", "int8": "!q", "oid": "!I"}
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name", "char", "json", "unknown"})
_UNKNOWN: Final = (0, 705)
_LONGEST_NUMBER: Final = 60  # characters
_SIGNS: Final = {0: 0, 0x4000: 1}


def decoded(value: bytes | None, oid: int, *, is_binary: bool) -> Any:
    r"""Return the value of a parameter as one of Python's.

    >>> decoded(b"7", 23, is_binary=False), decoded(b"\x00\x07", 21, is_binary=True)
    (7, 7)
    """
    if value is None:
        return None
    kind = "text" if oid in _UNKNOWN else BY_OID[oid].name if oid in BY_OID else ""
    if is_binary and oid == 0:
        raise WireFailure("42P18", "the type of a binary parameter must be said")
    try:
        if not is_binary:
            return _FROM_TEXT.get(kind, str)(value.decode())
        if kind in _TEXTS:
            return value.decode()
        return _FROM_BINARY[kind](value)
    except KeyError:
        raise WireFailure(
            "0A000", "this type of parameter is not taken in binary", hint="Send it as text."
        ) from None
    except (ValueError, OverflowError, InvalidOperation, struct.error):
        raise WireFailure("22P02", f"a parameter is no value of the type {kind}") from None


def literal(value: Any) -> exp.Expr:
    """Return a value as a node.

    >>> literal("it's").sql("duckdb"), literal(-1.5).sql("duckdb")
    ("'it''s'", '-1.5')
    """
    if value is None:
        return exp.null()
    if isinstance(value, str):
        if "\0" in value:
            raise WireFailure("22021", "texts must not contain the character zero")
        return exp.Literal.string(value)
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(" ")), "timestamp")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "date")
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if not math.isfinite(value):
        raise WireFailure("22003", "a parameter must be a finite number")
    if isinstance(value, Decimal):  # abs() would round it
        number = exp.Literal.number(format(value.copy_abs(), "f"))
    else:
        number = exp.Literal.number(abs(value))
    return exp.Neg(this=number) if value < 0 else number


def sample(oid: int, place: int) -> exp.Expr:
    """Return some value of a type, where only the shape of an answer is asked for.

    Later parameters get larger values, as bounds must have them, and fractions are below 1, as
    quantiles must be.

    >>> sample(23, 0).sql(), sample(25, 0).sql(), sample(701, 1).sql()
    ('1', "'1'", '0.0002')
    """
    kind = BY_OID[oid].name if oid in BY_OID else "text"
    day = datetime(2000, 1, 1) + timedelta(days=place)  # noqa: DTZ001
    samples: dict[str, Any] = {
        "bool": True, "date": day.date(), "timestamp": day,
        **dict.fromkeys(_WHOLE, place + 1),
        **dict.fromkeys(("float4", "float8", "numeric"), Decimal(place + 1) / 10_000),
    }  # fmt: skip
    return literal(samples.get(kind, "1"))


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "on", "yes", "y", "1"):
        return True
    if word in ("f", "false", "off", "no", "n", "0"):
        return False
    raise ValueError("no truth value")


def _number(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def short(text: str) -> Any:
        # A short text such as 1e999999 would be a long number.
        if len(text) > _LONGEST_NUMBER or not math.isfinite(float(text)):
            raise ValueError("no usual number")
        found = read(text)
        if isinstance(found, Decimal) and abs(found.adjusted()) > 400:
            raise ValueError("no usual number")
        return found

    return short


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def _day(text: str) -> date:
    return date.fromisoformat(text.strip()[:10])  # JDBC's driver writes a zone behind it


def _decimal(value: bytes) -> Decimal:
    """Return a number that comes in groups of four digits: weight is the first one's place."""
    count, weight, sign, _, *groups = struct.unpack(f"!HhHH{max(0, len(value) - 8) // 2}H", value)
    if sign not in _SIGNS or count != len(groups) or any(group > 9999 for group in groups):
        raise ValueError("no finite number")
    if abs(weight) > 100 or 4 * count > _LONGEST_NUMBER:
        raise ValueError("no usual number")
    digits = tuple(int(digit) for group in groups for digit in f"{group:04}")
    return Decimal((_SIGNS[sign], digits or (0,), 4 * (weight - count + 1)))


def _clock(value: bytes) -> str:
    micros: int = _unpacked("!q")(value)
    if not 0 <= micros < 86_400 * 10**6:
        raise ValueError("no time of a day")
    return (datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).time().isoformat()


def _unpacked(form: str) -> Callable[[bytes], Any]:
    def unpacked(value: bytes) -> Any:
        (found,) = struct.unpack(form, value)
        return found

    return unpacked


def _moment_from(value: bytes) -> datetime:
    micros: int = _unpacked("!q")(value)
    return datetime(2000, 1, 1) + timedelta(microseconds=micros)  # noqa: DTZ001


_FROM_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "bool": _truth,
    "float4": _number(float),
    "float8": _number(float),
    "numeric": _number(Decimal),
    "date": _day,
    "uuid": lambda text: str(UUID(text.strip())),
    "timestamp": _moment,
    "timestamptz": _moment,
    **dict.fromkeys(_WHOLE, _number(int)),
}
_FROM_BINARY: Final[dict[str, Callable[[bytes], Any]]] = {
    "bool": lambda value: bool(_unpacked("!B")(value)),
    "float4": _unpacked("!f"),
    "float8": _unpacked("!d"),
    "date": lambda value: date(2000, 1, 1) + timedelta(days=_unpacked("!i")(value)),
    "timestamp": _moment_from,
    "timestamptz": _moment_from,
    "time": _clock,
    "numeric": _decimal,
    "uuid": lambda value: str(UUID(bytes=value)),
    **{kind: _unpacked(form) for kind, form in _WHOLE.items()},
}
