"""Visits of one worker: each visitor's tables, opened when they are needed, a few at a time."""

import logging
import resource
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Lock, local
from typing import Final, TypeVar, final
from weakref import WeakKeyDictionary

from discreet.errors import TryLater
from discreet.service.desk.gateway import Gateway
from discreet.service.desk.queue import FairQueue
from discreet.service.pages.areas.explorer.company import opened
from discreet.service.pages.areas.explorer.folders import VisitorFolder, VisitorFolders
from discreet.tables import Protected

__all__ = ["Visit", "Visits", "visits_of"]

T = TypeVar("T")
_SLOTS: Final = 4  # at work; of the threads that never take one from what is paid for
_WAITING: Final = 100  # of all visitors together
_OPEN: Final = 64  # sessions whose tables stay open, of some 5 MB each
_FILES: Final = 32  # that a session has open, and twice as many to spare
_UNTOUCHED: Final = ""  # the session of whoever has none yet: it is only ever looked at


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One look at a session; ``has_begun`` is false where the visitor has none of their own."""

    folder: VisitorFolder
    tables: Protected
    has_begun: bool


@final
class Visits:
    """Opens sessions. What is theirs is on disk, so any worker may serve the next request.

    Belongs to the event loop of its gateway.
    """

    def __init__(self, gateway: Gateway, folders: VisitorFolders | None = None) -> None:
        self._beside = gateway.beside
        self.folders = folders or VisitorFolders(gateway.settings.shared_folder("explorer"))
        self._queue = FairQueue(slots=_SLOTS, waiting=4)
        self._open: OrderedDict[VisitorFolder, _Used] = OrderedDict()
        self._lock = Lock()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = _OPEN if files == resource.RLIM_INFINITY else min(_OPEN, files // _FILES)
        logging.getLogger("discreet.ledger").addFilter(_is_logged)

    async def look(self, visitor: str, work: Callable[[Visit], T]) -> T:
        """Look at a session, or at an untouched one if there is none."""
        return await self._run(visitor, partial(self._visited, visitor, work, begins=False))

    async def change(self, visitor: str, work: Callable[[Visit], T]) -> T:
        """Do something in a session, which begins now if there is none."""
        return await self._run(visitor, partial(self._visited, visitor, work, begins=True))

    async def start_over(self, visitor: str) -> None:
        """End a session; the next one has other people."""
        await self._run(visitor, lambda: self.folders.remove(visitor))

    async def _run(self, visitor: str, work: Callable[[], T]) -> T:
        if self._queue.length >= _WAITING:
            raise TryLater("the explorer has many visitors. Try again in a moment.", seconds=5)
        async with self._queue.turn(visitor):
            return await self._beside(work)

    def _visited(self, visitor: str, work: Callable[[Visit], T], *, begins: bool) -> T:
        folder = self.folders.find(visitor)
        has_begun = folder is not None or begins
        if folder is None:
            name = visitor if begins else _UNTOUCHED
            folder = self.folders.find(name) or self.folders.make(name)
        with _unlogged(), self._taken(folder) as tables:
            return work(Visit(folder=folder, tables=tables, has_begun=has_begun))

    @contextmanager
    def _taken(self, folder: VisitorFolder) -> Iterator[Protected]:
        """Use the tables of a session, which several requests may do at once."""
        used = self._begin(folder)
        try:
            yield used.tables
        finally:
            with self._lock:
                used.users -= 1
                spare = self._spare()
            for one in spare:
                _close(one.tables)

    def _begin(self, folder: VisitorFolder) -> "_Used":
        with self._lock:
            used = self._open.get(folder)
            if used is not None:
                used.users += 1
                self._open.move_to_end(folder)
                return used
        made = _Used(_opened(folder))
        with self._lock:
            used = self._open.setdefault(folder, made)
            used.users += 1
        if used is not made:  # somebody else has opened it meanwhile
            _close(made.tables)
        return used

    def _spare(self) -> "list[_Used]":
        """Take out those that nobody uses, the longest unused first, until few are open."""
        idle = [folder for folder, used in self._open.items() if not used.users]
        more = max(0, len(self._open) - self._most)
        return [self._open.pop(folder) for folder in idle[:more]]


@dataclass(slots=True)
class _Used:
    """Open tables, and how many requests use them now."""

    tables: Protected
    users: int = 0


_HERE: Final = local()


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep what visitors spend out of the log: its readers look for the gateway's own ledger."""
    _HERE.is_visit = True
    try:
        yield
    finally:
        _HERE.is_visit = False


def _is_logged(_record: logging.LogRecord) -> bool:
    return not getattr(_HERE, "is_visit", False)


def _opened(folder: VisitorFolder) -> Protected:
    with folder.alone():
        tables = opened(folder.seed, folder.ledger)
        folder.remember(tables.account.ledger.anchor)
    return tables


def _close(tables: Protected) -> None:
    tables.close()
    tables.account.ledger.close()


_VISITS: WeakKeyDictionary[Gateway, Visits] = WeakKeyDictionary()


def visits_of(gateway: Gateway) -> Visits:
    """Return the visits of a gateway."""
    if gateway not in _VISITS:
        _VISITS[gateway] = Visits(gateway)
    return _VISITS[gateway]
