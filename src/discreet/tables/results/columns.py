"""Columns of a result: one kind of array for each kind of value, and their way to JSON and back."""

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_READERS: Final[dict[str, Callable[[Any], object]]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "time": time.fromisoformat,
}
_NUMERIC: Final = re.compile("u?int|float|double|halffloat|decimal")  # types of Arrow
_INFINITE: Final = {"inf": math.inf, "-inf": -math.inf}
_BARS: Final = {"error": "errors", "low": "lows", "high": "highs", "reliable": "reliable"}


def column(values: Any, *, name: str) -> Array:
    """Return whole numbers, floats or booleans as such an array, anything else as objects.

    A missing number is NaN in a column of numbers, a missing anything else is None.

    >>> column([1, None], name="n"), column(["a", None], name="region")
    (array([ 1., nan]), array(['a', None], dtype=object))
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "bif":
        kinds = {"b": np.bool_, "i": np.int64, "f": np.float64}
        return _frozen(values.astype(kinds[values.dtype.kind]))
    items = [_plain(item, name) for item in _listed(values)]
    present = [item for item in items if item is not None]
    if present and all(type(item) is bool for item in present) and len(present) == len(items):
        return _frozen(np.array(items, dtype=bool))
    if present and all(type(item) in (int, float) for item in present):
        return _frozen(_numbers(items))
    if items and not present and _NUMERIC.match(str(getattr(values, "type", ""))):
        return _frozen(np.full(len(items), math.nan))  # numbers all the same
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return _frozen(made)


def _numbers(items: Sequence[int | float | None]) -> Array:
    if all(type(item) is int and abs(item) < 2**63 for item in items):
        return np.array(items, dtype=np.int64)
    return np.array([math.nan if item is None else float(item) for item in items])


def _listed(values: Any) -> list[Any]:
    if hasattr(values, "to_pylist"):  # Arrow's
        listed: list[Any] = values.to_pylist()
        return listed
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "M":  # nanoseconds would come out as bare integers
            values = values.astype("datetime64[us]")
        return list(values.tolist())
    return list(values)


def _plain(item: Any, name: str) -> Any:
    """Turn a value into one of Python's own types, of those that a result can hold."""
    if isinstance(item, np.generic):
        item = item.item()
    if item is None or type(item) in (bool, int, float, str, date, datetime, time):
        return item
    if isinstance(item, Decimal | Fraction):
        return float(item)
    if isinstance(item, datetime):  # a pandas Timestamp
        return datetime.fromisoformat(item.isoformat())
    if isinstance(item, str):
        return str(item)
    raise DataError(f"column {name!r} has values of a type that a result cannot hold.")


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array


def floats(values: Any, size: int, empty: float, *, name: str) -> Floats:
    """Return error bars of a column as an array; ``empty`` everywhere where there are none.

    >>> floats(None, 2, math.nan, name="n"), floats([1, None], 2, math.nan, name="n")
    (array([nan, nan]), array([ 1., nan]))
    """
    if values is None:
        return _frozen(np.full(size, empty))
    if isinstance(values, np.ndarray) and values.dtype.kind in "if":
        made = values.astype(np.float64)
    else:
        made = np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)
    if made.shape != (size,):
        raise DataError(f"the error bars of column {name!r} must be as long as the column.")
    return _frozen(made)


def flags(values: Any, size: int, *, name: str) -> Flags:
    """Return flags of a column as an array, all true where there are none.

    >>> flags(None, 2, name="n")
    array([ True,  True])
    """
    made = np.ones(size, dtype=bool) if values is None else np.array(values, dtype=bool)
    if made.shape != (size,):
        raise DataError(f"the flags of column {name!r} must be as long as the column.")
    return _frozen(made)


def whole(values: Array) -> Array:
    """Round to whole numbers; an int64 array where all of them fit.

    >>> whole(np.array([2.4, -0.2])), whole(np.array([np.nan, 2.6]))
    (array([2, 0]), array([nan,  3.]))
    """
    rounded = np.rint(values) + 0.0  # no minus zero
    fits = bool(np.all(np.abs(rounded) < 2.0**53))
    return rounded.astype(np.int64) if fits else rounded


def python(values: Array) -> list[Any]:
    """Return Python's own values, None where one is missing.

    >>> python(np.array([1.5, np.nan]))
    [1.5, None]
    """
    listed: list[Any] = values.tolist()
    if values.dtype.kind == "f" and np.isnan(values).any():
        return [None if item != item else item for item in listed]
    return listed


def kind(values: Array) -> str:
    """Name what a column holds, as its JSON does.

    >>> kind(np.array([1.5])), kind(np.array(["a", None], dtype=object))
    ('float', 'text')
    """
    if values.dtype.kind != "O":
        return {"b": "bool", "i": "int", "f": "float"}[values.dtype.kind]
    types = {type(item) for item in values.tolist() if item is not None}
    names = {str: "text", bool: "bool", date: "date", datetime: "timestamp", time: "time"}
    return names.get(types.pop(), "mixed") if len(types) == 1 else "mixed" if types else "text"


def to_json(values: Array) -> dict[str, Any]:
    """Return a column as JSON has it: its type and its values, times as ISO texts.

    >>> to_json(np.array([1.5, np.nan, np.inf]))
    {'type': 'float', 'values': [1.5, None, 'inf']}
    """
    own = kind(values)
    items = python(values)
    if own == "float" and np.isinf(values).any():
        items = [str(item) if item in _INFINITE.values() else item for item in items]
    elif own in _READERS:
        items = [None if item is None else item.isoformat() for item in items]
    elif own == "mixed" and any(type(item) in (date, datetime, time) for item in items):
        raise DataError("a column of a result must not mix dates with other values.")
    return {"type": own, "values": items}


def from_json(own: str, items: Sequence[Any]) -> Array:
    """Read back a column that :func:`to_json` wrote.

    >>> from_json("date", ["2026-11-15", None])
    array([datetime.date(2026, 11, 15), None], dtype=object)
    """
    if own == "float":
        return numbers_from_json(items)
    if own == "int":
        return np.array(items, dtype=np.int64)
    if own == "bool" and None not in items:
        return np.array(items, dtype=bool)
    read = _READERS.get(own)
    made = np.empty(len(items), dtype=object)
    made[:] = items if read is None else [None if i is None else read(i) for i in items]
    return made


def numbers_from_json(items: Sequence[Any]) -> Floats:
    """Read back floats, of which JSON has no infinite and no missing ones.

    >>> numbers_from_json([1, None, "-inf"])
    array([  1.,  nan, -inf])
    """
    if all(type(item) is float for item in items):
        return np.array(items, dtype=np.float64)
    return np.array([math.nan if i is None else float(_INFINITE.get(i, i)) for i in items])


def to_arrow(values: Array) -> Any:
    """Return an Arrow array of the column's own type, null where a value is missing.

    >>> to_arrow(np.array([1.5, np.nan])).null_count
    1
    """
    arrow = import_module("pyarrow")
    own = kind(values)
    if values.dtype.kind != "O":
        return arrow.array(values, mask=np.isnan(values) if own == "float" else None)
    if own == "mixed":
        items = [None if item is None else str(item) for item in values.tolist()]
        return arrow.array(items, type=arrow.string())
    types = {
        "bool": arrow.bool_(),
        "text": arrow.string(),
        "date": arrow.date32(),
        "time": arrow.time64("us"),
    }
    return arrow.array(python(values), type=types.get(own))


def with_bars(names: Sequence[str], keys: Sequence[str]) -> list[tuple[str, str, str]]:
    """Name the columns of a table of values with their error bars: each with its column and part.

    >>> with_bars(["region", "n"], ["region"])[:3]
    [('region', 'region', 'values'), ('n', 'n', 'values'), ('n_error', 'n', 'errors')]
    """
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        found[name] = (name, "values")
        for suffix, part in _BARS.items() if name not in keys else ():
            # A column of the question may have that name already: it keeps it.
            own = f"{name}_{suffix}"
            while own in names or own in found:
                own += "_"
            found[own] = (name, part)
    return [(shown, name, part) for shown, (name, part) in found.items()]
