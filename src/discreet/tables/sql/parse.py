"""Read a question in SQL into a plan, or refuse it with position, reason and remedy."""

from collections.abc import Sequence

from discreet.tables.model.catalog import Catalog
from discreet.tables.model.composite import Composite
from discreet.tables.model.query import Query

__all__ = ["parse", "parse_question"]


def parse(text: str, catalog: Catalog, *, periods: Sequence[str] | None = None) -> Query:
    """Translate one SELECT into a query that can be answered privately.

    Everything is refused that is not known to be safe, with :class:`discreet.errors.Refused`.
    ``periods`` names the periods that are asked about, where units are protected per period.

    >>> from discreet.privacy import Neighbours, Unit
    >>> from discreet.tables.model.catalog import Column, Table
    >>> people = Table(name="people", columns=(
    ...     Column(name="user_id", type="BIGINT"), Column(name="region", type="VARCHAR"),
    ...     Column(name="income", type="DOUBLE")))
    >>> catalog = Catalog(unit=Unit.column("user_id"), neighbours=Neighbours.add_remove,
    ...                   tables=(people,))
    >>> query = parse("SELECT region, AVG(CLAMP(income, 0, 2e5)) AS pay FROM people "
    ...               "GROUP BY region", catalog)
    >>> query.names, query.key_names, query.aggregates[0].kind, query.values[0].text
    (('region', 'pay'), ('region',), 'mean', 'CLAMP(income, 0, 2e5)')
    >>> parse("SELECT * FROM people", catalog)
    Traceback (most recent call last):
    discreet.errors.Refused: line 1, column 8: * would show raw rows. ...
    """
    # The parser takes longer to load than the rest of the room; whoever asks in SQL pays for it.
    from discreet.tables.sql.reader import read_query

    return read_query(text, catalog, periods=periods)


def parse_question(
    text: str, catalog: Catalog, *, periods: Sequence[str] | None = None
) -> Query | Composite:
    """Translate one SELECT as :func:`parse` does, or into parts and a query over what they release.

    >>> from discreet.privacy import Neighbours, Unit
    >>> from discreet.tables.model.catalog import Column, Table
    >>> people = Table(name="people", columns=(
    ...     Column(name="user_id", type="BIGINT"), Column(name="region", type="VARCHAR")))
    >>> catalog = Catalog(unit=Unit.column("user_id"), neighbours=Neighbours.add_remove,
    ...                   tables=(people,))
    >>> asked = parse_question("SELECT region, COUNT(*) AS n FROM people GROUP BY ROLLUP (region)",
    ...                        catalog)
    >>> [part.key_names for part in asked.parts]
    [('region',), ()]
    """
    from discreet.tables.sql.reader import read_question

    return read_question(text, catalog, periods=periods)
