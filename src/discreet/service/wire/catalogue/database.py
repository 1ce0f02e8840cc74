"""A small database of public metadata, and questions to it under limits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from discreet.service.wire.catalogue.functions import MACROS
from discreet.service.wire.catalogue.metadata import DatasetMetadata, Row
from discreet.service.wire.catalogue.relations import column_types
from discreet.service.wire.values.types import TYPES

if TYPE_CHECKING:
    import duckdb

__all__ = ["ask", "filled_database"]

_EMPTY: Final = {"BOOLEAN": False, "BIGINT": 0, "INTEGER": 0, "SMALLINT": 0}
_CLOSED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
    "memory_limit": "256MB",
    "max_temp_directory_size": "0KB",
}


def filled_database(shown: DatasetMetadata) -> "duckdb.DuckDBPyConnection":
    """Return a database that holds the catalogue of a dataset, and can change no more settings.

    >>> tables = {"t": {"a": "DATE"}}
    >>> shown = DatasetMetadata(dataset="d", who="ana", datasets=("d",), tables=tables)
    >>> with filled_database(shown) as connection:
    ...     ask(connection, "SELECT attname FROM pg_catalog_.pg_attribute", most=10)[1]
    [('a',)]
    """
    import duckdb

    connection = duckdb.connect(":memory:", config={**_CLOSED})
    rows = shown.rows()
    for schema in ("pg_catalog", "information_schema"):
        connection.execute(f"CREATE SCHEMA {schema}_")
    for name, columns in column_types().items():
        place = name.replace(".", "_.", 1)
        listed = ", ".join(f'"{column}" {type_}' for column, type_ in columns.items())
        connection.execute(f"CREATE TABLE {place} ({listed})")
        if rows.get(name):
            _fill(connection, place, columns, rows[name])
    connection.execute("CREATE TABLE known_types (oid BIGINT, name VARCHAR, shown VARCHAR)")
    known: list[Row] = [{"oid": t.oid, "name": t.name, "shown": t.shown} for t in TYPES]
    types = {"oid": "BIGINT", "name": "VARCHAR", "shown": "VARCHAR"}
    _fill(connection, "known_types", types, known)
    for name, definition in MACROS.items():
        connection.execute(f"CREATE MACRO {name}{definition}")
    connection.execute("SET lock_configuration = true")
    return connection


def _fill(
    connection: "duckdb.DuckDBPyConnection",
    place: str,
    columns: Mapping[str, str],
    rows: Sequence[Row],
) -> None:
    # One statement for all rows: thousands of them would take seconds.
    listed = ", ".join(f"unnest(${i}::{type_}[])" for i, type_ in enumerate(columns.values(), 1))
    given: list[Any] = [
        [row.get(name, _EMPTY.get(type_)) for row in rows] for name, type_ in columns.items()
    ]
    connection.execute(f"INSERT INTO {place} SELECT {listed}", given)


def ask(
    connection: "duckdb.DuckDBPyConnection", sql: str, *, most: int
) -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
    """Return names and types of columns, and rows: ``most`` of them at most, one more to say so."""
    found = connection.execute(sql)
    columns = [(str(name), str(type_)) for name, type_, *_ in found.description or ()]
    return columns, found.fetchmany(most + 1)
