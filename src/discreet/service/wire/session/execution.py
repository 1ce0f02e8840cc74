"""Runs one statement, whatever kind it is of, and describes it without running it."""

import asyncio
from collections.abc import Sequence

from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.answering import answered, columns_of_question, explained
from discreet.service.wire.session.commands import ENDING, command_fields, run_command
from discreet.service.wire.session.outcome import Outcome, OutputField
from discreet.service.wire.session.questions import AskedQuestion, asked_question
from discreet.service.wire.session.state import SessionState
from discreet.service.wire.session.statements import ClientStatement
from discreet.service.wire.values.types import TEXT

__all__ = ["asked_of", "check_transaction", "execute", "fields_of", "questioned"]


def questioned(statement: ClientStatement) -> ClientStatement | None:
    """Return the question of a statement, also that which EXPLAIN is about; None where is none.

    >>> from discreet.service.wire.session.statements import cut
    >>> questioned(cut("EXPLAIN (COSTS off) SELECT 1")[0]).text
    'SELECT 1'
    """
    if statement.is_question:
        return statement
    if statement.first != "EXPLAIN":
        return None
    skipped = 1
    words = [token.text.upper() for token in statement.tokens]
    if words[1:2] == ["("]:
        end = words.index(")") if ")" in words else len(words)
        options, skipped = words[2:end], end + 1
    else:
        options = []
        while words[skipped : skipped + 1] in (["ANALYZE"], ["VERBOSE"]):
            options.append(words[skipped])
            skipped += 1
    if "ANALYZE" in options or ("FORMAT" in options and "TEXT" not in options):
        raise WireFailure(
            "0A000", "EXPLAIN tells the price of a question as text, and does not run it",
            hint="Write EXPLAIN SELECT ...",
        )  # fmt: skip
    inner = statement.after(skipped)
    if not inner.is_question:
        raise WireFailure("42601", "EXPLAIN is for questions", hint="Write EXPLAIN SELECT ...")
    return inner


async def asked_of(
    statement: ClientStatement, values: Sequence[object], session: SessionState
) -> AskedQuestion | None:
    """Return what a statement asks, with values for its parameters; None where it asks nothing."""
    inner = questioned(statement)
    if inner is None:
        return None
    return await asyncio.to_thread(asked_question, inner, values, session.dataset)  # type: ignore[arg-type]


def check_transaction(statement: ClientStatement, session: SessionState) -> None:
    """Refuse everything but the end, in a transaction that failed."""
    if session.status == "E" and statement.first not in ENDING:
        raise WireFailure(
            "25P02",
            "current transaction is aborted, commands ignored until end of transaction block",
        )


async def execute(
    statement: ClientStatement,
    asked: AskedQuestion | None,
    session: SessionState,
    fields: tuple[OutputField, ...] | None = None,
) -> Outcome:
    """Run one statement, of which the columns may be known already."""
    check_transaction(statement, session)
    if asked is None:
        return await run_command(statement, session)
    if statement.first == "EXPLAIN":
        return await explained(asked, session)
    return await answered(asked, session, fields)


async def fields_of(
    statement: ClientStatement, asked: AskedQuestion | None, session: SessionState
) -> tuple[OutputField, ...] | None:
    """Return the columns of a statement without running it; None where it has no rows."""
    if statement.first == "EXPLAIN":
        return (OutputField("QUERY PLAN", TEXT),)
    if asked is None:
        found = command_fields(statement, session)
        return None if found is None else tuple(found)
    return await columns_of_question(asked, session)
