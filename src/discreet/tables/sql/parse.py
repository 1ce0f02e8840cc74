"""Read a question in SQL into a plan, or refuse it with position, reason and remedy."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction

from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query

__all__ = ["canonical", "parse"]


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
    from discreet.tables.sql.reader import read

    return read(text, catalog, periods=periods)


def canonical(query: Query) -> str:
    """Return a query as JSON that equal queries share, for fingerprints.

    >>> from discreet.tables.model.query import Aggregate
    >>> canonical(Query(rows="SELECT 1 AS one FROM t", keys=(), values=(), names=("n",),
    ...     aggregates=(Aggregate(kind="count"),), output="SELECT aggregate_0 AS n FROM released",
    ...     tables=("t",)))[:46]
    '{"aggregates":[{"is_sample":true,"kind":"count'
    """
    return json.dumps(
        asdict(query), sort_keys=True, separators=(",", ":"), default=_fraction, allow_nan=False
    )


def _fraction(value: object) -> str:
    if not isinstance(value, Fraction):
        raise TypeError(f"a query cannot hold a {type(value).__name__}")
    return str(value)
