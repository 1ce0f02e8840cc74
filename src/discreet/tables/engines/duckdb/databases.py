"""Tables of DuckDB's own files, opened without the right to change them."""

import hashlib
from typing import Final, NamedTuple

from discreet.errors import DataError
from discreet.tables.engines.compile.text import quoted, text
from discreet.tables.engines.duckdb.schema import described

__all__ = ["OpenedTable", "as_database", "attach", "open_database"]

_KIND: Final = """
    SELECT is_view, schema_name, table_name FROM (
        SELECT FALSE AS is_view, database_name, schema_name, table_name FROM duckdb_tables()
        UNION ALL
        SELECT TRUE, database_name, schema_name, view_name FROM duckdb_views()
    ) WHERE database_name = ? AND LOWER(schema_name) = LOWER(?) AND LOWER(table_name) = LOWER(?)
"""


class OpenedTable(NamedTuple):
    """What a SELECT reads from, the columns, and the table's full name."""

    reader: str
    columns: tuple[tuple[str, str], ...]
    table: str


def as_database(given: object) -> tuple[str, str] | None:
    """Return the file and the table of a DuckDB database, however it was written.

    >>> as_database("people.duckdb::visits"), as_database("people.parquet")
    (('people.duckdb', 'visits'), None)
    """
    if isinstance(given, str) and "::" in given:
        path, _, table = given.partition("::")
        return path, table
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(x, str) for x in given):
        path, table = given
        if path.endswith((".duckdb", ".db", ".ddb")):
            return path, table
    return None


def open_database(name: str, given: tuple[str, str], path: str, *, is_public: bool) -> OpenedTable:
    """Look at a table of the file at ``path``; a view only if it is public."""
    import duckdb

    alias, parts = _alias(path), given[1].split(".")
    place = ".".join(quoted(part) for part in (alias, *parts))
    found = None
    columns: tuple[tuple[str, str], ...] = ()
    with duckdb.connect(":memory:") as connection:
        try:
            connection.execute(attach(path))
            columns = described(connection, place)
            found = connection.execute(_KIND, [alias, *["main", *parts][-2:]]).fetchone()
        except duckdb.Error:
            pass
    if found is None:
        raise DataError(
            f"table {name!r}: {given[0]!r} has no table {given[1]!r}, is no DuckDB database, or "
            "is open for writing elsewhere."
        )
    is_view, schema, table = found
    if is_view and not is_public:
        raise DataError(
            f"table {name!r}: {given[1]!r} is a view, and one row of a view may depend on several "
            "people. Export it to a file where each row is about one of them, or protect its base "
            "tables."
        )
    # With a collation, equal texts may look different: units would merge, and a key would be shown
    # as one of them wrote it.
    shown = ", ".join(
        f'{quoted(column)} COLLATE "binary" AS {quoted(column)}'
        if kind == "VARCHAR"
        else quoted(column)
        for column, kind in columns
    )
    return OpenedTable(f"(SELECT {shown} FROM {place})", columns, f"{schema}.{table}")  # noqa: S608


def attach(path: str) -> str:
    """Return the statement that opens a database file without the right to change it."""
    return f"ATTACH IF NOT EXISTS {text(path)} AS {quoted(_alias(path))} (READ_ONLY)"


def _alias(path: str) -> str:
    return "database_" + hashlib.sha256(path.encode()).hexdigest()[:16]
