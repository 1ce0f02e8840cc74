"""Group commit for an event loop: what arrives while the disk is busy is stored in one go."""

import asyncio
from collections.abc import Callable, Sequence
from typing import final

from discreet.errors import TryLater

__all__ = ["Gathering"]


@final
class Gathering:
    """Hand bodies to ``store`` together, one call at a time, in a thread; belongs to one loop.

    At most ``room`` bytes wait: whoever comes then is asked to come back.

    >>> kept = []
    >>> async def both():
    ...     gathering = Gathering(kept.extend, room=1000)
    ...     await asyncio.gather(gathering.put(b"one"), gathering.put(b"two"))
    >>> asyncio.run(both()); kept
    [b'one', b'two']
    """

    def __init__(self, store: Callable[[Sequence[bytes]], object], *, room: int) -> None:
        self._store = store
        self._room = room
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._size = 0
        self._worker: asyncio.Task[None] | None = None

    async def put(self, body: bytes) -> None:
        """Return once a body is stored, or raise why it was not."""
        if self._waiting and self._size + len(body) > self._room:
            raise TryLater("too much waits to be stored. Nothing was taken. Wait a little.")
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((body, stored))
        self._size += len(body)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        await stored

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting, self._size = self._waiting, [], 0
                try:
                    await asyncio.to_thread(self._store, [body for body, _ in batch])
                except Exception as error:
                    for _, stored in batch:
                        if not stored.done():
                            stored.set_exception(error)
                else:
                    for _, stored in batch:
                        if not stored.done():  # whoever asked may be gone
                            stored.set_result(None)
        finally:
            self._worker = None
