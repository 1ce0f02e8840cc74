"""Choose the one event that will be certified, and the direction."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.scores import Binning, Event, Feature, Sides, fit_bins

__all__ = ["ChosenEvent", "Side", "choose"]

Side = Literal["first", "second"]
Curve: TypeAlias = NDArray[np.float64]

_BETTER = 0.02  # else the feature that comes first, and is simpler, stays
_HOPEFUL = 1.0  # errors below the estimate, once nothing else is left to lose
_SIMPLER = 3.0  # over the root of the samples: how much better a patchwork of intervals must be


@final
@dataclass(frozen=True, slots=True)
class ChosenEvent:
    """An event, the input on which it is likelier, and the bound that it promises."""

    event: Event
    likelier: Side
    promise: float


def choose(
    features: Sequence[Feature],
    *,
    known: Sides,
    judged: Sides,
    trials: int,
    delta: float,
    alpha: float,
) -> ChosenEvent:
    """Return the event that promises most when it is counted in ``trials`` fresh samples.

    Events are proposed on ``known`` and judged on other samples: judged where they were proposed,
    the set of all values seen once would look perfect and be worthless. They are judged strictly
    first. Where nothing is promised, a rare event may still prove something, such as a failure seen
    ten times on one input and never on the other: a hopeful look follows, as nothing can be lost.
    """
    # The more compete, the luckier the luckiest; each feature has a few events that differ.
    strict = math.sqrt(2 * math.log(4 * len(features) + 4))
    common: dict[str, Any] = {"known": known, "judged": judged, "trials": trials}
    common |= {"delta": delta, "alpha": alpha}
    best = _best(features, strict=strict, **common)
    if best.promise > _BETTER:
        return best
    hoped = _best(features, strict=_HOPEFUL, **common)
    return hoped if hoped.promise > _BETTER else best


def _best(
    features: Sequence[Feature],
    *,
    known: Sides,
    judged: Sides,
    trials: int,
    strict: float,
    delta: float,
    alpha: float,
) -> ChosenEvent:
    """Return the best event by estimates that are ``strict`` errors below the likeliest."""
    best: ChosenEvent | None = None
    for feature in features:
        values = [feature.values(side) for side in known]
        binning = fit_bins(np.concatenate(values), is_ordered=feature.is_ordered)
        if not feature.is_ordered and len(binning) > len(values[0]) and len(features) > 1:
            continue  # hardly anything was seen twice
        proposed = [binning.counts(v) for v in values]
        seen = [binning.counts(feature.values(side)).astype(np.float64) for side in judged]
        patchwork = _SIMPLER / math.sqrt(len(judged[0]))
        within: ChosenEvent | None = None
        for order, likelier, is_simple in _orders(binning, proposed[0], proposed[1]):
            hits = [np.cumsum(counts[order]) for counts in seen]
            if likelier == "second":
                hits.reverse()
            promises = promise(
                hits[0],
                hits[1],
                seen=len(judged[0]),
                trials=trials,
                strict=strict,
                delta=delta,
                alpha=alpha,
            )
            promises -= 0.0 if is_simple else patchwork
            at = int(np.argmax(promises))
            if within is None or promises[at] > within.promise:
                chosen = np.zeros(len(binning), bool)
                chosen[order[: at + 1]] = True
                within = ChosenEvent(Event(feature, binning, chosen), likelier, float(promises[at]))
        if within is not None and (best is None or within.promise > best.promise + _BETTER):
            best = within
    if best is None:  # whatever was seen is new each time, so the whole output must do
        return _best(
            features[:1],
            known=known,
            judged=judged,
            trials=trials,
            strict=strict,
            delta=delta,
            alpha=alpha,
        )
    return best


def promise(
    likely: Curve,
    unlikely: Curve,
    *,
    seen: int,
    trials: int,
    strict: float,
    delta: float,
    alpha: float,
) -> Curve:
    """Estimate the bound that an event seen so often will give, ``strict`` errors below it."""
    from scipy.special import ndtri

    p, q = _wilson(likely, seen, -strict), _wilson(unlikely, seen, strict)
    excess = p - delta
    safe = np.maximum(excess, 1e-12)
    error = np.sqrt(p * (1 - p) / safe**2 / trials + (1 - q) / (q * trials))
    bound = np.log(safe / q) + ndtri(max(alpha, 1e-300)) * error
    # Where nothing is promised yet, the gap decides.
    return np.asarray(np.where(excess > 0, np.maximum(bound, -50 + p - q), -100 + p - q))


def _wilson(hits: Curve, trials: int, z: float) -> Curve:
    """Return an end of Wilson's interval for a rate [Wil27]."""
    half = z * z / 2
    root = z * np.sqrt(hits * (1 - hits / trials) + half / 2)
    return np.asarray(np.clip((hits + half + root) / (trials + 2 * half), 1e-12, 1.0))


def _orders(
    binning: Binning, first: NDArray[np.int64], second: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], Side, bool]]:
    """Yield orders of the bins, whose beginnings are the events, directions, and if simple."""
    if binning.is_ordered:
        ascending = np.arange(len(binning) - 1)
        directions: tuple[Side, Side] = ("first", "second")
        for likelier in directions:
            yield ascending, likelier, True
            yield ascending[::-1], likelier, True
    prior = 0.5 if binning.is_exact else 4.0  # counts; bins of a continuous feature are many
    ratio = (first + prior) / (second + prior)
    # Among equals the frequent come first.
    yield np.lexsort((-first, -ratio)), "first", binning.is_exact
    yield np.lexsort((-second, ratio)), "second", binning.is_exact
