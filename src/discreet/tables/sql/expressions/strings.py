"""Functions of texts."""

from fractions import Fraction
from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import Call, Function, Literal
from discreet.tables.sql.expressions.arguments import Rule, need, whole_literal, written_text
from discreet.tables.sql.expressions.logic import conjuncts
from discreet.tables.sql.expressions.term import Scope, Term, boolean, text

__all__ = ["ANONYMOUS", "RULES"]

_WORDS: Final[dict[type[exp.Expression], Function]] = {
    exp.Substring: "substring",
    exp.Left: "left",
    exp.Right: "right",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
}


def _case(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    word: Function = "lower" if isinstance(node, exp.Lower) else "upper"
    term = need(scope, node.this, "text", word=word.upper())
    return text(Call(word, (term.node,)), is_nullable=term.is_nullable)


def _trim(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "position", "expression")
    position = str(node.args.get("position") or "BOTH").upper()
    words: dict[str, Function] = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    word = words[position]
    term = need(scope, node.this, "text", word=word.upper())
    if node.args.get("expression") is None:
        return text(Call(word, (term.node,)), is_nullable=term.is_nullable)
    what = written_text(node.expression, scope, word=word.upper())
    return text(Call(word, (term.node, what)), is_nullable=term.is_nullable)


def _length(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "text", word="LENGTH")
    return Term(
        node=Call("length", (term.node,)),
        kind="number",
        type="int64",
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
    places = [whole_literal(n, scope, word=word.upper(), example=example) for n in numbers]
    found = Call(word, (term.node, *(Literal(place, "int32") for place in places)))
    return text(found, is_nullable=term.is_nullable)


def _concat(node: exp.Expression, scope: Scope) -> Term:
    if isinstance(node, exp.DPipe):
        parts = conjuncts(node, exp.DPipe)
        for part in node.find_all(exp.DPipe):
            scope.question.arguments(part, "this", "expression", "safe")
        terms = [need(scope, part, "text", word="||") for part in parts]
        return _grown("concat", terms)
    scope.question.arguments(node, "expressions", "safe", "coalesce")
    terms = [need(scope, part, "text", word="CONCAT") for part in node.expressions]
    return _grown("concat_present", terms)


def _grown(function: Function, terms: list[Term]) -> Term:
    """Return texts put together, NULL where the whole would be too long."""
    # Where all of them are written out it cannot be, and a question is short.
    is_nullable = any(term.is_nullable or not term.is_literal for term in terms)
    return text(Call(function, tuple(term.node for term in terms)), is_nullable=is_nullable)


def _replace(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "replacement")
    if node.args.get("replacement") is None:
        example = "REPLACE(x, 'a', 'b')"
        raise scope.question.refuse("arguments", node, word="REPLACE", example=example)
    term = need(scope, node.this, "text", word="REPLACE")
    parts = (node.expression, node.args["replacement"])
    old, new = (written_text(part, scope, word="REPLACE") for part in parts)
    # It does not grow otherwise; nothing is found where '' is looked for.
    grows = 0 < len(str(old.value)) < len(str(new.value))
    return text(Call("replace", (term.node, old, new)), is_nullable=term.is_nullable or grows)


def _contains(node: exp.Expression, scope: Scope) -> Term:
    if isinstance(node, exp.Anonymous):
        word, parts = str(node.this).lower(), list(node.expressions)
        function: Function = "starts_with" if word == "prefix" else "ends_with"
    else:
        function = _WORDS[type(node)]
        word = "suffix" if function == "ends_with" else function
        scope.question.arguments(node, "this", "expression", "json_scope")
        parts = [part for part in (node.this, node.args.get("expression")) if part is not None]
    if len(parts) != 2:
        raise scope.question.refuse(
            "arguments", node, word=word.upper(), example=f"{word.upper()}(x, 'a')"
        )
    terms = [need(scope, part, "text", word=word.upper()) for part in parts]
    found = Call(function, (terms[0].node, terms[1].node))
    return boolean(found, is_nullable=any(t.is_nullable for t in terms))


def _like(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "negate")
    function: Function = "like" if isinstance(node, exp.Like) else "ilike"
    term = need(scope, node.this, "text", word=function.upper())
    pattern = written_text(node.expression, scope, word=function.upper())
    found = Call(function, (term.node, pattern))
    if node.args.get("negate"):
        found = Call("not", (found,))
    return boolean(found, is_nullable=term.is_nullable)


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
