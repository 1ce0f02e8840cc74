"""Take a value to be released, whatever its form, and refuse what cannot be made private.

An error here says which kind of entry was found, never which value and never where.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError
from discreet.noise.source import Source, in_parts

__all__ = [
    "add_drawn",
    "as_integers",
    "as_numbers",
    "as_real",
    "as_reals",
    "as_scores",
    "is_scalar",
    "saturating_add",
]

_LARGEST = int(np.iinfo(np.int64).max)
_LARGEST_DOUBLE = int(np.finfo(np.float64).max)
_CHUNK = 1 << 15  # entries; keeps the intermediate arrays in the processor's cache


def is_scalar(value: object) -> bool:
    """Tell a single number from an array or a sequence.

    >>> is_scalar(3), is_scalar(np.float64(1)), is_scalar([3]), is_scalar(np.zeros(2))
    (True, True, False, False)
    """
    return np.ndim(value) == 0  # type: ignore[arg-type]


def as_real(value: object) -> float | None:
    """Return a single finite number, whole ones as int, or None for an array or a sequence.

    Python's own numbers never become arrays: NumPy takes some nanoseconds longer over -1, which is
    also how Python reports an error, than over any other integer.

    >>> as_real(-1), as_real(np.float32(0.5)), as_real([1])
    (-1, 0.5, None)
    """
    if type(value) is int or (type(value) is float and -1e308 < value < 1e308):
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        return None
    values = as_reals(value)
    return None if values.ndim else values.item()


def as_reals(value: object) -> npt.NDArray[Any]:
    """Return finite doubles, or int64 where the values are whole numbers.

    Integers stay integers: a double would round those beyond 2**53, and two neighbours could be
    rounded apart.

    >>> as_reals([1, 2.5]), as_reals([1, 2])
    (array([1. , 2.5]), array([1, 2]))
    """
    array = as_numbers(value)
    if array.dtype.kind != "f":
        return as_integers(array)
    if array.dtype.itemsize > 8:
        raise DataError(
            f"values must be 64-bit floats or smaller, got {array.dtype}. "
            "Convert them with values.astype('float64') and mind that this rounds."
        )
    floats = array.astype(np.float64, copy=False)
    if not np.isfinite(floats).all():
        raise DataError(
            "values must be finite, but some are NaN or infinite. Replace them before the "
            "release, for example with discreet.mechanisms.clip(values, low=..., high=...)."
        )
    return floats


def as_integers(value: object) -> npt.NDArray[np.int64]:
    """Return int64; whole numbers only, and unsigned ones beyond int64 saturate.

    >>> as_integers([1, 2])
    array([1, 2])
    """
    array = as_numbers(value)
    if array.dtype.kind == "f":
        raise DataError(
            f"values must be integers, got {array.dtype}. Round them first, or use the mechanism "
            "for real numbers (Laplace, Gaussian)."
        )
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(_LARGEST))
    return array.astype(np.int64, copy=False)


def as_scores(scores: object) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
    """Return a non-empty one-dimensional array of scores, as exact int64 or finite doubles.

    >>> as_scores([3, 1, 2])
    array([3, 1, 2])
    """
    array = as_numbers(scores)
    if array.ndim != 1 or array.size == 0:
        raise DataError(
            f"scores must be a non-empty one-dimensional array, got shape {array.shape}. "
            "Pass one score per candidate."
        )
    return as_reals(array)


def as_numbers(value: object) -> npt.NDArray[Any]:
    """Return integers or floats as an array, or refuse what is neither.

    Python's integers saturate where neither int64 nor, among floats, a double holds them.

    >>> as_numbers([1, 2.5])
    array([1. , 2.5])
    """
    if isinstance(value, np.ma.MaskedArray):
        raise DataError(
            "values must not be a masked array: a mask would be ignored. Pass values.compressed(), "
            "or fill what is masked."
        )
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)
    if isinstance(value, list | tuple) and not value:
        array = array.astype(np.int64)  # an empty list is a list of whatever is wanted
    if array.dtype == object:
        array = _saturated(array)
    elif array.dtype.kind == "f" and isinstance(value, list | tuple) and _is_beyond(array):
        # NumPy makes doubles of integers on both sides of int64, for the sake of a single one.
        array = _saturated(np.asarray(value, dtype=object))
    if array.dtype.kind not in "iuf":
        raise DataError(
            f"values must be integers or floats, got {type(value).__name__} holding "
            f"{array.dtype}. Convert them to a numeric array first."
        )
    return array


def _saturated(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Move Python's integers into int64, or among floats into the doubles; leave other objects."""
    entries = array.ravel().tolist()
    kinds = {type(entry) for entry in entries}
    if not kinds or not kinds <= {int, float}:
        return array
    if kinds == {int}:
        whole = [max(-_LARGEST - 1, min(_LARGEST, x)) for x in entries]
        return np.array(whole, np.int64).reshape(array.shape)
    end = _LARGEST_DOUBLE
    bounded = [max(-end, min(end, x)) if type(x) is int else x for x in entries]
    return np.array(bounded, np.float64).reshape(array.shape)


def _is_beyond(array: npt.NDArray[Any]) -> bool:
    return bool((np.abs(array) >= 2.0**63).any())


def add_drawn(
    values: npt.NDArray[np.int64],
    draw: Callable[[int], npt.NDArray[Any]],
    *,
    source: Source,
) -> npt.NDArray[np.int64]:
    """Add to each entry what ``draw(count)`` makes of the ``source``, with :func:`saturating_add`.

    Both happen part by part, so that noise is added while it is in the cache, on all processors.

    >>> from discreet.noise import SYSTEM
    >>> add_drawn(np.array([[1, 2], [3, 4]]), np.arange, source=SYSTEM).tolist()
    [[1, 3], [5, 7]]
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    out = np.empty(flat.size, dtype=np.int64)

    def fill(part: slice) -> None:
        places = flat[part]
        out[part] = saturating_add(places, draw(places.size))

    in_parts(fill, flat.size, source=source)
    return out.reshape(values.shape)


def saturating_add(values: npt.NDArray[np.int64], noise: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Add, stopping at the ends of the int64 range instead of wrapping around.

    The same operations run whether or not anything overflows, so the time taken tells nothing.
    ``noise`` may hold Python integers; an int64 one is overwritten.

    >>> saturating_add(np.array([2**63 - 1, 5]), np.array([7, 7]))
    array([9223372036854775807,                  12])
    >>> saturating_add(np.array([0, 5]), np.array([-(2**80), 2], dtype=object))
    array([-9223372036854775808,                    7])
    """
    if noise.dtype == object:
        exact = np.clip(values.astype(object) + noise, -_LARGEST - 1, _LARGEST)
        return np.asarray(exact, dtype=np.int64)
    out = noise.reshape(-1)
    flat = np.ascontiguousarray(values).reshape(-1)
    for start in range(0, out.size, _CHUNK):
        left, right = flat[start : start + _CHUNK], out[start : start + _CHUNK]
        total = left + right
        overflowed = ((left ^ total) & (right ^ total)) < 0
        # Where it overflowed both terms have one sign: stop at the end on that side.
        right[:] = np.where(overflowed, (left >> 63) ^ _LARGEST, total)
    return out.reshape(noise.shape)
