"""Questions that a gateway answers in the background."""

from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any, Final, final
from urllib.parse import quote

from discreet.client.answers import read_answer
from discreet.client.problems import error_of, shown
from discreet.client.transport import GatewayCall, Wire
from discreet.errors import DiscreetError, LedgerUnavailable, TryLater
from discreet.tables import Result

__all__ = ["RemoteJob"]

_STATES: Final = ("queued", "running", "done", "failed", "lost")
_FIRST_WAIT: Final = 0.05  # seconds
_LONGEST_WAIT: Final = 2.0


@final
class RemoteJob:
    """A question under way at a gateway, whose answer is kept there for a week.

    >>> from discreet.client.example import ExampleGateway
    >>> with ExampleGateway() as gateway:
    ...     job = gateway.tables().begin("SELECT COUNT(*) AS n FROM people", epsilon=1)
    ...     job.state, job.result(timeout=10).columns
    ('done', ('n',))
    """

    def __init__(self, job_id: str, wire: Wire) -> None:
        self.id, self._wire = job_id, wire
        self._last: dict[str, Any] | None = None

    @classmethod
    def begun(cls, document: Mapping[str, Any], wire: Wire) -> "RemoteJob":
        """Return the job that a gateway says it has begun.

        >>> RemoteJob.begun({}, None)
        Traceback (most recent call last):
            ...
        discreet.errors.DiscreetError: the gateway sent something that is no job.
        """
        return cls(_checked(document)["id"], wire)

    @property
    def state(self) -> str:
        """How far it is: queued, running, done, failed, or lost with the gateway's process."""
        return str(self._looked()["state"])

    def result(self, *, timeout: float | None = None) -> Result:
        """Return the answer, or raise what the question was refused with.

        Waits for it, at most ``timeout`` seconds if that is said; an answer that is not there by
        then can be waited for again.

        >>> from discreet.client.example import ExampleGateway
        >>> with ExampleGateway() as gateway:
        ...     gateway.tables().begin("SELECT * FROM people", epsilon=1).result()
        Traceback (most recent call last):
            ...
        discreet.errors.Refused: line 1, column 8: ...
        """
        ends, wait = None if timeout is None else monotonic() + timeout, _FIRST_WAIT
        while True:
            found = self._looked()
            match found["state"]:
                case "done":
                    return read_answer(_part(found, "answer"))
                case "failed":
                    raise error_of(_part(found, "problem"))
                case "lost":
                    raise LedgerUnavailable(
                        f"the gateway's process ended with job {self.id}. It may have been "
                        "charged; asking again recalls what was put on record.",
                        may_be_recorded=True,
                    )
            left = wait if ends is None else ends - monotonic()
            if left <= 0:
                raise TryLater(
                    f"job {self.id} is still {found['state']}. Ask for its result again later.",
                    seconds=wait,
                )
            sleep(min(wait, left))
            wait = min(2 * wait, _LONGEST_WAIT)

    def __repr__(self) -> str:
        return f"RemoteJob({self.id!r})"

    def _looked(self) -> dict[str, Any]:
        """Look how it is, unless it has come to its end."""
        if self._last is not None:
            return self._last
        path = f"/v1/jobs/{quote(self.id, safe='')}"
        found = _checked(self._wire.call(GatewayCall("GET", path)))
        if found["state"] not in ("queued", "running"):
            self._last = found
        return found


def _checked(document: Mapping[str, Any]) -> dict[str, Any]:
    job_id = document.get("id")
    is_id = isinstance(job_id, str) and job_id == shown(job_id) != ""
    if not is_id or document.get("state") not in _STATES:
        raise DiscreetError("the gateway sent something that is no job.")
    return dict(document)


def _part(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise DiscreetError("the gateway sent something that is no job.")
    return found
