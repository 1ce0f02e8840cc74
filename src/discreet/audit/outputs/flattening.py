"""Take an output of any shape apart into named numbers and words."""

import dataclasses
import math
from collections.abc import Awaitable, Hashable, Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from discreet.audit.outputs.collecting import Raised
from discreet.audit.outputs.texts import text_parts
from discreet.errors import DataError

__all__ = ["PRECISE", "Part", "identity", "parts"]

Part: TypeAlias = tuple[str, object]  # a float has an order, anything else is a word

_ITEMS = 300  # of one sequence; what comes later shows in its length and in its last item
PRECISE = 2**53
_PLAIN = frozenset([int, float, str, bool, type(None), list, tuple, dict, set, frozenset])


def identity(output: Any) -> Hashable:
    """Return something hashable that stands for one output."""
    if type(output) is str or type(output) is int:
        return output
    output = _plain(output)
    if isinstance(output, float):
        return output if output == output else "nan"  # else NaNs would be ever new outcomes
    if isinstance(output, Mapping):  # in its order, which whoever prints it sees
        return tuple((identity(key), identity(value)) for key, value in output.items())
    if isinstance(output, Set):
        return frozenset(identity(entry) for entry in output)
    if isinstance(output, list | tuple):
        return tuple(identity(entry) for entry in output)
    if isinstance(output, Hashable) and not _is_ever_new(output):
        return output
    raise DataError(
        f"an audit cannot tell outputs of type {type(output).__name__} apart. Return numbers, "
        "texts, sequences, sets or mappings, or wrap fn so that it returns the part that matters."
    )


def parts(output: Any, path: str = "output") -> Iterator[Part]:
    """Yield the named parts of an output.

    >>> dict(parts([3, None]))["the length of output"]
    2.0
    >>> dict(parts({"a": 3}))["output['a']"]
    3.0
    """
    output = _plain(output)
    if isinstance(output, bool):
        yield path, float(output)
    elif isinstance(output, int | float | Fraction | Decimal):
        yield from _number(output, path)
    elif isinstance(output, date | time | timedelta):
        yield path, output
        yield f"the seconds of {path}", _seconds(output)
    elif isinstance(output, str):
        yield path, output
        yield from text_parts(output, path)
    elif isinstance(output, Mapping):
        yield f"the size of {path}", float(len(output))
        yield f"the keys of {path}", frozenset(map(repr, output))
        yield f"the order of the keys of {path}", tuple(map(repr, output))
        for key, value in output.items():
            yield from parts(value, f"{path}[{key!r}]")
    elif isinstance(output, Set):
        yield f"the size of {path}", float(len(output))
        for entry in output:
            yield f"{entry!r} in {path}", 1.0
    elif isinstance(output, list | tuple):
        yield from _sequence(output, path)
    else:
        yield path, output


def _number(output: int | float | Fraction | Decimal, path: str) -> Iterator[Part]:
    try:
        number = float(output)
    except OverflowError:
        number = math.inf if output > 0 else -math.inf
    yield path, number
    if isinstance(output, int) and abs(output) > PRECISE:
        yield f"the low digits of {path}", float(output % PRECISE)
    if math.isnan(number):
        yield f"whether {path} is a number", "no"


def _seconds(output: date | time | timedelta) -> float:
    """Put times in order, by the clock that they show."""
    if isinstance(output, timedelta):
        return output.total_seconds()
    seconds = 0.0 if isinstance(output, time) else (output.toordinal() - 1) * 86_400.0
    if isinstance(output, time | datetime):
        seconds += 60 * (60 * output.hour + output.minute) + output.second
        seconds += output.microsecond / 1e6
    return seconds


def _is_ever_new(output: object) -> bool:
    """Say whether an object equals nothing but itself, so that each output would be a new one."""
    return isinstance(output, Iterator | Awaitable) and type(output).__eq__ is object.__eq__


def _sequence(output: Sequence[Any], path: str) -> Iterator[Part]:
    yield f"the length of {path}", float(len(output))
    if not output:
        return
    for place, entry in enumerate(output[:_ITEMS]):
        yield from parts(entry, f"{path}[{place}]")
    yield from ((f"the last of {path}", value) for _, value in list(parts(output[-1], ""))[:1])
    counts: dict[str, int] = {}
    first: dict[str, int] = {}
    for place, entry in enumerate(output):
        is_number = isinstance(entry, int | float | np.number) and not isinstance(entry, bool)
        name = "a number" if is_number else repr(entry)
        counts[name] = counts.get(name, 0) + 1
        first.setdefault(name, place)
    for name, place in list(first.items())[:20]:
        yield f"the count of {name} in {path}", float(counts[name])
        yield f"the place of {name} in {path}", float(place)


def _plain(output: Any) -> Any:
    """Bring arrays, records and bytes into plain Python."""
    if type(output) in _PLAIN:
        return output
    if isinstance(output, np.ndarray | np.generic):
        return output.tolist()
    if isinstance(output, bytes | bytearray):
        return output.decode("latin-1")
    if isinstance(output, complex):
        return (output.real, output.imag)
    if hasattr(output, "to_numpy"):  # a table or column of pandas or polars
        names = getattr(output, "columns", getattr(output, "index", ()))
        return {"the names": list(names), "the values": output.to_numpy().tolist()}
    if hasattr(output, "_asdict"):
        return output._asdict()
    if isinstance(output, Raised | Enum | type):
        return output
    if dataclasses.is_dataclass(output):
        return {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    slots = vars(type(output)).get("__slots__")
    if slots and "__eq__" not in vars(type(output)):
        names = [slots] if isinstance(slots, str) else slots
        return {name: getattr(output, name) for name in names if hasattr(output, name)}
    if getattr(output, "__dict__", None) and "__eq__" not in vars(type(output)):
        return dict(vars(output))  # it would differ from every other one
    return output
