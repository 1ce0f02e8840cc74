"""Speak to a PostgreSQL server in pipelines: many prepared statements, one round trip.

Whoever holds a ledger's lock keeps everybody waiting, so every trip over the network that it saves
is saved by all. This uses libpq's pipeline mode through ``psycopg.pq``, because psycopg's own
cursors wait at every synchronisation point, and spend more time per statement than the server.
"""

import os
import select
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from discreet.ledger.stores.postgres.errors import ConnectionLost, ServerError
from discreet.ledger.stores.postgres.values import Parameter, rows

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

__all__ = ["BoundStatement", "Session", "Statement"]


class Statement(NamedTuple):
    """A statement that a session prepares when it first needs it."""

    name: str
    sql: str


BoundStatement = tuple[Statement, Sequence[Parameter]]


# After these the session is gone, or will be: the server stops, was killed, or threw us out.
# So does a cancelled statement count, for it may have been the one after the commit.
_GONE: Final = ("57", "08", "25P03", "25P04")


@final
class Session:
    """One connection. After ConnectionLost, or an interruption, it is of no more use."""

    def __init__(self, connection: Any) -> None:
        from psycopg import Error, pq

        self._pid = os.getpid()
        self._connection = connection
        self._pg = connection.pgconn
        self._status = pq.ExecStatus
        self._field = pq.DiagnosticField
        self._lost: tuple[type[Exception], ...] = (Error, OSError)
        self._is_bad = pq.ConnStatus.BAD
        self._prepared: set[str] = set()
        self._generation = 0

    def ask(self, *questions: BoundStatement) -> list[list[tuple[Any, ...]]]:
        """Send statements in one go; return the rows that each of them gave, in order.

        At the first error the server leaves out the rest. Without BEGIN and COMMIT among them, the
        statements succeed or fail together.
        """
        if self._pid != os.getpid():
            raise ConnectionLost("this connection belongs to the parent process", sent=False)
        sent = False
        try:
            self._pg.enter_pipeline_mode()
            wanted = [each for question in questions for each in self._send(*question)]
            self._pg.pipeline_sync()
            sent = True
            self._flush()
            found, error = self._receive(wanted)
            self._pg.exit_pipeline_mode()
        except self._lost as lost:
            self.close()
            raise ConnectionLost(" ".join(str(lost).split()), sent=sent) from None
        except BaseException:
            self.close()  # interrupted: nobody knows which answer would come next
            raise
        if error is not None:
            # What was prepared on the way may or may not be there now: prepare under new names.
            self._generation += 1
            self._prepared.clear()
            if error.code.startswith(_GONE):
                self.close()
                raise ConnectionLost(error.reason, sent=True)
            raise error
        return found

    def close(self) -> None:
        """End the session; that of a parent process is left alone."""
        if self._pid == os.getpid():
            self._connection.close()
        else:
            # Closing would say good-bye in the parent's name, on the socket that both have.
            _inherited.append(self._connection)

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close the session if the block fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    @property
    def is_usable(self) -> bool:
        """Whether the server has not hung up, as far as is known without asking it."""
        return self._pid == os.getpid() and bool(self._pg.status != self._is_bad)

    def _send(self, statement: Statement, parameters: Sequence[Parameter]) -> list[bool]:
        """Send one statement; say of each answer that will come whether rows are wanted of it."""
        formats = [1] * len(parameters)
        if not statement.name:
            self._pg.send_query_params(
                statement.sql.encode(), parameters, param_formats=formats, result_format=1
            )
            return [True]
        name = f"{statement.name}_{self._generation}".encode()
        is_new = statement.name not in self._prepared
        if is_new:
            self._pg.send_prepare(name, statement.sql.encode())
            self._prepared.add(statement.name)
        self._pg.send_query_prepared(name, parameters, param_formats=formats, result_format=1)
        return [False, True] if is_new else [True]

    def _flush(self) -> None:
        while self._pg.flush():
            # The server may want to be heard before it listens on.
            if _wait(self._pg.socket, also_to_write=True):
                self._pg.consume_input()

    def _receive(
        self, wanted: Iterable[bool]
    ) -> tuple[list[list[tuple[Any, ...]]], ServerError | None]:
        found: list[list[tuple[Any, ...]]] = []
        error: ServerError | None = None
        expected, status = iter(wanted), self._status
        while True:
            while self._pg.is_busy():
                _wait(self._pg.socket)
                self._pg.consume_input()
            result = self._pg.get_result()
            if result is None:  # between the answers to two statements
                if self._pg.status == self._is_bad:
                    raise OSError("the server closed the connection")
                continue
            if result.status == status.PIPELINE_SYNC:
                return found, error
            if result.status == status.FATAL_ERROR:
                if not result.error_field(self._field.SQLSTATE):  # libpq itself noticed
                    raise OSError(result.get_error_message())
                error = error or self._refused(result)
            if next(expected):
                found.append(rows(result) if result.status == status.TUPLES_OK else [])

    def _refused(self, result: "PGresult") -> ServerError:
        code = result.error_field(self._field.SQLSTATE) or b"?"
        reason = result.error_field(self._field.MESSAGE_PRIMARY) or b"no reason given"
        return ServerError(code.decode(), reason.decode(errors="replace"))


# Connections of a parent process, kept so that nothing ever closes them.
_inherited: list[Any] = []


def _wait(socket: int, *, also_to_write: bool = False) -> bool:
    """Wait until there is something to read, or room to write; say whether it is the former."""
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([socket], [socket] if also_to_write else [], [])[0])
    poll = select.poll()
    poll.register(socket, select.POLLIN | (select.POLLOUT if also_to_write else 0))
    return any(event & ~select.POLLOUT for _, event in poll.poll())
