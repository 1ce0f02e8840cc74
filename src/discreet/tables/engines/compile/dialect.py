"""The few words of SQL that engines do not agree on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from discreet.tables.engines.compile.text import column_list

__all__ = ["DUCKDB", "Dialect", "SALT"]

SALT = "$salt"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What engines do not agree on; the rest of a text is left to sqlglot.

    >>> DUCKDB.hash(["unit", "key_0"])
    'CAST(HASH(HASH($salt, unit, key_0)) AS DOUBLE)'
    """

    wide: str = "HUGEINT"  # holds the square of any count

    def hash(self, columns: Sequence[str]) -> str:
        """Return a number that depends on the salt and the columns, NULLs included."""
        # The lowest of doubles are found much faster than those of DuckDB's UBIGINT; 53 bits do.
        # The hash of several columns is a mere XOR of theirs: hashed once more, it is a fair rank.
        return f"CAST(HASH(HASH({SALT}, {column_list(columns)})) AS DOUBLE)"

    def lowest(self, expression: str, rank: int) -> str:
        """Return the aggregate that is the rank-th lowest value, NULL if there are fewer."""
        return f"MIN({expression}, {rank})[{rank}]"


DUCKDB = Dialect()
