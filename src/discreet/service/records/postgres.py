"""Records in one schema of a PostgreSQL database, for workers on any number of hosts."""

import re
import selectors
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final, final

from discreet.errors import MissingExtra, ParameterError
from discreet.service.records.driver import PATIENCE, Value, unavailable

__all__ = ["PostgresRecords"]

DEFAULT_SCHEMA: Final = "discreet_gateway"
_PARAMETER: Final = re.compile(r":([a-z]+)")
_GONE: Final = ("08", "57P")  # states after which nobody knows what was committed
_DEFAULTS: Final = {
    "application_name": "discreet gateway",
    "connect_timeout": "10",
    # A server whose machine vanished says nothing; give up on it after half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}


@final
class PostgresRecords:
    """Keep records in ``discreet_gateway``, or the schema that the address names.

    >>> PostgresRecords("postgresql://ana:secret@db.example:port/budget")
    Traceback (most recent call last):
    discreet.errors.ParameterError: this is no address of a PostgreSQL database. Write \
postgresql://user:password@host:port/database?schema=name, with signs like @ and / in the \
password written as %40 and %2F, and a schema of small letters, digits and _.
    """

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra(room="discreet.service", needs="psycopg", extra="postgres") from None
        self._psycopg = psycopg
        base, _, query = url.partition("?")
        options = [option for option in query.split("&") if option]
        named = [one.partition("=")[2] for one in options if one.startswith("schema=")]
        self._schema = named[-1] if named else DEFAULT_SCHEMA
        rest = "&".join(one for one in options if not one.startswith("schema="))
        try:
            if not re.fullmatch(r"(?!pg_)[a-z][a-z0-9_]{0,62}", self._schema):
                raise ValueError
            self._options: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(f"{base}?{rest}")
            int(self._options.get("port") or 0)
        except (psycopg.Error, ValueError):
            # What libpq says of a bad address repeats it, with the password.
            raise ParameterError(
                "this is no address of a PostgreSQL database. Write "
                "postgresql://user:password@host:port/database?schema=name, with signs like @ and "
                "/ in the password written as %40 and %2F, and a schema of small letters, digits "
                "and _.",
                parameter="location",
            ) from None

    @property
    def _where(self) -> str:
        host = self._options.get("host") or self._options.get("hostaddr") or "this machine"
        port = f":{self._options['port']}" if "port" in self._options else ""
        database = self._options.get("dbname") or "the default database"
        return f"schema {self._schema} of {database} on {host}{port}"

    def connect(self) -> Any:
        with self._told():
            connection = self._psycopg.connect(**_DEFAULTS | self._options, autocommit=True)
            try:
                wait = int(1000 * PATIENCE)
                connection.execute(
                    f"SET search_path = {self._schema}; SET client_encoding = 'UTF8'; "
                    f"SET lock_timeout = {wait}; SET statement_timeout = {2 * wait}".encode()
                )
            except BaseException:
                connection.close()
                raise
            return connection

    def is_sound(self, connection: Any, /) -> bool:
        # All that a server ever says to a connection at rest is good-bye.
        with selectors.DefaultSelector() as selector:
            if connection.closed:
                return False
            selector.register(connection.fileno(), selectors.EVENT_READ)
            return not selector.select(0)

    def run(
        self, connection: Any, sql: str, parameters: Mapping[str, Value], /
    ) -> list[tuple[Any, ...]]:
        may_write = not sql.startswith("SELECT")
        with self._told(may_write=may_write):
            done = connection.execute(_PARAMETER.sub(r"%(\1)s", sql).encode(), parameters)
            return done.fetchall() if done.description else []

    def has_tables(self, connection: Any, /) -> bool:
        found = self.run(connection, "SELECT to_regclass('shared') IS NOT NULL", {})
        return bool(found[0][0])

    def make(self, connection: Any, statements: Sequence[str], /) -> None:
        # Locks are numbers, one space per database. Closing the connection lets go as well.
        name = sha256(f"discreet records {self._schema}".encode()).digest()
        key = {"key": int.from_bytes(name[:8], "big", signed=True)}
        self.run(connection, "SELECT pg_advisory_lock(:key)", key)
        if not self.has_tables(connection):
            with self._told(), connection.transaction():
                # Asked first, since it takes no right to make schemas if somebody made this one.
                schema = {"schema": self._schema}
                there = "SELECT to_regnamespace(:schema) IS NOT NULL"
                if not self.run(connection, there, schema)[0][0]:
                    connection.execute(f"CREATE SCHEMA {self._schema}".encode())
                for statement in statements:
                    connection.execute(statement.encode())
        self.run(connection, "SELECT pg_advisory_unlock(:key)", key)

    @contextmanager
    def _told(self, *, may_write: bool = False) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            state = error.sqlstate or "08"
            # The DETAIL, which may show values, is left out.
            reason = error.diag.message_primary or " ".join(str(error).split())
            password = self._options.get("password")
            raise unavailable(
                self._where,
                reason.replace(password, "***") if password else reason,
                may_be_recorded=may_write and state.startswith(_GONE),
            ) from None
