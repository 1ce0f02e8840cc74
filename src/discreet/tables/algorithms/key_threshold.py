"""Keys that nobody listed: from which noisy count on one may be shown."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, refusal, whole
from discreet.privacy import Neighbours
from discreet.tables.algorithms.noise import Noise
from discreet.tables.model.bounds import WEIGHT_STEPS, Bounding, Groups, Norm

__all__ = ["Reach", "default_least", "reach", "shown_chance", "shown_from", "threshold"]

Doubles = npt.NDArray[np.float64]
_INTERVALS: Final = 256
_HALF_STEP: Final = 0.5 / WEIGHT_STEPS
_PRECISION: Final = 1e-5  # of the noise: how far above the best threshold the result may be


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one unit (or group of units) can do on keys that nobody else has.

    On at most ``keys`` such keys it has counts of at most ``most`` rows, the powers of order
    ``power`` of which add up to at most ``total``.

    >>> reach(Norm(limit=3, order=2), least=Fraction(1, 2))
    Reach(keys=36, most=Fraction(3, 1), total=Fraction(9, 1), power=2)
    """

    keys: int
    most: Fraction
    total: Fraction
    power: int


def reach(bounding: Bounding | None, *, least: Number | None, group_size: int = 1) -> Reach:
    """Return what units can do on keys of their own.

    ``bounding`` of None: every row is a unit. ``least`` is the smallest weighted count that is
    kept, which a Norm needs: without it, one unit could touch any number of keys.

    Why: counts of at least ``least`` whose p-th powers add up to at most limit**p are at most
    (limit / least)**p. Of ``group_size`` units the norm is at most that many times as large, by the
    triangle inequality, and the keys are as many times as many. For Groups and rows, sums do.

    >>> reach(Groups(groups=4, rows=2), least=None, group_size=3)
    Reach(keys=12, most=Fraction(6, 1), total=Fraction(24, 1), power=1)
    """
    size = whole(group_size, name="group_size")
    if bounding is None or isinstance(bounding, Groups):
        groups, rows = (1, 1) if bounding is None else (bounding.groups, bounding.rows)
        return Reach(
            keys=size * groups,
            most=Fraction(size * rows),
            total=Fraction(size * groups * rows),
            power=1,
        )
    limit = positive(bounding.limit, name="limit")
    if least is None:
        raise refusal("least", "a number above 0 where the norm is bounded", least)
    smallest = positive(least, name="least")
    return Reach(
        keys=size * math.floor((limit / smallest) ** bounding.order),
        most=size * limit,
        total=(size * limit) ** bounding.order,
        power=bounding.order,
    )


def threshold(
    noise: Noise,
    *,
    sensitivity: Number,
    bounding: Bounding | None,
    least: Number | None,
    delta: Number,
    neighbours: Neighbours | str,
    group_size: int = 1,
) -> Fraction:
    """Return the noisy number of rows from which on a key, and all that was found for it, is shown.

    Claim: let each key that somebody has get independent noise on its weighted number of rows
    (``noise`` at ``sensitivity``, as all other cells get theirs), and let the key be shown with all
    its cells if the noisy number is at least the result. Then the whole answer, keys included, has
    at most the loss of the noise on all cells, composed with ApproximateLoss(epsilon=0,
    delta=delta): for every neighbouring relation, ``replace_one`` too, as long as ``sensitivity``
    and ``least`` are the ones used.

    Why: keys that only one of two neighbouring tables has are shown with probability at most delta,
    independently of all else; otherwise the answer is a post-processing of the noise on the common
    keys (docs/proofs/key_thresholds.md, Theorem 1). The chance is bounded over all that a unit
    can do (see :class:`Reach`) by linear programming duality, rounded up (Theorem 2).

    >>> noise = Noise(kind="gaussian", multiplier=4)
    >>> shown = threshold(noise, sensitivity=1, bounding=Norm(limit=1, order=2), least=0.5,
    ...                   delta=1e-6, neighbours="add_remove")
    >>> round(float(shown), 2)
    20.61
    """
    Neighbours.of(neighbours)
    chance = probability(delta, name="delta")
    able = reach(bounding, least=least, group_size=group_size)
    if able.keys == 0:
        raise refusal("least", "at most the limit of the norm", least)
    return _threshold(noise, positive(sensitivity, name="sensitivity"), able, chance)


@lru_cache(maxsize=256)
def _threshold(noise: Noise, sensitivity: Fraction, able: Reach, delta: Fraction) -> Fraction:
    scale, most = noise.scale(sensitivity=sensitivity), float(able.most)
    # One key with all its rows is possible, and no key can do more; so the result lies between.
    low = most + noise.reach(delta, sensitivity=sensitivity) * (1 - 1e-6) - 1e-5 * scale
    far = max(delta / (2 * able.keys), Fraction(1, 10**280))
    high = most + noise.reach(far, sensitivity=sensitivity) + 1e-5 * scale
    while _chance(noise, high, scale, able) > delta:
        high += scale
        if noise.tail_at((high - most) / scale) < 1e-290:
            raise refusal("delta", "at least 1e-280 times the number of keys", delta)
    while high - low > _PRECISION * scale:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        is_safe = _chance(noise, middle, scale, able) <= delta
        low, high = (low, middle) if is_safe else (middle, high)
    return Fraction(math.ceil(Fraction(max(0.0, high)) * WEIGHT_STEPS), WEIGHT_STEPS)


def shown_chance(noise: Noise, count: float, *, sensitivity: Number, able: Reach) -> float:
    """Return an upper bound on the chance that any key of one unit alone reaches ``count``.

    Why: let h(c) bound the chance of one key with c rows, which grows with c. For every price
    v >= 0 and counts c_1, ..., c_t as in ``able``,

        sum h(c_i) <= v total + sum (h(c_i) - v c_i**p) <= v total + keys max_c (h(c) - v c**p),

    and on an interval [a, b] of c the bracket is at most h(b) - v a**p. Every v is a proof; the
    best one is the slope of the upper hull of the points (a**p, h(b)) above total / keys.

    >>> noise = Noise(kind="laplace", multiplier=1)
    >>> chance = shown_chance(noise, 15, sensitivity=1, able=reach(None, least=None))
    >>> round(chance * math.exp(14), 4)  # exp(-(15 - 1)) / 2
    0.5
    """
    return _chance(noise, float(count), noise.scale(sensitivity=sensitivity), able)


def _chance(noise: Noise, count: float, scale: float, able: Reach) -> float:
    most = float(able.most) * (1 + 1e-15)
    borders = np.arange(_INTERVALS + 1) * (most / _INTERVALS)
    borders[-1] = most
    # Half a step: the noise is rounded. Rounding errors of a few units are covered by h's margin
    # where they matter in proportion, and by this tiny shift where they come from large counts.
    reached = (count - borders[1:] - _HALF_STEP - 4e-16 * (count + most)) / scale
    height = np.array([noise.tail_at(z) for z in reached.tolist()])
    powers = np.power(borders[:-1], float(able.power), dtype=np.float64) * (1 - 1e-14)
    budget = float(able.total) * (1 + 1e-15) / able.keys
    best = _hull_at(powers, height, budget, most**able.power * (1 + 1e-14))
    return min(1.0, best * able.keys * (1 + 1e-12))


def _hull_at(powers: Doubles, height: Doubles, budget: float, end: float) -> float:
    """Return the least v budget + max(height - v powers) over v >= 0."""
    if budget >= end:
        return float(height[-1])  # v = 0: every key can have as much as any
    left, right = 0, height.size - 1
    best = math.inf
    for _ in range(height.size):
        if powers[right] <= budget:
            return min(best, float(height[-1]))
        rise, run = height[right] - height[left], powers[right] - powers[left]
        slope = max(0.0, float(rise / run))
        gain = height - slope * powers
        top = int(np.argmax(gain))
        best = min(best, slope * budget + float(gain[top]))
        if gain[top] <= gain[left] * (1 + 1e-14) or top in (left, right):
            return best
        left, right = (top, right) if powers[top] <= budget else (left, top)
    return best


def default_least(bounding: Norm) -> Fraction:
    """Return a good smallest weighted count to keep: a quarter of a row, or half of one.

    A unit within its limit has full weight, and loses nothing. One of four times the limit (its
    norm to the power ``order``) still keeps all its keys; only larger units lose keys of a single
    row. In return, a unit can show at most 4 limit**order keys of its own. A larger value keeps
    fewer of them and lowers the threshold a little: by the logarithm of the ratio, at most.

    >>> default_least(Norm(limit=8, order=1)), default_least(Norm(limit=3, order=2))
    (Fraction(1, 4), Fraction(1, 2))
    """
    return min(Fraction(bounding.limit), Fraction(1, 4 if bounding.order == 1 else 2))


def shown_from(
    noise: Noise, *, threshold: Fraction, sensitivity: Number, confidence: Number
) -> float:
    """Return a number of rows that is shown with at least this confidence.

    >>> noise = Noise(kind="laplace", multiplier=1)
    >>> round(shown_from(noise, threshold=Fraction(15), sensitivity=1, confidence=0.95), 2)
    17.3
    """
    miss = 1 - probability(confidence, name="confidence")
    return float(threshold) + noise.reach(miss, sensitivity=sensitivity)
