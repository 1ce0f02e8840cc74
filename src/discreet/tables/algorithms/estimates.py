"""From noisy cells to aggregates and their standard errors, for all groups at once.

Everything here is post-processing: it sees released numbers only. Sums of powers are taken around
the middle of the bounds, t - 1/2 for t in [0, 1], where a row's cells (1 - t, t) give the sum
(b - a) / 2, and its quadratic cells (a, b, c) give (c - a) / 2 and, squared, (a - b + c) / 4. So a
mean shrinks to the middle of its bounds, not to one of them, where hardly a row is left.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet.tables.algorithms.propagation import Array, Noisy, with_error
from discreet.tables.model.aggregates import AggregateKind
from discreet.tables.model.query import Aggregate
from discreet.tables.model.statements import Cells

__all__ = ["Estimate", "deviations", "estimate"]

Flags = npt.NDArray[np.bool_]

_CLEAR: Final = 2.0  # standard errors that a number must exceed to be more signal than noise
_ENOUGH: Final = 5.0  # standard errors that a denominator must exceed
_FIRST: Final = np.array([-0.5, 0.0, 0.5])  # t - 1/2 from quadratic cells
_SECOND: Final = np.array([0.25, -0.25, 0.25])  # its square


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One aggregate in every group: its value, its standard error, and whether it tells anything.

    The error is that of the noise: what clamping and bounding took away is not in it.

    >>> noisy = Noisy(cells=Cells(kind="rows"), noisy=np.array([[120.5], [1.0]]), deviation=2.0)
    >>> estimate(Aggregate(kind="count"), noisy)
    Estimate(value=array([120.5,   1. ]), error=array([2., 2.]), reliable=array([ True, False]))
    """

    value: Array
    error: Array
    reliable: Flags


def estimate(aggregate: Aggregate, released: Noisy, *, is_clamped: bool = True) -> Estimate:
    """Return an aggregate from cells that it follows from.

    Values lie where the aggregate can lie: a mean within the bounds, a variance between 0 and a
    quarter of the squared range (a sample's, times n / (n - 1)), a correlation between -1 and 1.
    Numbers of rows and sums are left as they are, so that they stay unbiased. Without clamping,
    ratios may leave their range: to see how an expression moves with cells (:func:`moved`), which
    at the end of a range it would not.

    A cell moves by one deviation up and down, and half the difference is that cell's share of the
    standard error; noise is independent, so squares add up. For numbers of rows and sums this is
    exact, for the others it is the delta method without derivatives. A standard deviation's error
    is the longer of the ways to those of its variance plus and minus its error: finite at 0, too.

    A count or sum is reliable if it exceeds two of its errors, the others if their number of rows
    exceeds five of its own; a correlation needs both variances above two errors as well.

    >>> from fractions import Fraction
    >>> bounds = ((Fraction(0), Fraction(10)),)
    >>> cells = Noisy(cells=Cells(kind="linear", values=(0,), bounds=bounds),
    ...               noisy=np.array([[300.0, 100.0]]), deviation=1.0)
    >>> mean = estimate(Aggregate(kind="mean", values=(0,)), cells)
    >>> mean.value, mean.error.round(4), mean.reliable
    (array([2.5]), array([0.0198]), array([ True]))
    """
    ratio = _RATIOS.get(aggregate.kind)
    if ratio is not None:
        made = ratio(released, 1.0 if is_clamped else math.inf, aggregate.is_sample)
        is_enough = _rows(released) >= _ENOUGH * _floor(released)
        return replace(made, reliable=made.reliable & is_enough)
    value, error = with_error(_TOTALS[aggregate.kind], released)
    return Estimate(value=value, error=error, reliable=np.abs(value) >= _CLEAR * error)


def deviations(aggregate: Aggregate, released: Noisy) -> Array:
    """Return the standard deviations of an aggregate's noise in its own units.

    Of numbers of rows and sums there is one, whatever the groups; of ratios one for each group,
    since they depend on a denominator.

    >>> noisy = Noisy(cells=Cells(kind="rows"), noisy=np.array([[120.5], [1.0]]), deviation=2.0)
    >>> deviations(Aggregate(kind="count"), noisy)
    array([2.])
    """
    if aggregate.kind in _TOTALS:
        released = replace(released, noisy=np.zeros((1, released.noisy.shape[1])))
    return estimate(aggregate, released).error


def _every_row(released: Noisy) -> Array:
    """Return the number of rows, those without a value included."""
    return np.asarray(released.noisy.sum(axis=1), dtype=np.float64)


def _rows(released: Noisy) -> Array:
    """Return the number of rows with a value."""
    return np.asarray(released.noisy[:, : _own(released.cells)].sum(axis=1), dtype=np.float64)


def _sum(released: Noisy) -> Array:
    cells, kind = released.noisy, released.cells.kind
    low, high = (float(bound) for bound in released.cells.bounds[0])
    if kind in ("sum", "total"):
        return cells[:, 0] * max(-low, high, 0.0)
    if kind == "linear":
        return low * cells[:, 0] + high * cells[:, 1]
    return low * (cells[:, 0] + cells[:, 1] / 2) + high * (cells[:, 2] + cells[:, 1] / 2)


def _mean(released: Noisy, most: float, _: bool) -> Estimate:
    low, high = released.cells.bounds[0]
    width = float(high - low)
    value, error = with_error(_centre, released)
    share = np.clip(value, -0.5 * most, 0.5 * most) + 0.5
    return _ratio(float(low) + width * share, width * np.minimum(error, 1))


def _variances(released: Noisy, most: float, is_sample: bool) -> Estimate:
    value, error = with_error(_variance, released)
    product = _product(released, is_sample)
    within = np.clip(value, -0.25 * most if most > 1 else 0.0, 0.25 * most) * product
    return _ratio(within, np.minimum(error, 0.25) * product)


def _deviations(released: Noisy, most: float, is_sample: bool) -> Estimate:
    variance = _variances(released, most, is_sample)
    within = np.maximum(variance.value, 0)
    root = np.sqrt(within)
    down = root - np.sqrt(np.maximum(within - variance.error, 0))
    up = np.sqrt(within + variance.error) - root
    return _ratio(root, np.maximum(down, up))


def _covariances(released: Noisy, most: float, is_sample: bool) -> Estimate:
    value, error = with_error(_covariance, released)
    product = _product(released, is_sample)
    within = np.clip(value, -0.25 * most, 0.25 * most) * product
    return _ratio(within, np.minimum(error, 0.5) * product)


def _correlations(released: Noisy, most: float, _: bool) -> Estimate:
    value, error = with_error(_correlation, released)
    spreads = [with_error(partial(_variance, axis=axis), released) for axis in (0, 1)]
    is_clear = np.logical_and.reduce([one >= _CLEAR * its for one, its in spreads])
    made = _ratio(np.clip(value, -most, most), np.minimum(error, 2))
    return replace(made, reliable=is_clear)


_TOTALS: Final[dict[AggregateKind, Callable[[Noisy], Array]]] = {
    "count": _every_row,
    "count_values": _rows,
    "count_units": _rows,
    "count_distinct": _rows,
    "sum": _sum,
    "sum_distinct": _sum,
}
"""Numbers of rows and sums: linear in the cells."""

_RATIOS: Final[dict[AggregateKind, Callable[[Noisy, float, bool], Estimate]]] = {
    "mean": _mean,
    "variance": _variances,
    "deviation": _deviations,
    "covariance": _covariances,
    "correlation": _correlations,
}
"""What divides by the number of rows, within so many times its range, of a sample or not."""


def _ratio(value: Array, error: Array) -> Estimate:
    return Estimate(value=value, error=error, reliable=np.ones(value.shape, dtype=np.bool_))


def _product(released: Noisy, is_sample: bool) -> Array:
    """Return the squared range of a value, or the product of two, with n / (n - 1) of a sample."""
    ranges = [float(high - low) for low, high in released.cells.bounds]
    # A sample has two rows at least, or it has no variance.
    rows = np.maximum(_rows(released), 2)
    return ranges[0] * ranges[-1] * (rows / (rows - 1) if is_sample else np.ones(rows.shape))


def _own(cells: Cells) -> int:
    """Return how many cells rows with a value have."""
    return cells.count - cells.with_absent


def _floor(released: Noisy) -> float:
    """Return one standard error of the number of rows, below which it is no denominator."""
    return max(released.deviation * math.sqrt(_own(released.cells)), 1e-9)


def _powers(released: Noisy, axis: int) -> tuple[Array, Array, Array]:
    """Return the number of rows and the means of t - 1/2 and of its square."""
    own = released.noisy[:, : _own(released.cells)]
    if released.cells.kind == "moments":
        own = own.reshape(-1, 3, 3).sum(axis=2 - axis)
    rows = np.maximum(_rows(released), _floor(released))
    if released.cells.kind == "linear":
        return rows, (own[:, 1] - own[:, 0]) / 2 / rows, np.full(rows.shape, np.nan)
    return rows, own @ _FIRST / rows, own @ _SECOND / rows


def _centre(released: Noisy) -> Array:
    return _powers(released, 0)[1]


def _variance(released: Noisy, axis: int = 0) -> Array:
    _, first, second = _powers(released, axis)
    return second - first**2


def _covariance(released: Noisy) -> Array:
    rows, first, _ = _powers(released, 0)
    other = _powers(released, 1)[1]
    product = released.noisy[:, :9].reshape(-1, 3, 3) @ _FIRST @ _FIRST
    return np.asarray(product / rows - first * other, dtype=np.float64)


def _correlation(released: Noisy) -> Array:
    least = _floor(released) / np.maximum(_rows(released), _floor(released)) / 4
    spreads = [np.maximum(_variance(released, axis), least) for axis in (0, 1)]
    return np.asarray(_covariance(released) / np.sqrt(spreads[0] * spreads[1]), dtype=np.float64)
