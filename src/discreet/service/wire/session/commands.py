"""Statements that ask for nothing: settings, transactions, and what is refused here."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from discreet._words import percent
from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.session.outcome import (
    Outcome,
    OutputField,
    rows_of_text,
    wire_notice,
)
from discreet.service.wire.session.state import SessionState
from discreet.service.wire.session.statements import ClientStatement
from discreet.service.wire.session.variables import REPORTED
from discreet.service.wire.values.types import TEXT

__all__ = ["COMMANDS", "ENDING", "command_fields", "refused_statement", "run_command"]

Command = Callable[[ClientStatement, SessionState], Awaitable[Outcome]]
ENDING: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_WRITING: Final = frozenset({
    "ALTER", "ANALYZE", "ATTACH", "CALL", "CHECKPOINT", "CLUSTER", "COMMENT", "COPY", "CREATE",
    "DELETE", "DETACH", "DO", "DROP", "EXPORT", "GRANT", "IMPORT", "INSERT", "INSTALL", "LOAD",
    "LOCK", "MERGE", "NOTIFY", "PRAGMA", "REASSIGN", "REFRESH", "REINDEX", "REVOKE", "SECURITY",
    "TRUNCATE", "UPDATE", "USE", "VACUUM",
})  # fmt: skip
_WARNING: Final = "WARNING"


async def run_command(statement: ClientStatement, session: SessionState) -> Outcome:
    """Run a statement that is no question."""
    run = COMMANDS.get(statement.first)
    if run is None:
        raise refused_statement(statement)
    before = _reported(session)
    outcome = await run(statement, session)
    # Whatever changed them: SET, RESET, or the end of a transaction that had.
    changed = tuple(one for one in _reported(session) if one not in before)
    return replace(outcome, changed=changed)


def refused_statement(statement: ClientStatement) -> WireFailure:
    """Return why a statement is not run: it would write, or it is none.

    >>> from discreet.service.wire.session.statements import cut
    >>> refused_statement(cut("DROP TABLE people")[0]).code
    '25006'
    """
    word = statement.first[:40]
    if word in _WRITING:
        return WireFailure(
            "25006", f"{word} is not run: data can only be asked here",
            hint="Ask one SELECT that aggregates. Nothing was spent.",
        )  # fmt: skip
    if word in ("PREPARE", "EXECUTE", "DECLARE", "FETCH", "MOVE", "LISTEN"):
        return WireFailure(
            "0A000", f"{word} is not supported",
            hint="Send the SELECT itself; drivers prepare statements by the protocol.",
        )  # fmt: skip
    return WireFailure("42601", f"{word!r} begins no statement that is known here", position=1)


def command_fields(statement: ClientStatement, session: SessionState) -> list[OutputField] | None:
    """Return the columns that a command answers with, None for most."""
    if statement.first != "SHOW":
        return None
    if statement.words[1:] == ["ALL"]:
        return [OutputField(name, TEXT) for name in ("name", "setting", "description")]
    return [OutputField(_shown_name(statement, session), TEXT)]


async def _set(statement: ClientStatement, session: SessionState) -> Outcome:
    tokens = list(statement.tokens[1:])
    is_local = bool(tokens) and tokens[0].text.upper() == "LOCAL"
    if is_local or (tokens and tokens[0].text.upper() == "SESSION"):
        del tokens[0]
    words = [token.text.upper() for token in tokens]
    if words[:1] == ["TRANSACTION"] or words[:2] == ["CHARACTERISTICS", "AS"]:
        return Outcome(tag="SET")
    if words[:1] in (["ROLE"], ["AUTHORIZATION"]):
        if words[1:] in (["NONE"], ["DEFAULT"]):
            return Outcome(tag="SET")
        raise WireFailure("42501", "who asks is who logged in", hint="Connect as somebody else.")
    if words[:2] == ["TIME", "ZONE"]:
        name, rest = "TimeZone", tokens[2:]
    elif words[:1] == ["NAMES"]:
        name, rest = "client_encoding", tokens[1:]
    else:
        name, rest = _name(tokens)
        if not rest or rest[0].text.upper() not in ("=", "TO"):
            raise WireFailure("42601", "write SET name = value", hint="SET discreet.epsilon = 0.1")
        rest = rest[1:]
    if not rest:
        raise WireFailure("42601", "the value is missing", hint="SET discreet.epsilon = 0.1")
    notices: tuple[dict[str, str], ...] = ()
    if is_local and session.status == "I":
        told = "SET LOCAL can only be used in transaction blocks"
        notices = (wire_notice(told, code="25P01", severity=_WARNING),)
    if len(rest) == 1 and rest[0].text.upper() == "DEFAULT":
        session.variables.reset(name)
    else:
        session.variables.set(name, _value(rest), is_local=is_local)
    return Outcome(tag="SET", notices=notices)


async def _reset(statement: ClientStatement, session: SessionState) -> Outcome:
    words = statement.words[1:]
    if words == ["ALL"]:
        session.variables.reset()
        return Outcome(tag="RESET")
    if words in (["ROLE"], ["SESSION", "AUTHORIZATION"]):
        return Outcome(tag="RESET")
    name = "TimeZone" if words == ["TIME", "ZONE"] else _whole_name(statement)
    session.variables.reset(name)
    return Outcome(tag="RESET")


async def _show(statement: ClientStatement, session: SessionState) -> Outcome:
    if statement.words[1:] == ["ALL"]:
        fields = command_fields(statement, session)
        rows = [(name, value, "") for name, value in session.variables.all().items()]
        return Outcome(tag="SHOW", fields=tuple(fields or ()), rows=rows)
    name = _shown_name(statement, session)
    if name == "discreet.remaining":
        value = percent(await session.remaining(), up=False)
    else:
        value = session.variables[name]
    return rows_of_text(name, [value], tag="SHOW")


def _shown_name(statement: ClientStatement, session: SessionState) -> str:
    words = statement.words[1:]
    if words == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        return "transaction_isolation"
    if words == ["TIME", "ZONE"]:
        return "TimeZone"
    if words == ["SESSION", "AUTHORIZATION"]:
        return "session_authorization"
    return session.variables.spelled(_whole_name(statement))


async def _begin(statement: ClientStatement, session: SessionState) -> Outcome:
    if statement.first == "START" and statement.words[1:2] != ["TRANSACTION"]:
        raise refused_statement(statement)
    tag = "BEGIN" if statement.first == "BEGIN" else "START TRANSACTION"
    if session.status != "I":
        told = wire_notice(
            "there is already a transaction in progress", code="25001", severity=_WARNING
        )
        return Outcome(tag=tag, notices=(told,))
    session.status = "T"
    session.variables.begin()
    return Outcome(tag=tag)


async def _end(statement: ClientStatement, session: SessionState) -> Outcome:
    words = statement.words
    if words[1:2] == ["PREPARED"]:
        raise WireFailure("0A000", "transactions in two phases are not supported")
    if "TO" in words:
        return _return_to(statement, session)
    is_kept = statement.first in ("COMMIT", "END") and session.status != "E"
    notices: tuple[dict[str, str], ...] = ()
    if session.status == "I":
        told = "there is no transaction in progress"
        notices = (wire_notice(told, code="25P01", severity=_WARNING),)
    session.variables.end(is_kept=is_kept)
    session.status = "I"
    return Outcome(tag="COMMIT" if is_kept else "ROLLBACK", notices=notices)


def _return_to(statement: ClientStatement, session: SessionState) -> Outcome:
    if session.status == "I":
        raise WireFailure("25P01", "savepoints can only be used in transaction blocks")
    session.variables.return_to(statement.tokens[-1].text, is_released=False)
    session.status = "T"
    return Outcome(tag="ROLLBACK")


async def _savepoint(statement: ClientStatement, session: SessionState) -> Outcome:
    if session.status == "I":
        raise WireFailure("25P01", "savepoints can only be used in transaction blocks")
    if len(statement.tokens) < 2:
        raise WireFailure("42601", "a savepoint has a name")
    name = statement.tokens[-1].text
    if statement.first == "SAVEPOINT":
        session.variables.mark(name)
        return Outcome(tag="SAVEPOINT")
    session.variables.return_to(name, is_released=True)
    return Outcome(tag="RELEASE")


async def _discard(statement: ClientStatement, session: SessionState) -> Outcome:
    if statement.words[1:] != ["ALL"]:
        return Outcome(tag=" ".join(statement.words[:2]))
    if session.status != "I":
        raise WireFailure("25001", "DISCARD ALL cannot run inside a transaction block")
    session.variables.reset()
    return Outcome(tag="DISCARD ALL")


async def _close(statement: ClientStatement, _: SessionState) -> Outcome:
    if statement.words[1:] != ["ALL"]:
        raise WireFailure("34000", "there is no such cursor")
    return Outcome(tag="CLOSE CURSOR ALL")


async def _unlisten(*_: object) -> Outcome:
    return Outcome(tag="UNLISTEN")


def _name(tokens: list[Token]) -> tuple[str, list[Token]]:
    """Split a dotted name off."""
    if not tokens:
        raise WireFailure("42601", "the name of a setting is missing")
    end = 1
    while end + 1 < len(tokens) and tokens[end].token_type == TokenType.DOT:
        end += 2
    return "".join(token.text for token in tokens[:end]), tokens[end:]


def _whole_name(statement: ClientStatement) -> str:
    name, rest = _name(list(statement.tokens[1:]))
    if rest:
        raise WireFailure("42601", "more follows the name of a setting than can be understood")
    return name


def _value(tokens: list[Token]) -> str:
    """Return a value as text: words that were quoted as they are, lists with commas."""
    return "".join(", " if t.token_type == TokenType.COMMA else t.text for t in tokens)


def _reported(session: SessionState) -> list[tuple[str, str]]:
    """Return the settings that clients keep track of."""
    return [(name, session.variables[name]) for name in REPORTED]


COMMANDS: Final[dict[str, Command]] = {
    "SET": _set,
    "RESET": _reset,
    "SHOW": _show,
    "BEGIN": _begin,
    "START": _begin,
    **dict.fromkeys(ENDING, _end),
    "SAVEPOINT": _savepoint,
    "RELEASE": _savepoint,
    "DISCARD": _discard,
    "CLOSE": _close,
    "UNLISTEN": _unlisten,
}
"""What each first word does; DEALLOCATE is the business of prepared statements."""
