"""The curves behind a guarantee: delta at every epsilon, and errors at every false alarm.

One (epsilon, delta) is a point of the *profile*. The *trade-off* says the same in the words of
whoever attacks: to cry wolf at most so often, how often must they miss? Both come from the same
certified upper bounds on delta, so a curve errs on the side of the attacker only.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, float_up, nonnegative, probability
from discreet.accounting import numerical, pld
from discreet.accounting._fourier import Composed
from discreet.accounting._pilot import Pilot
from discreet.accounting.loss import Loss
from discreet.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_profile", "plot_tradeoff", "profile", "tradeoff"]

Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-4  # of delta, relative: what a curve needs
_ANCHORS = 8  # transforms that a whole curve of a composition is read from
_POINTS = 160  # epsilons whose deltas make up a trade-off curve
_LEAST_DELTA = 1e-14


def profile(loss: Loss, *, epsilons: Iterable[Number]) -> Floats:
    """Return a certified upper bound on delta at each epsilon.

    Claim: the operation is (epsilons[i], result[i])-DP for every i.

    Why: as for :func:`discreet.accounting.delta`. A composition is transformed a few times only, at
    epsilons spread over those asked for; each transform bounds delta everywhere, and the least
    bound is kept. The true profile is convex in exp(epsilon) and falls, so the convex envelope of
    the bounds is above it too.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> [f"{d:.3g}" for d in profile(steps, epsilons=[0, 0.5, 1])]
    ['0.102', '0.00325', '4.89e-06']
    """
    exact = [nonnegative(e, name="epsilons") for e in epsilons]
    pure = loss.epsilon_pure
    best = np.ones(len(exact))
    for parts in numerical._readings(loss):
        best = np.minimum(best, _one_reading(parts, exact))
    best[[e >= pure for e in exact]] = 0.0
    return best


def _one_reading(parts: numerical.Parts, exact: Sequence[Fraction]) -> Floats:
    if not parts:
        return np.zeros(len(exact))
    if numerical._is_single(parts):
        return np.array([parts[0][0].delta_upper(epsilon=e) for e in exact])
    asked = np.array([float_down(e) for e in exact])
    worst = np.zeros(len(exact))
    for direction in numerical._directions(parts):
        worst = np.maximum(worst, _composed_profile(direction, asked))
    return worst


def float_down(value: Fraction) -> float:
    """Return the largest double that is not above ``value``."""
    return -float_up(-value)


def _composed_profile(direction: Sequence[tuple[Any, int]], epsilons: Floats) -> Floats:
    """Return bounds on one direction's delta."""
    reach, _ = pld._reach(direction, 1e-30)
    pilot = Pilot(direction, reach)
    bounds = np.ones(epsilons.size)
    for anchor in _anchors(epsilons):
        plan = pilot.plan(anchor, 1e-12, tolerance=_TOLERANCE / 10)
        composed, lost = pld._above(direction, plan, reach)
        bounds = np.minimum(bounds, [_read(composed, e) + lost for e in epsilons.tolist()])
    return _convex(epsilons, np.minimum(bounds, 1.0))
