"""A session of the sparse vector technique: one noisy threshold, answers until they are paid up."""

import math
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, NoReturn, final

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError, NotCopyable, ParameterError, SessionOver
from discreet.mechanisms.sparse_vector.above_threshold import AboveThreshold, plan_of
from discreet.mechanisms.values.arrays import as_real, as_reals
from discreet.mechanisms.values.grid_steps import clamped_step, clamped_steps
from discreet.noise import SYSTEM, Source
from discreet.noise.source import process_identity

__all__ = ["Answer", "SparseVectorSession"]

_CHUNK: Final = 1 << 16  # queries; keeps the intermediate arrays in the processor's cache


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

    __slots__ = (
        "_bar",
        "_identity",
        "_left",
        "_lock",
        "_one",
        "_plan",
        "_positives",
        "_source",
        "_width",
    )

    def __init__(self, mechanism: AboveThreshold, *, source: Source = SYSTEM) -> None:
        if not isinstance(mechanism, AboveThreshold):
            raise ParameterError(
                f"mechanism must be an AboveThreshold, got {type(mechanism).__name__}. "
                "Begin a session with AboveThreshold(...).start().",
                parameter="mechanism",
            )
        plan = plan_of(mechanism)
        self._plan, self._source = plan, source
        self._positives = self._left = int(mechanism.positives)
        self._lock = Lock()
        self._identity = process_identity()
        self._bar = int(plan.draw(plan.threshold_scale, centre=plan.bar, source=source))
        self._width = 110 + int(plan.query_scale).bit_length()  # bits; more than any sum has
        self._one = 1 << self._width

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

        Values beyond some 10**12 noise scales count as lying there, so gaps end there, too.

        >>> AboveThreshold(epsilon=9, threshold=0, positives=1, sensitivity=1).start().ask_with_gap(
        ...     -1e6)
        Answer(is_above=False, gap=None)
        """
        one = as_real(value)
        if one is None:
            raise DataError("value must be a single number. Ask for an array with ask_many.")
        steps, base = clamped_step(self._plan.grid, one)
        self._refuse_other_process()
        with self._lock:
            self._refuse_if_over()
            noisy = int(self._plan.draw(self._plan.query_scale, centre=steps, source=self._source))
            # Whether noisy - base >= bar: a comparison would stop at the first digit that differs,
            # so its time would tell how close it was.
            above = noisy + (self._one - base - self._bar) >> self._width > 0
            # Counted before anybody sees the answer: an interruption wastes it.
            self._left -= above
            gap = self._gap(noisy - base) if above else None
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
        queries = as_reals(values)
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
                noisy = self._noisy(queries[start : start + _CHUNK])
                above = np.asarray(noisy >= self._bar, dtype=np.bool_)
                positive_ones = np.flatnonzero(above)[: self._left]
                self._left -= positive_ones.size
                gaps += [self._gap(steps) for steps in noisy[positive_ones].tolist()]
                if self._left == 0:
                    parts.append(above[: positive_ones[-1] + 1])
                    break
                parts.append(above)
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_), gaps

    def _noisy(self, queries: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return queries plus noise in steps, exactly."""
        steps = clamped_steps(self._plan.grid, queries)
        noise = self._plan.draw(self._plan.query_scale, steps.size, source=self._source)
        if self._plan.is_wide:
            return np.asarray(steps.astype(object) + noise)
        steps += noise  # at most 3 * 2**60 and, but for a chance of exp(-2**20), 2**62
        return steps

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
