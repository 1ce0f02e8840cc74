"""Functions of texts."""

import re
from fractions import Fraction
from functools import reduce
from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import LONGEST_TEXT, Call, Function, Literal
from discreet.tables.sql.expressions.arguments import Rule, need, whole_literal, written_text
from discreet.tables.sql.expressions.casts import cast
from discreet.tables.sql.expressions.logic import conjuncts
from discreet.tables.sql.expressions.rewrites import rewritten
from discreet.tables.sql.expressions.term import Scope, Term, boolean, text
from discreet.tables.sql.question.context import short_sql

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
    between = node.args.get("expression")
    if between is not None and "start" not in between.meta:  # by the parser, to INITCAP(x)
        node.set("expression", None)
    scope.question.arguments(node, "this")
    words: dict[type[exp.Expression], Function] = {exp.Lower: "lower", exp.Upper: "upper"}
    word = words.get(type(node), "initcap")
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
    return _counted("length", [need(scope, node.this, "text", word="LENGTH")])


def _place(node: exp.Expression, scope: Scope) -> Term:
    """Translate POSITION('a' IN x), STRPOS(x, 'a') and the like."""
    scope.question.arguments(node, "this", "substr")
    terms = [need(scope, node.args[key], "text", word="POSITION") for key in ("this", "substr")]
    return _counted("position", terms)


def _bytes(node: exp.Expression, scope: Scope) -> Term:
    if len(node.expressions) != 1:
        raise scope.question.refuse("arguments", node, word="STRLEN", example="STRLEN(x)")
    return _counted("byte_length", [need(scope, node.expressions[0], "text", word="STRLEN")])


def _counted(function: Function, terms: list[Term]) -> Term:
    return Term(
        node=Call(function, tuple(term.node for term in terms)),
        kind="number",
        type="int64",
        interval=(Fraction(0), None),
        is_whole=True,
        is_nullable=any(term.is_nullable for term in terms),
    )


def _split(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "delimiter", "part_index")
    example = "SPLIT_PART(x, '-', 1)"
    if node.args.get("delimiter") is None or node.args.get("part_index") is None:
        raise scope.question.refuse("arguments", node, word="SPLIT_PART", example=example)
    term = need(scope, node.this, "text", word="SPLIT_PART")
    between = written_text(node.args["delimiter"], scope, word="SPLIT_PART")
    place = whole_literal(node.args["part_index"], scope, word="SPLIT_PART", example=example)
    if not place or not between.value:
        raise scope.question.refuse("arguments", node, word="SPLIT_PART", example=example)
    found = Call("split_part", (term.node, between, Literal(place, "int32")))
    return text(found, is_nullable=term.is_nullable)


def _pad(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this", "expression", "fill_pattern", "is_left")
    function: Function = "pad_left" if node.args.get("is_left") else "pad_right"
    word = "LPAD" if node.args.get("is_left") else "RPAD"
    example = f"{word}(x, 5, '0')"
    term = need(scope, node.this, "text", word=word)
    width = whole_literal(node.expression, scope, word=word, example=example)
    fill = Literal(" ", "text")
    if node.args.get("fill_pattern") is not None:
        fill = written_text(node.args["fill_pattern"], scope, word=word)
    if not 0 <= width <= LONGEST_TEXT or not fill.value:
        raise scope.question.refuse("arguments", node, word=word, example=example)
    made = Call(function, (term.node, Literal(width, "int32"), fill))
    return text(made, is_nullable=term.is_nullable)


def _reverse(node: exp.Expression, scope: Scope) -> Term:
    scope.question.arguments(node, "this")
    term = need(scope, node.this, "text", word="REVERSE")
    return text(Call("reverse", (term.node,)), is_nullable=term.is_nullable)


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
        terms = [_as_text(part, scope, word="||") for part in parts]
        return _grown("concat", terms)
    scope.question.arguments(node, "expressions", "safe", "coalesce")
    terms = [_as_text(part, scope, word="CONCAT") for part in node.expressions]
    return _grown("concat_present", terms)


def _concat_between(node: exp.Expression, scope: Scope) -> Term:
    """Translate CONCAT_WS('-', a, b): what is not NULL, with the first argument between."""
    scope.question.arguments(node, "expressions", "safe", "coalesce")
    between, *parts = node.expressions
    if not parts:
        example = "CONCAT_WS('-', x, y)"
        raise scope.question.refuse("arguments", node, word="CONCAT_WS", example=example)
    written = str(written_text(between, scope, word="CONCAT_WS").value)
    sql = "CASE WHEN b IS NULL THEN '' ELSE a || b END"
    each = [rewritten(node, scope, sql, between, part) for part in parts]
    joined = reduce(lambda x, y: exp.DPipe(this=x, expression=y), each)
    start = exp.Literal.number(len(written) + 1)
    return scope.term(exp.Substring(this=joined, start=start))


def _as_text(node: exp.Expression, scope: Scope, *, word: str) -> Term:
    """Translate what is put together with texts: anything else is written as one first."""
    term = scope.term(node)
    if term.kind in ("text", "null"):
        return need(scope, node, "text", word=word)
    return cast(scope, node, term, "VARCHAR")


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


def _escaped(node: exp.Expression, scope: Scope) -> Term:
    """Translate LIKE with ESCAPE."""
    scope.question.arguments(node, "this", "expression")
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise scope.question.refuse("expression", node, word=short_sql(node))
    sign = written_text(node.expression, scope, word="ESCAPE")
    pattern = str(written_text(node.this.expression, scope, word="LIKE").value)
    last = re.search(f"{re.escape(str(sign.value))}*$", pattern) if sign.value else None
    if last is None or len(str(sign.value)) != 1 or len(last[0]) % 2:
        example = "LIKE '%!_%' ESCAPE '!'"
        raise scope.question.refuse("arguments", node, word="ESCAPE", example=example)
    return _like(node.this, scope, sign)


def _like(node: exp.Expression, scope: Scope, *sign: Literal) -> Term:
    scope.question.arguments(node, "this", "expression", "negate")
    listed = node.expression
    if isinstance(listed, exp.Any | exp.All) and isinstance(listed.this, exp.Tuple | exp.Paren):
        patterns = listed.this.expressions or [listed.this.this]
        each = [type(node)(this=node.this.copy(), expression=one.copy()) for one in patterns]
        join = exp.or_ if isinstance(listed, exp.Any) else exp.and_
        found: exp.Expression = exp.paren(join(*each))
        return scope.term(exp.Not(this=found) if node.args.get("negate") else found)
    function: Function = "like" if isinstance(node, exp.Like) else "ilike"
    term = need(scope, node.this, "text", word=function.upper())
    pattern = written_text(node.expression, scope, word=function.upper())
    made = Call(function, (term.node, pattern, *sign))
    if node.args.get("negate"):
        made = Call("not", (made,))
    return boolean(made, is_nullable=term.is_nullable)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Lower: _case,
    exp.Upper: _case,
    exp.Initcap: _case,
    exp.Trim: _trim,
    exp.Length: _length,
    exp.StrPosition: _place,
    exp.SplitPart: _split,
    exp.Pad: _pad,
    exp.Reverse: _reverse,
    exp.Escape: _escaped,
    exp.Substring: _part,
    exp.Left: _part,
    exp.Right: _part,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.ConcatWs: _concat_between,
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
    "strlen": _bytes,
    "octet_length": _bytes,
}
