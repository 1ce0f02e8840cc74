"""The text of a client, cut into statements, and what each of them begins with."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from discreet._parsing import LimitedSteps
from discreet.service.wire.protocol.failures import WireFailure
from discreet.service.wire.settings import LONGEST_STATEMENT

__all__ = ["READING", "ClientStatement", "cut", "parsed", "without_public"]

READING: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})
_MOST_TOKENS: Final = 10_000
_DEEPEST: Final = 200  # brackets in brackets
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_PARAMETER: Final = re.compile(
    r"""(?:[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'?  # what is quoted, to the end if it has none
    |'[^']*(?:''[^']*)*'?
    |"[^"]*"?
    |--[^\n]*
    |/\*.*?(?:\*/|\Z)
    |\$([A-Za-z_]\w*|)\$.*?(?:\$\1\$|\Z)
    |[A-Za-z_][\w$]*)
    |(\$\d+)(?!\s)""",
    re.VERBOSE | re.DOTALL,
)


class _Words(Postgres):
    """PostgreSQL's words, where also SHOW, EXPLAIN and their like are followed by words."""

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


class _LimitedPostgres(Postgres):
    class Parser(LimitedSteps, PostgresParser):
        """Reads no text for longer than its length allows."""


class _LimitedDuckDB(DuckDB):
    class Parser(LimitedSteps, DuckDBParser):
        """Reads no text for longer than its length allows."""


_DIALECTS: Final = {"postgres": _LimitedPostgres, "duckdb": _LimitedDuckDB}


@final
@dataclass(frozen=True, slots=True)
class ClientStatement:
    """One statement: its text, its words, and where it stood in what the client sent."""

    text: str
    tokens: tuple[Token, ...]
    offset: int = 0

    @property
    def words(self) -> list[str]:
        """The words in upper case, each keyword by itself.

        >>> cut("start transaction read only")[0].words
        ['START', 'TRANSACTION', 'READ', 'ONLY']
        """
        return [word for token in self.tokens for word in token.text.upper().split()]

    @property
    def first(self) -> str:
        """The first word, brackets aside."""
        found = (t for t in self.tokens if t.token_type not in _OPENING)
        return next((token.text.upper().split()[0] for token in found if token.text.strip()), "")

    @property
    def is_question(self) -> bool:
        """Whether it asks for something."""
        return self.first in READING

    def after(self, words: int) -> "ClientStatement":
        """Return what follows some tokens at the beginning."""
        start = self.tokens[words].start if len(self.tokens) > words else len(self.text)
        return replace(cut(self.text[start:], single=True)[0], offset=self.offset + start)

    @property
    def parameters(self) -> int:
        """How many parameters it has: the highest number after a dollar.

        >>> cut("SELECT $2 + $1")[0].parameters
        2
        """
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        found = [
            int(after.text)
            for token, after in pairs
            if token.token_type == TokenType.PARAMETER and after.text.isdecimal()
        ]
        if any(len(str(number)) > 5 for number in found):
            raise WireFailure("42601", "there is no parameter of such a number")
        return max(found, default=0)


def cut(text: str, *, single: bool = False) -> list[ClientStatement]:
    """Cut a text at its semicolons; nothing between two of them is nothing.

    >>> [one.text for one in cut("SELECT ';'; BEGIN;")]
    ["SELECT ';'", ' BEGIN']
    """
    if len(text) > LONGEST_STATEMENT:
        raise WireFailure("54000", f"statements may have {LONGEST_STATEMENT} characters at most")
    text = _spaced(text)
    tokens = _tokens(text)
    found: list[ClientStatement] = []
    start, held, depth = 0, list[Token](), 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append(_statement(text, start, token.start, held))
            start, held = token.end + 1, []
            continue
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > _DEEPEST:
            raise WireFailure("54001", "the statement is too deeply nested")
        held.append(token)
    found.append(_statement(text, start, len(text), held))
    said = [one for one in found if one.tokens]
    if single and len(said) > 1:
        raise WireFailure("42601", "a prepared statement can only be one statement")
    return said if said or not single else [ClientStatement("", ())]


def _spaced(text: str) -> str:
    """Put a blank behind each parameter: the parser takes $1,$ for the beginning of a quote."""
    if "$" not in text:
        return text
    return _PARAMETER.sub(lambda found: f"{found[2]} " if found[2] else found[0], text)


def _statement(text: str, start: int, end: int, held: list[Token]) -> ClientStatement:
    if start == 0:
        return ClientStatement(text[:end], tuple(held))
    own = text[start:end]
    return ClientStatement(own, tuple(_tokens(own)), offset=start)


def _tokens(text: str) -> list[Token]:
    try:
        found = sqlglot.tokenize(text, read=_Words)
    except (SqlglotError, ValueError, IndexError, RecursionError):
        raise WireFailure(
            "42601",
            "this is not SQL that can be read",
            hint="A quote may be open. Nothing was spent.",
        ) from None
    if len(found) > _MOST_TOKENS:
        raise WireFailure("54000", f"statements may have {_MOST_TOKENS} words at most")
    return found


def without_public(statement: ClientStatement, dataset: str) -> str:
    """Return the text with names such as public.people made plain: there is one schema.

    Blanks take their place, so that errors name the place that the client knows.

    >>> without_public(cut('SELECT COUNT(*) FROM public.people')[0], "d")
    'SELECT COUNT(*) FROM        people'
    """
    text, tokens = statement.text, statement.tokens
    names = (TokenType.VAR, TokenType.IDENTIFIER)
    for token, dot, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_schema = token.text in ("public", dataset) and token.token_type in names
        if is_schema and dot.token_type == TokenType.DOT and after.token_type in names:
            if token.text == dataset and after.text != "public":
                continue
            blank = " " * (dot.end + 1 - token.start)
            text = text[: token.start] + blank + text[dot.end + 1 :]
    return text


def parsed(text: str, dialect: str) -> exp.Expr | None:
    """Return the tree of one statement, None where the dialect does not know it."""
    try:
        trees = sqlglot.parse(text, read=_DIALECTS[dialect])
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return None
    except RecursionError:
        raise WireFailure("54001", "the statement is too deeply nested") from None
    tree = trees[0] if len(trees) == 1 else None
    return tree if isinstance(tree, exp.Expr) else None
