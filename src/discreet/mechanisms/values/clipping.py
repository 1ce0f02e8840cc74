"""Bound what one record can contribute: clip numbers to an interval, vectors to a norm.

Clipping is where a sensitivity comes from, and it is not free: whatever lies outside the bounds is
moved, so sums and means of clipped values are biased. Narrow bounds mean more bias, wide ones more
noise. Choose them from public knowledge or from a private quantile, never by looking at the data.
"""

from fractions import Fraction
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, positive, refusal
from discreet.errors import DataError
from discreet.mechanisms.values.arrays import as_numbers as as_numbers

__all__ = ["clip", "clip_norm"]

_LARGEST = Fraction(2**1000)


@overload
def clip(
    values: float, *, low: Number, high: Number, missing: Number | None = ...
) -> int | float: ...
@overload
def clip(
    values: npt.ArrayLike, *, low: Number, high: Number, missing: Number | None = ...
) -> npt.NDArray[Any]: ...
def clip(
    values: Any, *, low: Number, high: Number, missing: Number | None = None
) -> int | float | npt.NDArray[Any]:
    """Move every value into [low, high]: infinities to the bounds, NaN to ``missing``.

    ``missing`` is the middle of the bounds unless stated. No value makes it fail. Integers stay
    int64 if the bounds are whole numbers; everything else becomes float64.

    Claim: every result is a number in [low, high], exactly, and depends on its own value alone. So
    one record moves the sum of clipped values, as exact real numbers, by at most high - low when
    it is replaced, and by at most max(abs(low), abs(high)) when it is added or removed. A sum
    computed in floating point can move by more, since one record changes how all others are
    rounded [CSVW22]: sum integers, or take :func:`exact_sum`.

    >>> clip(np.array([-5, 3, 99]), low=0, high=10)
    array([ 0,  3, 10])
    >>> clip([float("nan"), float("-inf"), 2.5], low=0, high=10)
    array([5. , 0. , 2.5])
    >>> clip(17.0, low=0, high=10)
    10.0
    """
    start, end = _bounds(low, high)
    filler = (start + end) / 2 if missing is None else exact(missing, name="missing")
    if not start <= filler <= end:
        raise refusal("missing", "between low and high", missing)
    array = as_numbers(values)
    if array.dtype.kind in "iu" and start.denominator == end.denominator == 1:
        clipped = _clip_integers(array, int(start), int(end))
    else:
        lowest, highest = _float_inside(start, end)
        with np.errstate(over="ignore"):
            floats = array.astype(np.float64)
        bounded = np.clip(floats, lowest, highest)
        replacement = min(max(float(filler), lowest), highest)
        clipped = np.where(np.isnan(floats), replacement, bounded)
    return clipped.item() if clipped.ndim == 0 else clipped


def _bounds(low: Number, high: Number) -> tuple[Fraction, Fraction]:
    start, end = exact(low, name="low"), exact(high, name="high")
    if start > end:
        raise refusal("high", "at least low", high)
    for name, bound, size in (("low", low, abs(start)), ("high", high, abs(end))):
        if size > _LARGEST:
            raise refusal(name, "between -2**1000 and 2**1000", bound)
    return start, end


def _clip_integers(array: npt.NDArray[Any], low: int, high: int) -> npt.NDArray[np.int64]:
    limits = np.iinfo(np.int64)
    if high < limits.min or low > limits.max:
        raise refusal("low", "within int64 for integer values", low)
    if array.dtype.kind == "u":
        array = np.minimum(array, limits.max)
    return np.clip(array.astype(np.int64), max(low, limits.min), min(high, limits.max))


def _float_inside(low: Fraction, high: Fraction) -> tuple[float, float]:
    """Return the outermost doubles within the bounds."""
    lowest, highest = float(low), float(high)
    lowest = lowest if lowest >= low else float(np.nextafter(lowest, np.inf))
    highest = highest if highest <= high else float(np.nextafter(highest, -np.inf))
    if lowest > highest:
        raise refusal("high", "so far above low that a double lies between", high)
    return lowest, highest


def clip_norm(
    rows: npt.ArrayLike, *, bound: Number, norm: Literal[1, 2]
) -> npt.NDArray[np.float64]:
    """Shrink every row whose L1 or L2 norm exceeds ``bound``; leave the others as they are.

    A one-dimensional array is one row. NaN becomes 0 and infinities the largest double.

    Claim: the norm of every row of the result, as exact real numbers, is at most ``bound``, and
    each row depends on itself alone. So one row moves the sum of rows, as exact real numbers, by at
    most ``bound`` in that norm when it is added or removed, and by at most 2 ``bound`` when it is
    replaced. A floating-point sum can move by more; see :func:`clip`.

    Why: for rows of d entries a computed norm is off by less than (d + 6) 2**-53 of itself, and
    scaling adds less than 4 * 2**-53; rows are compared with, and scaled to, bound (1 - slack)
    with slack = (d + 16) 2**-50, which is more than both. A row that lies within that slack of the
    bound is therefore shrunk a little, too.

    >>> clip_norm([[3.0, 4.0], [0.3, 0.4]], bound=1, norm=2).round(6)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    if norm not in (1, 2) or isinstance(norm, bool):
        raise refusal("norm", "1 or 2", norm)
    limit = positive(bound, name="bound")
    if not 2**-900 < limit < 2**900:
        raise refusal("bound", "between 2**-900 and 2**900", bound)
    array = as_numbers(rows)
    if array.ndim not in (1, 2):
        raise DataError(f"rows must have one or two dimensions, got shape {array.shape}.")
    with np.errstate(over="ignore"):
        floats = np.nan_to_num(array.astype(np.float64), nan=0.0)
    table = np.atleast_2d(floats)
    slack = (table.shape[1] + 16) * 2.0**-50
    return _shrunk(table, float(limit) * (1 - slack), norm).reshape(array.shape)


def _shrunk(
    table: npt.NDArray[np.float64], target: float, norm: Literal[1, 2]
) -> npt.NDArray[np.float64]:
    # Dividing by the largest entry first keeps squares from overflowing or vanishing.
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0.0)
    unit = table / np.where(largest > 0, largest, 1.0)
    if norm == 1:
        length = np.abs(unit).sum(axis=1, keepdims=True)
    else:
        length = np.sqrt(np.square(unit).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        is_long = length * largest > target
    return np.where(is_long, unit * (target / np.where(length > 0, length, 1.0)), table)
