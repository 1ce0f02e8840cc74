"""Functions of texts."""

from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables.sql.expressions.arguments import Rule, need, whole_literal, written_text
from discreet.tables.sql.expressions.operators import conjuncts
from discreet.tables.sql.expressions.term import (
    Scope,
    Term,
    boolean,
    text,
)

__all__ = ["ANONYMOUS", "RULES"]

# Characters of a text that a question makes. Without a limit a few nested calls could make the
# text of one row larger than memory, and the failure would tell that there is such a row.
_LONGEST: Final = 10_000
_WORDS: Final[dict[type[exp.Expression], str]] = {
    exp.Substring: "substring",
    exp.Left: "left",
    exp.Right: "right",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "suffix",
    exp.Contains: "contains",
}


def _case(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    word = "lower" if isinstance(node, exp.Lower) else "upper"
    term = need(scope, node.this, "text", word=word.upper())
    return text(f"{word}({term.sql})", is_nullable=term.is_nullable)


def _trim(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "position", "expression")
    position = str(node.args.get("position") or "BOTH").upper()
    word = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    term = need(scope, node.this, "text", word=word.upper())
    if node.args.get("expression") is None:
        return text(f"{word}({term.sql})", is_nullable=term.is_nullable)
    what = written_text(node.expression, scope, word=word.upper())
    return text(f"{word}({term.sql}, {what})", is_nullable=term.is_nullable)


def _length(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "text", word="LENGTH")
    return Term(
        sql=f"length({term.sql})",
        kind="number",
        type="BIGINT",
        interval=(Fraction(0), None),
        is_whole=True,
        is_nullable=term.is_nullable,
    )


def _part(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "start", "length")
    word = _WORDS[type(node)]
    example = f"{word.upper()}(x, 3)"
    term = need(scope, node.this, "text", word=word.upper())
    numbers = [node.args[k] for k in ("start", "length", "expression") if node.args.get(k)]
    if not numbers:
        raise scope.question.refuse("arguments", node, word=word.upper(), example=example)
    shares = [str(whole_literal(n, scope, word=word.upper(), example=example)) for n in numbers]
    return text(f"{word}({term.sql}, {', '.join(shares)})", is_nullable=term.is_nullable)


def _concat(node: exp.Expression, scope: Scope) -> Term:
    if isinstance(node, exp.DPipe):
        parts = conjuncts(node, exp.DPipe)
        for part in node.find_all(exp.DPipe):
            scope.question.arguments(part, "this", "expression", "safe")
        terms = [need(scope, part, "text", word="||") for part in parts]
        lengths = [f"length({term.sql})" for term in terms if not term.is_literal]
        return _grown(terms, lengths, f"({' || '.join(t.sql for t in terms)})")
    scope.question.arguments(node, "expressions", "safe", "coalesce")
    terms = [need(scope, part, "text", word="CONCAT") for part in node.expressions]
    lengths = [f"coalesce(length({term.sql}), 0)" for term in terms if not term.is_literal]
    return _grown(terms, lengths, f"concat({', '.join(t.sql for t in terms)})")


def _grown(terms: list[Term], lengths: list[str], sql: str) -> Term:
    """Return texts put together, NULL where the whole would be too long."""
    if not lengths:  # all of them are written out, and a question is short
        return text(sql, is_nullable=any(term.is_nullable for term in terms))
    known = sum(_written(term) for term in terms)
    return text(f"CASE WHEN {' + '.join(lengths)} <= {_LONGEST - known} THEN {sql} END")


def _written(term: Term) -> int:
    """Return the length of a text that is written out, 0 for others."""
    return sum(len(str(value)) for value in term.values or () if term.is_literal and value)


def _replace(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "replacement")
    if node.args.get("replacement") is None:
        example = "REPLACE(x, 'a', 'b')"
        raise scope.question.refuse("arguments", node, word="REPLACE", example=example)
    term = need(scope, node.this, "text", word="REPLACE")
    parts = (node.expression, node.args["replacement"])
    old, new = (written_text(part, scope, word="REPLACE") for part in parts)
    sql = f"replace({term.sql}, {old}, {new})"
    before, after = (_written(scope.term(part)) for part in parts)
    if not 0 < before < after:  # then it does not grow; nothing is found where '' is looked for
        return text(sql, is_nullable=term.is_nullable)
    return text(f"CASE WHEN length({term.sql}) * {after} <= {_LONGEST * before} THEN {sql} END")


def _contains(node: exp.Expression, scope: Scope) -> Term:
    word = _WORDS.get(type(node)) or str(node.this).lower()
    if isinstance(node, exp.Anonymous):
        parts = list(node.expressions)
    else:
        scope.question.arguments(node, "this", "expression", "json_scope")
        parts = [part for part in (node.this, node.args.get("expression")) if part is not None]
    if len(parts) != 2:
        raise scope.question.refuse(
            "arguments", node, word=word.upper(), example=f"{word.upper()}(x, 'a')"
        )
    terms = [need(scope, part, "text", word=word.upper()) for part in parts]
    return boolean(
        f"{word}({terms[0].sql}, {terms[1].sql})", is_nullable=any(t.is_nullable for t in terms)
    )


def _like(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "negate")
    word = "LIKE" if isinstance(node, exp.Like) else "ILIKE"
    term = need(scope, node.this, "text", word=word)
    pattern = written_text(node.expression, scope, word=word)
    sql = f"({term.sql} {word} {pattern})"
    if node.args.get("negate"):
        sql = f"(NOT {sql})"
    return boolean(sql, is_nullable=term.is_nullable)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Lower: _case,
    exp.Upper: _case,
    exp.Trim: _trim,
    exp.Length: _length,
    exp.Substring: _part,
    exp.Left: _part,
    exp.Right: _part,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.Replace: _replace,
    exp.StartsWith: _contains,
    exp.EndsWith: _contains,
    exp.Contains: _contains,
    exp.Like: _like,
    exp.ILike: _like,
}
ANONYMOUS: Final[dict[str, Rule]] = {  # functions that the parser does not know, by name
    "prefix": _contains,
    "suffix": _contains,
}
