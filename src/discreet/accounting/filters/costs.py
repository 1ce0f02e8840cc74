"""What one loss costs a filter: a divergence and a chance of failure, both rounded up.

Every cost depends on the parameters of the loss and of the filter alone, so it is known before the
operation runs; that is all the proofs in docs/proofs/filters.md need of it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from discreet._rounding import log_of, nearest, sum_up
from discreet.accounting.losses.certified import epsilon_upper
from discreet.accounting.losses.composition import compose
from discreet.accounting.losses.loss import Loss
from discreet.accounting.renyi.quick import pure_upper
from discreet.errors import ParameterError

__all__ = ["Cost", "Track", "cost"]

Cost = tuple[Fraction | float, Fraction]
"""(epsilon, rho or Renyi divergence; delta): the first is infinite where nothing is proved."""

_UNBOUNDED: Cost = (math.inf, Fraction(0))


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
    into one (epsilon, delta) guarantee together, which a thousand steps of training need. Where
    what is added up takes more of delta than of the divergence, and that guarantee would take less,
    it is the cheaper of the two.
    """
    added = _added(loss, track)
    if not 0 < track.each < added[1] or not _is_finite(added[0]):  # for most, at once
        return added
    is_strained = _share(added, track) > added[0] / track.divergence
    if is_strained and loss.zcdp[1] + track.each < added[1]:
        return min(added, _converted(loss, track), key=lambda one: _share(one, track))
    return added


def _share(price: Cost, track: Track) -> Fraction | float:
    """Return the larger of the shares that a cost takes of a track's limits."""
    return max(price[0] / track.divergence, price[1] / track.failure)


def _added(loss: Loss, track: Track) -> Cost:
    """Return what the parts of a loss cost together."""
    if not loss.is_composed:
        own = _own(loss, track)
        return own if _is_finite(own[0]) else _converted(loss, track)
    costs: list[tuple[Fraction, Fraction]] = []
    others: list[tuple[Loss, int]] = []
    for part, times in loss.parts:
        one, chance = _own(part, track)
        if _is_finite(one):
            costs.append((Fraction(one) * times, chance * times))
        else:
            others.append((part, times))
    divergence = sum_up(one for one, _ in costs)
    failure = sum_up(chance for _, chance in costs)
    if others:
        rest = others[0][0] if len(others) == 1 == others[0][1] else compose(others)
        one, chance = _converted(rest, track)
        if not _is_finite(one):
            return _UNBOUNDED
        return divergence + Fraction(one), failure + chance
    return divergence, failure


def _own(part: Loss, track: Track) -> Cost:
    """Return what one operation costs by its own nature, without spending delta on a conversion."""
    if track.kind == "basic":
        epsilon, delta = part.approximate_dp
        return _checked(epsilon), Fraction(_checked(delta))
    if track.kind == "renyi":
        known = part.renyi_upper(order=track.order)
        if _is_finite(known):
            return _checked(known), Fraction(_checked(part.failure))
    rho, failure = part.zcdp
    each = _checked(rho) * track.order if track.kind == "renyi" else _checked(rho)
    return each, Fraction(_checked(failure))


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
        found = epsilon_upper(loss, delta=Fraction(share))
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
    return pure_upper(epsilon=Fraction(epsilon), order=track.order)


def _epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction | float:
    """Return an epsilon of rho-zCDP at ``delta``, from one nearly best order, rounded up.

    Why: every order a > 1 proves epsilon = a rho + (log(1/delta) - log(a)) / (a - 1) + log(1 - 1/a)
    [CKS20, Proposition 12].
    """
    r = nearest(rho)
    if not 0 < r < math.inf:  # below the floats epsilon is under 1e-100, unless delta is 1e-1e120
        return math.inf if r else Fraction(rho > 0, 10**100)
    tail = -log_of(delta)
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
