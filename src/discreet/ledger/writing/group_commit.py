"""Group commit among threads: whoever comes first carries out what the others wait for.

There is no background thread to start, stop or lose in a fork. A thread that finds nobody in the
lead takes it: all that waits, the own request included, goes through one durable transaction. What
arrives meanwhile forms the next batch, whose lead is handed to the first of those who wait, so
that no newcomer slips in and commits alone. Should a leader be interrupted at a bad moment, those
who wait notice that it is gone.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import final

__all__ = ["GroupCommit"]

_MOST = 2000  # requests in one batch: bounds memory, and how long the last one waits
_NAP = 0.2  # seconds after which a waiting thread looks whether somebody still leads


@final
class _Waiting:
    """A request, what became of it, and a lock that is released when there is something to see."""

    __slots__ = ("answer", "baton", "error", "is_here", "request")

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.answer: bytes | None = None
        self.error: Exception | None = None
        self.is_here = True
        self.baton = threading.Lock()
        self.baton.acquire()

    @property
    def is_open(self) -> bool:
        """Whether nothing has become of it yet."""
        return self.answer is None and self.error is None

    def wake(self) -> None:
        """Let its thread look."""
        with suppress(RuntimeError):  # it was woken before and has not slept since
            self.baton.release()


@final
class GroupCommit:
    """Turn calls of many threads into few calls of ``carry_out``, one at a time.

    >>> together = GroupCommit(lambda requests: [request.upper() for request in requests])
    >>> together.submit(b"charge")
    b'CHARGE'
    """

    def __init__(self, carry_out: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        self._carry_out = carry_out
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._leader: _Waiting | None = None
        self._size = 1  # of the last batch

    def submit(self, request: bytes) -> bytes:
        """Return the answer to a request once it is durable, or raise what went wrong.

        >>> GroupCommit(lambda requests: list(requests)).submit(b"echo")
        b'echo'
        """
        mine = _Waiting(request)
        try:
            with self._lock:
                self._waiting.append(mine)
                self._lead_unless_led(mine)
            # Also where an interrupted leader had taken the request along: requests are
            # recognised, so asking again is safe.
            while mine.is_open:
                if self._leader is mine:
                    self._lead(mine)
                elif not mine.baton.acquire(timeout=_NAP):
                    with self._lock:
                        self._lead_unless_led(mine)
        finally:
            mine.is_here = False
            self._leave(mine)
        if mine.error is not None:
            raise mine.error
        assert mine.answer is not None
        return mine.answer

    def _lead_unless_led(self, mine: _Waiting) -> None:
        if self._leader is None or not self._leader.is_here:
            self._leader = mine

    def _leave(self, mine: _Waiting) -> None:
        """Hand the lead to the first of those who wait, if it was ours."""
        with self._lock:
            with suppress(ValueError):  # where somebody interrupted us before it was our turn
                self._waiting.remove(mine)
            if self._leader is not mine:
                return
            self._leader = self._waiting[0] if self._waiting else None
            if self._leader is not None:
                self._leader.wake()

    def _lead(self, mine: _Waiting) -> None:
        """Carry out one batch: the own request and what waits."""
        batch = [mine]
        if self._size > 1:
            time.sleep(0)  # let those who were just answered ask for more
        with self._lock:
            while self._waiting and len(batch) < _MOST:
                other = self._waiting.popleft()
                if other is not mine:
                    batch.append(other)
        self._size = len(batch)
        try:
            answers = self._carry_out([waiting.request for waiting in batch])
        except Exception as error:
            for waiting in batch:
                waiting.error = error
                waiting.wake()
            return
        for waiting, answer in zip(batch, answers, strict=True):
            waiting.answer = answer
            waiting.wake()
