"""Thousands of threshold questions for the price of a few alerts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from secrets import token_hex
from typing import Any, final

import numpy as np

from discreet._exact import Number, whole
from discreet.errors import AlreadyCharged, ParameterError, SessionOver
from discreet.ledger import Receipt
from discreet.mechanisms import AboveThreshold
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
from discreet.tables.results.card import card_of_alerts
from discreet.tables.sql.parse import parse

__all__ = ["Alert", "Rise", "Watch", "watched"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """By how much a count is above another one: a question for a watch. Swapped, it is a fall.

    Claim: one unit that comes or goes moves the difference by no more than it moves either count.

    Why: it moves both the same way, each by at least nothing and at most its limit.

    >>> week = "SELECT COUNT(DISTINCT user_id) FROM visits WHERE week = {}"
    >>> str(Rise(now=week.format(7), before=week.format(6)))[-26:]
    'FROM visits WHERE week = 6'
    """

    now: str
    before: str

    def __str__(self) -> str:
        return f"{self.now} minus {self.before}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A question whose count, or rise, is above the threshold, and by about how much.

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

    Why: every question is a count that one unit moves by at most the sensitivity, or a
    :class:`Rise`, which it moves no farther but up or down; the rest is
    :class:`discreet.mechanisms.AboveThreshold`, whose whole price was charged in the beginning.
    Counts move all one way when one unit comes or goes, and rises do not, so that a watch with a
    single rise in it has the noise of a session that is not monotone.
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
        mechanism: AboveThreshold,
        receipt: Receipt,
        *,
        asker: answering.Asker,
    ) -> None:
        self.questions = tuple(questions)
        self.mechanism = mechanism
        self.receipt = receipt
        self._asker = asker
        self._counts, self._session = counts, mechanism.start(source=asker.source)

    def error(self, *, confidence: Number = Fraction(95, 100), looks: int = 1) -> float:
        """Return a distance from the threshold beyond which all answers are right.

        With probability ``confidence`` at least, whatever is that much above the threshold is
        told (while alerts are left), and nothing is that is so much below, in all ``looks``
        together. So no alert is for nothing, but for that chance, if the threshold is as large.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     watch = T.watch(["SELECT COUNT(*) FROM people"], threshold=500, epsilon=1)
        ...     round(watch.error(), 1)
        6.0
        """
        queries = len(self.questions) * whole(looks, name="looks")
        return self.mechanism.error(confidence=confidence, queries=queries)

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

    def card(self) -> dict[str, Any]:
        """Return the release card of all alerts: what was watched and how privately, no answer.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     watch = T.watch(["SELECT COUNT(*) FROM people"], threshold=500, epsilon=1)
        >>> watch.card()["privacy"]["epsilon"]
        1.0
        """
        catalog, epsilon = self._asker.catalog, self._asker.offer.epsilon
        assert epsilon is not None
        return card_of_alerts(
            self.mechanism, self.questions, receipt=self.receipt, epsilon=float(epsilon),
            unit=str(catalog.unit), neighbours=str(catalog.neighbours),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Watch({len(self.questions)} questions, {self.positives_left} alerts left)"


def watched(
    asked: Sequence[str | Rise],
    asker: answering.Asker,
    *,
    threshold: Number,
    positives: int,
    connection: Callable[[], Connection],
) -> Watch:
    """Check the questions, charge for all alerts, and begin."""
    if not asked:
        raise ParameterError("watch at least one question.", parameter="questions")
    pairs = [(one.now, one.before) if isinstance(one, Rise) else (one, None) for one in asked]
    texts = dict.fromkeys(text for pair in pairs for text in pair if text is not None)
    queries = {text: parse(text, asker.catalog, periods=asker.offer.labels) for text in texts}
    for query in queries.values():
        check_engine(query, asker.connection)
    limits = {text: _limit(query, asker.catalog) for text, query in queries.items()}
    mechanism = _mechanism(
        asker, reach=max(limits.values()), threshold=threshold, positives=positives,
        has_rises=any(before is not None for _, before in pairs),
    )  # fmt: skip
    receipt = asker.account.charge(
        mechanism.loss.group(asker.catalog.unit.size), source=asker.source, key=asker.offer.key,
        **asker.charge_fields,
    )  # fmt: skip
    if receipt.is_repeated:
        raise AlreadyCharged(entry=receipt.index)

    def counts() -> "np.ndarray[Any, np.dtype[np.float64]]":
        now = connection()
        with time_limit(asker.seconds):
            # Once each: what rose against last week is what next week is compared with.
            found = {text: _count(query, limits[text], now) for text, query in queries.items()}
        return np.array([found[a] - (0 if b is None else found[b]) for a, b in pairs])

    told = [str(one) for one in asked]
    return Watch(told, counts, mechanism, receipt, asker=asker)


def _mechanism(
    asker: answering.Asker, *, reach: Fraction, threshold: Number, positives: int, has_rises: bool
) -> AboveThreshold:
    assert asker.offer.epsilon is not None
    neighbours = asker.catalog.neighbours
    return AboveThreshold(
        epsilon=Fraction(asker.offer.epsilon) / asker.catalog.unit.size,
        threshold=threshold,
        positives=positives,
        sensitivity=sensitivity(Norm(limit=reach, order=1), order=1, neighbours=neighbours),
        # Counts all move one way when one unit comes or goes, but not when one is exchanged.
        monotone=neighbours is not Neighbours.replace_one and not has_rises,
    )


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
