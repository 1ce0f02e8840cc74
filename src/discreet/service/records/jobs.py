"""Questions that are answered later: whose they are, how far they are, and what came out."""

import re
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, final

from discreet.service.records.records import Records

__all__ = ["GatewayJob", "JobState", "create_job", "expire_jobs", "find_job", "update_job"]

LOST_AFTER: Final = 30.0  # seconds without a sign of life; the clocks of hosts agree better
_ID: Final = re.compile(r"[A-Za-z0-9_-]{32}")


class JobState(StrEnum):
    """How far a job is. ``lost`` is never written down: its worker said nothing for too long.

    >>> [str(state) for state in JobState if state.is_over]
    ['done', 'failed', 'lost']
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayJob:
    """A job as it was when it was looked up. Whoever knows its id may still not be its owner."""

    id: str
    who: str
    dataset: str
    state: JobState
    created: float
    updated: float
    outcome: bytes | None = field(default=None, repr=False)


def create_job(
    records: Records, *, who: str, dataset: str, job_id: str | None = None
) -> GatewayJob | None:
    """Put a job on record, under an id that nobody can guess unless one is given.

    None where a job of that id is on record already.
    """
    now = time.time()
    job = GatewayJob(
        id=secrets.token_urlsafe(24) if job_id is None else job_id,
        who=who,
        dataset=dataset,
        state=JobState.QUEUED,
        created=now,
        updated=now,
    )
    made = records.run(
        "INSERT INTO jobs (id, who, dataset, state, created, updated)"
        " VALUES (:id, :who, :dataset, :state, :now, :now)"
        " ON CONFLICT (id) DO NOTHING RETURNING id",
        id=job.id,
        who=who,
        dataset=dataset,
        state=job.state.value,
        now=now,
    )
    return job if made else None


def update_job(
    records: Records, job_id: str, state: JobState, outcome: bytes | None = None
) -> bool:
    """Say how far a job is, or just that its worker is alive; false if it is over or gone.

    >>> import tempfile
    >>> with Records.open(f"{tempfile.mkdtemp()}/gateway.db") as records:
    ...     job = create_job(records, who="ana", dataset="visits")
    ...     update_job(records, job.id, JobState.DONE, b"42")
    ...     update_job(records, job.id, JobState.FAILED)
    ...     find_job(records, job.id).outcome
    True
    False
    b'42'
    """
    found = records.run(
        "UPDATE jobs SET state = :state, updated = :now, outcome = :outcome"
        " WHERE id = :id AND state IN ('queued', 'running') RETURNING id",
        id=job_id,
        state=state.value,
        now=time.time(),
        outcome=outcome,
    )
    return bool(found)


def find_job(records: Records, job_id: str, *, lost_after: float = LOST_AFTER) -> GatewayJob | None:
    """Return a job, or None where there is none of this id.

    A worker must ``update_job`` more often than every ``lost_after`` seconds, or the job reads as
    lost.
    """
    if not _ID.fullmatch(job_id):  # any text may come from outside, and databases do not take all
        return None
    found = records.run(
        "SELECT who, dataset, state, created, updated, outcome FROM jobs WHERE id = :id", id=job_id
    )
    if not found:
        return None
    who, dataset, told, created, updated, outcome = found[0]
    state = JobState(told)
    if not state.is_over and time.time() - updated > lost_after:
        state = JobState.LOST
    return GatewayJob(
        id=job_id,
        who=who,
        dataset=dataset,
        state=state,
        created=created,
        updated=updated,
        outcome=outcome,
    )


def expire_jobs(records: Records, *, older_than: float) -> int:
    """Forget jobs of which nothing was heard for so many seconds; return how many."""
    before = time.time() - older_than
    return len(records.run("DELETE FROM jobs WHERE updated < :before RETURNING id", before=before))
