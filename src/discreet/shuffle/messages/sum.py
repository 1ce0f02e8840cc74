"""A sum of small whole numbers from ones and zeros among dummies."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, refusal, whole
from discreet.accounting import FinitePairLoss
from discreet.local.laws.numbers import as_codes, as_values
from discreet.noise import SYSTEM, Source
from discreet.privacy import Neighbours
from discreet.shuffle.messages.dummies import Dummies
from discreet.shuffle.messages.estimates import SumEstimate
from discreet.shuffle.messages.hidden_shift import hidden_shift_loss
from discreet.shuffle.messages.tails import dummy_width

__all__ = ["MultiMessageSum"]

_MOST = 1000  # a device sends as many messages


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiMessageSum:
    """Send a whole number in unary, as ones and zeros, and with it fair coins as dummies.

    A device with number x out of 0 to ``largest`` sends x ones and ``largest`` - x zeros. The error
    is that of binomial noise on the sum, near that of a trusted curator who adds Gaussian noise.

    Claim: if at least ``honest`` devices follow the protocol, the device that changes among them,
    what the shuffler puts out satisfies ``loss`` for replace-one, as for
    :class:`MultiMessageHistogram`. Before they are shuffled, messages have no guarantee.

    Why: docs/proofs/multi_message_shuffling.md; the noise is that of [CZ22] and its loss is
    computed instead of bounded; unary messages are those of [CSUZZ19].

    >>> protocol = MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=5, honest=1000)
    >>> messages = protocol.release(np.arange(1000) % 6)
    >>> estimate = protocol.estimate(messages, n=1000)
    >>> bool(abs(estimate.sum - 2496) < 8 * estimate.standard_error)
    True
    """

    largest: int
    honest: int
    dummies: Dummies
    neighbours: ClassVar[Neighbours] = Neighbours.replace_one

    def __post_init__(self) -> None:
        _as_largest(self.largest)
        whole(self.honest, name="honest")

    @classmethod
    def calibrated(cls, *, epsilon: Number, delta: Number, largest: int, honest: int) -> Self:
        """Return the protocol with about the fewest dummies that is (epsilon, delta)-DP.

        >>> protocol = MultiMessageSum.calibrated(
        ...     epsilon=1, delta=1e-6, largest=10, honest=100_000)
        >>> round(protocol.messages_per_device, 3)
        10.072
        """
        most, people = _as_largest(largest), whole(honest, name="honest")

        def make_loss(dummies: Dummies) -> FinitePairLoss:
            return cls(largest=most, honest=people, dummies=dummies).loss

        dummies = Dummies.fewest(make_loss, epsilon=epsilon, delta=delta, shift=most, hiding=people)
        return cls(largest=most, honest=people, dummies=dummies)

    @property
    def loss(self) -> FinitePairLoss:
        """What one batch costs each honest device."""
        return self.loss_if(honest=self.honest)

    def loss_if(self, *, honest: int) -> FinitePairLoss:
        """Return what one batch costs if only so many devices follow the protocol.

        >>> protocol = MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=5, honest=1000)
        >>> from discreet.accounting import epsilon
        >>> f"{epsilon(protocol.loss_if(honest=500), delta=1e-6):.2f}"
        '1.46'
        """
        trials = whole(honest, name="honest") * self.dummies.coins
        return hidden_shift_loss(trials=trials, chance=self.dummies.heads, shift=self.largest)

    @property
    def messages_per_device(self) -> float:
        """How many messages a device sends on average."""
        return float(self.largest + self.dummies.mean)

    @property
    def bytes_per_message(self) -> int:
        """How many bytes one message takes before it is sealed."""
        return 1

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return all messages of the devices with these numbers, to be permuted.

        How many messages a device sends does not depend on its number.

        >>> one_each = Dummies(coins=1, chance=1 << 64)
        >>> protocol = MultiMessageSum(largest=5, honest=2, dummies=one_each)
        >>> protocol.release([5, 2]).shape  # twice five messages and a dummy
        (12,)
        """
        numbers = as_values(values, domain=self.largest + 1)
        own = np.arange(self.largest) < numbers[:, None]
        return np.concatenate(
            [own.ravel(), self.dummies.draw(numbers.size, kinds=2, source=source)],
            dtype=np.uint8,
            casting="unsafe",
        )

    def estimate(self, messages: npt.ArrayLike, *, n: int) -> SumEstimate:
        """Estimate the sum of the numbers of ``n`` devices from their messages, without bias.

        >>> one_each = Dummies(coins=1, chance=1 << 64)
        >>> protocol = MultiMessageSum(largest=5, honest=2, dummies=one_each)
        >>> protocol.estimate([1] * 8 + [0] * 4, n=2)
        SumEstimate(n=2, sum=7 ± 0.71)
        """
        zeros, ones = np.bincount(as_codes(messages, below=2), minlength=2).tolist()
        return SumEstimate(zeros=zeros, ones=ones, n=whole(n, name="n"), largest=self.largest)

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that the estimated sum is off by at most t with this confidence.

        >>> protocol = MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=5, honest=1000)
        >>> round(protocol.error(n=1000, confidence=0.95), 1)
        58.2
        """
        tosses = whole(n, name="n") * self.dummies.coins
        return dummy_width(tosses, self.dummies.heads, kinds=2, confidence=confidence)


def _as_largest(largest: object) -> int:
    if (found := whole(largest, name="largest")) > _MOST:
        hint = "Round numbers at random to a coarser grid first."
        raise refusal("largest", f"at most {_MOST}", largest, hint)
    return found
