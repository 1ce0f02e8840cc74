"""Answers to questions: from the catalogue, free, or from the desk, for their price."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from discreet._words import percent
from discreet.errors import DiscreetError
from discreet.service.wire.catalogue.emptiness import empty_columns
from discreet.service.wire.catalogue.rewriting import rewritten
from discreet.service.wire.catalogue.titles import column_titles
from discreet.service.wire.protocol.failures import WireFailure, failure_of
from discreet.service.wire.session.outcome import Outcome, OutputField, rows_of_text, wire_notice
from discreet.service.wire.session.payment import is_switched_on, made_offer, named_periods
from discreet.service.wire.session.questions import AskedQuestion
from discreet.service.wire.session.state import SessionState
from discreet.service.wire.values.types import TEXT, answer_type
from discreet.tables import Result

__all__ = ["answered", "columns_of_question", "explained"]

T = TypeVar("T")
_FREE = "This asks about names and types, or about nothing: it is free."


async def answered(
    asked: AskedQuestion, session: SessionState, fields: tuple[OutputField, ...] | None = None
) -> Outcome:
    """Answer a question, of which the columns may be known already."""
    if asked.tree is not None:
        return await session.waiting.wait(_from_catalogue(asked, session))
    known = fields or await columns_of_question(asked, session)

    def work(asked: AskedQuestion, session: SessionState) -> Coroutine[Any, Any, Outcome]:
        return _from_desk(asked, session, known)

    return await _told(asked, session, work)


async def columns_of_question(
    asked: AskedQuestion, session: SessionState
) -> tuple[OutputField, ...]:
    """Return the columns that an answer would have. Free."""
    if asked.tree is not None:
        outcome = await session.waiting.wait(_from_catalogue(asked, session))
        return outcome.fields or ()
    return await _told(asked, session, _columns)


async def explained(asked: AskedQuestion, session: SessionState) -> Outcome:
    """Return the quote of a question, as EXPLAIN shows plans. Free."""
    if asked.tree is not None:
        return rows_of_text("QUERY PLAN", [_FREE], tag="EXPLAIN")
    lines = await _told(asked, session, _quoted)
    return rows_of_text("QUERY PLAN", lines, tag="EXPLAIN")


async def _told(
    asked: AskedQuestion,
    session: SessionState,
    work: Callable[[AskedQuestion, SessionState], Coroutine[Any, Any, T]],
) -> T:
    """Do something at the desk, and tell where in the client's text an error is."""
    try:
        return await session.waiting.wait(work(asked, session))
    except DiscreetError as error:
        failure = failure_of(error, asked.text)
        if asked.offset is None:
            failure.position = 0
        elif failure.position:
            failure.position += asked.offset
        raise failure from None


async def _columns(asked: AskedQuestion, session: SessionState) -> tuple[OutputField, ...]:
    own = session.variables.own
    found = await session.desk.columns(
        session.login, session.dataset, asked.text,
        errors=is_switched_on(own, "errors", default=False), periods=named_periods(own),
    )  # fmt: skip
    return tuple(OutputField(name, answer_type(type_)) for name, type_ in found.items())


async def _quoted(asked: AskedQuestion, session: SessionState) -> Sequence[str]:
    offer = made_offer(session.variables.own, who=session.login.who)
    quote = await session.desk.quote(session.login, session.dataset, asked.text, offer)
    return str(quote).splitlines()


async def _from_desk(
    asked: AskedQuestion, session: SessionState, fields: tuple[OutputField, ...]
) -> Outcome:
    own = session.variables.own
    offer = made_offer(own, who=session.login.who)
    result = await session.desk.answer(
        session.login, session.dataset, asked.text, offer,
        degrade=is_switched_on(own, "degrade", default=False),
    )  # fmt: skip
    errors = is_switched_on(own, "errors", default=False)
    names = result.names(errors=errors)
    if names != [one.name for one in fields]:  # the tables changed in between
        raise WireFailure(
            "0A000", "the columns of the answer have changed",
            hint="Ask again: what was charged is not charged again.",
        )  # fmt: skip
    rows = await asyncio.to_thread(_rows, result, names, errors=errors)
    notices: tuple[dict[str, str], ...] = ()
    if is_switched_on(own, "notices", default=True):
        notices = tuple(wire_notice(text) for text in _words(result, session.dataset))
    return Outcome(tag=f"SELECT {len(rows)}", fields=fields, rows=rows, notices=notices)


def _rows(result: Result, names: Sequence[str], *, errors: bool) -> list[list[Any]]:
    found: list[dict[str, Any]] = result.to_dicts(errors=errors)
    return [[row[name] for name in names] for row in found]


def _words(result: Result, dataset: str) -> list[str]:
    """Say what an answer cost, what is left, and what else there is to know of it."""
    price = f"epsilon={result.epsilon:.4g}"
    if result.delta:
        price += f", delta={result.delta:.3g}"
    if result.is_recalled:
        told = f"Asked before, so free now: the answer is the one given then, for {price}."
    else:
        told = f"Price: {price}"
        if result.share is not None:
            told += f", {percent(result.share, up=True)} of the budget of {dataset!r}"
        told += "."
    left = f" Left: {percent(result.left, up=False)}"
    if result.more is not None and not result.is_recalled:
        left += f", about {result.more:.0f} more like it"
    return [f"{told}{left}.", *result.notes]


async def _from_catalogue(asked: AskedQuestion, session: SessionState) -> Outcome:
    assert asked.tree is not None
    names = empty_columns(asked.tree)
    if names is not None:
        none = tuple(OutputField(name, TEXT) for name in names)
        return Outcome(tag="SELECT 0", fields=none)
    settings = {name.lower(): value for name, value in session.variables.all().items()}
    tree = asked.tree
    sql = await asyncio.to_thread(lambda: rewritten(tree, facts=session.facts, settings=settings))
    columns, rows = await session.clerk.ask(await session.metadata(), sql)
    titles = column_titles(tree) or [name for name, _ in columns]
    fields = tuple(
        OutputField(title, answer_type(type_))
        for title, (_, type_) in zip(titles, columns, strict=True)
    )
    return Outcome(tag=f"SELECT {len(rows)}", fields=fields, rows=rows)
