"""From a statement to one SQL text: bound each unit, then add up whole numbers.

The text computes, in this order: the rows that count; for each unit and group a few whole sums;
for each unit one weight (or the cut-off of its ranks); the weighted cells of each unit and group,
rounded towards zero; and their sums by group. Each unit's integers are a function of its own rows
and the salt alone, so that adding or removing a unit changes the sums by that unit's integers.
"""

from discreet.tables.engines.compile.dialect import Dialect, Lacking
from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.compile.rows import Compiled
from discreet.tables.engines.compile.sums import sums
from discreet.tables.engines.compile.units import distinct, profile
from discreet.tables.model.relation import Rows
from discreet.tables.model.statements import Distinct, Statement, Sums

__all__ = ["compile", "lacking"]


def compile(statement: Statement, *, dialect: Dialect) -> Compiled:  # noqa: A001
    """Return the statement as one SELECT, with the salt as the parameter $salt.

    Public keys are no part of the text: it reads them from tables that come with it.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> from discreet.tables.model.bounds import Norm
    >>> from discreet.tables.model.query import Query
    >>> from discreet.tables.model.relation import Select
    >>> from discreet.tables.model.statements import Cells
    >>> people = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
    >>> text = compile(Sums(query=people, cells=(Cells(kind="rows"),),
    ...                     bounding=Norm(limit=5, order=1), salt=""), dialect=DUCKDB).text
    >>> print(text.splitlines()[0])
    WITH source AS (
    """
    if isinstance(statement, Sums):
        return sums(statement, dialect)
    if isinstance(statement, Distinct):
        return distinct(statement, dialect)
    return profile(statement, dialect)


def lacking(rows: Rows, dialect: Dialect) -> str | None:
    """Return what rows ask for that an engine has no words for; None if it has all of them.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> from discreet.tables.model.relation import Select
    >>> lacking(Select.of("people", unit="user_id"), DUCKDB) is None
    True
    """
    try:
        rows_sql(rows, dialect)
    except Lacking as error:
        return str(error)
    return None
