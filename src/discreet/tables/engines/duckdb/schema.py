"""What columns a SELECT has."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__all__ = ["described"]


def described(connection: "duckdb.DuckDBPyConnection", reader: str) -> tuple[tuple[str, str], ...]:
    """Return names and types of the columns of anything that a SELECT can read from."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()  # noqa: S608
    return tuple((str(row[0]), str(row[1])) for row in rows)
