"""Group commit among threads: whoever comes first carries out what the others wait for.

There is no background thread to start, stop or lose in a fork. A thread that finds nobody at work
leads: it takes all that waits, itself included, through one durable transaction. What arrives
meanwhile forms the next batch, led by the first of those who wait.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import final

__all__ = ["Combiner"]

_MOST = 2000  # requests in one batch: bounds memory, and how long the last one waits


@final
class _Waiting:
    """A request, and a baton: released when there is an answer, or when it is its turn to lead."""

    __slots__ = ("answer", "baton", "error", "leads", "request")

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.answer: bytes | None = None
        self.error: BaseException | None = None
        self.leads = False
        self.baton = threading.Lock()
        self.baton.acquire()


@final
class Combiner:
    """Turn calls of many threads into few calls of ``carry_out``, one at a time.

    >>> together = Combiner(lambda requests: [request.upper() for request in requests])
    >>> together.submit(b"charge")
    b'CHARGE'
    """

    def __init__(self, carry_out: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        self._carry_out = carry_out
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._is_led = False

    def submit(self, request: bytes) -> bytes:
        """Return the answer to a request once it is durable, or raise what went wrong.

        >>> Combiner(lambda requests: list(requests)).submit(b"echo")
        b'echo'
        """
        while True:
            mine = _Waiting(request)
            with self._lock:
                self._waiting.append(mine)
                mine.leads, self._is_led = not self._is_led, True
            if not mine.leads:
                self._wait(mine)
            if mine.leads:
                self._lead()
            if mine.error is not None:
                raise mine.error
            if mine.answer is not None:
                return mine.answer
            # Whoever led was interrupted. Requests are recognised, so asking again is safe.

    def _wait(self, mine: _Waiting) -> None:
        try:
            mine.baton.acquire()
        except BaseException:  # Ctrl-C: step out, and pass on the lead if it was just handed over
            with self._lock:
                if mine in self._waiting:
                    self._waiting.remove(mine)
            if mine.leads:
                self._hand_over()
            raise

    def _lead(self) -> None:
        """Carry out one batch and hand over; the leader's own request is in it."""
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST))]
        try:
            answers = self._carry_out([waiting.request for waiting in batch])
            for waiting, answer in zip(batch, answers, strict=True):
                waiting.answer = answer
        except Exception as error:
            for waiting in batch:
                waiting.error = error
        finally:
            self._hand_over()
            for waiting in batch:
                waiting.baton.release()

    def _hand_over(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_led = False
                return
            heir = self._waiting[0]
            heir.leads = True
        heir.baton.release()
