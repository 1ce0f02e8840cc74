"""The numbers behind a sparse vector session: how the budget is split and what noise it buys."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import float_up, show
from discreet.errors import ParameterError
from discreet.mechanisms._grid import Grid
from discreet.noise import discrete_laplace, geometric

__all__ = ["Noise", "SparsePlan", "failure_probability"]

Noise = Literal["exponential", "laplace"]

_FINENESS: Final = 20  # bits between the query noise and the grid
_FARTHEST: Final = 1 << 61  # steps; leaves room for noise on both sides before 64 bits end


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
        shifts = positives if monotone else 2 * positives
        # Rounding this power costs accuracy in the last digit, and never privacy: the two shares
        # add up to epsilon exactly.
        first = epsilon / (1 + Fraction(shifts ** (2 / 3)))
        second = epsilon - first
        wide = shifts * sensitivity / second
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
    def gap_variance(self) -> float:
        """The variance of (query noise - threshold noise), in the unit of the values."""
        sides = 1 if self.noise == "exponential" else 2
        both = sum(
            sides / (4 * math.sinh(0.5 / scale) ** 2)
            for scale in (self.threshold_scale, self.query_scale)
        )
        return both * float(self.grid.spacing) ** 2


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
