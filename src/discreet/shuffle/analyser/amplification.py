"""What a batch costs the people in it, given how many of them are honest."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from discreet._exact import Number, plain, positive, probability, whole
from discreet.accounting import ApproximateLoss, Loss, PureLoss, ShuffledLoss, epsilon
from discreet.accounting.shuffling import shuffle_2021, shuffle_2023
from discreet.errors import ParameterError
from discreet.local import require_unlinkable

__all__ = ["Amplification", "composed", "local_epsilon"]

_FEWER: Final = (2, 10, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Amplification:
    """State what one batch costs a sender: much less than a report does, if others are honest.

    ``epsilon0`` is the loss of one report, ``honest`` how many reports of the batch are honest: the
    sender's own, those of other senders who follow the protocol and do not tell the analyser what
    they sent, and the shuffler's dummies. ``further`` is how many envelopes beside the first a
    sender may have in the batch.

    Claim: to whoever sees the batch opened, and does not see inside the shuffler, it is
    (epsilon, delta)-DP when all that one sender reports is replaced (``loss``). With fewer honest
    reports the claim is weaker (:meth:`if_fewer`); with none, or if shuffler and analyser work
    together, what is left is the guarantee of the device: epsilon0 for each report.

    Why: the reports of dishonest senders are drawn without looking at the honest ones, so they are
    post-processing of the shuffle of the honest ones, to which docs/proofs/shuffling.md applies.
    A sender's further reports count as rounds of their own, with epsilon0 each: a batch that is
    shuffled as a whole is post-processing of first and further reports shuffled apart.

    >>> batch = Amplification(epsilon0=1, honest=10_000, delta=1e-6)
    >>> round(batch.epsilon_2021, 4), round(batch.epsilon_2023, 4)
    (0.053, 0.0432)
    >>> [(n, round(e, 2)) for n, e in batch.if_fewer()]
    [(5000, 0.06), (1000, 0.15), (100, 0.52), (1, 1.0)]
    """

    epsilon0: Number
    honest: int
    delta: Number
    further: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", plain(self.epsilon0, name="epsilon0"))
        positive(self.epsilon0, name="epsilon0")
        whole(self.honest, name="honest", minimum=0)
        whole(self.further, name="further", minimum=0)
        probability(self.delta, name="delta", zero=True)

    @property
    def epsilon_2021(self) -> float:
        """By the analysis of 2021: of a sender's first report."""
        return shuffle_2021(epsilon0=self.epsilon0, n=max(self.honest, 1), delta=self.delta)

    @property
    def epsilon_2023(self) -> float:
        """By that of 2023, which is never larger and is what is charged."""
        return shuffle_2023(epsilon0=self.epsilon0, n=max(self.honest, 1), delta=self.delta)

    @property
    def loss(self) -> Loss:
        """What is charged: (epsilon, delta), or epsilon0 where shuffling gains nothing."""
        first: Loss = PureLoss(epsilon=self.epsilon0)
        if self.honest >= 2 and self.epsilon_2023 < self.epsilon0:
            first = ApproximateLoss(epsilon=self.epsilon_2023, delta=self.delta)
        return self._with_further(first)

    @property
    def shuffled(self) -> Loss:
        """The same, for numerical composition: its whole curve instead of one point."""
        first: Loss = PureLoss(epsilon=self.epsilon0)
        if self.honest >= 2:
            first = ShuffledLoss(epsilon0=self.epsilon0, n=self.honest)
        return self._with_further(first)

    def _with_further(self, first: Loss) -> Loss:
        return first + PureLoss(epsilon=self.epsilon0) * self.further if self.further else first

    def if_fewer(self) -> list[tuple[int, float]]:
        """Return what epsilon is, at the same delta, for some smaller numbers of honest reports.

        >>> Amplification(epsilon0=1, honest=1, delta=1e-6).if_fewer()
        []
        """
        fewer = [self.honest // part for part in _FEWER]
        return [
            (n, shuffle_2023(epsilon0=self.epsilon0, n=n, delta=self.delta))
            for n in dict.fromkeys([*fewer, 1])
            if 1 <= n < self.honest
        ]


def composed(batches: list[Amplification], *, delta: Number) -> float:
    """Return the epsilon at ``delta`` of somebody who is in all of these batches, rounded up.

    Why: each batch has a fresh random order, so rounds compose (docs/proofs/shuffling.md).

    >>> batch = Amplification(epsilon0=1, honest=10_000, delta=1e-6)
    >>> round(composed([batch] * 10, delta=1e-5), 3)
    0.125
    """
    losses = [one.shuffled for one in batches]
    return epsilon(sum(losses[1:], losses[0]), delta=delta) if losses else 0.0


def local_epsilon(randomiser: object) -> Fraction:
    """Return the epsilon of one report, or refuse a randomiser that shuffling gains nothing for.

    Reports of answers that a device keeps can be followed from batch to batch by their looks, and
    each batch shrinks the crowd of those who might have sent them: nothing is claimed for those.

    >>> from discreet import local
    >>> local_epsilon(local.DirectResponse(domain=4, epsilon=1))
    Fraction(1, 1)
    >>> local_epsilon(local.RepeatedDirect(domain=4, epsilon=2, first=1))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: randomiser must draw every report anew to be shuffled, got...
    """
    require_unlinkable(randomiser)
    loss = getattr(randomiser, "loss", None)
    epsilon0 = loss.epsilon_pure if isinstance(loss, Loss) else math.inf
    if not isinstance(epsilon0, Fraction):
        raise ParameterError(
            "randomiser must be epsilon-DP with delta 0 to be shuffled, and "
            f"{type(randomiser).__name__} is not.",
            parameter="randomiser",
        )
    return epsilon0
