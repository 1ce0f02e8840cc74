"""The sparse vector technique: pay for the few queries above a threshold, not for all asked."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Self, final

from discreet._exact import Number, exact, probability, refusal, whole
from discreet.accounting import PureLoss
from discreet.mechanisms.selection.scores import check_choice
from discreet.mechanisms.sparse_vector.allocation import Noise, SparsePlan, error_distance
from discreet.mechanisms.values.calibration import smallest_epsilon
from discreet.noise import SYSTEM, Source

if TYPE_CHECKING:
    from discreet.mechanisms.sparse_vector.session import SparseVectorSession

__all__ = ["AboveThreshold", "plan_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """Tell which of a stream of queries lie above a public threshold, for the price of a few.

    Claim: if every query changes by at most ``sensitivity`` between neighbouring datasets, then all
    answers of one session together, gaps included, are epsilon-DP, however many queries are asked
    and even if each is chosen after seeing the earlier answers. The session ends with the positive
    answer number ``positives``. With ``monotone=True`` this holds for queries that all move in
    the same direction between neighbours, as counts do when a person is added or removed
    (not when one is replaced), and the noise is smaller.

    Why: given noise that produced some answers on one dataset, raise the threshold's noise by one
    sensitivity and each positive answer's noise by up to two: the neighbour then gives the same
    answers and the same gaps. The first costs e1, the others e2 in all, and
    e1 + e2 = epsilon is split 1 : (2c)**(2/3), or 1 : c**(2/3) if monotone [LSL17, Section 4].
    The shifts only go upwards, so one-sided exponential noise serves as well as Laplace noise at
    1/sqrt(2) of its standard deviation [LWLLC24], provided both sides have the same sign. The gap
    is free [DWZK19]. The proof is in docs/proofs/sparse_vector.md.

    There is no way to choose the two noises by hand: the variant found in tutorials, whose query
    noise does not grow with ``positives``, is not private (docs/explanation/sparse-vector.md).

    >>> alert = AboveThreshold(epsilon=1, threshold=100, positives=2, sensitivity=1, monotone=True)
    >>> alert.loss
    PureLoss(epsilon=1)
    >>> session = alert.start()
    >>> session.ask(20), session.ask(1000)
    (False, True)
    >>> session.ask_many([-500, -400, 900, 2000])     # over after the second positive answer
    array([False, False,  True])
    >>> session.is_over
    True
    """

    epsilon: Number
    threshold: Number
    positives: int
    sensitivity: Number
    monotone: bool = False
    noise: Noise = "exponential"

    def __post_init__(self) -> None:
        check_choice(self.epsilon, self.sensitivity, self.monotone)
        exact(self.threshold, name="threshold")
        whole(
            self.positives,
            name="positives",
            hint="It is the number of positive answers after which the session ends.",
        )
        if self.noise not in ("exponential", "laplace"):
            raise refusal("noise", '"exponential" or "laplace"', self.noise)
        plan_of(self)

    @classmethod
    def calibrated(
        cls,
        *,
        error: Number,
        confidence: Number,
        queries: int,
        threshold: Number,
        positives: int,
        sensitivity: Number,
        monotone: bool = False,
        noise: Noise = "exponential",
    ) -> Self:
        """Return the mechanism whose ``error`` is as wanted, at the smallest epsilon.

        >>> alert = AboveThreshold.calibrated(
        ...     error=50, confidence=0.95, queries=100, threshold=1000, positives=1, sensitivity=1)
        >>> round(alert.epsilon, 2), round(alert.error(confidence=0.95, queries=100), 1)
        (0.44, 50.0)
        """
        make = partial(
            cls, positives=positives, sensitivity=sensitivity, monotone=monotone, noise=noise
        )

        def error_at(epsilon: float) -> float:
            # The threshold does not matter here, and a far one would not fit every epsilon's grid.
            return make(epsilon=epsilon, threshold=0).error(confidence=confidence, queries=queries)

        return make(epsilon=smallest_epsilon(error_at, error=error), threshold=threshold)

    @property
    def loss(self) -> PureLoss:
        """What one whole session costs. Touches no data."""
        return PureLoss(epsilon=self.epsilon)

    @property
    def gap_variance(self) -> float:
        """The variance of the noise in a gap, both sides' noise together.

        All gaps of a session share the threshold's noise. Gaps are only shown for positive answers,
        so those of values near the threshold are biased upwards.
        """
        return plan_of(self).gap_variance

    def error(self, *, confidence: Number, queries: int) -> float:
        """Return a distance from the threshold beyond which answers are right.

        With probability ``confidence`` at least, each of up to ``queries`` answers is right unless
        the value was within this distance of the threshold.

        >>> alert = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1)
        >>> round(alert.error(confidence=0.95, queries=100), 1)
        22.1
        """
        miss = 1 - probability(confidence, name="confidence")
        return error_distance(plan_of(self), miss=miss, queries=whole(queries, name="queries"))

    def start(self, *, source: Source = SYSTEM) -> "SparseVectorSession":
        """Draw the threshold's noise, once, and return a session to ask. This is what costs.

        >>> alert = AboveThreshold(epsilon=1, threshold=10, positives=3, sensitivity=1)
        >>> alert.start()
        <AboveThreshold session: 3 of 3 positive answers left>
        """
        # Imported late: a session is made from a mechanism, and its file needs this one.
        from discreet.mechanisms.sparse_vector.session import SparseVectorSession

        return SparseVectorSession(self, source=source)


@lru_cache(maxsize=256, typed=True)
def _plan_for(
    epsilon: Number,
    threshold: Number,
    positives: int,
    sensitivity: Number,
    monotone: bool,
    noise: Noise,
) -> SparsePlan:
    return SparsePlan.of(
        epsilon=exact(epsilon, name="epsilon"),
        threshold=exact(threshold, name="threshold"),
        positives=whole(positives, name="positives"),
        sensitivity=exact(sensitivity, name="sensitivity"),
        monotone=bool(monotone),
        noise=noise,
    )


def plan_of(mechanism: AboveThreshold) -> SparsePlan:
    """Return the noise that a mechanism's parameters buy.

    >>> alert = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1, monotone=True)
    >>> plan_of(alert).epsilon_threshold
    Fraction(1, 2)
    """
    m = mechanism
    return _plan_for(m.epsilon, m.threshold, m.positives, m.sensitivity, m.monotone, m.noise)
