"""Many questions priced together: common numbers once, the budget where it helps most."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

from discreet._exact import Number, positive
from discreet._words import fit, percent
from discreet.accounting import Loss, compose, delta
from discreet.errors import BudgetExceeded, ParameterError
from discreet.ledger import AccountQuote
from discreet.tables.model.quotes import Expected
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.expected_errors import expected_errors
from discreet.tables.pricing.inferences import known_rows
from discreet.tables.pricing.payment import DELTA_SHARE
from discreet.tables.pricing.people import refuse_too_few
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import ALL_BUT_NOTHING, price
from discreet.tables.release import answer as answering
from discreet.tables.release.preparing import check_engine
from discreet.tables.release.workload_merge import Merged, merge
from discreet.tables.results.result import Result

__all__ = ["Workload", "price_together"]

_PRECISION: Final = 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Questions with their shares of one price; nothing is spent before :meth:`release`.

    ``parts`` are what is released, each for one or more questions. ``loss`` is what all of them
    cost together.

    Claim: all answers together are (epsilon, delta)-DP for the account's unit and neighbours.

    Why: the parts are fixed before any of them is answered, so their losses compose, and the
    composition was found to be within (epsilon, delta) by certified accounting.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     workload = T.plan(["SELECT COUNT(*) AS n FROM people",
    ...                        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"], epsilon=0.5)
    ...     workload.quote.fits, len(workload.parts)
    ...     print(workload)
    (True, 2)
    2 questions in 2 releases, 0 of them shared
    epsilon=0.5, delta=1e-08 for all of them together
      question 1: epsilon=0.25 by itself
        1  COUNT(*): within 12 (95% confidence)
      question 2: epsilon=0.25 by itself
        2  COUNT(*): within 12 (95% confidence)
    fits into account 'people'
      total  0% used, 16.7% after, by epsilon
    """

    epsilon: float
    delta: float
    questions: tuple[str, ...]
    parts: tuple[tuple[Merged, Prepared], ...]
    loss: Loss
    asker: answering.Asker

    @property
    def quote(self) -> AccountQuote:
        """Whether all of it fits into the budget, and what would be left."""
        return self.asker.account.quote(self.loss, **self.asker.asking)

    @property
    def expected(self) -> tuple[tuple[Expected, ...], ...]:
        """How far off each aggregate of each question would be, from public facts alone."""
        found: dict[int, tuple[Expected, ...]] = {}
        for merged, prepared in self.parts:
            every = expected_errors(
                prepared, self.asker.catalog, confidence=self.asker.confidence, size=None
            )
            for i, view in zip(merged.indices, merged.views, strict=True):
                found[i] = tuple(every[at] for at in sorted(view.output.aggregates))
        return tuple(found[i] for i in range(len(self.questions)))

    def __str__(self) -> str:
        shared = sum(len(merged.indices) > 1 for merged, _ in self.parts)
        lines = [
            f"{len(self.questions)} questions in {len(self.parts)} releases, "
            f"{shared} of them shared",
            f"{_alone(self.epsilon, self.delta)} for all of them together",
        ]
        expected, sure = self.expected, percent(float(self.asker.confidence), up=False)
        for merged, prepared in self.parts:
            names = ", ".join(str(i + 1) for i in merged.indices)
            alone = _alone(float(prepared.price.epsilon), float(prepared.price.delta))
            lines.append(f"  question {names}: {alone} by itself")
            for i in merged.indices:
                told = [f"    {i + 1}  {one} ({sure} confidence)" for one in expected[i]]
                lines += [fit(one, indent=" " * 7) for one in told]
        lines.append(str(self.quote))
        return "\n".join(lines)

    def release(
        self,
        *,
        on_paid: answering.OnPaid | None = None,
        on_ready: answering.OnReady | None = None,
    ) -> list[Result]:
        """Pay for all and answer all, in the order in which they were asked.

        Refused as a whole where it does not fit. Each release is charged before its data is
        touched, so a crash in between keeps what was answered and charges nothing for the rest.
        ``on_paid`` and ``on_ready`` are as for :meth:`discreet.tables.Protected.sql`, called for
        each.

        >>> from discreet.testing import temporary_tables
        >>> with temporary_tables(epsilon=3) as T:
        ...     workload = T.plan(["SELECT COUNT(*) AS n FROM people"], epsilon=1)
        ...     [answer.columns for answer in workload.release()]
        [('n',)]
        """
        quote = self.quote
        if not quote.fits:
            raise BudgetExceeded(
                used=quote.used,
                would_be=quote.used_after,
                budget=f"the budget {quote.tightest.name!r}",
                account=quote.account,
                way_out=f"Plan fewer questions, or a smaller {quote.tightest.scarce}.",
            )
        results: dict[int, Result] = {}
        for number, (merged, prepared) in enumerate(self.parts):
            key = None if self.asker.offer.key is None else f"{self.asker.offer.key}/{number}"
            offer = replace(self.asker.offer, key=key)
            asker = replace(self.asker, offer=offer, on_paid=on_paid, on_ready=on_ready)
            released, whole = answering.paid(prepared, asker)
            for i, view in zip(merged.indices, merged.views, strict=True):
                seen = replace(prepared, question=self.questions[i], query=view)
                results[i] = answering.made(seen, released, self.asker, whole.receipt)
        return [results[i] for i in range(len(self.questions))]


def _alone(epsilon: float, delta: float) -> str:
    return f"epsilon={epsilon:.4g}" + (f", delta={delta:.3g}" if delta else "")


def price_together(
    texts: Sequence[str],
    asker: answering.Asker,
    *,
    weights: Sequence[Number] | None,
) -> Workload:
    """Merge questions and split the price."""
    if not texts:
        raise ParameterError("plan at least one question.", parameter="questions")
    if weights is not None and len(weights) != len(texts):
        raise ParameterError("weights must be as many as questions.", parameter="weights")
    heavy = [Fraction(1)] * len(texts)
    if weights is not None:
        heavy = [positive(one, name="weights") for one in weights]
    merged = merge(texts, asker.catalog, periods=asker.offer.labels)
    total, failure = _guarantee(asker)
    # With errors as 1 / epsilon, the sum of weight / epsilon**2 for a given sum of epsilons is
    # least where each epsilon is proportional to the cube root of its weight.
    roots = [Fraction(float(sum(heavy[i] for i in one.indices)) ** (1 / 3)) for one in merged]
    shares = [root / sum(roots) for root in roots]  # exact: doubles add up to a trace above 1

    def at(scale: float) -> list[Prepared]:
        return [
            _priced(
                one, asker, epsilon=total * share * Fraction(scale), delta=failure / len(merged)
            )
            for one, share in zip(merged, shares, strict=True)
        ]

    # Without delta epsilons add up, and ledgers round each of them up by a trace.
    parts = at(_largest_scale(at, total, failure) if failure else float(ALL_BUT_NOTHING))
    for prepared in parts:
        refuse_too_few(prepared, asker.catalog, people=asker.most_people(prepared.query))
        check_engine(prepared.query, asker.connection)
    return Workload(
        epsilon=float(total),
        delta=float(failure),
        questions=tuple(texts),
        parts=tuple(zip(merged, parts, strict=True)),
        loss=_composed(parts),
        asker=asker,
    )


def _guarantee(asker: answering.Asker) -> tuple[Fraction, Fraction]:
    epsilon, given = asker.offer.epsilon, asker.offer.delta
    assert epsilon is not None
    if given is None:
        given = DELTA_SHARE * Fraction(asker.account.guarantee.delta)
    return Fraction(epsilon), Fraction(given)


def _priced(one: Merged, asker: answering.Asker, *, epsilon: Fraction, delta: Fraction) -> Prepared:
    layout = lay_out(one.query, rows=known_rows(one.query, asker.catalog))
    found = price(
        one.query, layout, asker.catalog, epsilon=epsilon, delta=delta,
        beside=asker.delta_beside if asker.offer.delta is None else None,
    )  # fmt: skip
    return Prepared(
        question=one.question, query=one.query, layout=layout, price=found, bounding=None
    )


def _composed(parts: Sequence[Prepared]) -> Loss:
    return compose([(one.price.loss, 1) for one in parts])


def _largest_scale(
    at: Callable[[float], list[Prepared]], total: Fraction, failure: Fraction
) -> float:
    """Return how much more than its linear share every release may have.

    Many releases compose to less than the sum of their epsilons, and what is saved is spent.
    """
    low, high = 1.0, 2.0
    while not _fits(at(low), total, failure):  # by a rounding error
        low, high = low * (1 - 1e-4), low
    while high < 64 and _fits(at(high), total, failure):
        low, high = high, 2 * high
    while high / low > 1 + _PRECISION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _fits(at(middle), total, failure) else (low, middle)
    return low


def _fits(parts: Sequence[Prepared], total: Fraction, failure: Fraction) -> bool:
    return delta(_composed(parts), epsilon=total) <= failure
