"""A gateway in one process: its ledger and datasets, its records, its door and its desk."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TypeVar, final

from discreet.local import Collection
from discreet.service.desk.checks import LedgerChecks
from discreet.service.desk.desk import Desk
from discreet.service.desk.jobs import JobDesk
from discreet.service.desk.public_time import PublicTime
from discreet.service.desk.queue import FairQueue
from discreet.service.desk.shelf import Shelf
from discreet.service.identity.doorkeeper import Doorkeeper
from discreet.service.identity.limits import RequestLimit, RequestLimits
from discreet.service.identity.login import Login
from discreet.service.records.misses import add_miss, count_misses, reopen
from discreet.service.records.records import Records
from discreet.service.settings.gateway import GatewaySettings

__all__ = ["Gateway", "Misses"]

T = TypeVar("T")


@final
class Misses:
    """Counts missed answers in the records."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def add(self, dataset: str, /) -> int:
        """Count one more."""
        return add_miss(self._records, dataset)

    def count(self, dataset: str, /) -> int:
        """Return how many there were since the dataset was last reopened."""
        return count_misses(self._records, dataset)

    def reopen(self, dataset: str, /) -> None:
        """Begin anew."""
        reopen(self._records, dataset)


@final
class Gateway:
    """Everything that serves logins, whatever protocol they speak. Belongs to one event loop.

    >>> import tempfile
    >>> settings = GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db")
    >>> gateway = Gateway.open(settings)
    >>> gateway.shelf.names
    []
    >>> gateway.close()
    """

    def __init__(
        self,
        settings: GatewaySettings,
        shelf: Shelf,
        records: Records,
        collections: Sequence[Collection] = (),
    ) -> None:
        self.settings, self.shelf, self.records = settings, shelf, records
        self.collections = tuple(collections)
        self.misses = Misses(records)
        self.door = Doorkeeper(records, settings.issuers)
        self.limits = RequestLimits(
            RequestLimit(per_minute=settings.requests_per_minute),
            RequestLimit(per_minute=settings.requests_per_minute),
            RequestLimit(per_minute=settings.failed_logins_per_minute),
        )
        # What is free, and what strangers ask, never takes a thread from what is paid for: an
        # answer that has to wait for one is late, and stays charged.
        self._pool = ThreadPoolExecutor(settings.slots + 8, thread_name_prefix="discreet")
        # A thread for each slot, and for what lingers after a miss.
        self._paid = ThreadPoolExecutor(2 * settings.slots + 8, thread_name_prefix="discreet-paid")
        queue = FairQueue(slots=settings.slots, waiting=settings.waiting)
        self.desk = Desk(
            shelf,
            PublicTime(queue, self._paid),
            self._pool,
            self.misses,
            most_misses=settings.most_misses,
            slots=settings.slots,
            waiting=settings.waiting,
        )
        self.jobs = JobDesk(self.desk, records, self._pool)
        self.checks = LedgerChecks(shelf.ledger, records)

    @classmethod
    def open(cls, settings: GatewaySettings) -> "Gateway":
        """Open the ledger, all datasets and collections, and the records, or nothing.

        >>> from pathlib import Path
        >>> Gateway.open(GatewaySettings(datasets=(Path("none.toml"),), ledger="/none/budget.db"))
        Traceback (most recent call last):
            ...
        discreet.errors.LedgerUnavailable: ...
        """
        with ExitStack() as stack:
            records = stack.enter_context(Records.open(settings.records_location))
            shelf = Shelf.open(settings, records)
            stack.callback(shelf.close)
            collections = [
                stack.enter_context(Collection.resume(shelf.ledger, path))
                for path in settings.collections
            ]
            gateway = cls(settings, shelf, records, collections)
            stack.pop_all()
            return gateway

    async def login(self, token: str) -> Login:
        """Return whom a token lets in. Issuers and records may be slow, so it asks in a thread.

        >>> import tempfile
        >>> gateway = Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db"))
        >>> asyncio.run(gateway.login("dk_abc_def"))
        Traceback (most recent call last):
            ...
        discreet.errors.Unauthenticated: ...
        >>> gateway.close()
        """
        known = self.door.at_once(token)
        if known is not None:
            return known
        return await self.beside(partial(self.door.login, token))

    async def beside(self, work: Callable[[], T]) -> T:
        """Run what may wait for a disk or a server in a thread.

        >>> import tempfile
        >>> gateway = Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db"))
        >>> asyncio.run(gateway.beside(lambda: gateway.shelf.ledger.size))
        1
        >>> gateway.close()
        """
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def drained(self) -> None:
        """Wait until nothing is under way any more.

        >>> import tempfile
        >>> gateway = Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db"))
        >>> asyncio.run(gateway.drained())
        >>> gateway.close()
        """
        await self.jobs.drained()
        await self.desk.time.drained()

    def close(self) -> None:
        """Let go of everything.

        >>> import tempfile
        >>> Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db")).close()
        """
        self.checks.close()
        self._paid.shutdown(wait=True)
        self._pool.shutdown(wait=True)
        for collection in self.collections:
            collection.close()
        self.shelf.close()
        self.records.close()
