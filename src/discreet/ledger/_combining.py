"""Group commit among threads: whoever comes first carries out what the others wait for.

There is no background thread to start, stop or lose in a fork. Threads queue for one lock. Who
gets it takes all that waits, the own request included, through one durable transaction; the
others find their answers when their turn comes.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import final

__all__ = ["Combiner"]

_MOST = 2000  # requests in one batch: bounds memory, and how long the last one waits


@final
class _Waiting:
    """A request, and what became of it."""

    __slots__ = ("answer", "error", "request")

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.answer: bytes | None = None
        self.error: Exception | None = None


@final
class Combiner:
    """Turn calls of many threads into few calls of ``carry_out``, one at a time.

    >>> together = Combiner(lambda requests: [request.upper() for request in requests])
    >>> together.submit(b"charge")
    b'CHARGE'
    """

    def __init__(self, carry_out: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        self._carry_out = carry_out
        self._leading = threading.Lock()
        self._waiting: deque[_Waiting] = deque()

    def submit(self, request: bytes) -> bytes:
        """Return the answer to a request once it is durable, or raise what went wrong.

        >>> Combiner(lambda requests: list(requests)).submit(b"echo")
        b'echo'
        """
        mine = _Waiting(request)
        try:
            self._waiting.append(mine)
            with self._leading:
                # Also where an interrupted leader had taken the request along: requests are
                # recognised, so asking again is safe.
                if mine.answer is None and mine.error is None:
                    self._lead(mine)
        except BaseException:
            with suppress(ValueError):  # taken along, or done
                self._waiting.remove(mine)
            raise
        if mine.error is not None:
            raise mine.error
        assert mine.answer is not None
        return mine.answer

    def _lead(self, mine: _Waiting) -> None:
        """Carry out one batch: the own request and what waits."""
        batch = [mine]
        while self._waiting and len(batch) < _MOST:
            other = self._waiting.popleft()
            if other is not mine:
                batch.append(other)
        try:
            answers = self._carry_out([waiting.request for waiting in batch])
        except Exception as error:
            for waiting in batch:
                waiting.error = error
            return
        for waiting, answer in zip(batch, answers, strict=True):
            waiting.answer = answer
