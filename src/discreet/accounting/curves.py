"""The curves behind a guarantee: delta at every epsilon, and misses at every rate of false alarms.

One (epsilon, delta) is a point of the *profile*. The *trade-off* says the same in the words of
whoever attacks: to cry wolf at most so often, how often must they miss? Both come from certified
upper bounds on delta, so a curve errs in the attacker's favour only.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

import discreet.plotting as plotting
from discreet._exact import Number, float_up, nonnegative, probability
from discreet.accounting.guarantees import epsilon as epsilon_of
from discreet.accounting.losses import certified
from discreet.accounting.losses.loss import Loss
from discreet.accounting.pairs.pairs import Pair
from discreet.accounting.pld import distribution as pld
from discreet.accounting.pld.pilot import Pilot

__all__ = ["plot_profile", "plot_tradeoff", "profile", "tradeoff"]

Floats = npt.NDArray[np.float64]
Direction = Sequence[tuple[Pair, int]]

_TOLERANCE: Final = 1e-5
_GRID: Final = 400  # epsilons whose lines make up a trade-off curve
_ROUNDS: Final = 4  # of refinement around the best of them, where delta has a closed form
_MOST_TRANSFORMS: Final = 24
_MOST_ORDER: Final = 1 << 14  # of smoothing, a power of two like the factor
_NOTHING: Final = 1e-30  # a delta below which no curve is looked at
_PLOTTED: Final = 200


def profile(loss: Loss, *, epsilons: Iterable[Number]) -> Floats:
    """Return a certified upper bound on delta at each epsilon.

    Claim: the operation is (epsilons[i], result[i])-DP for every i.

    Why: one mechanism as in :func:`discreet.accounting.delta`. A composition is transformed a few
    times, at epsilons spread over those asked for; each transform bounds delta everywhere, tightly
    so nearby, and the least bound is kept.

    >>> from discreet.accounting import GaussianLoss
    >>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    >>> [f"{d:.3g}" for d in profile(steps, epsilons=[0, 0.5, 1])]
    ['0.101', '0.00303', '4.24e-06']
    """
    asked = [nonnegative(e, name="epsilons") for e in epsilons]
    result = np.zeros(len(asked))
    below = [i for i, e in enumerate(asked) if e < loss.epsilon_pure]
    if below:
        inside = [asked[i] for i in below]
        readings = [_read_parts(parts, inside) for parts in certified.readings(loss)]
        result[below] = np.minimum.reduce([np.ones(len(inside)), *readings])
    return result


def tradeoff(loss: Loss, *, false_positive_rates: Iterable[Number]) -> Floats:
    """Return a lower bound on the false-negative rate of any attack, at each false-positive rate.

    The attack decides between neighbouring inputs from everything that was released; under
    add/remove it says "in the data" of somebody who is not (false positive) or fails to say it of
    somebody who is (false negative). The bound holds for either input as the null hypothesis.

    Claim: at a false-positive rate a the false-negative rate is at least the largest over
    epsilon >= 0 of 1 - delta(epsilon) - exp(epsilon) a and exp(-epsilon) (1 - delta(epsilon) - a).

    Why: these are the two inequalities of the definition for the event that the attack says yes,
    solved for the misses; together they are the whole truth [DRS22, Proposition 2.5]. Every
    epsilon gives a valid bound, so a grid of them does.

    >>> from discreet.accounting import GaussianLoss
    >>> noise = GaussianLoss(noise_multiplier=1)
    >>> [f"{b:.4f}" for b in tradeoff(noise, false_positive_rates=[0, 0.05])]
    ['1.0000', '0.7405']
    """
    rates = [
        probability(a, name="false_positive_rates", zero=True, one=True)
        for a in false_positive_rates
    ]
    alarms = np.array([float_up(a) for a in rates])
    if not rates:
        return alarms
    grid = _grid(loss, alarms)
    misses = np.maximum(*_lines(grid, profile(loss, epsilons=grid.tolist()), alarms)).max(axis=0)
    if _has_closed_form(loss):
        misses = np.maximum(misses, _refined(loss, grid, alarms))
    clipped: Floats = np.clip(misses, 0.0, 1.0)
    return clipped


def plot_profile(losses: Loss | Mapping[str, Loss], *, path: str | Path) -> Path:
    """Draw delta against epsilon, one line for each loss, into a file; needs matplotlib.

    The ending of ``path`` decides the format: .png, .svg, .pdf.

    >>> from discreet.accounting import GaussianLoss
    >>> plot_profile(GaussianLoss(noise_multiplier=1), path="profile.png")  # doctest: +SKIP
    PosixPath('profile.png')
    """
    named = _named(losses)
    figure, (axes,) = plotting.panels(room="discreet.accounting")
    last = max(_last_epsilon(loss, 1e-10) for loss in named.values())
    epsilons = np.linspace(0.0, last, _PLOTTED)
    for name, loss in named.items():
        deltas = profile(loss, epsilons=epsilons.tolist())
        axes.plot(epsilons, np.where(deltas > 0, deltas, np.nan), label=name)
    axes.set(xlabel="epsilon", ylabel="delta, at most", yscale="log", ylim=(1e-10, 1.0))
    plotting.legend(axes)
    plotting.titled(axes, "How rarely each epsilon may fail", under="certified upper bounds")
    return plotting.save(figure, path)


def plot_tradeoff(losses: Loss | Mapping[str, Loss], *, path: str | Path) -> Path:
    """Draw misses against false alarms, one line for each loss, into a file; needs matplotlib.

    >>> from discreet.accounting import GaussianLoss
    >>> plot_tradeoff(GaussianLoss(noise_multiplier=1), path="tradeoff.png")  # doctest: +SKIP
    PosixPath('tradeoff.png')
    """
    figure, (axes,) = plotting.panels(room="discreet.accounting", size=(6.0, 6.0))
    alarms = np.linspace(0.0, 1.0, _PLOTTED + 1)
    for name, loss in _named(losses).items():
        misses = tradeoff(loss, false_positive_rates=alarms.tolist())
        (line,) = axes.plot(alarms, misses, label=name)
        axes.fill_between(alarms, misses, alpha=0.08, color=line.get_color(), linewidth=0)
    axes.plot([0, 1], [1, 0], ":", color=plotting.look().quiet, label="guessing")
    axes.set(xlabel="false-positive rate", ylabel="false-negative rate, at least")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    plotting.legend(axes)
    plotting.titled(axes, "No attack gets below its line", under="certified lower bounds")
    return plotting.save(figure, path)


def _read_parts(parts: certified.Parts, asked: Sequence[Fraction]) -> Floats:
    if not parts:
        return np.zeros(len(asked))
    if certified.is_single(parts):
        return np.array([parts[0][0].delta_upper(epsilon=e) for e in asked])
    # Delta falls with epsilon, so an epsilon rounded down is safe.
    epsilons = np.array([-float_up(-e) for e in asked])
    order = np.argsort(epsilons)
    worst = np.zeros(epsilons.size)
    for direction in certified.directions(parts):
        worst[order] = np.maximum(worst[order], _composed(direction, epsilons[order]))
    return worst


def _composed(direction: Direction, epsilons: Floats) -> Floats:
    """Return bounds on delta of one direction at increasing epsilons."""
    reach, unseen = pld.reach_of(direction, delta=_NOTHING)
    if unseen >= 1:
        return np.ones(epsilons.size)
    ceiling = pld.highest(direction, reach)
    pilot = Pilot(direction, reach)
    bounds = np.where(epsilons >= ceiling, unseen, 1.0)
    first = 0
    for _ in range(_MOST_TRANSFORMS):
        if epsilons[first] >= ceiling:
            break
        anchor, end = _anchor(pilot, float(epsilons[first]), ceiling)
        plan = pilot.plan(anchor, 1e-12, tolerance=_TOLERANCE)
        # It is read far from where it is centred, where smoothing costs more.
        plan = plan._replace(order=max(plan.order, min(4 * plan.order, _MOST_ORDER)))
        seen, lost = pld.above(direction, plan, reach)
        # Later transforms are of no use to epsilons far below them, so look back a little only.
        start = int(np.searchsorted(epsilons, 2 * epsilons[first] - end))
        near = slice(start, None)
        found = np.array([seen.above(e) for e in epsilons[near].tolist()]) + lost
        bounds[near] = np.minimum(bounds[near], found)
        first = int(np.searchsorted(epsilons, end, side="right"))
        if first >= epsilons.size or bounds[max(0, first - 1)] < _NOTHING:
            break
    return np.minimum.accumulate(bounds)


def _anchor(pilot: Pilot, epsilon: float, ceiling: float) -> tuple[float, float]:
    """Return where to transform so as to see from ``epsilon`` on, and how far that is good."""
    _, means, variances = pilot.moments(np.array([0.3, 1.0]))
    tilt = pilot.plan(epsilon, 1e-12, tolerance=_TOLERANCE).tilt
    if tilt > 1:
        variances = pilot.moments(np.array([tilt]))[2]
    deviation = math.sqrt(float(variances[-1]))
    reach = min(2.5 * deviation, (ceiling - epsilon) / 4)
    # A weak tilt needs a wide window, and the bulk is in sight from above anyway.
    anchor = max(epsilon + reach, min(float(means[0]), ceiling / 2))
    return anchor, anchor + reach


def _has_closed_form(loss: Loss) -> bool:
    return all(certified.is_single(parts) for parts in certified.readings(loss))


def _last_epsilon(loss: Loss, delta: float) -> float:
    """Return the epsilon at the first of some growing deltas that has one."""
    while delta < 0.5:
        found = epsilon_of(loss, delta=delta)
        if math.isfinite(found):
            return max(found, 1e-3)
        delta *= 10
    return 20.0


def _grid(loss: Loss, alarms: Floats) -> Floats:
    positive = alarms[alarms > 0]
    least = float(positive.min()) if positive.size else 1.0
    last = _last_epsilon(loss, max(_NOTHING, min(1e-12, least * 1e-3)))
    grid = np.linspace(0.0, last, _GRID)
    # Where a profile has a corner, so has the trade-off.
    corners = [last]
    corner, _ = loss.approximate_dp
    if isinstance(corner, Fraction):
        corners.append(float_up(corner))
    return np.unique(np.minimum(np.append(grid, corners), 700.0))


def _lines(epsilons: Floats, deltas: Floats, alarms: Floats) -> tuple[Floats, Floats]:
    """Return both bounds on the misses, a row for each epsilon, rounded down."""
    rise = np.exp(epsilons)[:, None] * (1 + 1e-15)
    held = (1 - deltas)[:, None]
    with np.errstate(over="ignore"):
        first = held - rise * alarms - 4e-16
    second = np.maximum(held - alarms - 4e-16, 0.0) / (rise * (1 + 1e-15))
    return first, second


def _refined(loss: Loss, grid: Floats, alarms: Floats) -> Floats:
    """Return the best bounds found between the neighbours of the best point of the grid.

    Either bound has a single peak: delta is convex in exp(epsilon), and exp(-epsilon) delta is
    convex in exp(-epsilon).
    """
    best = np.zeros(alarms.size)
    deltas = profile(loss, epsilons=grid.tolist())
    for kind, lines in enumerate(_lines(grid, deltas, alarms)):
        top = np.argmax(lines, axis=0)
        low, high = grid[np.maximum(top - 1, 0)], grid[np.minimum(top + 1, grid.size - 1)]
        for _ in range(_ROUNDS):
            points = np.linspace(low, high, 9)
            for j in range(alarms.size):
                column = points[:, j]
                found = _lines(column, profile(loss, epsilons=column.tolist()), alarms[j : j + 1])
                values = found[kind][:, 0]
                peak = int(np.argmax(values))
                best[j] = max(best[j], float(values[peak]))
                low[j], high[j] = column[max(peak - 1, 0)], column[min(peak + 1, 8)]
    return best


def _named(losses: Loss | Mapping[str, Loss]) -> Mapping[str, Loss]:
    return {repr(losses): losses} if isinstance(losses, Loss) else losses
