"""Verifying the whole ledger beside everything else: one check at a time, for all to look at."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any, Final, TypeVar, final

from discreet.errors import LedgerError, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.service.desk.unavailable import told_of_outage
from discreet.service.identity.login import Login, Role
from discreet.service.records.jobs import (
    GatewayJob,
    JobState,
    create_job,
    latest_job,
    update_job,
)
from discreet.service.records.records import Records

__all__ = ["LedgerChecks"]

T = TypeVar("T")
_ABOUT: Final = ""  # the dataset of a job about the ledger itself: none has an empty name
_TOLD_EVERY: Final = 1.0  # seconds
_logger = logging.getLogger("discreet.service")


@final
class LedgerChecks:
    """Verifies a ledger in a thread of its own; what came out is on record for a week.

    One check runs at a time, whichever worker began it, so that nobody keeps the machine busy by
    asking again and again.
    """

    def __init__(self, ledger: Ledger, records: Records) -> None:
        self._ledger, self._records = ledger, records
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="discreet-check")
        self._is_closing = Event()

    async def begin(self, login: Login) -> None:
        """Begin to verify everything, unless a check is under way already."""
        login.needs([Role.CUSTODIAN, Role.AUDITOR])
        made = await self._beside(partial(self._made, login.who))
        if made is not None:
            self._pool.submit(self._run, made)

    async def latest(self) -> GatewayJob | None:
        """Return the latest check, under way or over, with its outcome in JSON."""
        return await self._beside(partial(latest_job, self._records, dataset=_ABOUT))

    def close(self) -> None:
        """Give up a check that is under way."""
        self._is_closing.set()
        self._pool.shutdown(wait=True)

    def _made(self, who: str) -> str | None:
        now = latest_job(self._records, dataset=_ABOUT)
        if now is not None and not now.state.is_over:
            return None
        made = create_job(self._records, who=who, dataset=_ABOUT)
        assert made is not None  # only an id that is given can be taken
        return made.id

    def _run(self, job: str) -> None:
        begun = time.monotonic()
        told_at = 0.0

        def progress(done: int, size: int) -> None:
            nonlocal told_at
            if self._is_closing.is_set():
                raise LedgerError("the gateway ended before everything was looked at.")
            if time.monotonic() - told_at > _TOLD_EVERY:
                told_at = time.monotonic()
                self._tell(job, JobState.RUNNING, {"done": done, "size": size})

        try:
            progress(0, self._ledger.size)
            found = self._ledger.verify(progress=progress)
        except LedgerUnavailable as error:
            self._tell(job, JobState.FAILED, {"why": told_of_outage(error), "is_tampered": False})
        except Exception as error:
            is_ours = isinstance(error, LedgerError)
            why = str(error) if is_ours else "the check itself failed."
            _logger.error(json.dumps({"event": "unverified", "why": why}, sort_keys=True))
            self._tell(job, JobState.FAILED, {"why": why, "is_tampered": is_ours})
        else:
            outcome = {
                "entries": found.size,
                "releases": found.releases,
                "checkpoint": found.checkpoint,
                "seconds": round(time.monotonic() - begun, 3),
            }
            self._tell(job, JobState.DONE, outcome)

    def _tell(self, job: str, state: JobState, outcome: dict[str, Any]) -> None:
        try:
            update_job(self._records, job, state, json.dumps(outcome).encode())
        except LedgerUnavailable as error:
            told_of_outage(error)  # in the log; without a word the job will read as lost

    async def _beside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(None, work)
