"""Questions that are answered in the background, and fetched later from any worker."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar, final

from discreet._json import read_json
from discreet.errors import AccountNotFound, LedgerUnavailable, TryLater
from discreet.service.desk.desk import Desk
from discreet.service.identity.login import Login
from discreet.service.records.jobs import (
    GatewayJob,
    JobState,
    create_job,
    expire_jobs,
    find_job,
    update_job,
)
from discreet.service.records.records import Records

__all__ = ["JobDesk"]

T = TypeVar("T")
_ALIVE_EVERY: Final = 5.0  # seconds; a job that is silent for thirty is lost
_PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0)  # seconds between attempts to write
_KEPT: Final = 7 * 86_400.0  # seconds
_MOST: Final = 1000  # of one worker, under way


@final
class JobDesk:
    """Runs jobs on one event loop; their outcomes are kept for a week."""

    def __init__(self, desk: Desk, records: Records, pool: Executor) -> None:
        self._desk, self._records, self._pool = desk, records, pool
        self._running: set[asyncio.Task[None]] = set()

    async def begin(
        self,
        login: Login,
        dataset: str,
        work: Callable[[], Awaitable[bytes]],
        *,
        key: str | None = None,
    ) -> GatewayJob:
        """Begin to work, and return the job at once. ``work`` gives its outcome, whatever it is.

        The job of a ``key`` begins once: whoever begins it again is given the one under way.
        """
        self._desk.served(login, dataset)
        if len(self._running) >= _MOST:
            raise TryLater("too many jobs are under way. Nothing was spent. Ask again later.")
        await self._beside(partial(expire_jobs, self._records, older_than=_KEPT))
        job_id = None if key is None else _job_id(login, dataset, key)
        made = await self._beside(
            partial(create_job, self._records, who=login.who, dataset=dataset, job_id=job_id)
        )
        if made is None:
            assert job_id is not None
            return await self.find(login, job_id)
        task = asyncio.create_task(self._run(made.id, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return made

    async def find(self, login: Login, job_id: str) -> GatewayJob:
        """Return a job of a login's own."""
        found = await self._beside(partial(find_job, self._records, job_id))
        if found is None or found.who != login.who or not login.sees(found.dataset):
            raise AccountNotFound("this login has no such job.")
        return found

    async def drained(self) -> None:
        """Wait until no job is under way."""
        while self._running:
            await asyncio.wait(set(self._running))

    async def _run(self, job_id: str, work: Callable[[], Awaitable[bytes]]) -> None:
        alive = asyncio.create_task(self._stay_alive(job_id))
        try:
            outcome = await work()
            state = JobState.FAILED if "status" in read_json(outcome) else JobState.DONE
        finally:
            alive.cancel()
        for pause in _PAUSES:
            with suppress(LedgerUnavailable):  # told to whoever asks for the job meanwhile
                await self._beside(partial(update_job, self._records, job_id, state, outcome))
                return
            await asyncio.sleep(pause)

    async def _stay_alive(self, job_id: str) -> None:
        while True:
            with suppress(LedgerUnavailable):  # or a job would seem lost after an outage
                await self._beside(partial(update_job, self._records, job_id, JobState.RUNNING))
            await asyncio.sleep(_ALIVE_EVERY)

    async def _beside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def _job_id(login: Login, dataset: str, key: str) -> str:
    """Name a job after its key, whose names may hold anything."""
    told = json.dumps([login.who, dataset, key]).encode()
    return urlsafe_b64encode(sha256(told).digest()[:24]).decode()
