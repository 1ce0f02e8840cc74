"""A PostgreSQL server: how to get in, what is set for each transaction, what errors may say."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from discreet.errors import DataError, MissingExtra, ParameterError

if TYPE_CHECKING:
    import psycopg

__all__ = ["LATE", "URL_VARIABLE", "begin", "connected", "driver", "in_transaction", "said"]

T = TypeVar("T")
URL_VARIABLE: Final = "DISCREET_POSTGRES_URL"
_PATIENCE: Final = 10  # seconds for a lock, and to connect
_DEFAULTS: Final[Mapping[str, str]] = {
    "application_name": "discreet",
    "connect_timeout": str(_PATIENCE),
    # A server whose machine vanished says nothing; give up on it after half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# Everything that could give a statement another meaning, whatever the user's defaults are.
_SETTINGS: Final[Mapping[str, str]] = {
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "'UTC'",
    "DateStyle": "'ISO, YMD'",
    "IntervalStyle": "'postgres'",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "row_security": "off",  # rather an error than some of the rows
    "lock_timeout": f"'{_PATIENCE}s'",
}

LOST: Final = (
    "the connection to PostgreSQL was lost, or could not be made. Check that the server runs and "
    "takes connections, and ask again."
)
LATE: Final = (
    "the question took longer than it may, and was stopped. Ask for less at once, or let the "
    "custodian raise seconds in the resources of the tables, or of the engine."
)
_FULL: Final = (
    "PostgreSQL ran out of memory, disk or connections. Ask about fewer rows, with WHERE, or give "
    "the server more."
)
_DENIED: Final = (
    "the role may not read the table, or row-level security would hide rows from it. Grant SELECT "
    "on the table, and USAGE on its schema, to the role of the URL."
)
_LOCKED: Final = "the table is locked by whoever changes it. Ask again when that is done."
_FAILED: Final = (
    "PostgreSQL could not carry out the statement. Its message is withheld because it may show "
    "values. Check that the tables are still there and have the columns they had."
)


def driver() -> Any:
    """Return psycopg, or say how to install it."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtra(room="discreet.tables", needs="psycopg", extra="postgres") from None
    return psycopg


def connected(url: str | None) -> "psycopg.Connection[Any]":
    """Open a connection; without a URL, the one in the environment."""
    library = driver()
    url = url or os.environ.get(URL_VARIABLE)
    if not url:
        raise ParameterError(
            f"the engine 'postgres' needs to know where the database is: write PostgresEngine(url),"
            f" or set {URL_VARIABLE} in the environment to postgresql://user:password@host/database.",
            parameter="url",
        )
    options: dict[str, Any] | None = None
    with suppress(library.Error, ValueError):
        options = library.conninfo.conninfo_to_dict(url)
        int(options.get("port") or 0)
    if options is None:
        # What libpq says of a bad address repeats it, with the password.
        raise ParameterError(
            "this is no address of a PostgreSQL database. Write "
            "postgresql://user:password@host:port/database, with signs like @ and / in the "
            "password written as %40 and %2F.",
            parameter="url",
        )
    certain = {"autocommit": True, "client_encoding": "utf8"}
    made: Any = None
    with suppress(library.Error, OSError, ValueError):
        made = library.connect(**{**_DEFAULTS, **options, **certain})
    if made is None:
        raise DataError(LOST)
    return cast("psycopg.Connection[Any]", made)


def begin(connection: "psycopg.Connection[Any]", seconds: float | None) -> None:
    """Begin a transaction that reads one snapshot, and writes nothing."""
    limit = 0 if seconds is None else max(1, min(int(seconds * 1000), 2**31 - 1))
    settings = {**_SETTINGS, "statement_timeout": str(limit)}
    lines = [f"SET LOCAL {name} = {value}" for name, value in settings.items()]
    text = "; ".join(["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", *lines])
    connection.execute(text.encode())


def in_transaction(url: str | None, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
    """Return what comes of one transaction; an error becomes a DataError without data."""
    failed = ""
    connection = connected(url)
    try:
        begin(connection, None)
        return work(connection)
    except driver().Error as error:
        failed = said(error)
    finally:
        connection.close()
    # Raised out here, it has no __context__.
    raise DataError(failed)


def said(error: BaseException) -> str:
    """Return what may be said of an error: nothing of its own message, which can quote values."""
    state = getattr(error, "sqlstate", None)
    if isinstance(error, MemoryError):
        return _FULL
    if state is None:
        is_lost = isinstance(error, OSError | driver().OperationalError | driver().InterfaceError)
        return LOST if is_lost else _FAILED
    if state.startswith(("08", "57P", "25P")):
        return LOST
    if state == "57014":
        return LATE
    if state.startswith("53"):
        return _FULL
    return {"42501": _DENIED, "55P03": _LOCKED}.get(state, _FAILED)
