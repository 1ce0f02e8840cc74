"""The largest probabilities with which partitions of n users may be kept, exactly.

pi(0) = 0 and pi(n + 1) = min(e**epsilon pi(n) + delta, 1 - e**-epsilon (1 - pi(n) - delta), 1): no
sequence with these privacy parameters is larger anywhere [DVGM22, Section 3]. The first term is
the smallest up to n = ``turn``, the second after it. docs/proofs/partition_selection.md derives the
closed forms used here and shows that comparing them with random numbers always ends.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.noise import Source
from discreet.noise.enclosure import Chance, chance_rational, exp_bounds, is_less, refined
from discreet.noise.source import words

__all__ = ["KeepProbability", "keep_probability"]

Floats = npt.NDArray[np.float64]
Interval = tuple[Fraction, Fraction]


@final
class KeepProbability:
    """The function pi for one epsilon > 0 and one delta in (0, 1).

    ``margin`` is how close to pi a double may decide, relatively; 1 sends every case through
    integers.

    >>> pi = KeepProbability(Fraction(1), Fraction(1, 100))
    >>> pi.floats(np.array([0, 1, 2, 100]))
    array([0.        , 0.01      , 0.03718282, 1.        ])
    """

    def __init__(self, epsilon: Fraction, delta: Fraction, *, margin: float = 2.0**-36) -> None:
        self._epsilon, self._delta, self._margin = epsilon, delta, margin
        self._rate, self._share = float(epsilon), float(delta)
        self._less = -math.expm1(-self._rate)  # 1 - e**-epsilon, with all its digits
        self.turn = self._find_turn()
        self._at_turn = float(self._rising(np.array([self.turn], dtype=np.float64))[0])
        self.chance = lru_cache(maxsize=1024)(self._chance)

    # In doubles ---------------------------------------------------------------------------------

    def floats(self, users: npt.NDArray[np.int64]) -> Floats:
        """Return pi of whole numbers of at least 0, to about 2**-40 of its value."""
        n = np.maximum(users, 0).astype(np.float64)
        below = self._rising(np.minimum(n, self.turn))
        # limit may be far above 1, so this must not be written as a difference of large terms.
        limit = 1 + self._share * math.exp(-self._rate) / self._less
        grown = -np.expm1(-self._rate * np.maximum(n - self.turn, 0.0))
        above = self._at_turn + grown * (limit - self._at_turn)
        return np.asarray(np.where(n <= self.turn, below, np.minimum(above, 1.0)))

    def _rising(self, n: Floats) -> Floats:
        """Return delta (e**(n epsilon) - 1) / (e**epsilon - 1), arranged so as not to overflow."""
        risen = -np.expm1(-self._rate * n) / self._less
        return np.asarray(self._share * risen * np.exp(self._rate * np.maximum(n - 1, 0.0)))

    def select(self, users: npt.NDArray[np.int64], *, source: Source) -> npt.NDArray[np.bool_]:
        """Toss a coin that shows True with probability exactly pi(n), for each n of a flat array.

        Sixty-four random bits are compared with pi in doubles; where those cannot tell (once in
        some 10**10 cases), with integer bounds and more bits.
        """
        word = words(source, users.size, "<u8")
        uniform = word * 2.0**-64
        chance = self.floats(users)
        keep: npt.NDArray[Any] = uniform < chance
        slack = self._margin * (uniform + chance) + 2.0**-60
        for i in np.flatnonzero(np.abs(uniform - chance) <= slack):
            keep[i] = is_less(int(word[i]), 64, self.chance(max(0, int(users[i]))), source)
        return keep

    # In integers --------------------------------------------------------------------------------

    def _chance(self, n: int) -> Chance:
        """Describe pi(n) by the floors of its binary expansions."""
        if n <= 1:
            return chance_rational(self._delta * n)
        # From here on pi is 1 or irrational, except that delta = 1/2 makes it 1 by equality.
        if self._delta >= Fraction(1, 2) or self._is_one(n):
            return chance_rational(Fraction(1))

        def bounds(bits: int) -> tuple[int, int]:
            low, high = self._enclose(n, bits)
            return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))

        return refined(bounds)

    def _is_one(self, n: int) -> bool:
        bits = 128
        while True:
            low, high = self._enclose(n, bits)
            if low >= 1 or high < 1:
                return low >= 1
            bits *= 2

    def _enclose(self, n: int, bits: int) -> Interval:
        """Return rational bounds on pi(n), before it is cut at 1, that tighten with ``bits``."""
        # The extra bits keep every divisor below apart from 0.
        bits += 64 + 2 * self._delta.denominator.bit_length()
        bits += self._epsilon.denominator.bit_length()
        low_step, high_step = _decay(self._epsilon, bits)
        first = min(n, self.turn)
        low_pi = high_pi = self._delta
        if first > 1:
            low_gone, high_gone = _decay(first * self._epsilon, bits)
            low_pi *= (1 - high_gone) * low_step / (high_gone * (1 - low_step))
            high_pi *= (1 - low_gone) * high_step / (low_gone * (1 - high_step))
        if n <= self.turn:
            return low_pi, high_pi
        low_gone, high_gone = _decay((n - self.turn) * self._epsilon, bits)
        low_limit = 1 + self._delta * low_step / (1 - low_step)
        high_limit = 1 + self._delta * high_step / (1 - high_step)
        return (
            low_limit * (1 - high_gone) + low_gone * low_pi,
            high_limit * (1 - low_gone) + high_gone * high_pi,
        )

    def _find_turn(self) -> int:
        """Return the last n at which the first of the three terms is the smallest.

        That is 1 + floor(log((e - 1 + 2 delta) / (delta (e + 1))) / epsilon) with e = e**epsilon.
        A double guesses it, integers make sure.
        """
        decay = math.exp(-self._rate)
        ratio = (self._less + 2 * self._share * decay) / (self._share * (1 + decay))
        turn = 1 + max(0, math.floor(math.log(max(1.0, ratio)) / self._rate))
        while turn > 1 and not self._still_rises(turn - 1):
            turn -= 1
        while self._still_rises(turn):
            turn += 1
        return turn

    def _still_rises(self, n: int) -> bool:
        """Decide whether e**(n epsilon) <= (e - 1 + 2 delta) / (delta (e + 1)); never equal."""
        bits = 128 + 2 * self._delta.denominator.bit_length()
        while True:
            low_step, high_step = _decay(self._epsilon, bits)
            low, high = _decay(n * self._epsilon, bits)
            # Multiplied through by e**-epsilon and e**-(n epsilon).
            if self._delta * (1 + high_step) <= low * (1 - high_step + 2 * self._delta * low_step):
                return True
            if self._delta * (1 + low_step) > high * (1 - low_step + 2 * self._delta * high_step):
                return False
            bits *= 2


def _decay(x: Fraction, bits: int) -> Interval:
    """Return rational bounds on exp(-x)."""
    low, high = exp_bounds(x, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


@lru_cache(maxsize=64)
def keep_probability(epsilon: Fraction, delta: Fraction) -> KeepProbability:
    """Return the function pi, remembered, since its turning point takes a while to find."""
    return KeepProbability(epsilon, delta)
