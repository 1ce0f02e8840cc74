"""How many dummies each device adds, in whole numbers, and how few suffice for a guarantee."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, probability, refusal, show, whole
from discreet.accounting import Loss
from discreet.errors import ParameterError
from discreet.noise import SYSTEM, Source, bernoulli, uniform_integers
from discreet.shuffle.messages.tails import first_guess

__all__ = ["ONE", "Dummies"]

ONE: Final = 1 << 64  # a coin compares 64 random bits with a whole number
_CHUNK: Final = 1 << 20  # coins tossed at once
_MOST: Final = 1 << 20  # dummies of one device
_LEAST_DELTA: Final = Fraction(1, 10**20)
_CLOSE: Final = 1.002
_STRIDE: Final = 1.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dummies:
    """State the law of a device's dummies: ``coins`` coins, each heads with ``chance / 2**64``.

    Every head is a dummy, which is one of some kinds of message, each equally likely.

    >>> law = Dummies.of(Fraction(5, 2))
    >>> law.coins, law.heads
    (3, Fraction(...))
    >>> float(law.mean)
    2.5
    """

    coins: int
    chance: int

    def __post_init__(self) -> None:
        if whole(self.coins, name="coins") > _MOST:
            hint = "Count on more honest devices, or allow a larger epsilon."
            raise refusal("coins", f"at most {_MOST}", self.coins, hint)
        if whole(self.chance, name="chance") > ONE:
            raise refusal("chance", "a whole number from 1 to 2**64", self.chance)

    @classmethod
    def of(cls, mean: Fraction) -> Self:
        """Return the law with the fewest coins that has this mean.

        >>> Dummies.of(Fraction(2))
        Dummies(coins=2, chance=18446744073709551616)
        """
        coins = max(1, math.ceil(mean))
        return cls(coins=coins, chance=max(1, math.floor(mean / coins * ONE)))

    @classmethod
    def fewest(
        cls,
        make_loss: Callable[[Self], Loss],
        *,
        epsilon: Number,
        delta: Number,
        shift: int,
        hiding: float,
    ) -> Self:
        """Return a law, with about the fewest dummies, whose loss is (epsilon, delta)-DP.

        Where the search begins: with a dummy from each device, ``hiding`` coins hide ``shift``.

        >>> from discreet.accounting import PureLoss
        >>> law = Dummies.fewest(
        ...     lambda law: PureLoss(epsilon=1 / law.mean),
        ...     epsilon=4, delta=1e-9, shift=1, hiding=99.0)
        >>> 0.25 <= law.mean < 0.2502
        True
        """
        budget, allowed = positive(epsilon, name="epsilon"), probability(delta, name="delta")
        if allowed < _LEAST_DELTA:
            hint = "No dummies make the loss pure: it may always happen that there are none."
            raise refusal("delta", f"at least {show(float(_LEAST_DELTA))}", delta, hint)

        def is_enough(mean: float) -> bool:
            if mean > _MOST:
                raise ParameterError(
                    f"epsilon={show(epsilon)} at delta={show(delta)} would need more than {_MOST} "
                    "dummies from each device. Count on more honest devices, or allow more.",
                    parameter="epsilon",
                )
            loss = make_loss(cls.of(Fraction(mean)))
            return loss.delta_upper(epsilon=budget) <= allowed

        guess = first_guess(epsilon=budget, delta=allowed, shift=shift) / hiding
        if is_enough(guess):
            low, high = _bracket(lambda mean: not is_enough(mean), guess, 1 / _STRIDE)
        else:
            low, high = _bracket(is_enough, guess, _STRIDE)
        while high > low * _CLOSE:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return cls.of(Fraction(high))

    @property
    def heads(self) -> Fraction:
        """The chance that one coin gives a dummy."""
        return Fraction(self.chance, ONE)

    @property
    def mean(self) -> Fraction:
        """How many dummies a device adds on average."""
        return self.coins * self.heads

    def draw(self, devices: int, *, kinds: int, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return the kinds of all dummies of so many devices.

        >>> Dummies(coins=2, chance=1 << 64).draw(100, kinds=5).shape
        (200,)
        """
        tosses = devices * self.coins
        count = sum(
            int(bernoulli(self.heads, min(_CHUNK, tosses - start), source=source).sum())
            for start in range(0, tosses, _CHUNK)
        )
        return np.asarray(uniform_integers(kinds, count, source=source))


def _bracket(holds: Callable[[float], bool], start: float, stride: float) -> tuple[float, float]:
    """Return two numbers, in order, between which ``holds`` begins to; strides grow."""
    ahead = start * stride
    while not holds(ahead):
        start, stride = ahead, stride**2
        ahead = start * stride
    return min(start, ahead), max(start, ahead)
