"""Frames as DuckDB sees them."""

import hashlib
from typing import TYPE_CHECKING

from discreet.errors import DataError
from discreet.tables.engines.compile.text import quoted
from discreet.tables.engines.duckdb.schema import described
from discreet.tables.model.types import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["content"]


def content(name: str, table: "pa.Table") -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the columns of a frame and a digest of its rows that their order does not change."""
    import duckdb

    found = None
    with duckdb.connect(":memory:") as connection:
        try:
            connection.register("frame", table)
            columns = described(connection, "frame")
            # Others are never read: no question can use them, and some values of theirs cannot be.
            usable = [quoted(column) for column, kind in columns if kind_of(kind) is not None]
            named = ", ".join(usable or ["NULL"])
            sums = ", ".join(f"SUM(HASH({seed}, {named}))" for seed in range(4))
            found = connection.execute(f"SELECT COUNT(*), {sums} FROM frame").fetchone()  # noqa: S608
        except duckdb.Error:
            pass
    if found is None:
        raise DataError(f"table {name!r} has columns of a type that DuckDB cannot read.")
    return columns, hashlib.sha256(repr((columns, found)).encode()).hexdigest()
