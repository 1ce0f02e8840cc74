"""All that belongs to one session: who it is, what it asks of, and where it stands."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, final

from discreet.service.identity.login import Login
from discreet.service.wire.catalogue.clerks import CatalogueClerk
from discreet.service.wire.catalogue.metadata import DatasetMetadata
from discreet.service.wire.interfaces import WireDesk
from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.variables import SERVER_VERSION, SessionVariables

__all__ = ["SessionState", "Waiting"]

T = TypeVar("T")
_under_way: Final[set["asyncio.Task[Any]"]] = set()


@final
class Waiting:
    """Waits for what a client asked for, until it wants to wait no longer.

    What is waited for goes on: an answer that was charged is finished and kept, and is free to be
    asked for again.
    """

    def __init__(self) -> None:
        self._stop: asyncio.Future[None] | None = None

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of some work."""
        task = asyncio.ensure_future(work)
        _under_way.add(task)  # a task that nobody holds may vanish
        task.add_done_callback(_let_go)
        self._stop = asyncio.get_running_loop().create_future()
        try:
            both: set[asyncio.Future[Any]] = {task, self._stop}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped, self._stop = self._stop, None
            stopped.cancel() if not stopped.done() else None
        if task.done():
            return task.result()
        raise WireFailure(
            "57014",
            "nobody waits for this any longer, as the client asked",
            detail="What was charged stays charged. The same question asked again is free.",
        )

    def cancel(self) -> None:
        """Wait no longer, if something is waited for."""
        if self._stop is not None and not self._stop.done():
            self._stop.set_result(None)


def _let_go(task: "asyncio.Task[Any]") -> None:
    _under_way.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, or asyncio would tell that it was not


@final
@dataclass(slots=True, kw_only=True)
class SessionState:
    """A session: ``status`` is I outside of transactions, T in one, E in one that failed.

    ``task`` is that which serves it.
    """

    login: Login
    dataset: str
    desk: WireDesk
    clerk: CatalogueClerk
    variables: SessionVariables
    process: int
    task: "asyncio.Task[Any] | None"
    status: str = "I"
    waiting: Waiting = field(default_factory=Waiting)
    is_answering: bool = False  # from the first message of a batch to its last answer
    is_ending: bool = False  # once what is under way is answered

    @property
    def facts(self) -> Mapping[str, object]:
        """What SQL's functions tell of a session."""
        who = self.login.who
        version = f"PostgreSQL {SERVER_VERSION} (discreet: private answers, read only)"
        return {
            "version": version, "current_schema": "public",
            "pg_backend_pid": self.process,
            "current_database": self.dataset, "current_catalog": self.dataset,
            "current_user": who, "session_user": who, "current_role": who, "user": who,
        }  # fmt: skip

    async def metadata(self) -> DatasetMetadata:
        """Return what the login may see of datasets and tables."""

        def looked_up() -> DatasetMetadata:
            tables = self.desk.tables(self.login, self.dataset)
            return DatasetMetadata(
                dataset=self.dataset,
                who=self.login.who,
                datasets=tuple(self.desk.visible(self.login)),
                tables={name: dict(columns) for name, columns in tables.items()},
            )

        return await asyncio.to_thread(looked_up)

    async def remaining(self) -> float:
        """Return the share of the dataset's budget that is left."""
        return await asyncio.to_thread(self.desk.remaining, self.login, self.dataset)
