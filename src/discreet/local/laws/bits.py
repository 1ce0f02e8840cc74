"""The law of unary randomisers: a coin for each value, likelier to show 1 at the device's own."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, refusal, whole
from discreet.local.laws.packed import packed_coins
from discreet.local.laws.preference import ONE
from discreet.noise import Source, bernoulli
from discreet.noise.enclosure import chance_logistic, log_up

__all__ = ["BitCoins"]

_BLOCK: Final = 1 << 20  # bytes of rows made at a time
_ENOUGH: Final = Fraction(80)  # from here on a 64-bit coin of the rarer kind would be all but 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitCoins:
    """Toss a coin for each value: 1 with chance ``own / 2**64`` at the device's, ``other`` else.

    Claim: the row of bits is epsilon-DP when the value is replaced by any other, for the property
    ``epsilon``, which is computed from the whole numbers that the coins use and rounded up.

    Why: coins are independent and only those at the two values differ, so that the largest ratio of
    probabilities is own (1 - other) / (other (1 - own)), reached where one shows 1 and the other 0
    [WBLJ17].

    >>> law = BitCoins(own=1 << 63, other=1 << 62)
    >>> law.ratio, law.epsilon
    (Fraction(3, 1), 1.0986122886681098)
    """

    own: int
    other: int

    def __post_init__(self) -> None:
        for name, coin in (("own", self.own), ("other", self.other)):
            if not 0 < whole(coin, name=name) < ONE:
                raise refusal(name, "between 0 and 2**64, so that nothing is certain", coin)
        if self.other >= self.own:
            raise refusal("own", "above other, or reports tell nothing", self.own)

    @classmethod
    def symmetric(cls, *, epsilon: Number) -> Self:
        """Return the law that turns every bit round with one and the same chance.

        >>> law = BitCoins.symmetric(epsilon=2)
        >>> law.own + law.other == ONE, round(law.own / ONE, 4), law.epsilon      # e / (e + 1)
        (True, 0.7311, 2.0)
        """
        lie = _lie(positive(epsilon, name="epsilon") / 2, epsilon)
        return cls(own=ONE - lie, other=lie)

    @classmethod
    def optimized(cls, *, epsilon: Number) -> Self:
        """Return the law whose own coin is fair and whose others show 1 as rarely as they may.

        >>> law = BitCoins.optimized(epsilon=1)
        >>> law.own / ONE, round(law.other / ONE, 4), law.epsilon      # 1 / (e + 1)
        (0.5, 0.2689, 1.0)
        """
        return cls(own=ONE // 2, other=_lie(positive(epsilon, name="epsilon"), epsilon))

    @property
    def ratio(self) -> Fraction:
        """How much likelier a row can be for one value than for another, exactly."""
        return Fraction(self.own * (ONE - self.other), self.other * (ONE - self.own))

    @property
    def epsilon(self) -> float:
        """The logarithm of ``ratio``, rounded up."""
        return log_up(self.ratio)

    def release(
        self, values: npt.NDArray[np.int64], *, domain: int, source: Source
    ) -> npt.NDArray[np.uint8]:
        """Return a row of packed bits for each value; bits beyond the domain are 0.

        >>> from discreet.noise import SYSTEM
        >>> rows = BitCoins.optimized(epsilon=1).release(np.full(1000, 3), domain=10, source=SYSTEM)
        >>> rows.shape, bool((rows[:, 1] < 4).all())      # the second byte has values 8 and 9
        ((1000, 2), True)
        """
        width = -(-domain // 8)
        rows = np.empty((values.size, width), dtype=np.uint8)
        step = max(1, _BLOCK // width)
        for start in range(0, values.size, step):
            part, block = values[start : start + step], rows[start : start + step]
            block[:] = packed_coins(self.other, block.size, source=source).reshape(block.shape)
            set_bits(block, part, bernoulli(Fraction(self.own, ONE), part.size, source=source))
            block[:, -1] &= 255 >> (-domain % 8)
        return rows


def set_bits(
    rows: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], bits: npt.NDArray[Any]
) -> None:
    """Set one bit of each row."""
    spot = np.arange(places.size), places >> 3
    low = (places & 7).astype(np.uint8)
    one = np.uint8(1) << low
    rows[spot] = (rows[spot] & ~one) | (bits.astype(np.uint8) << low)


def _lie(budget: Fraction, epsilon: Number) -> int:
    """Return the smallest coin whose odds are at least exp(-budget) to 1."""
    lie = chance_logistic(min(budget, _ENOUGH))(64) + 1
    if lie >= ONE // 2:
        hint = "Reports would tell nothing."
        raise refusal("epsilon", "large enough to move 64-bit coins", epsilon, hint)
    return lie
