"""A histogram from true values among dummies."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, whole
from discreet.accounting import FinitePairLoss
from discreet.local.laws.numbers import as_codes, as_domain, as_values
from discreet.noise import SYSTEM, Source
from discreet.privacy import Neighbours
from discreet.shuffle.messages.dummies import Dummies
from discreet.shuffle.messages.estimates import DummyEstimate
from discreet.shuffle.messages.hidden_shift import hidden_shift_loss
from discreet.shuffle.messages.tails import dummy_width

__all__ = ["MultiMessageHistogram"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiMessageHistogram:
    """Send the true value, and with it a few values drawn uniformly from the domain.

    The shuffler mixes all devices' messages. Dummies of all honest devices hide each value, so a
    device adds few where devices are many, and the error is near that of a trusted curator.

    Claim: if at least ``honest`` devices follow the protocol, the device that changes among them,
    what the shuffler puts out satisfies ``loss`` for replace-one; who takes part and the other
    devices' values may be known, and the others' messages chosen by the attacker. Whoever sees
    which messages come from one device learns its value but for the dummies: unlike the reports of
    ``discreet.local``, these messages have no guarantee before they are shuffled.

    Why: docs/proofs/multi_message_shuffling.md; the protocol is that of [LLFHHLRQ20] and
    [LWY22], and its loss is computed instead of bounded.

    >>> protocol = MultiMessageHistogram.calibrated(epsilon=1, delta=1e-6, domain=4, honest=1000)
    >>> messages = protocol.release(np.repeat([0, 1, 2, 3], [400, 300, 200, 100]))
    >>> estimate = protocol.estimate(messages, n=1000)
    >>> bool(abs(estimate.counts[0] - 400) < 8 * estimate.standard_error[0])
    True
    """

    domain: int
    honest: int
    dummies: Dummies
    neighbours: ClassVar[Neighbours] = Neighbours.replace_one

    def __post_init__(self) -> None:
        as_domain(self.domain)
        whole(self.honest, name="honest")

    @classmethod
    def calibrated(cls, *, epsilon: Number, delta: Number, domain: int, honest: int) -> Self:
        """Return the protocol with about the fewest dummies that is (epsilon, delta)-DP.

        >>> protocol = MultiMessageHistogram.calibrated(
        ...     epsilon=1, delta=1e-6, domain=1000, honest=1_000_000)
        >>> round(protocol.messages_per_device, 3)
        1.043
        """
        size, people = as_domain(domain), whole(honest, name="honest")

        def make_loss(dummies: Dummies) -> FinitePairLoss:
            return cls(domain=size, honest=people, dummies=dummies).loss

        dummies = Dummies.fewest(
            make_loss, epsilon=epsilon, delta=delta, shift=1, hiding=2 * people / size
        )
        return cls(domain=size, honest=people, dummies=dummies)

    @property
    def loss(self) -> FinitePairLoss:
        """What one batch costs each honest device."""
        return self.loss_if(honest=self.honest)

    def loss_if(self, *, honest: int) -> FinitePairLoss:
        """Return what one batch costs if only so many devices follow the protocol.

        >>> protocol = MultiMessageHistogram.calibrated(
        ...     epsilon=1, delta=1e-6, domain=100, honest=10_000)
        >>> from discreet.accounting import epsilon
        >>> f"{epsilon(protocol.loss_if(honest=5_000), delta=1e-6):.2f}"
        '1.69'
        """
        return hidden_shift_loss(
            trials=whole(honest, name="honest") * self.dummies.coins,
            chance=self.dummies.heads * Fraction(2, self.domain),
            shift=1,
        )

    @property
    def messages_per_device(self) -> float:
        """How many messages a device sends on average."""
        return float(1 + self.dummies.mean)

    @property
    def bytes_per_message(self) -> int:
        """How many bytes one message takes before it is sealed."""
        return ((self.domain - 1).bit_length() + 7) // 8

    def release(self, values: npt.ArrayLike, *, source: Source = SYSTEM) -> npt.NDArray[Any]:
        """Return all messages of the devices with these values, to be permuted.

        How many messages a device sends does not depend on its value.

        >>> one_each = Dummies(coins=1, chance=1 << 64)
        >>> protocol = MultiMessageHistogram(domain=4, honest=1000, dummies=one_each)
        >>> protocol.release(np.repeat([0, 3], 500)).shape
        (2000,)
        """
        own = as_values(values, domain=self.domain)
        return np.concatenate([own, self.dummies.draw(own.size, kinds=self.domain, source=source)])

    def estimate(self, messages: npt.ArrayLike, *, n: int) -> DummyEstimate:
        """Estimate from the messages of ``n`` devices how many have each value, without bias.

        >>> one_each = Dummies(coins=1, chance=1 << 64)
        >>> protocol = MultiMessageHistogram(domain=4, honest=4, dummies=one_each)
        >>> protocol.estimate([0, 0, 0, 3, 1, 2, 3, 0], n=4)
        DummyEstimate(true=4, counts=[3 ± 0.87, 0 ± 0.87, 0 ± 0.87, 1 ± 0.87])
        """
        seen = np.bincount(as_codes(messages, below=self.domain), minlength=self.domain)
        return DummyEstimate(seen=seen, true=whole(n, name="n"))

    def error(self, *, n: int, confidence: Number) -> float:
        """Return a t such that an estimated count is off by at most t with this confidence.

        It holds for each value by itself, if ``n`` devices take part.

        >>> protocol = MultiMessageHistogram.calibrated(
        ...     epsilon=1, delta=1e-6, domain=100, honest=10_000)
        >>> round(protocol.error(n=10_000, confidence=0.95), 1)
        18.9
        """
        tosses = whole(n, name="n") * self.dummies.coins
        return dummy_width(tosses, self.dummies.heads, kinds=self.domain, confidence=confidence)
