"""From losses to certified numbers on both sides of the truth."""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from discreet._exact import float_up
from discreet.accounting.arithmetic.search import smallest_float
from discreet.accounting.losses.loss import Loss
from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pld import distribution as pld
from discreet.accounting.renyi import best_delta, best_epsilon

__all__ = ["Bracket", "delta_bracket", "delta_upper", "epsilon_bracket", "epsilon_upper"]

_TOLERANCE = 1.5e-5
_MOST_CURVES = 100  # parts, as each is asked for dozens of orders
_MANY_TIMES = 10**11
_ROUNDING = Fraction(2, 10**9)  # twice what a tight loss may err by
_VANISHING = Fraction(1, 10**300)
Parts = tuple[tuple[Loss, int], ...]


class Bracket(NamedTuple):
    """Certified bounds on both sides of the truth.

    >>> Bracket(lower=0.5, upper=0.6).upper
    0.6
    """

    lower: float
    upper: float


@lru_cache(maxsize=4096)
def epsilon_upper(loss: Loss, *, delta: Fraction) -> float:
    """Return a certified epsilon at this delta, usually at most 2e-5 above the truth."""
    pure = loss.epsilon_pure
    ceiling = float_up(pure) if isinstance(pure, Fraction) else math.inf
    if delta == 0 or ceiling == 0:
        return ceiling
    found = min(ceiling, *(_epsilon_of(parts, delta) for parts in readings(loss)))
    return min(found, _renyi_epsilon(loss, delta)) if _is_extreme(loss, found) else found


@lru_cache(maxsize=4096)
def delta_upper(loss: Loss, *, epsilon: Fraction) -> float:
    """Return a certified delta at this epsilon."""
    if epsilon >= loss.epsilon_pure:
        return 0.0
    found = min(1.0, *(_delta_of(parts, epsilon) for parts in readings(loss)))
    if not _is_extreme(loss, math.inf if found == 1 else 0.0):
        return found
    curve, failure = loss.renyi_curve(), float_up(loss.failure)
    return min(found, failure + best_delta(curve, epsilon=epsilon) if curve else 1.0)


def _is_extreme(loss: Loss, found: float) -> bool:
    """Return whether numerical composition may do worse than divergences that are added up.

    That is so where it found nothing, as the likelihood ratios of one operation are no floats, or
    where rounding adds up over too many operations.
    """
    if len(loss.parts) > _MOST_CURVES:
        return False
    return math.isinf(found) or sum(times for _, times in loss.parts) > _MANY_TIMES


def _renyi_epsilon(loss: Loss, delta: Fraction) -> float:
    curve, left = loss.renyi_curve(), delta - loss.failure
    return best_epsilon(curve, delta=left) if curve is not None and left > 0 else math.inf


def epsilon_bracket(loss: Loss, *, delta: Fraction) -> Bracket:
    """Return certified bounds around the epsilon of the worst operation with this loss."""
    upper = epsilon_upper(loss, delta=delta)
    parts = readings(loss)[0]
    if upper in (0.0, math.inf) or delta == 0:
        return Bracket(0.0 if delta else upper, upper)
    if is_single(parts) and parts[0][0].is_tight:
        # Where delta_upper is this much above delta, so is the truth: two parts in a billion and
        # what lies below the floats are more than rounding.
        at_least = _epsilon_of(parts, delta * (1 + _ROUNDING) + _VANISHING)
        return Bracket(min(upper, at_least * (1 - 1e-9)), upper)
    lowers = [
        pld.epsilon_lower(d, delta=float_up(delta), near=upper, tolerance=_TOLERANCE)
        for d in _attained(parts)
    ]
    return Bracket(min(upper, max(lowers, default=0.0)), upper)


def delta_bracket(loss: Loss, *, epsilon: Fraction) -> Bracket:
    """Return certified bounds around the delta of the worst operation with this loss."""
    upper = delta_upper(loss, epsilon=epsilon)
    parts = readings(loss)[0]
    if upper == 0:
        return Bracket(0.0, upper)
    if is_single(parts) and parts[0][0].is_tight:
        further = parts[0][0].delta_upper(epsilon=epsilon * (1 + _ROUNDING))
        return Bracket(max(0.0, further * (1 - 1e-9) - _VANISHING), upper)
    at = float_up(epsilon)
    lowers = [pld.delta_lower(d, epsilon=at, tolerance=_TOLERANCE) for d in _attained(parts)]
    return Bracket(min(upper, max(lowers, default=0.0)), upper)


def _epsilon_of(parts: Parts, delta: Fraction) -> float:
    if not parts:
        return 0.0
    if is_single(parts):
        single = parts[0][0]

        def is_enough(at: float) -> bool:
            return single.delta_upper(epsilon=Fraction(at)) <= delta

        found = smallest_float(is_enough, zero=True)
        return math.inf if found is None else found
    target = float(delta) * (1 - 1e-15)
    return pld.worst_epsilon(directions(parts), delta=target, tolerance=_TOLERANCE)


def _delta_of(parts: Parts, epsilon: Fraction) -> float:
    if not parts:
        return 0.0
    if is_single(parts):
        return parts[0][0].delta_upper(epsilon=epsilon)
    at = float(epsilon)
    first, *others = directions(parts)
    best = pld.delta_upper(first, epsilon=at, tolerance=_TOLERANCE)
    for other in others:
        # A rough bound is enough where it is below the other direction's.
        rough = pld.delta_upper(other, epsilon=at, tolerance=200 * _TOLERANCE)
        if rough > best:
            fine = pld.delta_upper(other, epsilon=at, tolerance=_TOLERANCE)
            best = max(best, min(rough, fine))
    return best


def is_single(parts: Parts) -> bool:
    return len(parts) == 1 and parts[0][1] == 1


def readings(loss: Loss) -> list[Parts]:
    """Return the ways to read a loss, after joining what joins exactly."""
    plain = _joined(loss.parts)
    if is_single(plain) or all(part.in_bulk is part for part, _ in plain):
        return [plain]
    return [plain, _joined(tuple((part.in_bulk, n) for part, n in plain))]


def _joined(parts: Parts) -> Parts:
    """Join what joins into one loss, and leave out what costs nothing."""
    if is_single(parts):
        return parts if parts[0][0].epsilon_pure else ()
    families: dict[type[Loss], list[tuple[Loss, int]]] = {}
    for part, times in parts:
        families.setdefault(type(part), []).append((part, times))
    joined = {family: family.join(own) for family, own in families.items()}
    others = [(part, times) for part, times in parts if joined[type(part)] is None]
    found = sorted((loss for loss in joined.values() if loss is not None), key=lambda x: x.kind)
    every = others + [(loss, 1) for loss in found]
    return tuple((part, times) for part, times in every if part.epsilon_pure)


def directions(parts: Parts) -> list[list[tuple[Pair, int]]]:
    """Return the pairs for removing and for adding; one list where they are the same.

    And those for groups of which some units are added and others removed: the same ones for all
    parts that have such pairs, in either direction of those that have not.
    """
    both = [(part.pairs(), times) for part, times in parts]
    mixed = [part.mixed_pairs() for part, _ in parts]
    shapes = sorted({(bool(more), len(more)) for more in mixed})
    choices = product(*(range(length or 2) for _, length in shapes)) if any(mixed) else ()
    ways = [
        [
            ((more or pairs)[choice[shapes.index((bool(more), len(more)))]], times)
            for more, (pairs, times) in zip(mixed, both, strict=True)
        ]
        for choice in choices
    ]
    return _ways(both) + ways


def _attained(parts: Parts) -> list[list[tuple[Pair, int]]]:
    """Return the same of operations that the parts describe, leaving out parts without any."""
    found = [(part.attained_pairs(), times) for part, times in parts]
    both = [(pairs, times) for pairs, times in found if pairs is not None]
    return _ways(both) if both else []


def _ways(both: list[tuple[tuple[Pair, Pair], int]]) -> list[list[tuple[Pair, int]]]:
    removing = [(pairs[0], times) for pairs, times in both]
    adding = [(pairs[1], times) for pairs, times in both]
    return [removing] if all(one is other for (one, other), _ in both) else [removing, adding]
