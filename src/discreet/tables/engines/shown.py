"""Plans for people: as SQL, in the dialect that questions are written in."""

from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.relation import Rows

__all__ = ["plan_sql"]


def plan_sql(rows: Rows) -> str:
    """Return the rows of a plan as one SELECT.

    >>> from discreet.tables.model.relation import Select
    >>> plan_sql(Select.of("people", unit="user_id"))
    'SELECT "user_id" AS unit FROM "people"'
    """
    return rows_sql(rows, DUCKDB)
