"""What one loss costs a filter: a divergence and a chance of failure, both rounded up.

Every cost depends on the parameters of the loss and of the filter alone, so it is known before the
operation runs; that is all the proofs in docs/proofs/filters.md need of it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from discreet.accounting.arithmetic.rounding import nearest
from discreet.accounting.losses.bounded_range import BoundedRangeLoss
from discreet.accounting.losses.composition import ComposedLoss, compose
from discreet.accounting.losses.gaussian import GaussianLoss
from discreet.accounting.losses.laplace import LaplaceLoss
from discreet.accounting.losses.loss import Loss
from discreet.accounting.losses.pure import ApproximateLoss
from discreet.accounting.losses.sampled import SampledLoss
from discreet.accounting.pld.certified import epsilon_upper
from discreet.accounting.renyi import divergence as renyi
from discreet.errors import ParameterError

__all__ = ["Cost", "Track", "cost", "pure_renyi"]

Cost = tuple[Fraction | float, Fraction]
"""(epsilon, rho or Renyi divergence; delta): the first is infinite where nothing is proved."""

_NO_FAILURE = Fraction(0)
_UNBOUNDED: Cost = (math.inf, _NO_FAILURE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One sum to keep below its limits: what is added up, and how far."""

    kind: Literal["basic", "zcdp", "renyi"]
    divergence: Fraction  # the largest sum of epsilon, rho, or Renyi divergence at ``order``
    failure: Fraction  # the largest sum of deltas
    each: Fraction  # the delta at which a loss is converted that has no cost of its own
    order: Fraction = Fraction(0)


def cost(loss: Loss, track: Track) -> Cost:
    """Return what ``loss`` adds to a track.

    The parts of a composition that have a cost of their own are added up; the others are turned
    into one (epsilon, delta) guarantee together, which a thousand steps of training need.
    """
    if not isinstance(loss, ComposedLoss):
        own = _own(loss, track)
        return own if _is_finite(own[0]) else _converted(loss, track)
    divergence, failure = Fraction(0), Fraction(0)
    others: list[tuple[Loss, int]] = []
    for part, times in loss.parts:
        one, chance = _own(part, track)
        if _is_finite(one):
            divergence += Fraction(one) * times
            failure += chance * times
        else:
            others.append((part, times))
    if others:
        rest = others[0][0] if len(others) == 1 == others[0][1] else compose(others)
        one, chance = _converted(rest, track)
        if not _is_finite(one):
            return _UNBOUNDED
        return divergence + Fraction(one), failure + chance
    return divergence, failure


def _own(part: Loss, track: Track) -> Cost:
    """Return what one operation costs by its own nature, without spending delta on a conversion."""
    if isinstance(part, ApproximateLoss):
        return _of_epsilon(Fraction(part.epsilon), track), Fraction(part.delta)
    if track.kind == "basic":
        return _checked(part.epsilon_pure), _NO_FAILURE
    if track.kind == "renyi":
        known = _known_renyi(part, track.order)
        if _is_finite(known):
            return _checked(known), _NO_FAILURE
    rho, failure = part.zcdp
    each = _checked(rho) * track.order if track.kind == "renyi" else _checked(rho)
    return each, Fraction(_checked(failure))


def _known_renyi(part: Loss, order: Fraction) -> Fraction | float:
    """Return a bound on the Renyi divergence that is better than order times rho, or infinity.

    A loss class outside this library may state its own as ``renyi_upper(order=...)``.
    """
    stated = getattr(part, "renyi_upper", None)
    if stated is not None:
        found: float = stated(order=order)
        return found
    if isinstance(part, SampledLoss):
        inner, pure = part.inner, part.inner.epsilon_pure
        if isinstance(inner, GaussianLoss):
            return renyi.sampled_gaussian(
                noise_multiplier=inner.noise_multiplier, rate=part.rate, order=order
            )
        if isinstance(pure, Fraction):
            return renyi.sampled_pure(epsilon=pure, rate=part.rate, order=order)
        return math.inf
    if isinstance(part, LaplaceLoss):
        return _laplace_renyi(part.epsilon_pure, order)
    pure = part.epsilon_pure
    if not isinstance(pure, Fraction):
        return math.inf
    if isinstance(part, BoundedRangeLoss):  # its rho is a quarter of what epsilon alone would tell
        return min(pure_renyi(pure, order), order * part.rho)
    return pure_renyi(pure, order)


def _converted(loss: Loss, track: Track) -> Cost:
    """Return what a loss costs as one (epsilon, delta) guarantee with the track's share of delta.

    Why: such an operation is a post-processing of "reveal the input with probability delta, else
    answer by randomized response" [KOV17, Theorem 3.1 and its proof], so its cost is that of
    epsilon-DP, with failure delta.
    """
    if not track.each:
        return _UNBOUNDED
    rho, failure = loss.zcdp
    share = _checked(failure) + track.each
    if _checked(rho) == math.inf or failure:
        found = epsilon_upper(loss, Fraction(share))
        return _of_epsilon(_checked(found), track), Fraction(share)
    # Only the basic track comes here. The closed form takes microseconds, the exact profile
    # milliseconds; whoever wants the last percent charges ApproximateLoss instead.
    return _epsilon_of_rho(Fraction(rho), track.each), track.each


def _of_epsilon(epsilon: Fraction | float, track: Track) -> Fraction | float:
    """Return what an epsilon-DP operation costs: epsilon, epsilon^2 / 2, or randomized response."""
    if track.kind == "basic" or epsilon == math.inf:
        return epsilon
    if track.kind == "zcdp":
        return epsilon * epsilon / 2  # [BS16, Proposition 1.4]
    return pure_renyi(Fraction(epsilon), track.order)


def pure_renyi(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the largest Renyi divergence of an epsilon-DP operation, rounded up.

    Why: the worst is randomized response [KOV17, Theorem 2.1 and its proof], for which the
    divergence is e - (log(1 + exp(-e)) - log(1 + exp(-(2 order - 1) e))) / (order - 1). For tiny e
    its digits cancel, and order e^2 / 2 is smaller.
    """
    e, x = nearest(epsilon), nearest(order - 1)
    log = math.log1p(math.exp(-(2 * x + 1) * e)) - math.log1p(math.exp(-e))
    return _upper(epsilon, order, e, x, log)


def _laplace_renyi(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the Renyi divergence of the Laplace mechanism, rounded up.

    Why: e + log(1 + (a-1)/(2a-1) (exp(-(2a-1) e) - 1)) / (a-1) at order a [Mir17, Proposition 6].
    ``renyi.divergence.laplace`` is the same to more digits and takes five times as
    long, which a ledger would notice.
    """
    e, x = nearest(epsilon), nearest(order - 1)
    log = math.log1p(x / (2 * x + 1) * math.expm1(-(2 * x + 1) * e))
    return _upper(epsilon, order, e, x, log)


def _upper(epsilon: Fraction, order: Fraction, e: float, x: float, log: float) -> Fraction:
    """Return e + log / x, rounded up, or order epsilon^2 / 2 where that is smaller."""
    bound = e + log / x + 1e-15 * (e + 4 / x)
    if bound == math.inf:
        return epsilon
    return Fraction(bound) if e * e * (x + 1) / 2 > bound else order * epsilon * epsilon / 2


def _epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction | float:
    """Return an epsilon of rho-zCDP at ``delta``, from one nearly best order, rounded up.

    Why: every order a > 1 proves epsilon = a rho + (log(1/delta) - log(a)) / (a - 1) + log(1 - 1/a)
    [CKS20, Proposition 12].
    """
    r = nearest(rho)
    if not 0 < r < math.inf:  # below the floats epsilon is under 1e-100, unless delta is 1e-1e120
        return math.inf if r else Fraction(rho > 0, 10**100)
    tail = math.log(delta.denominator) - math.log(delta.numerator)
    x = math.sqrt(tail / r)  # the order minus one
    terms = ((1 + x) * r, tail / x, -math.log1p(x) / x, -math.log1p(1 / x))
    value = sum(terms) + 1e-14 * sum(map(abs, terms))
    return max(Fraction(value), Fraction(0)) if value < math.inf else math.inf


def _is_finite(value: Fraction | float) -> bool:
    return not (isinstance(value, float) and value == math.inf)  # comparing fractions takes longer


def _checked(value: Fraction | float) -> Fraction | float:
    """Refuse what only a faulty loss class can say: NaN and negative costs."""
    if not (value.numerator if isinstance(value, Fraction) else value) >= 0:  # NaN is not either
        raise ParameterError("a loss must not cost less than nothing, or NaN.", parameter="loss")
    return value
