"""Values of answers to bytes, in text and in binary."""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any, Final

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.values.types import WireType

__all__ = ["encoded"]

_EPOCH_DAY: Final = date(2000, 1, 1).toordinal()
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_WHOLE: Final = {"int2": "!h", "int4": "!i", "int8": "!q", "oid": "!I"}


def encoded(value: Any, type_: WireType, *, is_binary: bool) -> bytes | None:
    r"""Return a value as PostgreSQL writes it; None is NULL.

    >>> from discreet.service.wire.values.types import type_named
    >>> encoded(12.0, type_named("float8"), is_binary=False)
    b'12'
    >>> encoded(12, type_named("int4"), is_binary=True)
    b'\x00\x00\x00\x0c'
    """
    if value is None:
        return None
    kind = type_.name if type_.name in _READ else "text"
    try:
        taken = _READ[kind](value)
        if is_binary or kind in _WHOLE:
            packed = _BINARY[kind](taken)  # which also sees to it that a number fits
            if is_binary:
                return packed
        return _TEXT.get(kind, str)(taken).encode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, struct.error):
        raise WireFailure(
            "22003",
            f"a value does not fit into the type {type_.shown}",
            hint="Cast the column to another type. The same question asked again is free.",
        ) from None


def _whole(value: Any) -> int:
    made = int(value)
    if made != value:
        raise ValueError("not whole")
    return made


def _moment(value: Any) -> datetime:
    found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(str(value))


def _clock(value: Any) -> time:
    return value if isinstance(value, time) else time.fromisoformat(str(value))


def _float_text(value: float) -> str:
    if value != value:  # NaN
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value).removesuffix(".0")


def _moment_binary(value: datetime) -> bytes:
    since = value.replace(tzinfo=UTC) - _EPOCH
    return struct.pack("!q", (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds)


def _clock_binary(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 10**6 + value.microsecond)


def _whole_binary(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(form, value)


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "float4": float,
    "float8": float,
    "text": str,
    "date": _day,
    "time": _clock,
    "timestamp": _moment,
    **dict.fromkeys(_WHOLE, _whole),
}
_TEXT: Final[dict[str, Callable[[Any], str]]] = {
    "bool": lambda value: "t" if value else "f",
    "float4": _float_text,
    "float8": _float_text,
    "date": date.isoformat,
    "time": time.isoformat,
    "timestamp": lambda value: value.isoformat(" "),
}
_BINARY: Final[dict[str, Callable[[Any], bytes]]] = {
    "bool": lambda value: b"\1" if value else b"\0",
    "float4": _whole_binary("!f"),
    "float8": _whole_binary("!d"),
    "text": lambda value: value.encode("utf-8", "replace"),
    "date": lambda value: struct.pack("!i", value.toordinal() - _EPOCH_DAY),
    "time": _clock_binary,
    "timestamp": _moment_binary,
    **{kind: _whole_binary(form) for kind, form in _WHOLE.items()},
}
