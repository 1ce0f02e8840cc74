"""One order for keys found in the data, which depends on the keys alone.

Published keys must come in an order that tells nothing else: neither who came first, nor where an
object lies in memory. Python's own sorting does not give that for keys that are only partly
ordered, such as sets and NaN, where the result depends on the order in which they came.
"""

from collections.abc import Hashable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError

__all__ = ["array_order", "in_order"]

Key = TypeVar("Key", bound=Hashable)

# Types whose values are totally ordered among themselves, NaN apart.
_ORDERED: Final = (bool, int, float, Decimal, Fraction, str, bytes)
_TIMES: Final = (datetime, date, time, timedelta)
_REFUSAL: Final = (
    "keys must be numbers other than NaN, strings, bytes, dates and times, members of an Enum, "
    "None or tuples of such, but some are not, or cannot be ordered among themselves. Convert them "
    "to strings in one fixed way first: any other order might tell who came first."
)


def in_order(keys: Sequence[Key]) -> list[int]:
    """Return the positions of the keys, sorted by type and then by value.

    >>> in_order(["b", 2, "a", (1, "x")])
    [1, 2, 0, 3]
    >>> in_order([frozenset({1})])
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: keys must be numbers other than NaN, ...
    """
    ranked = [_rank(key) for key in keys]
    try:
        return sorted(range(len(keys)), key=ranked.__getitem__)
    except TypeError:  # such as times with and without a zone
        raise DataError(_REFUSAL) from None


def _rank(key: object) -> tuple[Any, ...]:
    """Return what to sort by: the name of the type, then something ordered within it."""
    kind = type(key)
    if kind is tuple:
        return ("tuple", tuple(_rank(part) for part in key))  # type: ignore[attr-defined]
    if key is None:
        return ("None",)
    if isinstance(key, Enum):
        return (f"{kind.__module__}.{kind.__qualname__}", key.name)
    if isinstance(key, np.generic) and key.dtype.kind in "biufUSM":
        if key.dtype.kind == "M":
            _refuse_if(np.isnat(key))
            return ("datetime64", key)
        value = key if key.dtype == np.longdouble else key.item()
        _refuse_if(value != value)
        return (kind.__name__, value)
    _refuse_if(kind not in (*_ORDERED, *_TIMES, UUID))
    _refuse_if(key != key)
    return (kind.__name__, key)


def _refuse_if(is_bad: object) -> None:
    if is_bad:
        raise DataError(_REFUSAL)


def array_order(keys: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the positions of the keys of a one-dimensional array, sorted.

    >>> array_order(np.array(["b", "a"]))
    array([1, 0])
    """
    kind = keys.dtype.kind
    if kind in "biufUSMm":
        _refuse_if(kind == "f" and np.isnan(keys).any())
        _refuse_if(kind in "Mm" and np.isnat(keys).any())
        return np.argsort(keys, kind="stable")
    _refuse_if(kind not in "OT")
    return np.array(in_order(keys.tolist()), dtype=np.intp)
