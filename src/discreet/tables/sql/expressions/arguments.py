"""What the rules for single kinds of expression share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import Literal
from discreet.tables.model.types import SQL_NAMES, Kind, Type
from discreet.tables.sql.expressions.literals import as_kind
from discreet.tables.sql.expressions.term import Scope, Term
from discreet.tables.sql.question.context import short_sql

__all__ = ["Rule", "is_tidy", "need", "whole_literal", "written_text"]

Rule = Callable[[exp.Expression, Scope], Term]

_LONGEST: Final = 2**31
_TYPES: Final[dict[str, Type]] = {
    "number": "double", "text": "text", "boolean": "boolean", "date": "date",
}  # fmt: skip


def need(scope: Scope, node: exp.Expression, *kinds: Kind, word: str) -> Term:
    """Translate an argument that must be of one of these kinds."""
    term = scope.term(node)
    wanted = _TYPES.get(kinds[0], "timestamp")
    if term.kind == "null":  # functions with several forms want to know which NULL
        return replace(term, node=Literal(None, wanted), kind=kinds[0], type=wanted)
    if term.kind == "text" and term.is_literal and "text" not in kinds:
        term = next((made for kind in kinds if (made := as_kind(term, kind))), term)
    if term.kind not in kinds:
        raise scope.question.refuse(
            "type",
            node,
            word=word,
            wanted=" or ".join(kinds),
            argument=short_sql(node),
            kind=term.kind,
            cast=SQL_NAMES[wanted],
        )
    return term


def is_tidy(term: Term) -> bool:
    """Whether a term is known to have no NaN, as a double too."""
    return term.is_tidy or term.is_literal or term.type != "double"


def whole_literal(node: exp.Expression, scope: Scope, *, word: str, example: str) -> int:
    """Return a whole number that must be written out."""
    term = scope.term(node)
    value = term.interval[0] if term.is_literal and term.kind == "number" else None
    if value is None or value.denominator != 1 or abs(value) >= _LONGEST:
        raise scope.question.refuse(
            "literal", node, word=f"an argument of {word}", what="a whole number", example=example
        )
    return value.numerator


def written_text(node: exp.Expression, scope: Scope, *, word: str) -> Literal:
    """Return a text that must be written out."""
    term = scope.term(node)
    if term.kind != "text" or not isinstance(term.node, Literal):
        raise scope.question.refuse(
            "literal", node, word=f"an argument of {word}", what="a text", example="'north%'"
        )
    return term.node
