"""How the noise of released cells moves what is computed from them, and how wide intervals are."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, probability
from discreet._rounding import log_one_over
from discreet.tables.model.statements import Cells

__all__ = ["Array", "Noisy", "interval_factor", "moved", "spread", "with_error"]

Array = npt.NDArray[np.float64]

_MIXED: Final = 1.01  # sums of a few Laplace variables lie between one of them and a normal law


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """The released cells of one family: an array (groups, cells) of rows, noise included.

    Every cell has independent noise of standard ``deviation``, in rows.

    >>> Noisy(cells=Cells(kind="rows"), noisy=np.array([[120.5]]), deviation=2.0).deviation
    2.0
    """

    cells: Cells
    noisy: Array
    deviation: float


def with_error(function: Callable[[Noisy], Array], released: Noisy) -> tuple[Array, Array]:
    """Return a function of the cells, and its standard error."""
    value = function(released)
    squares = np.zeros(value.shape)
    for j in range(released.noisy.shape[1]):
        step = np.zeros(released.noisy.shape[1])
        step[j] = released.deviation
        up = function(replace(released, noisy=released.noisy + step))
        down = function(replace(released, noisy=released.noisy - step))
        squares += ((up - down) / 2) ** 2
    return value, np.sqrt(squares)


def moved(released: Noisy) -> Iterator[Noisy]:
    """Yield the same cells with one of them moved up by its deviation, for each cell.

    Together with :func:`spread` this carries errors through any expression over aggregates, those
    that share cells included.

    >>> cells = Noisy(cells=Cells(kind="rows"), noisy=np.array([[10.0]]), deviation=2.0)
    >>> [one.noisy for one in moved(cells)]
    [array([[12.]])]
    """
    for j in range(released.noisy.shape[1]):
        noisy = released.noisy.copy()
        noisy[:, j] += released.deviation
        yield replace(released, noisy=noisy)


def spread(value: Array, moves: Sequence[Array]) -> Array:
    """Return standard errors from a result and what it becomes when each cell is moved.

    >>> spread(np.array([1.0]), [np.array([4.0]), np.array([-3.0])])
    array([5.])
    """
    squares = np.zeros(np.shape(value))
    for one in moves:
        squares += (one - value) ** 2
    return np.asarray(np.sqrt(squares), dtype=np.float64)


def interval_factor(
    kind: Literal["laplace", "gaussian"], *, confidence: Number, cells: int = 1
) -> float:
    """Return how many standard errors to each side make an interval of this confidence.

    For one Gaussian or Laplace cell, and sums of Gaussian cells, it is exact. A sum of Laplace
    cells lies between one cell, whose tails are heavier, and a normal law, whose shoulders are
    broader. The larger of the two covers all sums that were computed exactly, thousands of random
    weights among them, which is no proof: so 1% is added. Where an aggregate is no sum, it is as
    good as the delta method.

    >>> round(interval_factor("gaussian", confidence=0.95), 3)
    1.96
    >>> round(interval_factor("laplace", confidence=0.95), 3)
    2.118
    >>> round(interval_factor("laplace", confidence=0.8, cells=3), 3)
    1.294
    """
    sure = probability(confidence, name="confidence")
    normal = NormalDist().inv_cdf(0.5 + float(sure) / 2) if 1 - sure > Fraction(1, 10**15) else 8.3
    if kind == "gaussian":
        return normal
    heavy = log_one_over(1 - sure) / math.sqrt(2)
    return heavy if cells == 1 else max(normal, heavy) * _MIXED
