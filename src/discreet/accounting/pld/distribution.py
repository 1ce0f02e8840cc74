"""Privacy loss distributions: certified bounds on epsilon and delta of a composition."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pld.convolve import Composed
from discreet.accounting.pld.discretise import atoms_above, atoms_below, from_above, from_below
from discreet.accounting.pld.pilot import Pilot, Plan, order_from
from discreet.accounting.pld.smoothed import Smoothed

__all__ = [
    "above",
    "delta_lower",
    "delta_upper",
    "epsilon_lower",
    "epsilon_upper",
    "highest",
    "reach_of",
    "worst_epsilon",
]

Parts = Sequence[tuple[Pair, int]]
_SHORTEST = 1 << 14
_LONGEST = 1 << 19
_MANY_PARTS = 20
_MANY_TIMES = 64
_TOO_MANY_TIMES = 10**5  # for single losses to be much larger than a lattice's step
_MOST_MOVES = 12
_MOST_STEPS = 40
_ALMOST = 0.999
_ROUGHLY = 14.0  # times as coarse
_LARGEST_LOSS = 600.0
_MOST_ORDER = 1 << 14
_MARGIN = 12.0  # in the logarithm of a guessed delta, so that no rare loss wraps round
_MOST_WORK = 1 << 27  # losses times frequencies


class Seen(Protocol):
    """A composition, seen near one loss."""

    tilt: float
    period: float

    def above(self, loss: float) -> float: ...

    def below(self, loss: float) -> float: ...

    def blur(self, loss: float) -> float: ...


def worst_epsilon(ways: Sequence[Parts], *, delta: float, tolerance: float) -> float:
    """Return an epsilon for every one of several compositions, such as of both directions."""
    best, plan = 0.0, None
    for parts in ways:
        # Usually a rough look is enough to see that another direction is no worse.
        if plan is None or not _is_enough(parts, best, delta, plan):
            found, plan = _planned(parts, delta, tolerance)
            best = max(best, found)
    return best


def epsilon_upper(parts: Parts, *, delta: float, tolerance: float) -> float:
    """Return an epsilon at which the composition of these pairs is certainly (epsilon, delta)-DP.

    It aims to be at most about ``tolerance`` above the smallest one, relatively where that is below
    one or above a hundred, and is infinite where there is none or where the likelihood ratio of a
    single operation may be no float.
    """
    return _planned(parts, delta, tolerance)[0]


def _planned(parts: Parts, delta: float, tolerance: float) -> tuple[float, Plan | None]:
    """Return the same, and how it was found."""
    reach, unseen = reach_of(parts, delta=delta)
    if unseen >= delta or not is_in_range(parts, reach):
        return math.inf, None
    ceiling = highest(parts, reach)
    pilot = Pilot(parts, reach)
    guess = pilot.epsilon_near(delta - unseen)
    best, finer, is_last = math.inf, 1.0, False
    for _ in range(_MOST_MOVES):
        guess = min(guess, _ALMOST * ceiling)
        close = scaled(tolerance, guess)
        plan = pilot.plan(guess, delta - unseen, tolerance=close)
        seen, lost = above(parts, _finer(plan, finer), reach)

        def bound(loss: float, seen: Seen = seen, lost: float = lost) -> float:
            return seen.above(loss) + lost

        if guess >= _ALMOST * ceiling and bound((1 - 1e-7) * ceiling) > delta:
            break
        low, high = _crossing(bound, delta, guess, seen, precision=close / 20)
        best = min(best, max(0.0, high))
        if best == 0.0 or is_last:
            break
        if not math.isfinite(high - low):
            # Nothing within a window of the guess: move on, down from what is proved or up.
            guess = 1.6 * guess + 1e-9 if high == math.inf else 0.6 * high
            continue
        finer = _too_blurred(seen, high, close)
        if finer == 1.0 and abs(high - guess) * seen.tilt < 1.5:
            break
        guess, is_last = high, True  # once more, at the right place and as fine as it needs
    return min(ceiling, best), plan


def epsilon_lower(parts: Parts, *, delta: float, near: float, tolerance: float) -> float:
    """Return an epsilon below which the composition is certainly not (epsilon, delta)-DP."""
    reach, _ = reach_of(parts, delta=delta)
    if near >= highest(parts, reach) or not is_in_range(parts, reach):
        return 0.0
    close = scaled(tolerance, near)
    plan = Pilot(parts, reach).plan(near, delta, tolerance=close)
    seen = _below(parts, plan, reach)
    finer = _finer(plan, _too_blurred(seen, near, close))
    if finer != plan:
        seen = _below(parts, finer, reach)
    low, high = _crossing(seen.below, delta, near, seen, precision=close / 20)
    return max(0.0, low) if math.isfinite(high - low) else 0.0


def delta_upper(parts: Parts, *, epsilon: float, tolerance: float) -> float:
    """Return a certified upper bound on delta at ``epsilon``; ``tolerance`` is relative."""
    reach, lost = reach_of(parts, delta=1e-30)
    if lost >= 1 or epsilon >= highest(parts, reach):
        return lost
    if not is_in_range(parts, reach):
        return 1.0
    plan, close = _plan_for_delta(parts, reach, epsilon, tolerance)
    seen, lost = above(parts, plan, reach)
    best = seen.above(epsilon) + lost
    finer = _finer(plan, _too_blurred(seen, epsilon, close))
    if finer != plan:
        seen, lost = above(parts, finer, reach)
        best = min(best, seen.above(epsilon) + lost)
    return min(1.0, best)


def delta_lower(parts: Parts, *, epsilon: float, tolerance: float) -> float:
    """Return a certified lower bound on delta at ``epsilon``."""
    reach, lost = reach_of(parts, delta=1e-30)
    if lost >= 1 or epsilon >= highest(parts, reach) or not is_in_range(parts, reach):
        return 0.0
    plan, close = _plan_for_delta(parts, reach, epsilon, tolerance)
    seen = _below(parts, plan, reach)
    finer = _finer(plan, _too_blurred(seen, epsilon, close))
    best = seen.below(epsilon)
    return best if finer == plan else max(best, _below(parts, finer, reach).below(epsilon))


def _plan_for_delta(
    parts: Parts, reach: float, epsilon: float, tolerance: float
) -> tuple[Plan, float]:
    """Return how to look at delta, and the error of a loss that moves it by ``tolerance``."""
    pilot = Pilot(parts, reach)
    log_delta, tilt = pilot.log_delta_near(epsilon)
    close = tolerance / max(1.0, tilt)
    return pilot.plan(epsilon, math.exp(log_delta - _MARGIN), tolerance=close), close


def reach_of(parts: Parts, *, delta: float) -> tuple[float, float]:
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


def scaled(tolerance: float, epsilon: float) -> float:
    """Return the tolerance at an epsilon: relative where that is small, and where it is large."""
    return tolerance * max(1e-3, min(epsilon, 1.0), epsilon / 100)


def is_in_range(parts: Parts, reach: float) -> bool:
    """Return whether the likelihood ratios of single operations are floats."""
    return all(max(map(abs, pair.span(reach))) < _LARGEST_LOSS for pair, _ in parts)


def above(parts: Parts, plan: Plan, reach: float) -> tuple[Seen, float]:
    """Return a composition whose profile is above, and the mass called infinite beside it."""
    cut = math.fsum(times * (pair.infinite + pair.cut(reach)) for pair, times in parts)
    if not _on_lattice(parts, plan):
        steps = _steps(parts, plan)
        found = [
            (atoms_above(pair, step=step, bulk=bulk, cap=plan.cap, reach=reach), times)
            for (pair, times), bulk, step in zip(parts, plan.bulks, steps, strict=True)
        ]
        lost = math.fsum([cut, *(times * beyond for (_, beyond), times in found)])
        atoms = [(one, times) for (one, _), times in found]
        seen = Smoothed(atoms, tilt=plan.tilt, period=plan.window, order=_order(plan))
        return seen, lost * (1 + 1e-12)
    step, length = _sizes(parts, plan)
    masses, lost = [], cut
    for (pair, times), bulk in zip(parts, plan.bulks, strict=True):
        # A heavy highest loss on the lattice itself is not raised by it.
        origin = (pair.lattice or pair.anchors or (0.0, 0.0))[0 if pair.lattice else 1]
        one, beyond = from_above(
            pair, step=step, origin=origin, bulk=bulk, cap=plan.cap, reach=reach
        )
        masses.append((one, times))
        lost += times * beyond
    return Composed(masses, step=step, tilt=plan.tilt, length=length), lost * (1 + 1e-12)


def _below(parts: Parts, plan: Plan, reach: float) -> Seen:
    plan = plan._replace(window=1.5 * plan.window)
    if not _on_lattice(parts, plan):
        steps = _steps(parts, plan)
        atoms = [
            (atoms_below(pair, step=step, bulk=bulk, cap=plan.cap, reach=reach), times)
            for (pair, times), bulk, step in zip(parts, plan.bulks, steps, strict=True)
        ]
        return Smoothed(atoms, tilt=plan.tilt, period=plan.window, order=_order(plan))
    plan = plan._replace(step=_fitted(parts, plan.step))
    step, length = _sizes(parts, plan)
    masses = [
        (from_below(pair, step=step, bulk=bulk, cap=plan.cap, reach=reach), times)
        for (pair, times), bulk in zip(parts, plan.bulks, strict=True)
    ]
    return Composed(masses, step=step, tilt=plan.tilt, length=length)


def _too_blurred(seen: Seen, loss: float, tolerance: float) -> float:
    """Return how much finer the smoothing should have been, 1 if it was fine enough."""
    ratio = math.sqrt(seen.blur(loss) / (tolerance * seen.tilt))
    # Where next to nothing is left of the value, it is rounding or the place that is wrong.
    return ratio if 1.5 < ratio < _MOST_ORDER else 1.0


def _finer(plan: Plan, ratio: float) -> Plan:
    return plan if ratio == 1.0 else plan._replace(order=order_from(plan.order * ratio))


def _is_enough(parts: Parts, epsilon: float, delta: float, plan: Plan) -> bool:
    """Return whether a rough look shows that the composition is (epsilon, delta)-DP.

    How to look is taken from another composition of about the same.
    """
    reach, unseen = reach_of(parts, delta=delta)
    if unseen >= delta or epsilon >= highest(parts, reach):
        return unseen < delta
    if not is_in_range(parts, reach):
        return False
    rough = plan._replace(step=plan.step * _ROUGHLY, order=order_from(plan.order / _ROUGHLY))
    seen, lost = above(parts, rough, reach)
    return seen.above(epsilon) + lost <= delta


def _spacing(parts: Parts) -> float | None:
    """Return the step of the lattice that holds all losses, if there is one."""
    lattices = {pair.lattice[1] if pair.lattice else None for pair, _ in parts}
    return lattices.pop() if len(lattices) == 1 else None


def _on_lattice(parts: Parts, plan: Plan) -> bool:
    """Return whether a fast transform is the better way.

    That is so where all losses lie on one lattice, where few are added up, and where some are so
    large and so rare that the sum is not smooth.
    """
    spacing, times = _spacing(parts), sum(times for _, times in parts)
    if spacing is not None:
        return plan.window / spacing <= _LONGEST / 4
    if len(parts) >= _MANY_PARTS:
        return False
    return times < _MANY_TIMES or (plan.order > _MOST_ORDER and times <= _TOO_MANY_TIMES)


def _order(plan: Plan) -> int:
    return min(plan.order, _MOST_ORDER)


def _steps(parts: Parts, plan: Plan) -> list[float]:
    """Return a step for each part, wider for what is wide and seldom: together they cost the same.

    Cells of width w add about n w^2 / 6 to the variance of n losses, so the fewest cells that add
    as much as one step for all have widths that go with the cube root of range / n.
    """
    share = [
        ((high - low) / times) ** (1 / 3)
        for (low, high), (_, times) in zip(plan.bulks, parts, strict=True)
    ]
    cost = math.fsum(times * one * one for one, (_, times) in zip(share, parts, strict=True))
    factor = plan.step * math.sqrt(sum(times for _, times in parts) / cost) if cost else 1.0
    cells = [
        (high - low) / (factor * one) if one else 1.0
        for (low, high), one in zip(plan.bulks, share, strict=True)
    ]
    # Of the widest part all frequencies are looked at, of the others those that it leaves.
    work = 2 * _order(plan) * max(cells) + 64 * math.fsum(cells)
    factor *= max(1.0, work / _MOST_WORK)
    return [factor * one if one else plan.step for one in share]


def _sizes(parts: Parts, plan: Plan) -> tuple[float, int]:
    """Return step and length of the transform; exact losses on one lattice set the step."""
    from scipy import fft

    shortest = _SHORTEST if plan.order <= _MOST_ORDER else _LONGEST // 4
    step = _spacing(parts) or min(plan.step, plan.window / shortest)
    length = min(_LONGEST, max(64, math.ceil(plan.window / step)))
    step = max(step, plan.window / _LONGEST)
    return step, int(fft.next_fast_len(length, real=True))


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
    bound: Callable[[float], float], delta: float, near: float, seen: Seen, *, precision: float
) -> tuple[float, float]:
    """Return losses on both sides of where a bound that falls crosses ``delta``.

    At the first it is above delta, at the second not; either is infinite if none was found within
    a period of ``near``.
    """
    low, high, at, slope = -math.inf, math.inf, near, seen.tilt
    before = math.nan, math.nan
    for attempt in range(_MOST_STEPS):
        excess = math.log(max(bound(at), 1e-320) / delta)
        low, high = (at, high) if excess > 0 else (low, at)
        if high - low <= precision or abs(at - near) > seen.period:
            break
        secant = (before[1] - excess) / (at - before[0])
        slope = secant if secant > 0 else slope  # the first is no number
        before = at, excess
        # Along the slope and a little further, so that the crossing lies in between.
        at += excess / slope + math.copysign(0.4 * precision, excess)
        if math.isfinite(high - low) and (attempt > 8 or not low < at < high):
            at = (low + high) / 2
    return low, high
