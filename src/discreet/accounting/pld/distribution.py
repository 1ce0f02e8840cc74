"""Privacy loss distributions: certified bounds on epsilon and delta of a composition."""

import math
from collections.abc import Callable, Sequence

from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pld.convolve import Composed
from discreet.accounting.pld.discretise import from_above, from_below
from discreet.accounting.pld.pilot import Pilot, Plan

__all__ = [
    "above",
    "delta_lower",
    "delta_upper",
    "epsilon_lower",
    "epsilon_upper",
    "highest",
    "reach_of",
]

Parts = Sequence[tuple[Pair, int]]
_SHORTEST = 1 << 14
_MANY = 20  # parts
_MOST_MOVES = 60
_LONGEST = 1 << 20


def epsilon_upper(
    parts: Parts, *, delta: float, tolerance: float, near: float | None = None
) -> float:
    """Return an epsilon at which the composition of these pairs is certainly (epsilon, delta)-DP.

    It aims to be at most about ``tolerance`` above the smallest one; that works best where
    the answer is known roughly, ``near`` some value.
    """
    reach, unseen = reach_of(parts, delta)
    if unseen >= delta:
        return math.inf
    ceiling = highest(parts, reach)
    pilot = Pilot(parts, reach)
    guess = pilot.renyi_epsilon(delta - unseen) if near is None else near
    best = math.inf
    for _ in range(_MOST_MOVES):
        guess = min(guess, 0.999 * ceiling)
        plan = pilot.plan(guess, delta - unseen, tolerance=tolerance)
        composed, lost = above(parts, plan, reach)

        def bound(index: int, composed: Composed = composed, lost: float = lost) -> float:
            return composed.delta_above(index) + lost

        found, is_crossing = _crossing(composed, bound, delta, guess)
        best = min(best, max(0.0, found))
        if is_crossing or best == 0.0:
            break
        # Nothing within a window of the guess: move on, down from what is proved or up.
        guess = 1.6 * guess + 1e-9 if found == math.inf else 0.6 * found
    return min(ceiling, best)


def epsilon_lower(parts: Parts, *, delta: float, near: float, tolerance: float) -> float:
    """Return an epsilon below which the composition is certainly not (epsilon, delta)-DP."""
    reach, _ = reach_of(parts, delta)
    if near >= highest(parts, reach):
        return 0.0
    plan = Pilot(parts, reach).plan(near, delta, tolerance=tolerance)
    composed = _below(parts, plan, reach)
    found, is_crossing = _crossing(composed, composed.delta_below, delta, near)
    return max(0.0, found - composed.forgiven) if is_crossing else 0.0


def delta_upper(parts: Parts, *, epsilon: float, tolerance: float) -> float:
    """Return a certified upper bound on delta at ``epsilon``; ``tolerance`` is relative."""
    reach, lost = reach_of(parts, 1e-30)
    if lost >= 1 or epsilon >= highest(parts, reach):
        return lost
    plan = Pilot(parts, reach).plan(epsilon, 1e-12, tolerance=tolerance / 10)
    composed, lost = above(parts, plan, reach)
    return min(1.0, _between(composed, composed.delta_above, epsilon) + lost)


def delta_lower(parts: Parts, *, epsilon: float, tolerance: float) -> float:
    """Return a certified lower bound on delta at ``epsilon``."""
    reach, lost = reach_of(parts, 1e-30)
    if lost >= 1 or epsilon >= highest(parts, reach):
        return 0.0
    plan = Pilot(parts, reach).plan(epsilon, 1e-12, tolerance=tolerance / 10)
    composed = _below(parts, plan, reach)
    return _between(composed, composed.delta_below, epsilon + composed.forgiven) * (1 - 1e-12)


def _between(composed: Composed, bound: Callable[[int], float], epsilon: float) -> float:
    """Return a bound between lattice points, where the profile is linear in exp(epsilon)."""
    below = math.floor((epsilon - composed.origin) / composed.step)
    left, right = bound(below), bound(below + 1)
    into, step = epsilon - composed.loss_at(below), composed.step
    share = math.expm1(into) / math.expm1(step) if step < 700 else math.exp(into - step)
    return left + (right - left) * min(1.0, max(0.0, share * (1 - 1e-12)))


def reach_of(parts: Parts, delta: float) -> tuple[float, float]:
    """Return how many deviations to look at, and the chance of what no loss describes."""
    times = sum(n for _, n in parts)
    reach = math.sqrt(2 * math.log(max(times, 2) / (delta * 1e-6)))
    chances = [(min(1.0, p.infinite + p.cut(reach)), n) for p, n in parts]
    if any(chance == 1.0 for chance, _ in chances):
        return reach, 1.0
    stays = math.fsum(n * math.log1p(-chance) for chance, n in chances)
    return reach, min(1.0, -math.expm1(stays) * (1 + 1e-12))


def highest(parts: Parts, reach: float) -> float:
    """Return a finite loss that the sum cannot exceed."""
    return math.fsum(n * pair.span(reach)[1] for pair, n in parts) * (1 + 1e-12)


def _sizes(parts: Parts, plan: Plan, longest: int = _LONGEST) -> tuple[float, int]:
    """Return step and length of the transform; exact losses on one lattice set the step."""
    from scipy import fft

    step = plan.step
    if len(parts) < _MANY:  # a short transform takes no time, so accuracy is free
        step = min(step, plan.window / _SHORTEST)
    lattices = {pair.lattice[1] if pair.lattice else None for pair, _ in parts}
    if len(lattices) == 1 and (spacing := lattices.pop()) is not None:
        step = spacing
    length = min(longest, max(64, math.ceil(plan.window / step)))
    if plan.window / step > longest:
        step = plan.window / longest
    return step, int(fft.next_fast_len(length, real=True))


def above(parts: Parts, plan: Plan, reach: float) -> tuple[Composed, float]:
    """Return a composition whose profile is above, and the mass called infinite beside it."""
    step, length = _sizes(parts, plan)
    masses, lost = [], 0.0
    for (pair, times), bulk in zip(parts, plan.bulks, strict=True):
        # A heavy highest loss on the lattice itself is not raised by it.
        origin = (pair.lattice or pair.anchors or (0.0, 0.0))[0 if pair.lattice else 1]
        found, beyond = from_above(
            pair, step=step, origin=origin, bulk=bulk, cap=plan.cap, reach=reach
        )
        masses.append((found, times))
        lost += times * (beyond + pair.infinite + pair.cut(reach))
    return Composed(masses, step=step, tilt=plan.tilt, length=length), lost * (1 + 1e-12)


def _below(parts: Parts, plan: Plan, reach: float) -> Composed:
    plan = plan._replace(window=1.5 * plan.window, step=_fitted(parts, plan.step))
    step, length = _sizes(parts, plan, 4 * _LONGEST)  # lowering losses is dearer than raising them
    masses = [
        (from_below(pair, step=step, bulk=bulk, cap=plan.cap, reach=reach), times)
        for (pair, times), bulk in zip(parts, plan.bulks, strict=True)
    ]
    return Composed(masses, step=step, tilt=plan.tilt, length=length)


def _fitted(parts: Parts, step: float) -> float:
    """Return a step by which the two heavy ends of a lone pair are a whole number apart, or less.

    The little less keeps the upper end's merged loss above its lattice point.
    """
    anchors = parts[0][0].anchors
    if len(parts) > 1 or anchors is None:
        return step
    count = math.ceil((anchors[1] - anchors[0]) / step)
    return (anchors[1] - anchors[0]) * (1 - 1e-3 / count) / count


def _crossing(
    composed: Composed, bound: Callable[[int], float], delta: float, near: float
) -> tuple[float, bool]:
    """Return where a bound that falls with the lattice index crosses ``delta``, and True.

    If it does not cross within a window of ``near``, return the nearest loss known to be beyond the
    crossing (infinity if none is), and False. Between lattice points the profile of losses on the
    lattice is linear in exp(epsilon).
    """
    low = high = start = composed.index_of(near)
    stride = max(1, round(0.5 / (composed.tilt * composed.step)))
    if bound(start) > delta:
        while bound(high) > delta:
            low, high, stride = high, high + stride, 2 * stride
            if high - start > composed.length:
                return math.inf, False
    else:
        while bound(low) <= delta:
            low, high, stride = low - stride, low, 2 * stride
            if start - low > composed.length:
                return composed.loss_at(high), False
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > delta else (low, middle)
    left, right = bound(low), bound(high)
    share = (left - delta) / (left - right)
    if composed.step < 700:
        return composed.loss_at(low) + math.log1p(share * math.expm1(composed.step)), True
    into = math.log(max(share, 1e-300)) + composed.step  # log(1 + exp(into)), without overflow
    return composed.loss_at(low) + max(0.0, into) + math.log1p(math.exp(-abs(into))), True
