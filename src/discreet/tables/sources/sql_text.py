"""Names and paths of sources as SQL, and a connection that looks at schemas."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.errors import DataError

if TYPE_CHECKING:
    import duckdb

__all__ = ["described", "names_checked", "quoted", "text"]


def quoted(name: str) -> str:
    """Quote a name.

    >>> quoted('my "own" table')
    '"my ""own"" table"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quote a text.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def names_checked(table: str, names: Sequence[object]) -> None:
    """Refuse columns that could not be told apart, or not be named.

    >>> names_checked("people", ["user_id", "User_ID"])
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: table 'people' has two columns named 'User_ID' (capital letters do
    not count). Rename one of them.
    """
    if not names:
        raise DataError(f"table {table!r} has no columns.")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name:
            raise DataError(
                f"the columns of table {table!r} must be named by non-empty texts. Rename them."
            )
        if name.casefold() in seen:
            raise DataError(
                f"table {table!r} has two columns named {name!r} (capital letters do not count). "
                "Rename one of them."
            )
        seen.add(name.casefold())


def described(connection: "duckdb.DuckDBPyConnection", reader: str) -> tuple[tuple[str, str], ...]:
    """Return names and types of the columns of anything that a SELECT can read from."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()  # noqa: S608
    return tuple((str(row[0]), str(row[1])) for row in rows)
