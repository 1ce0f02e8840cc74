"""Questions that share rows and groups, put together so that common numbers are released once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from discreet.errors import Refused
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.sql.parse import parse

__all__ = ["Merged", "merge"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One question that answers several: ``views`` has each of them over its aggregates.

    ``indices`` are their positions in the list that was asked.
    """

    question: str
    query: Query
    views: tuple[Query, ...]
    indices: tuple[int, ...]


def merge(
    texts: Sequence[str], catalog: Catalog, *, periods: Sequence[str] | None = None
) -> tuple[Merged, ...]:
    """Put together the questions that have the same FROM, WHERE and GROUP BY.

    >>> from discreet.privacy import Neighbours, Unit
    >>> from discreet.tables.model.catalog import Column, Table
    >>> people = Table(name="people", columns=(
    ...     Column(name="id", type="BIGINT"), Column(name="age", type="BIGINT")))
    >>> catalog = Catalog(unit=Unit.column("id"), neighbours=Neighbours.add_remove,
    ...                   tables=(people,))
    >>> asked = ["SELECT COUNT(*) AS n FROM people", "SELECT AVG(age) AS a FROM people"]
    >>> [len(one.views) for one in merge(asked, catalog)]
    [2]
    """
    from discreet.tables.sql.composites.joint import row_signature  # loads the parser

    queries = [parse(text, catalog, periods=periods) for text in texts]  # refuses what is unsafe
    alike: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        alike.setdefault(row_signature(text), []).append(i)
    found: list[Merged] = []
    for indices in alike.values():
        together = _together(indices, texts, queries, catalog, periods)
        found += [together] if together else [_alone(i, texts[i], queries[i]) for i in indices]
    return tuple(found)


def _alone(index: int, text: str, query: Query) -> Merged:
    return Merged(question=text, query=query, views=(query,), indices=(index,))


def _together(
    indices: list[int],
    texts: Sequence[str],
    queries: Sequence[Query],
    catalog: Catalog,
    periods: Sequence[str] | None,
) -> Merged | None:
    """Return one question for all of these, or None where they only looked alike."""
    from discreet.tables.sql.composites.joint import joint_question

    if len(indices) == 1:
        return None
    question = joint_question([texts[i] for i in indices])
    try:
        whole = parse(question, catalog, periods=periods)
        views = tuple(_view(queries[i], whole) for i in indices)
    except (Refused, KeyError):  # keys by alias or number mean nothing in another SELECT
        return None
    if any(queries[i].keys != whole.keys for i in indices):
        return None
    return Merged(question=question, query=whole, views=views, indices=tuple(indices))


def _view(query: Query, whole: Query) -> Query:
    """Return the merged query with the output of one of its questions."""
    known = {one: i for i, one in enumerate(_identities(whole))}
    positions = {i: known[one] for i, one in enumerate(_identities(query))}
    return replace(whole, output=query.output.renumbered(positions), key_names=query.key_names)


def _identities(query: Query) -> list[object]:
    """Return what each aggregate is: itself, with the nodes and bounds of its values.

    The text for people would not do: it leaves out which table a column is of.
    """
    nodes = dict(query.rows.columns)
    return [
        (
            replace(one, values=()),
            tuple((nodes[f"value_{v}"], query.values[v].bounds) for v in one.values),
        )
        for one in query.aggregates
    ]
