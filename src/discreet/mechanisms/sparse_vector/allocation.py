"""The numbers behind a sparse vector session: how the budget is split and what noise it buys."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import float_up, refusal, show
from discreet._rounding import log_of
from discreet.errors import ParameterError
from discreet.mechanisms.values.grid import Grid
from discreet.noise import discrete_laplace, geometric

__all__ = ["Noise", "SparsePlan", "error_distance", "failure_probability"]

Noise = Literal["exponential", "laplace"]

_FINENESS: Final = 20  # bits between the query noise and the grid
_FARTHEST: Final = 1 << 61  # steps; values may lie half as far out again, and noise beyond
_MOST_POSITIVES: Final = 1 << 40
_WIDEST: Final = 2**500  # noise beyond this, or its inverse, would leave the doubles when squared
_WIDE: Final = 2.0**42  # steps; up to here noise passes 2**62 with a chance of exp(-2**20) at most
_RARE: Final = Fraction(1, 10**18)  # chances below this are lost in the integration
_MANY: Final = 10**15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparsePlan:
    """Scales in grid steps. A query is above if steps + noise >= bar + threshold noise.

    >>> plan = SparsePlan.of(epsilon=Fraction(1), threshold=Fraction(100), positives=1,
    ...                      sensitivity=Fraction(1), monotone=True, noise="exponential")
    >>> plan.epsilon_threshold, plan.epsilon_queries
    (Fraction(1, 2), Fraction(1, 2))
    """

    grid: Grid
    sensitivity: int
    epsilon_threshold: Fraction
    epsilon_queries: Fraction
    threshold_scale: float
    query_scale: float
    bar: int
    noise: Noise

    @classmethod
    def of(
        cls,
        *,
        epsilon: Fraction,
        threshold: Fraction,
        positives: int,
        sensitivity: Fraction,
        monotone: bool,
        noise: Noise,
        fineness: int = _FINENESS,
    ) -> Self:
        """Split the budget and turn everything into steps of one grid.

        The noise of both sides together has variance proportional to (1 / e1)**2 + (f / e2)**2,
        with f the number of sensitivities that all positive answers can shift; e1 + e2 = epsilon
        makes it least at e2 / e1 = f**(2/3).
        """
        if positives > _MOST_POSITIVES:
            raise refusal("positives", "at most 2**40", positives)
        shifts = positives if monotone else 2 * positives
        # Rounding this power costs accuracy in the last digit, and never privacy: the two shares
        # add up to epsilon exactly.
        first = epsilon / (1 + Fraction(shifts ** (2 / 3)))
        second = epsilon - first
        wide = shifts * sensitivity / second
        if not 1 / Fraction(_WIDEST) < wide < _WIDEST or 1 / epsilon > _WIDEST:
            hint = "Rescale the values to ordinary magnitudes."
            wanted = "such that the noise lies between 2**-500 and 2**500"
            raise refusal("epsilon", wanted, epsilon, hint)
        # Half as many bits below the sensitivity, lest rounding it up to whole steps be noticed.
        half = max(sensitivity / (1 << fineness // 2), wide / (1 << 2 * fineness))
        fine = min(wide / (1 << fineness), half)
        grid = Grid.below(fine, bits=0)
        steps = math.ceil(sensitivity / grid.spacing)
        # Doubles rounded up: a trace more noise than paid for, and samplers are found faster.
        threshold_scale = float_up(steps / first)
        query_scale = float_up(shifts * steps / second)
        centre = 0
        if noise == "exponential":
            # The mean of one-sided noise, taken out again so that ties are decided evenly.
            centre = round(_mean(query_scale) - _mean(threshold_scale))
        return cls(
            grid=grid,
            sensitivity=steps,
            epsilon_threshold=first,
            epsilon_queries=second,
            threshold_scale=threshold_scale,
            query_scale=query_scale,
            bar=_steps(threshold, grid) + centre,
            noise=noise,
        )

    @property
    def draw(self) -> Callable[..., int | npt.NDArray[np.int64]]:
        """The sampler for both sides. One-sided noise must have the same sign on both."""
        return geometric if self.noise == "exponential" else discrete_laplace

    @property
    def is_wide(self) -> bool:
        """Whether sums of values and noise may need more than 64 bits."""
        return self.query_scale > _WIDE

    @property
    def gap_variance(self) -> float:
        """The variance of (query noise - threshold noise), in the unit of the values."""
        sides, step = 1 if self.noise == "exponential" else 2, float(self.grid.spacing)
        deviations = (
            step / (2 * math.sinh(0.5 / scale))
            for scale in (self.threshold_scale, self.query_scale)
        )
        return sides * sum(deviation * deviation for deviation in deviations)


def _mean(scale: float) -> float:
    return 1 / math.expm1(1 / scale)


def _steps(threshold: Fraction, grid: Grid) -> int:
    steps = math.floor(threshold / grid.spacing + Fraction(1, 2))
    if abs(steps) > _FARTHEST:
        raise ParameterError(
            f"threshold must lie within {float(_FARTHEST * grid.spacing):.3g} of 0 for this much "
            f"noise, got {show(threshold)}. Subtract one public number from threshold and values.",
            parameter="threshold",
        )
    return steps


def error_distance(plan: SparsePlan, *, miss: Fraction, queries: int) -> float:
    """Return a distance that none of ``queries`` comparisons moves by, except with ``miss``."""
    step = float(plan.grid.spacing)
    if miss < _RARE or queries > _MANY:
        return _union_bound(plan, miss=miss, queries=queries) + 3 * step
    allowed = float(miss)
    low, high = 0.0, plan.query_scale * step
    # A margin for the integration, which is good to 1e-5, and for steps instead of reals.
    while 1.0001 * failure_probability(plan, distance=high, queries=queries) > allowed:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        fails = 1.0001 * failure_probability(plan, distance=middle, queries=queries) > allowed
        low, high = (middle, high) if fails else (low, middle)
    return high + 3 * step  # value, threshold and centre are rounded to the grid


def _union_bound(plan: SparsePlan, *, miss: Fraction, queries: int) -> float:
    """Bound the threshold's noise with half of the chance and all queries' with the other half.

    Why: noise of scale s passes t with a chance of exp(-t / s) if one-sided, 2 exp(-t / s) if not.
    """
    step = float(plan.grid.spacing)
    first, second = plan.threshold_scale * step, plan.query_scale * step
    sides = 1 if plan.noise == "exponential" else 2
    threshold_part = first * log_of(2 * sides / miss)
    query_part = second * log_of(2 * sides * queries / miss)
    if sides == 1:  # both positive, so they cancel; but the centre moves
        return max(threshold_part, query_part) + abs(second - first)
    return threshold_part + query_part


def failure_probability(
    plan: SparsePlan, *, distance: float, queries: int, cells: int = 6000
) -> float:
    """Return the chance that the noise moves any of ``queries`` comparisons by over ``distance``.

    The queries share the threshold's noise, so the chance is averaged over that (trapezoid rule on
    the continuous laws, good to about 1e-5 of itself).
    """
    spacing = float(plan.grid.spacing)
    first, second = plan.threshold_scale * spacing, plan.query_scale * spacing
    x = np.linspace(0.0, 60.0, cells + 1)
    weight = np.exp(-x) * (60.0 / cells)
    weight[0] /= 2
    if plan.noise == "exponential":
        shift = first * x + (second - first)  # what one query's noise is compared with
        wrong = np.exp(-np.maximum(shift + distance, 0) / second)
        wrong -= np.expm1(-np.maximum(shift - distance, 0) / second)
    else:
        # Both signs of the threshold's noise are alike.
        shift = first * x
        wrong = _laplace_tail((distance + shift) / second)
        wrong += _laplace_tail((distance - shift) / second)
    with np.errstate(divide="ignore"):
        any_wrong = -np.expm1(queries * np.log1p(-np.minimum(wrong, 1.0)))
    return float(weight @ any_wrong)


def _laplace_tail(t: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    tail = np.exp(-np.abs(t)) / 2
    return np.where(t >= 0, tail, 1 - tail)
