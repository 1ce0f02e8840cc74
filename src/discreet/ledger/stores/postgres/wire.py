"""Speak to a PostgreSQL server in pipelines: many prepared statements, one round trip.

Whoever holds a ledger's lock keeps everybody waiting, so every trip over the network that it saves
is saved by all. This uses libpq's pipeline mode through ``psycopg.pq``, because psycopg's own
cursors wait at every synchronisation point, and spend more time per statement than the server.
"""

import os
import select
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from discreet.errors import LedgerError, LedgerUnavailable, MissingExtra, ParameterError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

__all__ = [
    "Address",
    "ConnectionLost",
    "Parameter",
    "Question",
    "ServerError",
    "Session",
    "Statement",
    "number",
    "numbers",
    "text",
    "texts",
    "unavailable",
    "values",
]

Parameter = bytes | None  # in PostgreSQL's binary format


class Statement(NamedTuple):
    """A statement that a session prepares when it first needs it."""

    name: str
    sql: str


Question = tuple[Statement, Sequence[Parameter]]


class ConnectionLost(Exception):
    """The server did not answer. ``sent`` is false where it cannot have got the question."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        self.reason, self.sent = reason, sent
        super().__init__(reason)


class ServerError(Exception):
    """The server answered with an error; its DETAIL, which may show values, is left out."""

    def __init__(self, code: str, reason: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(f"{reason} ({code})")


# Values to and from the binary format

_INT2, _INT4, _INT8, _LENGTH = (struct.Struct(f">{letter}") for letter in "hiqi")
_ARRAY = struct.Struct(">iiIii")  # dimensions, has nulls, type of the elements, length, first index
_BOOL_OID, _BYTEA_OID, _INT8_OID, _INT2_OID, _INT4_OID, _TEXT_OID = 16, 17, 20, 21, 23, 25
_NULL = _LENGTH.pack(-1)
_DECODE: Final[dict[int, Callable[[bytes], Any]]] = {
    _BOOL_OID: lambda value: value == b"\x01",
    _BYTEA_OID: bytes,
    _INT8_OID: lambda value: _INT8.unpack(value)[0],
    _INT2_OID: lambda value: _INT2.unpack(value)[0],
    _INT4_OID: lambda value: _INT4.unpack(value)[0],
    _TEXT_OID: lambda value: value.decode(),
    2278: lambda _: None,  # void
}


def number(value: int) -> bytes:
    r"""Return a ``bigint``.

    >>> number(258)[-2:]
    b'\x01\x02'
    """
    return _INT8.pack(value)


def text(value: str) -> bytes:
    """Return a ``text``.

    >>> text("a" + chr(0))
    Traceback (most recent call last):
    discreet.errors.LedgerError: PostgreSQL keeps no text with the character U+0000. Nothing \
was written. Use a name without it.
    """
    if "\x00" in value:
        raise LedgerError(
            "PostgreSQL keeps no text with the character U+0000. Nothing was written. Use a name "
            "without it."
        )
    return value.encode()


def _array(oid: int, elements: Sequence[Parameter]) -> bytes:
    has_nulls = any(element is None for element in elements)
    parts = [_ARRAY.pack(1, has_nulls, oid, len(elements), 1)]
    for element in elements:
        if element is None:
            parts.append(_NULL)
        else:
            parts.append(_LENGTH.pack(len(element)))
            parts.append(element)
    return b"".join(parts)


def numbers(elements: Iterable[int]) -> bytes:
    """Return a ``bigint[]``.

    >>> len(numbers([1, 2]))
    44
    """
    return _array(_INT8_OID, [number(element) for element in elements])


def texts(elements: Iterable[str | None]) -> bytes:
    r"""Return a ``text[]``.

    >>> texts(["a", None])[-9:]
    b'\x00\x00\x00\x01a\xff\xff\xff\xff'
    """
    return _array(_TEXT_OID, [None if each is None else text(each) for each in elements])


def values(elements: Iterable[bytes | None]) -> bytes:
    r"""Return a ``bytea[]``.

    >>> values([b"ab"])[-6:]
    b'\x00\x00\x00\x02ab'
    """
    return _array(_BYTEA_OID, list(elements))


# Connections


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra(room="discreet.ledger", needs="psycopg", extra="postgres") from None
    return psycopg


@final
class Address:
    """Where a server is and how to get in. Nothing that it says shows the password.

    >>> Address("postgresql://ana:secret@db.example/budget")
    Address(budget on db.example)
    >>> Address("postgresql://ana:secret@db.example:port/budget")
    Traceback (most recent call last):
    discreet.errors.ParameterError: this is no address of a PostgreSQL database. Write \
postgresql://user:password@host:port/database, with signs like @ and / in the password \
written as %40 and %2F.
    """

    def __init__(self, url: str) -> None:
        psycopg = _psycopg()
        try:
            self._options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
            int(self._options.get("port") or 0)
        except (psycopg.Error, ValueError):
            # What libpq says of a bad address repeats it, with the password.
            raise ParameterError(
                "this is no address of a PostgreSQL database. Write "
                "postgresql://user:password@host:port/database, with signs like @ and / in the "
                "password written as %40 and %2F.",
                parameter="location",
            ) from None

    def __repr__(self) -> str:
        return f"Address({self})"

    def __str__(self) -> str:
        host = self._options.get("host") or self._options.get("hostaddr") or "this machine"
        port = f":{self._options['port']}" if "port" in self._options else ""
        return f"{self._options.get('dbname') or 'the default database'} on {host}{port}"

    def connect(self, settings: Mapping[str, str]) -> "Session":
        """Open a session with these settings, or raise ConnectionLost."""
        psycopg = _psycopg()
        defaults = {
            "application_name": "discreet ledger",
            "connect_timeout": "10",
            # A server whose machine vanished says nothing; give up on it after half a minute.
            "keepalives_idle": "10",
            "keepalives_interval": "5",
            "keepalives_count": "4",
            "tcp_user_timeout": "30000",
        }
        certain = {"autocommit": True, "client_encoding": "utf8"}
        try:
            connection = psycopg.connect(**{**defaults, **self._options, **certain})
        except psycopg.Error as error:
            raise ConnectionLost(self._without_password(str(error)), sent=False) from None
        try:
            session = Session(connection)
            session.ask(
                *((Statement("", f"SET {name} = {value}"), ()) for name, value in settings.items())
            )
        except BaseException:
            connection.close()
            raise
        return session

    def _without_password(self, message: str) -> str:
        password = self._options.get("password")
        message = " ".join(message.split())
        return message.replace(password, "***") if password else message


# After these the session is gone, or will be: the server stops, was killed, or threw us out.
# So does a cancelled statement count, for it may have been the one after the commit.
_GONE: Final = ("57", "08", "25P03", "25P04")


@final
class Session:
    """One connection. After ConnectionLost, or an interruption, it is of no more use."""

    def __init__(self, connection: Any) -> None:
        from psycopg import pq

        self._pid = os.getpid()
        self._connection = connection
        self._pg = connection.pgconn
        self._status = pq.ExecStatus
        self._field = pq.DiagnosticField
        self._lost: tuple[type[Exception], ...] = (_psycopg().Error, OSError)
        self._is_bad = pq.ConnStatus.BAD
        self._prepared: set[str] = set()
        self._generation = 0

    def ask(self, *questions: Question) -> list[list[tuple[Any, ...]]]:
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
            rows, error = self._receive(wanted)
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
        return rows

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
        rows: list[list[tuple[Any, ...]]] = []
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
                return rows, error
            if result.status == status.FATAL_ERROR:
                if not result.error_field(self._field.SQLSTATE):  # libpq itself noticed
                    raise OSError(result.get_error_message())
                error = error or self._refused(result)
            if next(expected):
                rows.append(_rows(result) if result.status == status.TUPLES_OK else [])

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


def _rows(result: "PGresult") -> list[tuple[Any, ...]]:
    decoders = [_DECODE[result.ftype(column)] for column in range(result.nfields)]
    get = result.get_value
    rows = []
    for row in range(result.ntuples):
        found = []
        for column, decode in enumerate(decoders):
            value = get(row, column)
            found.append(None if value is None else decode(value))
        rows.append(tuple(found))
    return rows


def unavailable(problem: str, where: object, *, may_be_recorded: bool = False) -> LedgerUnavailable:
    """Return the error for a user: what happened, whether anything was written, what to do."""
    outcome = (
        "Whether the last step was recorded is not known; ask again with the same key."
        if may_be_recorded
        else "Nothing was written."
    )
    return LedgerUnavailable(
        f"the ledger in {where}: {problem} {outcome}", may_be_recorded=may_be_recorded
    )
