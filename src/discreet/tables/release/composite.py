"""Answer a question over released answers: charge for all parts at once, run them, then compute."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import BudgetExceeded
from discreet.ledger import Receipt
from discreet.tables.engines.post_processing import empty_answer
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.composite import Composite
from discreet.tables.model.filling import filled, lookups_in
from discreet.tables.pricing.prepared import Prepared, PreparedComposite
from discreet.tables.release import answer as answering
from discreet.tables.release.columns import Columns, columns_of
from discreet.tables.release.execution.run import Released
from discreet.tables.release.exhausted import saying_what_fits
from discreet.tables.release.outer import looked_up, outer_columns
from discreet.tables.results.result import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.tables.model.scalar import Literal

__all__ = ["answer_composite", "fingerprint", "keys_shown"]


def answer_composite(prepared: PreparedComposite, asker: answering.Asker) -> Result:
    """Return a kept answer that is at least as exact, or pay for a new one."""
    query = fingerprint(prepared, asker.catalog)
    known = answering.reread(query, prepared.epsilon, asker)
    if known is not None:
        return known
    try:
        receipt, ran, released = answering.run_charged(
            query, prepared.loss, prepared.parts, asker, before=_taking_up(prepared, asker)
        )
    except BudgetExceeded as refusal:
        raise saying_what_fits(refusal, prepared, asker) from None
    result = _made(replace(prepared, parts=tuple(ran)), released, asker, receipt)
    return answering.put_on_record(result, query, asker)


def fingerprint(prepared: Prepared | PreparedComposite, catalog: Catalog) -> str:
    """Return the canonical text of what is asked, without its price."""
    if isinstance(prepared, Prepared):
        return answering.fingerprinted(prepared, catalog)
    parts = [answering.fingerprinted(part, catalog) for part in prepared.parts]
    made: dict[str, Any] = {"parts": parts, "outer": prepared.composite.outer}
    if prepared.composite.lookups:
        made["lookups"] = [[one.sql, one.is_list] for one in prepared.composite.lookups]
    return json.dumps(made, sort_keys=True, separators=(",", ":"))


def _taking_up(
    prepared: PreparedComposite, asker: answering.Asker
) -> Callable[[Prepared, Sequence[Prepared], Sequence[Released]], Prepared]:
    """Return what puts released values into a part that compares rows with them."""
    composite = prepared.composite
    known: dict[int, tuple[Literal, ...]] = {}
    answers: list[pa.Table] = []

    def look_up(indices: set[int]) -> None:
        for index in sorted(indices - known.keys()):
            known[index] = looked_up(
                composite.lookups[index], composite, answers, asker.catalog, asker.connection
            )

    def taken_up(part: Prepared, ran: Sequence[Prepared], released: Sequence[Released]) -> Prepared:
        needed = lookups_in(part.query.rows)
        if not needed:
            return part
        for one, found in list(zip(ran, released, strict=True))[len(answers) :]:
            with np.errstate(all="ignore"):
                columns = columns_of(one, found, confidence=asker.confidence)
            answers.append(_answer(one, columns))
        answering.in_time(lambda: look_up(needed), asker)
        return replace(part, query=replace(part.query, rows=filled(part.query.rows, known)))

    return taken_up


def _answer(part: Prepared, columns: Columns) -> "pa.Table":
    import pyarrow as pa

    return pa.table(columns.values).cast(empty_answer(part.query).schema)


def _made(
    prepared: PreparedComposite,
    released: Sequence[Released],
    asker: answering.Asker,
    receipt: Receipt,
) -> Result:
    with np.errstate(all="ignore"):
        answers = [
            columns_of(part, one, confidence=asker.confidence)
            for part, one in zip(prepared.parts, released, strict=True)
        ]
    tables = [_answer(part, one) for one, part in zip(answers, prepared.parts, strict=True)]
    shown, rows = answering.in_time(
        lambda: outer_columns(prepared.composite, tables, asker.catalog, asker.connection), asker
    )
    keys = keys_shown(prepared.composite, shown)
    measures = {name: column for name, column in shown.items() if name not in keys}
    bars = _bars(prepared.composite, answers, measures, rows)
    bare = [n for n in measures if prepared.parts and np.isnan(bars["errors"][n]).all()]
    notes = [
        n
        for p, r in zip(prepared.parts, released, strict=True)
        for n in answering.notes_of(p, r, asker.catalog)
    ]
    if bare and len(next(iter(shown.values()))):
        notes.append(f"Computed from released values, without error bars: {', '.join(bare)}.")
    if not prepared.parts:
        notes.append("All tables read are public: the answer is exact, and free.")
    return Result(
        columns=tuple(shown),
        keys=keys,
        values=shown,
        errors=bars["errors"],
        lows=bars["lows"],
        highs=bars["highs"],
        reliable=bars["reliable"],
        confidence=float(asker.confidence),
        question=prepared.question,
        epsilon=float(prepared.epsilon),
        delta=float(prepared.delta),
        loss=prepared.loss,
        receipt=receipt,
        **answering.cost_of(asker.account, receipt),
        facts=_facts(prepared, released, answers, asker),
        notes=tuple(dict.fromkeys(notes)),
    )


def _bars(
    composite: Composite,
    answers: Sequence[Columns],
    measures: "dict[str, pa.ChunkedArray]",
    rows: tuple[Any, Any] | None,
) -> dict[str, dict[str, Any]]:
    """Return the error bars of columns that are released columns, row by row."""
    bars: dict[str, dict[str, Any]] = {
        kind: {name: np.full(len(column), np.nan) for name, column in measures.items()}
        for kind in ("errors", "lows", "highs")
    }
    bars["reliable"] = {n: np.ones(len(column), dtype=bool) for n, column in measures.items()}
    if rows is None:
        return bars
    parts, places = rows
    for part, names in composite.origins.items():
        here = parts == part
        for name, own in names.items():
            for kind, of in bars.items():
                given = getattr(answers[part], kind).get(own)
                if given is not None and name in of:
                    of[name][here] = given[places[here]]
    return bars


def keys_shown(composite: Composite, shown: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that are keys in some part, and in no part an aggregate."""
    found: list[str] = []
    origins = composite.origins
    for name in shown:
        own = [(composite.parts[i], n[name]) for i, n in origins.items() if name in n]
        plain = [column in query.output.plain for query, column in own]
        if any(column in query.key_names for query, column in own) and not any(plain):
            found.append(name)
    return tuple(found)


def _facts(
    prepared: PreparedComposite,
    released: Sequence[Released],
    answers: Sequence[Columns],
    asker: answering.Asker,
) -> dict[str, Any]:
    """Describe what was done: as of the first part, with the aggregates of all."""
    parts = []
    for i, (part, one, columns) in enumerate(zip(prepared.parts, released, answers, strict=True)):
        names = {own: name for name, own in prepared.composite.origins.get(i, {}).items()}
        plain = {names[own]: place for own, place in columns.plain.items() if own in names}
        parts.append(answering.facts_of(part, one, asker, replace(columns, plain=plain)))
    facts: dict[str, Any] = {
        "unit": str(asker.catalog.unit),
        "neighbours": str(asker.catalog.neighbours),
        "data_version": asker.version,
        **(parts[0] if parts else {}),
        "outer": prepared.composite.outer,
    }
    if parts:
        facts["aggregates"] = [one for part in parts for one in part["aggregates"]]
        for text in ("plan", "sql"):
            facts[text] = "\n\n".join(part[text] for part in parts)
    return facts
