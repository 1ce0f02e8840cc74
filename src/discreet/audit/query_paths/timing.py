"""Whether time tells two tables apart: asked in turns, beside a control that must not differ."""

import math
import statistics
import time
from collections.abc import Callable

import numpy as np

from discreet._rates import rate_lower
from discreet.audit.query_paths.certificate import Terms
from discreet.audit.query_paths.observation import Columns, observe
from discreet.audit.query_paths.report import ChannelFinding

__all__ = ["timed"]

_WARM = 5  # rounds that are thrown away, and one in so many that settles the margin
_MARGIN, _LEAST = 0.1, 20e-6  # of the usual time, seconds: what machines do by themselves
_CONTROL = 0.01


def timed(
    ask: Callable[[Columns], object],
    pair: tuple[Columns, Columns],
    *,
    kind: str,
    rounds: int,
    terms: Terms,
    rng: np.random.Generator,
) -> ChannelFinding:
    """Ask about the first table, a copy of it and the second in turns, and compare the times.

    Claim: if what slows the machine strikes the three questions of a round alike, and the path is
    (epsilon, delta)-DP, time included, then the verdict is a failure with probability at most
    ``terms.alpha``.

    Why: how often one of two independent draws is the larger is the area under the curve of a
    test, at most 1 - (1 - delta)^2 / (1 + e^epsilon): the area under the two lines that
    (epsilon, delta)-DP allows [KOV17]. Rounds are independent given the load, since their order is
    drawn anew; times that differ by less than a tenth count as equal, which only lowers the bound.
    """
    copied = {name: list(column) for name, column in pair[0].items()}
    tables = (pair[0], copied, pair[1])
    seconds = np.array([_round(ask, tables, rng) for _ in range(rounds + _WARM)])[_WARM:]
    usual = statistics.median(seconds[: rounds // _WARM, 0])
    margin = max(_MARGIN * usual, _LEAST)
    first, control, second = seconds[rounds // _WARM :].T
    trials = len(first)

    def least(slow: np.ndarray, fast: np.ndarray, alpha: float) -> float:
        hits = np.array([np.count_nonzero(slow > fast + margin)])
        return float(rate_lower(hits, trials=trials, alpha=alpha)[0])

    found = max(least(*two, terms.alpha / 2) for two in ((first, second), (second, first)))
    unequal = max(least(*two, _CONTROL / 2) for two in ((first, control), (control, first)))
    bound, best = _epsilon(found, terms.delta), _epsilon(_most(trials, terms), terms.delta)
    is_noisy = unequal > 1 - (1 - terms.delta) ** 2 / (1 + math.exp(terms.epsilon))
    verdict = "FAILED" if bound > terms.epsilon else "passed"
    if best <= terms.epsilon:
        verdict = "nothing learned"
    return ChannelFinding(
        kind=kind,
        channel="time",
        verdict="could not be measured" if is_noisy else verdict,  # type: ignore[arg-type]
        epsilon_lower=0.0 if is_noisy else bound,
        power=_power(trials, terms),
        samples=rounds,
        event=f"slower by more than {1e3 * margin:.3g} ms, at least {found:.0%} of the time",
    )


def _round(
    ask: Callable[[Columns], object], tables: tuple[Columns, ...], rng: np.random.Generator
) -> list[float]:
    took = [0.0] * len(tables)
    for place in rng.permutation(len(tables)):
        began = time.perf_counter()
        observe(ask, tables[place])
        took[place] = time.perf_counter() - began
    return took


def _epsilon(area: float, delta: float) -> float:
    """Return the least epsilon that allows an area under the curve.

    >>> round(_epsilon(0.75, 0.0), 4)
    1.0986
    """
    return math.log(max((1 - delta) ** 2 / (1 - area) - 1, 1.0)) if area < 1 else math.inf


def _most(trials: int, terms: Terms) -> float:
    return float(rate_lower(np.array([trials]), trials=trials, alpha=terms.alpha / 2)[0])


def _power(trials: int, terms: Terms) -> float:
    """Return the smallest epsilon that would show, of times further apart than the margin."""
    from scipy.special import betaincinv

    hits = np.arange(1, trials + 1)
    low = rate_lower(hits, trials=trials, alpha=terms.alpha / 2)
    enough = hits[[_epsilon(float(area), terms.delta) > terms.epsilon for area in low]]
    if not len(enough):
        return math.inf
    # P[at least so many hits] = 95% at this rate.
    rate = float(betaincinv(int(enough[0]), trials - int(enough[0]) + 1, 0.95))
    return _epsilon(rate, terms.delta)
