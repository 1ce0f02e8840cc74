"""What PostgreSQL has for a table, looked at without its rows."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from discreet.errors import DataError
from discreet.tables.engines.compile.text import quoted
from discreet.tables.engines.postgres.server import in_transaction
from discreet.tables.engines.postgres.types import declared
from discreet.tables.sources.names import TABLE, columns_checked
from discreet.tables.sources.source import DataSource

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresReading", "look", "looked_up", "reading_of", "version"]

_OLDEST: Final = 140_000

# The table of a name, and all that are part of it, itself first.
_MEMBERS: Final = """
    WITH RECURSIVE member(oid, is_part) AS (
        SELECT c.oid, false FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
        UNION SELECT i.inhrelid, true FROM pg_inherits AS i JOIN member ON i.inhparent = oid
    ) SELECT c.oid::bigint, c.relkind::text FROM member JOIN pg_class AS c USING (oid)
    ORDER BY is_part, c.oid
"""
# Columns that are computed as they are read could fail for one row, and are left out.
_COLUMNS: Final = """
    WITH RECURSIVE base(attnum, attname, type, modifier) AS (
        SELECT attnum, attname, atttypid, atttypmod FROM pg_attribute
        WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated <> 'v'
        AND has_column_privilege(attrelid, attnum, 'SELECT')
        UNION ALL
        SELECT b.attnum, b.attname, t.typbasetype,
            CASE WHEN t.typtypmod >= 0 THEN t.typtypmod ELSE b.modifier END
        FROM base AS b JOIN pg_type AS t ON t.oid = b.type WHERE t.typtype = 'd'
    )
    SELECT b.attname::text, t.typname::text, t.typtype::text, b.modifier,
        n.nspname = 'pg_catalog'
    FROM base AS b JOIN pg_type AS t ON t.oid = b.type JOIN pg_namespace AS n
        ON n.oid = t.typnamespace
    WHERE t.typtype <> 'd' ORDER BY b.attnum
"""
_CHANGES: Final = """
    SELECT c.oid, pg_relation_filenode(c.oid), pg_relation_size(c.oid),
        pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
        pg_stat_get_tuples_deleted(c.oid)
    FROM pg_class AS c WHERE c.oid = ANY(%s::oid[]) ORDER BY c.oid
"""
_ALL_CHANGES: Final = """
    SELECT tup_inserted, tup_updated, tup_deleted FROM pg_stat_database
    WHERE datname = current_database()
"""
_VIEWS: Final = {"v": "a view", "m": "a materialised view", "f": "a foreign table"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresReading:
    """What a name stood for in the database, and how that is read.

    It is looked up again whenever tables are read: a name can be given to a view, a partition be
    added, a column change its type.
    """

    schema: str
    table: str
    members: tuple[tuple[int, str], ...]  # the table and its parts: their numbers and kinds
    columns: tuple[tuple[str, str, str], ...]  # names, types, and the expressions that read them

    @property
    def reader(self) -> str:
        """A SELECT of all columns."""
        columns = ", ".join(expression for _, _, expression in self.columns)
        return f"SELECT {columns} FROM {quoted(self.schema)}.{quoted(self.table)}"  # noqa: S608

    @property
    def outside(self) -> str | None:
        """What of it is no table of the database, if anything."""
        kinds = {kind for _, kind in self.members}
        return next((_VIEWS[one] for one in "vmf" if one in kinds), None)


def looked_up(
    connection: "psycopg.Connection[Any]", schema: str, table: str
) -> PostgresReading | None:
    """Return what a name stands for now; None for nothing."""
    members = connection.execute(_MEMBERS, [schema, table]).fetchall()
    if not members:
        return None
    listed = connection.execute(_COLUMNS, [members[0][0]]).fetchall()
    return PostgresReading(
        schema=schema,
        table=table,
        members=tuple(members),
        columns=tuple((column, *declared(column, *rest)) for column, *rest in listed),
    )


def reading_of(source: DataSource) -> PostgresReading:
    """Return what :func:`look` kept for this engine."""
    if not isinstance(source.reading, PostgresReading):
        raise DataError(f"table {source.name!r} was opened for another engine.")
    return source.reading


def look(
    url: str | None,
    name: str,
    given: object,
    *,
    is_public: bool = False,
    types: Mapping[str, str] | None = None,
) -> DataSource:
    """Look at a table of a database."""
    schema, table = _named(name, given)

    def looked(connection: "psycopg.Connection[Any]") -> DataSource:
        _check_server(connection)
        reading = looked_up(connection, schema, table)
        shown = f"{schema}.{table}"
        if reading is None:
            raise DataError(
                f"table {name!r}: the database has no table {shown!r}. Write the schema's name "
                "before it, where that is not public, and capitals as they are."
            )
        if reading.outside is not None and not is_public:
            raise DataError(
                f"table {name!r}: {shown!r} is {reading.outside}, or has one among its partitions. "
                "One row of a view may depend on several people, and whether another server can be "
                "read on its rows. Protect the base tables, or copy them into a table of the "
                "database."
            )
        if not reading.columns:
            raise DataError(f"table {name!r}: the role of the URL may not read {shown!r}.")
        connection.execute(f"{reading.reader} LIMIT 0".encode())
        place = _place(connection)
        columns_checked(name, [column for column, _, _ in reading.columns])
        return DataSource(
            name=name,
            kind="postgres",
            columns=tuple((column, type_) for column, type_, _ in reading.columns),
            version=_version(connection, reading),
            identities=tuple(f"{place}:{oid}" for oid, _ in reading.members),
            location=None if "." in schema + table else f"{TABLE}{shown}",
            is_public=is_public,
            given=given,
            reading=reading,
        )

    return in_transaction(url, looked)


def version(url: str | None, source: DataSource) -> str:
    """Return the version of a table now."""
    known = reading_of(source)

    def versioned(connection: "psycopg.Connection[Any]") -> str:
        reading = looked_up(connection, known.schema, known.table)
        if reading is None:
            raise DataError(f"table {source.name!r} is gone from the database. Restore it.")
        return _version(connection, reading)

    return in_transaction(url, versioned)


def _named(name: str, given: object) -> tuple[str, str]:
    """Return a schema and a table.

    >>> _named("visits", "table://hr.visits"), _named("visits", ("hr", "odd.name"))
    (('hr', 'visits'), ('hr', 'odd.name'))
    """
    is_text = isinstance(given, str)
    parts = tuple(str(given).removeprefix(TABLE).split(".")) if is_text else given
    if isinstance(parts, tuple) and all(isinstance(one, str) and one for one in parts):
        if len(parts) == 1:
            return "public", parts[0]
        if len(parts) == 2:
            return parts
    raise DataError(
        f"table {name!r}: give the name of a table of the database, such as 'visits' or "
        f"'schema.visits', got {type(given).__name__}."
    )


def _check_server(connection: "psycopg.Connection[Any]") -> None:
    if connection.info.server_version < _OLDEST:
        raise DataError("the engine 'postgres' needs PostgreSQL 14 or later.")
    (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise DataError(
            "the database is not encoded in UTF8, so not every text could be read. Copy the table "
            "into a database that is."
        )


def _place(connection: "psycopg.Connection[Any]") -> str:
    """Return what tells the database from all others, however the URL is written."""
    (allowed,) = connection.execute(
        "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
    ).fetchone() or (False,)
    if not allowed:
        raise DataError(
            "the role of the URL may not know which database it is: GRANT EXECUTE ON FUNCTION "
            "pg_control_system() to it."
        )
    (system, database) = connection.execute(
        "SELECT (SELECT system_identifier FROM pg_control_system())::text, oid::text "
        "FROM pg_database WHERE datname = current_database()"
    ).fetchone() or ("", "")
    return f"postgresql:{system}:{database}"


def _version(connection: "psycopg.Connection[Any]", reading: PostgresReading) -> str:
    if reading.outside is None:
        oids = [oid for oid, _ in reading.members]
        changes = connection.execute(_CHANGES, [oids]).fetchall()
    else:
        changes = connection.execute(_ALL_CHANGES).fetchall()
    return hashlib.sha256(repr((reading, changes)).encode()).hexdigest()
