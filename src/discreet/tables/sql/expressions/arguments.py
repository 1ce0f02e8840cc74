"""What the rules for single kinds of expression share."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sqlglot import exp

from discreet.tables.sql.expressions.term import (
    Kind,
    Scope,
    Term,
)
from discreet.tables.sql.question.context import shown

__all__ = ["Rule", "is_tidy", "need", "whole_literal", "written_text"]

Rule = Callable[[exp.Expression, Scope], Term]

_LONGEST: Final = 2**31
_CASTS: Final = {"number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE"}


def need(scope: Scope, node: exp.Expression, *kinds: Kind, word: str) -> Term:
    """Translate an argument that must be of one of these kinds."""
    term = scope.term(node)
    if term.kind == "null":  # functions with several forms want to know which NULL
        wanted = _CASTS.get(kinds[0], "TIMESTAMP")
        return replace(term, sql=f"CAST(NULL AS {wanted})", kind=kinds[0], type=wanted)
    if term.kind not in kinds:
        raise scope.question.refuse(
            "type",
            node,
            word=word,
            wanted=" or ".join(kinds),
            argument=shown(node),
            kind=term.kind,
            cast=_CASTS.get(kinds[0], "TIMESTAMP"),
        )
    return term


def is_tidy(term: Term) -> bool:
    """Whether a term is known to have no NaN, as a DOUBLE too."""
    return term.is_tidy or term.is_literal or term.type != "DOUBLE"


def whole_literal(node: exp.Expression, scope: Scope, *, word: str, example: str) -> int:
    """Return a whole number that must be written out."""
    term = scope.term(node)
    value = term.interval[0] if term.is_literal and term.kind == "number" else None
    if value is None or value.denominator != 1 or abs(value) >= _LONGEST:
        raise scope.question.refuse(
            "literal", node, word=f"an argument of {word}", what="a whole number", example=example
        )
    return value.numerator


def written_text(node: exp.Expression, scope: Scope, *, word: str) -> str:
    """Return the SQL of a text that must be written out."""
    term = scope.term(node)
    if term.kind != "text" or not term.is_literal:
        raise scope.question.refuse(
            "literal", node, word=f"an argument of {word}", what="a text", example="'north%'"
        )
    return term.sql
