"""Questions that share rows and groups, put together so that common numbers are released once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from discreet.errors import Refused
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query
from discreet.tables.sql.parse import parse

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Merged", "merge"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """One question that answers several: ``views`` has each of them over its aggregates.

    ``places`` are their positions in the list that was asked.
    """

    question: str
    query: Query
    views: tuple[Query, ...]
    places: tuple[int, ...]


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
    queries = [parse(text, catalog, periods=periods) for text in texts]  # refuses what is unsafe
    alike: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        alike.setdefault(_signature(text), []).append(i)
    found: list[Merged] = []
    for places in alike.values():
        together = _together(places, texts, queries, catalog, periods)
        found += [together] if together else [_alone(i, texts[i], queries[i]) for i in places]
    return tuple(found)


def _alone(place: int, text: str, query: Query) -> Merged:
    return Merged(question=text, query=query, views=(query,), places=(place,))


def _together(
    places: list[int],
    texts: Sequence[str],
    queries: Sequence[Query],
    catalog: Catalog,
    periods: Sequence[str] | None,
) -> Merged | None:
    """Return one question for all of these, or None where they only looked alike."""
    if len(places) == 1:
        return None
    question = _joined([texts[i] for i in places])
    try:
        whole = parse(question, catalog, periods=periods)
        views = tuple(_view(queries[i], whole) for i in places)
    except (Refused, KeyError):  # keys by alias or number mean nothing in another SELECT
        return None
    if any(queries[i].keys != whole.keys for i in places):
        return None
    return Merged(question=question, query=whole, views=views, places=tuple(places))


def _signature(text: str) -> str:
    """Return what two questions must share: everything but what they show of the answer."""
    select = _parsed(text)
    if "histogram" in text.lower():  # which adds a key of its own
        return select.sql(dialect="duckdb")
    for clause in ("expressions", "having", "order", "limit", "offset"):
        select.set(clause, None)
    return select.sql(dialect="duckdb", comments=False)


def _joined(texts: Sequence[str]) -> str:
    """Return one question with the keys and all aggregates of all of them."""
    from sqlglot import exp

    first = _parsed(texts[0])
    keys = [] if first.args.get("group") is None else list(first.args["group"].expressions)
    aggregates: dict[str, exp.Expression] = {}
    for text in texts:
        for one in _aggregates(_parsed(text)):
            aggregates.setdefault(one.sql(dialect="duckdb"), one)
    shown = [key.copy() for key in keys if not key.is_int]
    asked = [exp.alias_(one.copy(), f"released_{i}") for i, one in enumerate(aggregates.values())]
    first.set("expressions", [*shown, *asked])
    for clause in ("having", "order", "limit", "offset"):
        first.set(clause, None)
    return first.sql(dialect="duckdb")


def _aggregates(select: "exp.Select") -> "list[exp.Expression]":
    """Return the aggregates of the outer SELECT, with their FILTER, outermost first."""
    from discreet.tables.sql.aggregate_calls import is_aggregate

    found: list[exp.Expression] = []
    todo: list[exp.Expression] = [*select.expressions]
    todo += [select.args[c] for c in ("having", "order") if select.args.get(c) is not None]
    while todo:
        node = todo.pop(0)
        if is_aggregate(node):
            found.append(node)
        else:
            todo += list(node.iter_expressions())
    return found


def _parsed(text: str) -> "exp.Select":
    import sqlglot

    return sqlglot.parse_one(text, read="duckdb")  # type: ignore[return-value]


def _view(query: Query, whole: Query) -> Query:
    """Return the merged query with the output of one of its questions."""
    import sqlglot
    from sqlglot import exp

    known = {one: i for i, one in enumerate(_identities(whole))}
    moved = {f"aggregate_{i}": known[one] for i, one in enumerate(_identities(query))}
    output = sqlglot.parse_one(query.output, read="duckdb")
    for column in output.find_all(exp.Column):
        if column.name in moved:
            column.this.set("this", f"aggregate_{moved[column.name]}")
    return replace(
        whole,
        output=output.sql(dialect="duckdb"),
        names=query.names,
        key_names=query.key_names,
    )


def _identities(query: Query) -> list[object]:
    """Return what each aggregate is: its kind, and the SQL and bounds of its values.

    The text for people would not do: it leaves out which table a column is of.
    """
    import sqlglot

    shown = sqlglot.parse_one(query.rows, read="duckdb").args["expressions"]
    sql = {one.alias: one.unalias().sql(dialect="duckdb") for one in shown}
    return [
        (
            one.kind,
            tuple((sql[f"value_{v}"], query.values[v].bounds) for v in one.values),
            one.quantile,
            one.is_sample,
        )
        for one in query.aggregates
    ]
