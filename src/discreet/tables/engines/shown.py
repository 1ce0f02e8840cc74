"""Plans for people: as SQL, in the dialect that questions are written in."""

from dataclasses import replace
from typing import Final

from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.compile.text import column_list
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.relation import Rows

__all__ = ["plan_sql"]

_SHOWN: Final = replace(
    DUCKDB, hash=lambda columns: f"HASH({column_list(one.text for one in columns)})"
)


def plan_sql(rows: Rows) -> str:
    """Return the rows of a plan as one SELECT, without the salt.

    >>> from discreet.tables.model.relation import Select
    >>> plan_sql(Select.of("people", unit="user_id"))
    'SELECT "user_id" AS unit FROM "people"'
    """
    return rows_sql(rows, _SHOWN)
