"""The Renyi divergences of a loss, for accountants that work with orders."""

import math
from collections.abc import Callable
from fractions import Fraction

from discreet._exact import float_up
from discreet.accounting.losses.bounded_range import BoundedRangeLoss
from discreet.accounting.losses.discrete_laplace import DiscreteLaplaceLoss
from discreet.accounting.losses.gaussian import GaussianLoss
from discreet.accounting.losses.laplace import LaplaceLoss
from discreet.accounting.losses.loss import Loss
from discreet.accounting.losses.pure import ApproximateLoss
from discreet.accounting.losses.randomized_response import RandomizedResponseLoss
from discreet.accounting.losses.sampled import SampledLoss
from discreet.accounting.losses.zcdp import ZCDPLoss
from discreet.accounting.renyi import divergence as renyi

__all__ = ["renyi_curve"]

Curve = Callable[[float], float]

# The bound for sampling of anything adds up all whole orders below, each dear.
_HIGHEST_GENERAL = 256


def renyi_curve(parts: tuple[tuple[Loss, int], ...]) -> tuple[Curve, Fraction] | None:
    """Return the divergence of a composition as a function of the order, and a delta beside it.

    The delta is the chance that some step reveals its input outright; outside that, the divergence
    holds. None where no bound is known.
    """
    curves: list[tuple[Curve, int]] = []
    failure = Fraction(0)
    for part, times in parts:
        curve = _curve(part)
        if curve is None:
            return None
        curves.append((curve, times))
        if isinstance(part, ApproximateLoss | ZCDPLoss):
            failure += times * Fraction(part.delta)

    def total(order: float) -> float:
        return math.fsum(times * curve(order) for curve, times in curves) * (1 + 1e-15)

    return total, failure


def _curve(part: Loss) -> Curve | None:
    match part:
        case GaussianLoss(noise_multiplier=m):
            return lambda order: renyi.gaussian(noise_multiplier=m, order=order)
        case LaplaceLoss(noise_multiplier=m):
            return lambda order: renyi.laplace(noise_multiplier=m, order=order)
        case DiscreteLaplaceLoss(noise_multiplier=m, sensitivity=d):
            return lambda order: renyi.discrete_laplace(
                noise_multiplier=m, sensitivity=d, order=order
            )
        case RandomizedResponseLoss(epsilon=e, categories=k):
            return lambda order: renyi.randomized_response(epsilon=e, categories=k, order=order)
        case ApproximateLoss(epsilon=e):
            return lambda order: renyi.pure(epsilon=e, order=order)
        case SampledLoss(inner=inner, rate=rate):
            return _sampled(inner, Fraction(rate))
    pure, (rho, failure) = part.epsilon_pure, part.zcdp
    bounds: list[Curve] = []
    if isinstance(pure, Fraction):
        bounds.append(lambda order: renyi.pure(epsilon=pure, order=order))
    # Of a pure loss zCDP is a weaker statement, unless it is of bounded range; and only ZCDPLoss
    # has its failures counted above.
    is_counted = failure == 0 or isinstance(part, ZCDPLoss)
    if (
        isinstance(rho, Fraction)
        and is_counted
        and (isinstance(part, BoundedRangeLoss) or not bounds)
    ):
        slope = float_up(rho)
        bounds.append(lambda order: slope * order * (1 + 4e-16))
    return (lambda order: min(bound(order) for bound in bounds)) if bounds else None


def _sampled(inner: Loss, rate: Fraction) -> Curve | None:
    if isinstance(inner, GaussianLoss):
        m = inner.noise_multiplier
        return lambda order: renyi.sampled_gaussian(noise_multiplier=m, rate=rate, order=order)
    if isinstance(inner, ApproximateLoss | SampledLoss) or inner.zcdp[1] > 0:
        return None
    curve, pure = _curve(inner), inner.epsilon_pure
    if curve is None:
        return None

    def bound(order: float) -> float:
        found = math.inf
        if isinstance(pure, Fraction):
            found = renyi.sampled_pure(epsilon=pure, rate=rate, order=order)
        if order <= _HIGHEST_GENERAL:
            found = min(found, renyi.sampled(curve, rate=rate, order=order))
        return found

    return bound
