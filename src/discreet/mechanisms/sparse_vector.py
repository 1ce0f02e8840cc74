"""The sparse vector technique: pay for the few queries above a threshold, not for all asked."""

import math
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Final, NoReturn, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, positive, probability, refusal, whole
from discreet.accounting import PureLoss
from discreet.errors import DataError, NotCopyable, ParameterError, SessionOver
from discreet.mechanisms._sparse_plan import Noise, SparsePlan, failure_probability
from discreet.mechanisms._values import as_floats, is_scalar
from discreet.noise import SYSTEM, Source
from discreet.noise._source import process_identity

__all__ = ["AboveThreshold", "Answer", "SparseVectorSession"]

_CHUNK: Final = 1 << 16  # queries; keeps the intermediate arrays in the processor's cache


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
        positive(self.epsilon, name="epsilon", hint="It pays for the whole session.")
        exact(self.threshold, name="threshold")
        whole(
            self.positives,
            name="positives",
            hint="It is the number of positive answers after which the session ends.",
        )
        positive(
            self.sensitivity,
            name="sensitivity",
            hint="It is the largest change of any one query between neighbouring datasets.",
        )
        if not isinstance(self.monotone, bool):
            raise refusal("monotone", "True or False", self.monotone)
        if self.noise not in ("exponential", "laplace"):
            raise refusal("noise", '"exponential" or "laplace"', self.noise)
        _plan(self)

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
        return _plan(self).gap_variance

    def error(self, *, confidence: float, queries: int) -> float:
        """Return a distance from the threshold beyond which answers are right.

        With probability ``confidence`` at least, each of up to ``queries`` answers is right unless
        the value was within this distance of the threshold.

        >>> alert = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1)
        >>> round(alert.error(confidence=0.95, queries=100), 1)
        22.1
        """
        miss = float(1 - probability(confidence, name="confidence"))
        asked = whole(queries, name="queries")
        plan = _plan(self)
        step = float(plan.grid.spacing)
        low, high = 0.0, plan.query_scale * step
        # A margin for the integration, which is good to 1e-5, and for steps instead of reals.
        while 1.0001 * failure_probability(plan, distance=high, queries=asked) > miss:
            low, high = high, 2 * high
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            fails = 1.0001 * failure_probability(plan, distance=middle, queries=asked) > miss
            low, high = (middle, high) if fails else (low, middle)
        return high + 3 * step  # value, threshold and centre are rounded to the grid

    def start(self, *, source: Source = SYSTEM) -> "SparseVectorSession":
        """Draw the threshold's noise, once, and return a session to ask. This is what costs.

        >>> alert = AboveThreshold(epsilon=1, threshold=10, positives=3, sensitivity=1)
        >>> alert.start()
        <AboveThreshold session: 3 of 3 positive answers left>
        """
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
        monotone=monotone,
        noise=noise,
    )


def _plan(mechanism: AboveThreshold) -> SparsePlan:
    m = mechanism
    return _plan_for(m.epsilon, m.threshold, m.positives, m.sensitivity, m.monotone, m.noise)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Say whether a query was above the threshold and, if so, by how much, noisily.

    An answer is true or false by itself: ``if answer: ...``.

    >>> bool(Answer(is_above=True, gap=3.5)), bool(Answer(is_above=False, gap=None))
    (True, False)
    """

    is_above: bool
    gap: float | None

    def __bool__(self) -> bool:
        return self.is_above


@final
class SparseVectorSession:
    """Answer queries with one noisy threshold until the positive answers are used up.

    Made by :meth:`AboveThreshold.start`. It cannot be copied, pickled, rewound or taken through a
    fork: two sessions with the same threshold noise, or one with answers given back, would leak
    more than was paid for. Threads may share it.

    >>> session = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1).start()
    >>> session.ask_with_gap(1000.0)
    Answer(is_above=True, gap=...)
    >>> session.ask(1000.0)
    Traceback (most recent call last):
        ...
    discreet.errors.SessionOver: this session has given its 1 positive answer. ...
    """

    __slots__ = ("_bar", "_identity", "_left", "_lock", "_plan", "_positives", "_source")

    def __init__(self, mechanism: AboveThreshold, *, source: Source = SYSTEM) -> None:
        if not isinstance(mechanism, AboveThreshold):
            raise ParameterError(
                f"mechanism must be an AboveThreshold, got {type(mechanism).__name__}. "
                "Begin a session with AboveThreshold(...).start().",
                parameter="mechanism",
            )
        plan = _plan(mechanism)
        self._plan, self._source = plan, source
        self._positives = self._left = int(mechanism.positives)
        self._lock = Lock()
        self._identity = process_identity()
        self._bar = plan.bar + int(plan.draw(plan.threshold_scale, source=source))

    @property
    def positives_left(self) -> int:
        """How many positive answers are left."""
        return self._left

    @property
    def is_over(self) -> bool:
        """Whether all positive answers have been given."""
        return self._left == 0

    def ask(self, value: float) -> bool:
        """Tell whether ``value`` is above the threshold, noisily.

        >>> AboveThreshold(epsilon=1, threshold=50, positives=1, sensitivity=1).start().ask(-1000)
        False
        """
        return self.ask_with_gap(value).is_above

    def ask_with_gap(self, value: float) -> Answer:
        """Tell the same and, where the answer is positive, about how far above: that is free.

        >>> AboveThreshold(epsilon=9, threshold=0, positives=1, sensitivity=1).start().ask_with_gap(
        ...     -1e6)
        Answer(is_above=False, gap=None)
        """
        if not is_scalar(value):
            raise DataError("value must be a single number. Ask for an array with ask_many.")
        steps = int(self._plan.grid.steps(as_floats(value)))
        self._refuse_other_process()
        with self._lock:
            self._refuse_if_over()
            noise = int(self._plan.draw(self._plan.query_scale, source=self._source))
            above = steps + noise >= self._bar
            # Counted before anybody sees the answer: an interruption wastes it.
            self._left -= above
            gap = self._gap(steps + noise) if above else None
        return Answer(is_above=above, gap=gap)

    def ask_many(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Answer an array of queries in order, up to and including the last positive answer left.

        The result is as long as the number of queries answered: shorter than ``values`` if the
        session ended on the way, and then its last entry is True.

        >>> session = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1).start()
        >>> session.ask_many([-1000, 1000, 1000])
        array([False,  True])
        """
        return self._ask_all(values)[0]

    def ask_many_with_gaps(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Do as :meth:`ask_many`, returning the gap of positive answers and NaN for negative ones.

        >>> session = AboveThreshold(epsilon=1, threshold=0, positives=1, sensitivity=1).start()
        >>> np.isnan(session.ask_many_with_gaps([-1000, 1000, 1000]))
        array([ True, False])
        """
        answers, gaps = self._ask_all(values)
        out = np.full(answers.size, np.nan)
        out[answers] = gaps
        return out

    def _ask_all(self, values: npt.ArrayLike) -> tuple[npt.NDArray[np.bool_], list[float]]:
        queries = as_floats(values)
        if queries.ndim != 1:
            raise DataError(
                f"values must be a one-dimensional array of queries, got shape {queries.shape}. "
                "Ask for a single number with ask."
            )
        self._refuse_other_process()
        with self._lock:
            self._refuse_if_over()
            parts: list[npt.NDArray[np.bool_]] = []
            gaps: list[float] = []
            for start in range(0, queries.size, _CHUNK):
                noisy = self._plan.grid.steps(queries[start : start + _CHUNK])
                # No overflow: values end at 2**62 steps and noise beyond that has probability
                # exp(-2**20) or less.
                noisy += self._plan.draw(self._plan.query_scale, noisy.size, source=self._source)
                above = noisy >= self._bar
                positive_ones = np.flatnonzero(above)[: self._left]
                self._left -= positive_ones.size
                gaps += [self._gap(steps) for steps in noisy[positive_ones].tolist()]
                if self._left == 0:
                    parts.append(above[: positive_ones[-1] + 1])
                    break
                parts.append(above)
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_), gaps

    def _gap(self, noisy_steps: int) -> float:
        return math.ldexp(noisy_steps - self._bar, self._plan.grid.exponent)

    def _refuse_if_over(self) -> None:
        if self._left == 0:
            answers = "answer" if self._positives == 1 else "answers"
            raise SessionOver(
                f"this session has given its {self._positives} positive {answers}. Nothing was "
                "spent. Begin another with AboveThreshold(...).start(), which costs epsilon again."
            )

    def _refuse_other_process(self) -> None:
        if self._identity != process_identity():
            raise NotCopyable(
                "this session belongs to the process that started it; a forked copy would answer "
                "with the same threshold noise. Start one in each process: each costs epsilon."
            )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise NotCopyable(
            "a sparse vector session cannot be copied or pickled: both copies would share the "
            "threshold's noise. Share the session itself, or start another: each costs epsilon."
        )

    __copy__ = __deepcopy__ = __getstate__ = __setstate__ = _refuse_copy

    def __reduce_ex__(self, protocol: Any, /) -> NoReturn:
        self._refuse_copy()

    def __repr__(self) -> str:
        return f"<AboveThreshold session: {self._left} of {self._positives} positive answers left>"
