"""Answer a priced question once: recall it, or charge, run, and put the answer on record."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import monotonic
from typing import Any, TypeAlias, TypeVar, final

import numpy as np

from discreet._json import read_json
from discreet.accounting import Loss
from discreet.errors import AlreadyCharged, BudgetExceeded, DataError, LedgerUnavailable
from discreet.ledger import Account, Receipt, charged, delta_beside
from discreet.noise import Source
from discreet.tables.engines.progress import time_limit
from discreet.tables.engines.protocol import Connection
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.bounds import JOINED_ROWS, AskedBounding, Groups, Norm, Totals
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.query import Query, canonical
from discreet.tables.model.relation import most_joined
from discreet.tables.model.scalar import Call, walk
from discreet.tables.pricing.expected_errors import name_of
from discreet.tables.pricing.offer import Offer
from discreet.tables.pricing.people import refuse_too_few
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.release.clip_notes import clip_facts, clip_notes
from discreet.tables.release.columns import Columns, columns_of
from discreet.tables.release.execution.run import Released, run
from discreet.tables.release.exhausted import saying_what_fits
from discreet.tables.results.result import Result

__all__ = [
    "Asker",
    "OnPaid",
    "OnReady",
    "answer",
    "cost_of",
    "facts_of",
    "in_time",
    "fingerprinted",
    "is_known",
    "joined_notes",
    "made",
    "notes_of",
    "paid",
    "put_on_record",
    "recalled",
    "reread",
    "run_charged",
]


T = TypeVar("T")
OnPaid: TypeAlias = Callable[[int], float | None]
OnReady: TypeAlias = Callable[[], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks what of which data: the same for every question of a call.

    The offer says who asks and for which purpose. ``counted`` tells how many rows tables have at
    most, as far as that was released before. ``on_paid`` is called between charge and data, with
    the number of releases that were paid for, and returns how many seconds they may take; ``ends``
    is the time on the clock that follows. ``on_ready`` is called between the answer and its record:
    whoever sees the ledger learns there when it was ready, and asking again recalls it.
    """

    account: Account
    connection: Connection
    catalog: Catalog
    version: str
    offer: Offer
    source: Source
    seconds: float | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    on_paid: OnPaid | None = None
    on_ready: OnReady | None = None
    ends: float | None = None

    @property
    def who(self) -> str:
        """The name that the account gets."""
        return str(self.offer.who)

    @property
    def confidence(self) -> Fraction:
        """That of all intervals."""
        return Fraction(self.offer.confidence)

    def most_people(self, query: Query) -> int | None:
        """Return how many people a question is about at most, from public facts."""
        known = [self.catalog.size]
        if len(query.tables) == 1:
            known.append(self.counted.get(query.tables[0]))
        if not query.keys:
            known.append(None if self.offer.size is None else int(self.offer.size))
        return min((one for one in known if one is not None), default=None)

    @property
    def asking(self) -> dict[str, Any]:
        """What the ledger wants to know of who asks."""
        return {
            "who": self.offer.who, "purpose": self.offer.purpose, "periods": self.offer.periods,
        }  # fmt: skip

    @property
    def seconds_left(self) -> float | None:
        """How long a statement may take from now on."""
        left = None if self.ends is None else self.ends - monotonic()
        return min((one for one in (self.seconds, left) if one is not None), default=None)

    @property
    def charge_fields(self) -> dict[str, Any]:
        """What the ledger wants to know of a charge."""
        return {**self.asking, "version": self.version}

    def delta_beside(self, loss: Loss) -> Fraction:
        """Return how much delta may go with a loss if it shall not run out before epsilon."""
        return delta_beside(self.account, loss, who=self.offer.who, purpose=self.offer.purpose)


def answer(prepared: Prepared, asker: Asker) -> Result:
    """Return a kept answer that is at least as exact, or pay for a new one."""
    known = recalled(prepared, asker)
    if known is not None:
        return known
    try:
        return paid(prepared, asker)[1]
    except BudgetExceeded as refusal:
        raise saying_what_fits(refusal, prepared, asker) from None


def recalled(prepared: Prepared, asker: Asker) -> Result | None:
    """Return what was answered before, if at least as much was paid for it."""
    return reread(fingerprinted(prepared, asker.catalog), prepared.price.epsilon, asker)


def reread(query: str, epsilon: Fraction, asker: Asker) -> Result | None:
    """Return what a query was answered before, for at least this epsilon."""
    found = asker.account.reread(
        query, **asker.charge_fields, accept=lambda kept: _is_as_good(kept, epsilon, asker)
    )
    if found is None:
        return None
    receipt, kept = found
    return Result.from_json(kept, receipt=receipt, left=asker.account.remaining)


def is_known(query: str, epsilon: Fraction, asker: Asker) -> bool:
    """Say whether asking would be free. Charges nothing, and tells nothing that was not told."""
    seen: list[bool] = []

    def look(kept: bytes) -> bool:
        seen.append(_is_as_good(kept, epsilon, asker))
        return False

    asker.account.reread(query, **asker.charge_fields, accept=look)
    return any(seen)


def _is_as_good(kept: bytes, epsilon: Fraction, asker: Asker) -> bool:
    known = read_json(kept)
    is_as_exact = known.get("epsilon", 0) >= float(epsilon)
    # Error bars can be compared only where they promise the same.
    return bool(is_as_exact and known.get("confidence") == float(asker.confidence))


def paid(prepared: Prepared, asker: Asker) -> tuple[Released, Result]:
    """Charge, run, and put the answer on record."""
    query = fingerprinted(prepared, asker.catalog)
    receipt, _, (released,) = run_charged(query, prepared.price.loss, (prepared,), asker)
    result = made(prepared, released, asker, receipt)
    return released, put_on_record(result, query, asker)


def put_on_record(result: Result, query: str, asker: Asker) -> Result:
    """Return an answer with the receipt of its release, which commits to it."""
    kept = result.to_json()
    if asker.on_ready is not None:
        asker.on_ready()
    return replace(result, receipt=asker.account.record(result.receipt, kept, plan=query))


def run_charged(
    query: str,
    loss: Loss,
    parts: Sequence[Prepared],
    asker: Asker,
    *,
    before: Callable[[Prepared, Sequence[Prepared], Sequence[Released]], Prepared] | None = None,
) -> tuple[Receipt, list[Prepared], list[Released]]:
    """Charge a loss, then run all parts that it pays for, and return them as they were run.

    ``before`` a part is run, it may take up what those before it, as they were run, released.
    """
    for part in parts:
        refuse_too_few(part, asker.catalog, people=asker.most_people(part.query))
    with ExitStack() as until_it_ran:
        try:
            until_it_ran.enter_context(asker.connection.holding())
        except DataError as error:
            raise DataError(f"{error} Nothing was spent.") from None
        # Charged before data is touched: a crash from here on wastes budget, and leaks nothing.
        receipt = asker.account.charge(
            loss, query=query, source=asker.source, key=asker.offer.key, **asker.charge_fields
        )
        if receipt.is_repeated:  # and noise drawn then, which a second draw could be compared with
            raise AlreadyCharged(entry=receipt.index)
        if asker.on_paid is not None:
            allowed = asker.on_paid(len(parts))
            ends = None if allowed is None else monotonic() + allowed
            asker = replace(asker, ends=ends)
        ran: list[Prepared] = []
        released: list[Released] = []
        for part in parts:
            ran.append(part if before is None else before(part, ran, released))
            released.append(_ran(ran[-1], asker))
        return receipt, ran, released


def _ran(prepared: Prepared, asker: Asker) -> Released:
    return in_time(
        lambda: run(
            prepared,
            connection=asker.connection,
            catalog=asker.catalog,
            confidence=asker.confidence,
            source=asker.source,
        ),
        asker,
    )


def in_time(work: Callable[[], T], asker: Asker) -> T:
    """Return what something gives that is paid for, unless it takes longer than is allowed."""
    try:
        with time_limit(asker.seconds_left):
            return work()
    except DataError as error:
        message = f"{error} The charge stands, since data may have been read."
    # Raised out here, it has no __context__ that could tell more.
    raise DataError(message)


def made(prepared: Prepared, released: Released, asker: Asker, receipt: Receipt) -> Result:
    """Return the answer to a question from what was released for it."""
    # What leaves the doubles is unknown, and no reason to fail or warn after the charge.
    with np.errstate(all="ignore"):
        columns = columns_of(prepared, released, confidence=asker.confidence)
    return Result(
        columns=prepared.query.names,
        keys=prepared.query.key_names,
        values=columns.values,
        errors=columns.errors,
        lows=columns.lows,
        highs=columns.highs,
        reliable=columns.reliable,
        confidence=float(asker.confidence),
        question=prepared.question,
        epsilon=float(prepared.price.epsilon),
        delta=float(prepared.price.delta),
        loss=prepared.price.loss,
        receipt=receipt,
        **cost_of(asker.account, receipt),
        facts=facts_of(prepared, released, asker, columns),
        notes=notes_of(prepared, released, asker.catalog),
    )


def cost_of(account: Account, receipt: Receipt) -> dict[str, Any]:
    """Return what was paid and what is left of the budget, if the ledger can still be read."""
    try:
        paid = charged(account, receipt)
        return {"left": account.remaining, "share": paid.share, "more": paid.more}
    except LedgerUnavailable:  # no reason to lose an answer that is paid for
        return {"left": math.nan}


def joined_notes(query: Query) -> list[str]:
    """Say that rows are bounded before they are joined, where that may cut more than monsters."""
    most = most_joined(query.rows)
    if most is None or most >= JOINED_ROWS:
        return []
    return [
        f"A join makes at most {most:,} rows of one unit: of a unit that could have more, rows "
        "chosen at random take part, and what that takes off is in no error bar."
    ]


def fingerprinted(prepared: Prepared, catalog: Catalog) -> str:
    """Return the canonical text of what is asked, without its price."""
    settings = {
        "question": read_json(canonical(prepared.query)),
        "bounding": _bounding(prepared.bounding),
        "limits": [catalog.rows, catalog.groups],
    }
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def _bounding(bounding: AskedBounding | None) -> dict[str, Any]:
    if isinstance(bounding, Totals):
        return {"kind": "totals", "limit": float(bounding.limit), "order": bounding.order}
    if isinstance(bounding, Norm):
        return {"kind": "norm", "limit": float(bounding.limit), "order": bounding.order}
    if isinstance(bounding, Groups):
        return {"kind": "groups", "groups": bounding.groups, "rows": bounding.rows}
    return {"kind": "none"}


def facts_of(
    prepared: Prepared, released: Released, asker: Asker, columns: Columns
) -> dict[str, Any]:
    """Describe what was done, for the card, the explanation and whoever asks again."""
    query = prepared.query
    origin = "asked" if prepared.bounding is not None else "declared"
    if any(limit in released.limits for limit in ("rows", "norm")):
        origin = "inferred"
    is_whole = released.bounding is None and bool(released.totals)
    facts: dict[str, Any] = {
        "unit": str(asker.catalog.unit),
        "neighbours": str(asker.catalog.neighbours),
        "data_version": asker.version,
        "plan": plan_sql(query.rows),
        "sql": "\n\n".join(released.statements),
        "bounding": {
            **({"kind": "totals"} if is_whole else _bounding(released.bounding)),
            "origin": origin,
        },
        "limits": {name: float(limit) for name, limit in released.limits.items()},
        "aggregates": [
            {**_aggregate_facts(i, prepared, released), **_shown_as(i, columns)}
            for i in range(len(query.aggregates))
        ],
    }
    most = most_joined(query.rows)
    if most is not None:
        facts["joined_rows"] = most
    if query.keys:
        facts["keys"] = {"kind": "public" if query.has_known_keys else "selected"}
        if released.threshold is not None:
            facts["keys"]["threshold"] = float(released.threshold)
    return facts


def _shown_as(index: int, columns: Columns) -> dict[str, Any]:
    """Return the column that shows an aggregate as it is, where there is one, and its noise."""
    names = [name for name, i in columns.plain.items() if i == index]
    facts: dict[str, Any] = {"column": names[0]} if names else {}
    if index in columns.deviations:
        facts["deviations"] = columns.deviations[index]
    return facts


def _aggregate_facts(index: int, prepared: Prepared, released: Released) -> dict[str, Any]:
    query, aggregate = prepared.query, prepared.query.aggregates[index]
    facts: dict[str, Any] = {"kind": aggregate.kind, "text": name_of(aggregate, prepared)}
    facts["noise"] = "exponential" if index in released.ranked else prepared.price.noise.kind
    clamped = [v for v in aggregate.values if v in released.bounds]
    if clamped and aggregate.spec.counts is None:
        facts["bounds"] = [float(end) for end in released.bounds[clamped[0]]]
        if len(clamped) > 1:
            facts["second_bounds"] = [float(end) for end in released.bounds[clamped[1]]]
        inferred = any(query.values[v].bounds is None for v in clamped)
        facts["origin"] = "inferred" if inferred else "declared"
        facts |= clip_facts(released, aggregate.values)
    family = prepared.layout.sources[index]
    if family is not None and prepared.layout.families[family].kind == "total":
        facts["total"] = _total_facts(aggregate.values[0], prepared, released)
    return facts


def _total_facts(value: int, prepared: Prepared, released: Released) -> dict[str, Any]:
    """Describe how a unit's whole sum was bounded, in the units of the sum."""
    origin = "inferred" if f"total_{value}" in released.limits else "declared"
    if isinstance(prepared.bounding, Totals):
        origin = "asked"
    return {
        "limit": float(released.totals[value]), "order": prepared.price.order, "origin": origin,
    }  # fmt: skip


def notes_of(prepared: Prepared, released: Released, catalog: Catalog) -> tuple[str, ...]:
    """Say what a reader must know besides the numbers."""
    notes = [*joined_notes(prepared.query), *clip_notes(prepared, released, catalog)]
    if any(prepared.query.aggregates[i].quantile is not None for i in prepared.layout.ranks):
        notes.append("Intervals of quantiles hold for groups with enough rows: see explain().")
    shown = [part for _, node in prepared.query.output.columns for part in walk(node)]
    if any(isinstance(part, Call) and part.function == "from_epoch" for part in shown):
        notes.append(
            "Dates and timestamps have no error bar: EPOCH(...) inside the aggregate has one."
        )
    if released.threshold is not None:
        notes.append(
            f"Groups of fewer than about {float(released.threshold):,.0f} units are not shown, "
            "since their keys would tell who is in them."
        )
    return tuple(notes)
