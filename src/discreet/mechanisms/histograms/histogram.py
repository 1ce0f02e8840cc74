"""Many counts at once, when each unit may touch only a few of them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, cast, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, positive, probability, show
from discreet.accounting import DiscreteGaussianLoss, DiscreteLaplaceLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.additive.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.additive.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.histograms.contributions import cells_touched, most_per_cell
from discreet.mechanisms.values.arrays import as_integers
from discreet.noise import SYSTEM, Source

__all__ = ["Histogram"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Release counts of known cells, with whichever noise is smaller for the same guarantee.

    Claim: if one unit adds something to at most ``l0`` cells, and between 0 and ``linf`` to each,
    one release of all cells is as private as ``mechanism`` under an L1 sensitivity of l0 * linf
    (discrete Laplace) or an L2 sensitivity of sqrt(l0) * linf (discrete Gaussian). The bounds are
    for adding or removing a unit. Under replace-one the old unit's cells and the new one's both
    change: give twice the ``l0``.

    Why: the difference of neighbouring histograms has at most l0 entries other than 0, each at
    most linf in size; its L1 and L2 norms follow. Laplace noise grows like l0 and Gaussian noise
    like sqrt(l0), so the first wins for few cells and the second for many.

    The cells must be fixed without looking at the data. For cells found in the data use
    :class:`StabilityHistogram` or :class:`PartitionSelection`.

    >>> few = Histogram.calibrated(epsilon=1, delta=1e-6, l0=1, linf=1)
    >>> few.mechanism
    DiscreteLaplace(sensitivity=1, scale=1)
    >>> many = Histogram.calibrated(epsilon=1, delta=1e-6, l0=100, linf=1)
    >>> type(many.mechanism).__name__
    'DiscreteGaussian'
    >>> print(many.why)
    DiscreteGaussian: a cell is off by at most ... against 300 with DiscreteLaplace ...
    >>> many.release([10, 20, 30]).shape
    (3,)
    """

    l0: int
    linf: int
    mechanism: DiscreteLaplace | DiscreteGaussian
    alternative: DiscreteLaplace | DiscreteGaussian | None = None
    confidence: Number = 0.95

    def __post_init__(self) -> None:
        l0, linf = cells_touched(self.l0), most_per_cell(self.linf)
        probability(self.confidence, name="confidence")
        for mechanism in (self.mechanism, self.alternative):
            if mechanism is not None and not _covers(mechanism, l0, linf):
                raise ParameterError(
                    f"mechanism must be a DiscreteLaplace with sensitivity {l0 * linf} (L1) or a "
                    f"DiscreteGaussian with sensitivity {show(_l2_up(l0, linf))} (L2) or more, and "
                    "without a dimension. Histogram.calibrated(...) makes one that fits.",
                    parameter="mechanism",
                )

    @classmethod
    def calibrated(
        cls, *, epsilon: Number, delta: Number, l0: int, linf: int, confidence: Number = 0.95
    ) -> Self:
        """Return the histogram whose cells have the smaller error at ``confidence``.

        At delta = 0 only the discrete Laplace mechanism will do. A tie goes to it as well, because
        its guarantee is pure.

        >>> Histogram.calibrated(epsilon=0.5, delta=0, l0=4, linf=2).mechanism
        DiscreteLaplace(sensitivity=8, scale=16)
        """
        positive(epsilon, name="epsilon")
        failure = probability(delta, name="delta", zero=True)
        probability(confidence, name="confidence")
        cells, most = cells_touched(l0), most_per_cell(linf)
        chosen: DiscreteLaplace | DiscreteGaussian
        other: DiscreteLaplace | DiscreteGaussian | None = None
        chosen = DiscreteLaplace.calibrated(epsilon=epsilon, sensitivity=cells * most)
        if failure:
            other = DiscreteGaussian.calibrated(
                epsilon=epsilon, delta=delta, sensitivity=_l2_up(cells, most)
            )
            if _error(other, confidence) < _error(chosen, confidence):
                chosen, other = other, chosen
        return cls(l0=l0, linf=linf, mechanism=chosen, alternative=other, confidence=confidence)

    @property
    def loss(self) -> DiscreteLaplaceLoss | DiscreteGaussianLoss:
        """What one release of all cells costs. Touches no data."""
        return self.mechanism.loss

    @property
    def standard_deviation(self) -> float:
        """That of the noise on each cell.

        >>> round(Histogram.calibrated(epsilon=1, delta=0, l0=1, linf=1).standard_deviation, 3)
        1.357
        """
        return self.mechanism.standard_deviation

    @property
    def why(self) -> str:
        """Which noise was chosen, and what the other would have cost in accuracy."""
        ours = _error(self.mechanism, self.confidence)
        text = (
            f"{type(self.mechanism).__name__}: a cell is off by at most {ours} with confidence "
            f"{show(self.confidence)}"
        )
        if self.alternative is None:
            return f"{text}; there was nothing to compare it with."
        theirs = _error(self.alternative, self.confidence)
        other = type(self.alternative).__name__
        return f"{text}, against {theirs} with {other} for the same guarantee."

    def release(self, counts: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[np.int64]:
        """Return every cell's count with noise; no cell is left out or cut at zero.

        >>> Histogram.calibrated(epsilon=1, delta=0, l0=1, linf=1).release([[1, 2], [3, 4]]).shape
        (2, 2)
        """
        cells = as_integers(counts)
        if cells.ndim == 0:
            raise DataError("counts must be an array with one entry for each cell.")
        return self.mechanism.release(cells, source=source)

    def error(self, *, confidence: Number) -> int:
        """Return a t such that one cell is off by at most t with this confidence.

        >>> Histogram.calibrated(epsilon=1, delta=0, l0=1, linf=1).error(confidence=0.95)
        3
        """
        return _error(self.mechanism, confidence)


def _error(mechanism: DiscreteLaplace | DiscreteGaussian, confidence: Number) -> int:
    return mechanism.error(confidence=cast("float", confidence))


def _l2_up(l0: int, linf: int) -> Number:
    """Return sqrt(l0) * linf, exactly if it is whole and otherwise as a double just above."""
    square = l0 * linf * linf
    root = math.isqrt(square)
    if root * root == square:
        return root
    above = math.sqrt(square)
    while Fraction(above) ** 2 < square:
        above = math.nextafter(above, math.inf)
    return above


def _covers(mechanism: object, l0: int, linf: int) -> bool:
    if isinstance(mechanism, DiscreteLaplace):
        return mechanism.sensitivity >= l0 * linf
    if isinstance(mechanism, DiscreteGaussian):
        is_enough = exact(mechanism.sensitivity, name="sensitivity") ** 2 >= l0 * linf * linf
        return is_enough and mechanism.dimension is None
    return False
