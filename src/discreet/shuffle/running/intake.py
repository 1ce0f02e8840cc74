"""One thread that writes, so that many arrivals share one flush to the disk."""

import asyncio
import contextlib
from queue import Empty, Full, Queue
from threading import Thread
from typing import Final, final

from discreet.errors import TryLater
from discreet.shuffle.shuffler.shuffler import Shuffler
from discreet.shuffle.shuffler.verdict import Arrival, Verdict

__all__ = ["Intake"]

_TOGETHER: Final = 1000  # arrivals in one transaction
_QUEUED: Final = 10_000  # arrivals that may wait for one

_Waiting = tuple[Arrival, asyncio.AbstractEventLoop, "asyncio.Future[Verdict]"]


@final
class Intake:
    """Hand arrivals to the shuffler, as many in one transaction as came meanwhile."""

    def __init__(self, shuffler: Shuffler) -> None:
        self._shuffler = shuffler
        self._queue: Queue[_Waiting | None] = Queue(_QUEUED)
        self._thread = Thread(target=self._work, name="intake", daemon=True)
        self._thread.start()

    async def put(self, arrival: Arrival) -> Verdict:
        """Return what became of an arrival, once that is on the disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Verdict] = loop.create_future()
        try:
            self._queue.put_nowait((arrival, loop, future))
        except Full:
            raise TryLater("too many envelopes came at once. Send this one again.") from None
        return await future

    def close(self) -> None:
        """Finish what was begun."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            arrivals, is_last = self._together(first)
            self._settle(arrivals)
            if is_last:
                return

    def _together(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        found = [first]
        with contextlib.suppress(Empty):
            while len(found) < _TOGETHER:
                one = self._queue.get_nowait()
                if one is None:
                    return found, True
                found.append(one)
        return found, False

    def _settle(self, arrivals: list[_Waiting]) -> None:
        verdicts: list[Verdict | Exception]
        try:
            verdicts = [*self._shuffler.accept([arrival for arrival, _, _ in arrivals])]
        except Exception as problem:  # whatever it is, those who wait must hear of it
            verdicts = [problem] * len(arrivals)
        for (_, loop, future), verdict in zip(arrivals, verdicts, strict=True):
            with contextlib.suppress(RuntimeError):  # a loop that ended meanwhile
                loop.call_soon_threadsafe(_tell, future, verdict)


def _tell(future: "asyncio.Future[Verdict]", verdict: Verdict | Exception) -> None:
    if future.done():  # a sender that went away
        return
    if isinstance(verdict, Exception):
        future.set_exception(verdict)
    else:
        future.set_result(verdict)
