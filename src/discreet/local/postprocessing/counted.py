"""Counts as they come: an array, or an estimate that holds them."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, nonnegative, refusal
from discreet.errors import ParameterError

__all__ = ["Counted", "Counts", "as_counts", "as_total"]

Floats = npt.NDArray[np.float64]


@runtime_checkable
class Counted(Protocol):
    """Hold estimated counts of ``n`` devices."""

    @property
    def counts(self) -> Floats: ...

    @property
    def n(self) -> int: ...


Counts = Counted | npt.ArrayLike


def as_counts(given: Counts) -> Floats:
    """Return the counts as a row of finite numbers.

    >>> as_counts([1, -2])
    array([ 1., -2.])
    """
    numbers: Any = given.counts if isinstance(given, Counted) else given
    array = np.asarray(numbers)
    if array.dtype.kind not in "iuf" or array.ndim != 1 or not array.size:
        raise ParameterError("counts must be one row of numbers, but are not.", parameter="counts")
    if not np.isfinite(array).all():
        raise ParameterError("counts must be finite, but some are not.", parameter="counts")
    return array.astype(np.float64)


def as_total(total: Number | None, given: Counts) -> float:
    """Return the number that counts must add up to: an estimate has its own.

    >>> as_total(5, [1, 2])
    5.0
    """
    if total is None:
        if not isinstance(given, Counted):
            hint = "It is the number of reports; an estimate brings its own."
            raise refusal("total", "given with bare counts", total, hint)
        return float(given.n)
    return float(nonnegative(total, name="total"))
