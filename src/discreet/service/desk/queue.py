"""A fair queue: however many questions one login has waiting, the others get their turns."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from discreet.errors import TryLater

__all__ = ["FairQueue"]


@final
class FairQueue:
    """Let ``slots`` work at a time; the next turn goes round among those who wait.

    Belongs to one event loop. A login that has ``waiting`` requests in the queue is sent away.

    >>> async def visit() -> str:
    ...     queue = FairQueue(slots=1, waiting=2)
    ...     async with queue.turn("ana"):
    ...         return f"{queue.busy} at work, {queue.length} waiting"
    >>> asyncio.run(visit())
    '1 at work, 0 waiting'
    """

    def __init__(self, *, slots: int, waiting: int) -> None:
        self._free, self._slots, self._most = slots, slots, waiting
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in order of their next turn

    @property
    def busy(self) -> int:
        """How many are at work."""
        return self._slots - self._free

    @property
    def length(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it until the end of the block."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(who)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, who: str) -> None:
        mine = self._waiting.setdefault(who, deque())
        if len(mine) >= self._most:
            raise TryLater(
                f"{len(mine)} questions of this login are waiting already. Nothing was spent. Ask "
                "again when some are answered."
            )
        turn = asyncio.get_running_loop().create_future()
        mine.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # it came in the very moment in which nobody wanted it any more
            elif turn in mine:
                mine.remove(turn)
                self._forget(who)
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            who = next(iter(self._waiting))
            mine = self._waiting.pop(who)
            turn = mine.popleft()
            if mine:
                self._waiting[who] = mine  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, who: str) -> None:
        if who in self._waiting and not self._waiting[who]:
            del self._waiting[who]
