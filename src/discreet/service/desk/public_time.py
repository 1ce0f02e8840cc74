"""Answers at times that follow from public facts: when they began, and what was asked.

An answer that is paid for is given ``seconds`` after it began, for each release that it takes,
whether it was ready long before or failed. Nor does it go on record before, where the ledger would
show when it was ready. What is not ready by then is neither given nor recorded. It is told with the
next step of a clock that begins when it is due: how long the record took, on a processor that other
questions keep busy, is no more than a step then. The place in the queue is held just as long, so
that nobody who waits learns how long others really took.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from math import ceil
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final, TypeAlias, TypeVar, final

from discreet.errors import AlreadyCharged, BudgetExceeded, LedgerUnavailable, Missed
from discreet.service.desk.queue import FairQueue

__all__ = ["MISSED", "STEP", "OnPaid", "OnReady", "PublicTime"]

T = TypeVar("T")
OnPaid: TypeAlias = Callable[[int], float | None]
OnReady: TypeAlias = Callable[[], None]

MISSED: Final = (
    "the answer was not ready when it had to be, so it is not given. The charge stands. Ask for "
    "less at once, or let a custodian raise answer_after."
)
STEP: Final = 0.05  # seconds, several times what a record takes
_PUBLIC = (AlreadyCharged, BudgetExceeded, LedgerUnavailable)  # decided without the data


@final
class PublicTime:
    """Runs work in threads and tells its outcome when it is time. Belongs to one event loop."""

    def __init__(self, queue: FairQueue, pool: Executor) -> None:
        self.queue = queue
        self._pool = pool
        self._running: set[asyncio.Task[Any]] = set()

    async def run(
        self,
        work: Callable[[OnPaid, OnReady], T],
        *,
        who: str,
        seconds: float,
        on_miss: Callable[[], None],
    ) -> T:
        """Return what work returns, in its time. 0 seconds: as soon as it is ready.

        ``work`` gets a function to call when it has paid, with the number of releases, and one to
        call when an answer is ready, before it goes on record: that returns when it is due. What
        ends before it has paid is told at once, since no data was touched. Whoever stops waiting
        stops nothing: work, slot and deadline stay as they are.
        """
        task = asyncio.create_task(self._run(work, who=who, seconds=seconds, on_miss=on_miss))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(_seen)
        return await asyncio.shield(task)

    async def drained(self) -> None:
        """Wait until nothing is under way any more."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def _run(
        self,
        work: Callable[[OnPaid, OnReady], T],
        *,
        who: str,
        seconds: float,
        on_miss: Callable[[], None],
    ) -> T:
        async with self.queue.turn(who):
            payment = _Payment(monotonic(), seconds, asyncio.get_running_loop(), asyncio.Event())
            running = asyncio.get_running_loop().run_in_executor(
                self._pool, partial(work, payment.made, payment.ready)
            )
            while await payment.next_due(running):
                if not payment.is_kept(running):
                    running.add_done_callback(_seen)
                    on_miss()
                    raise Missed(MISSED)
            try:
                answer = await running
                await payment.next_step()
                return answer
            except _PUBLIC:
                raise
            except Exception:
                if payment.due is None:
                    raise
            # Whatever failed after data was touched looks the same, and has no __context__.
            on_miss()
            raise Missed(MISSED)


@final
class _Payment:
    """When an answer is due, and whether it was ready by then: known to the work and to the loop.

    A work of several releases pays for each when the one before is on record, which is when that
    was due.
    """

    def __init__(
        self, began: float, seconds: float, loop: asyncio.AbstractEventLoop, paid: asyncio.Event
    ) -> None:
        self.due: float | None = None
        self._began, self._seconds, self._loop, self._paid = began, seconds, loop, paid
        self._told: float | None = None  # the last time that was due, and has come
        self._lock = Lock()
        self._ready: float | None = None  # the last time by which all was ready
        self._is_missed = False

    def made(self, releases: int) -> float | None:
        """Take note of a payment, in the thread of the work; say how long it may take."""
        now, period = monotonic(), self._seconds * max(1, releases)
        due = (self.due or self._began) + period
        # A ledger that was slow is no reason to waste what it has charged by now.
        while self._seconds and due - now < period / 2:
            due += period
        with self._lock:
            self._refuse_if_missed()
            self.due = due
        self._loop.call_soon_threadsafe(self._paid.set)
        return due - monotonic() if self._seconds else None

    def ready(self) -> None:
        """Wait, in the thread of the work, until what is ready may go on record."""
        with self._lock:
            self._refuse_if_missed()
            self._ready = self.due
        if self._seconds and self.due is not None:
            while (left := self.due - monotonic()) > 0:
                sleep(left)

    async def next_due(self, running: "asyncio.Future[Any]") -> bool:
        """Wait until what was paid for is due; false once the work has ended and all was due."""
        paid = asyncio.create_task(self._paid.wait())
        either: set[asyncio.Future[Any]] = {running, paid}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            paid.cancel()
        self._paid.clear()
        if self.due == self._told or not self._seconds:
            return False
        self._told = self.due
        assert self._told is not None
        while (left := self._told - monotonic()) > 0:
            await asyncio.sleep(left)
        return True

    async def next_step(self) -> None:
        """Wait for the next step of the clock after what was due, if something was."""
        if self.due is not None and self._seconds:
            steps = ceil((monotonic() - self.due) / STEP)
            told = self.due + max(1, steps) * STEP
            while (left := told - monotonic()) > 0:
                await asyncio.sleep(left)

    def is_kept(self, running: "asyncio.Future[Any]") -> bool:
        """Say whether all was ready when it was due; what was not never goes on record."""
        with self._lock:
            assert self._told is not None
            was_ready = self._ready is not None and self._ready >= self._told
            self._is_missed = not (was_ready or running.done())
            return not self._is_missed

    def _refuse_if_missed(self) -> None:
        if self._is_missed:
            raise Missed(MISSED)


def _seen(task: "asyncio.Future[T]") -> None:
    """Look at what nobody waits for, so that its error is not told as one that nobody saw."""
    if not task.cancelled():
        task.exception()
