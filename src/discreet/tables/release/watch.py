"""Thousands of threshold questions for the price of a few alerts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from secrets import token_hex
from typing import Any, final

import numpy as np

from discreet._exact import Number
from discreet.errors import AlreadyCharged, ParameterError, SessionOver
from discreet.ledger import Receipt
from discreet.mechanisms import AboveThreshold, SparseVectorSession
from discreet.privacy import Neighbours
from discreet.tables.engines.progress import time_limit
from discreet.tables.engines.protocol import Connection
from discreet.tables.model.bounds import WEIGHT_STEPS, Norm, sensitivity
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.output import Output
from discreet.tables.model.query import Query
from discreet.tables.model.scalar import ReleasedAggregate
from discreet.tables.model.statements import Cells, Sums
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.inferences import declared_limit
from discreet.tables.release import answer as answering
from discreet.tables.release.preparing import check_engine
from discreet.tables.sql.parse import parse

__all__ = ["Alert", "Watch", "watched"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A question whose count is above the threshold, and by about how much.

    >>> Alert(place=3, question="SELECT COUNT(*) FROM visits", gap=120.5).place
    3
    """

    place: int
    question: str
    gap: float


@final
class Watch:
    """Questions under watch; :meth:`discreet.tables.Protected.watch` begins one.

    Claim: all answers together are epsilon-DP for the account's unit and neighbours, however many
    questions are asked and however often.

    Why: every question is a count that one unit moves by at most the sensitivity; the rest is
    :class:`discreet.mechanisms.AboveThreshold`, whose whole price was charged in the beginning.
    A group of k units comes and goes one by one, each for a k-th of the price. (All at once they
    may move one question up and another one down, which is more than a monotone session bears.)

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     watch = T.watch(["SELECT COUNT(*) FROM people"], threshold=500, epsilon=1)
    ...     [alert.place for alert in watch.ask()], watch.positives_left
    ([0], 0)
    """

    def __init__(
        self,
        questions: Sequence[str],
        counts: Callable[[], "np.ndarray[Any, np.dtype[np.float64]]"],
        session: SparseVectorSession,
        receipt: Receipt,
    ) -> None:
        self.questions = tuple(questions)
        self.receipt = receipt
        self._counts, self._session = counts, session

    @property
    def positives_left(self) -> int:
        """How many alerts are left."""
        return self._session.positives_left

    def ask(self) -> list[Alert]:
        """Look at all questions, in order, until the alerts are used up.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     T.watch(["SELECT COUNT(*) FROM people"], threshold=10**6, epsilon=1).ask()
        []
        """
        if self._session.is_over:
            raise SessionOver(
                "this watch has given all its alerts. Nothing was spent. Begin another with "
                "Protected.watch, which is charged again."
            )
        gaps = self._session.ask_many_with_gaps(self._counts())
        return [
            Alert(place=int(i), question=self.questions[i], gap=float(gaps[i]))
            for i in np.flatnonzero(~np.isnan(gaps))
        ]

    def __repr__(self) -> str:
        return f"Watch({len(self.questions)} questions, {self.positives_left} alerts left)"


def watched(
    texts: Sequence[str],
    asker: answering.Asker,
    *,
    threshold: Number,
    positives: int,
    connection: Callable[[], Connection],
) -> Watch:
    """Check the questions, charge for all alerts, and begin."""
    queries = [parse(text, asker.catalog, periods=asker.offer.labels) for text in texts]
    if not queries:
        raise ParameterError("watch at least one question.", parameter="questions")
    for query in queries:
        check_engine(query, asker.connection)
    limits = [_limit(query, asker.catalog) for query in queries]
    reach = sensitivity(
        Norm(limit=max(limits), order=1),
        order=1,
        neighbours=asker.catalog.neighbours,
    )
    assert asker.offer.epsilon is not None
    members = asker.catalog.unit.size
    mechanism = AboveThreshold(
        epsilon=Fraction(asker.offer.epsilon) / members,
        threshold=threshold,
        positives=positives,
        sensitivity=reach,
        # Counts all move one way when one unit comes or goes, but not when one is exchanged.
        monotone=asker.catalog.neighbours is not Neighbours.replace_one,
    )
    receipt = asker.account.charge(
        mechanism.loss.group(members), source=asker.source, key=asker.offer.key,
        **asker.charge_fields,
    )  # fmt: skip
    if receipt.is_repeated:
        raise AlreadyCharged(entry=receipt.index)

    def counts() -> "np.ndarray[Any, np.dtype[np.float64]]":
        now, asked = connection(), zip(queries, limits, strict=True)
        with time_limit(asker.seconds):
            return np.array([_count(query, limit, now) for query, limit in asked])

    return Watch(texts, counts, mechanism.start(source=asker.source), receipt)


def _limit(query: Query, catalog: Catalog) -> Fraction:
    """Return how far a unit moves a question's count; refuse what is no single count."""
    if query.keys or not _is_single_count(query):
        raise ParameterError(
            "watch takes questions with a single count and no groups, such as "
            "SELECT COUNT(*) FROM visits WHERE place = 'harbour'. Nothing was spent.",
            parameter="questions",
        )
    counts_units = query.aggregates[0].spec.counts == "units"
    limit = declared_limit("groups" if counts_units else "rows", query, catalog)
    if limit is None:
        raise ParameterError(
            "watch needs to know how many rows of a unit count: protect the data with rows=, or "
            "count units with COUNT(DISTINCT ...). Nothing was spent.",
            parameter="rows",
        )
    return limit


def _is_single_count(query: Query) -> bool:
    """Say whether the answer is a count as it is, not something made of it."""
    output = query.output
    is_plain = output == Output(columns=((output.names[0], ReleasedAggregate(0)),))
    counted = [one.spec.counts for one in query.aggregates]
    return is_plain and counted in (["rows"], ["values"], ["units"])


def _count(query: Query, limit: Fraction, connection: Connection) -> float:
    layout = lay_out(query)
    bounding = None if query.unit_is_row else Norm(limit=limit, order=1)
    cells = Cells(kind="rows")
    if layout.with_units and bounding is not None:
        cells, bounding = Cells(kind="units", own=bounding), None
    elif layout.families and layout.families[0].kind != "rows":
        cells = Cells(kind="present", values=layout.families[0].values)
    statement = Sums(query=query, cells=(cells,), bounding=bounding, salt=token_hex(16))
    table = connection.aggregate(statement).reveal_without_noise()
    steps = table["cell_0"].to_pylist()
    return (steps[0] or 0) / WEIGHT_STEPS if steps else 0.0
