"""Regular expressions: those that take a time in proportion to the text, whatever the text.

Engines match them with automata (RE2, say), so that no row can make one run for ever. What automata
cannot do, such as looking back at a group, is refused, and so is what would make them large.
"""

import math
import re
from typing import Final

from sqlglot import exp

from discreet.tables.model.scalar import Call, Literal
from discreet.tables.sql.expressions.arguments import Rule, need, whole_literal, written_text
from discreet.tables.sql.expressions.term import Scope, Term, boolean, text

__all__ = ["ANONYMOUS", "RULES"]

_LONGEST: Final = 200  # characters
_MOST_REPEATS: Final = 1000  # all counts in braces multiplied
_PARTS: Final = re.compile(
    r"(?:\\[dDwWsSbB]|\\[!-/:-@\[-`{-~]"  # classes of signs, and signs that mean themselves
    r"|\[\^?(?:(?!--|&&|~~|\|\|)(?:\\[dDwWsS]|\\[!-/:-@\[-`{-~]|[^\]\[\\]))+\]"
    r"|\((?!\?)|\(\?:|\)|(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![*+?{])"
    r"|[|^$.]|[^\\\[\](){}*+?|^$.])*"
)


def _pattern(node: exp.Expression, scope: Scope, *, word: str) -> tuple[Literal, int]:
    """Return a pattern that engines can match, and how many groups it has."""
    found = written_text(node, scope, word=word)
    pattern = str(found.value)
    counts = [int(n or 0) for pair in re.findall(r"\{(\d+)(?:,(\d*))?\}", pattern) for n in pair]
    is_small = len(pattern) <= _LONGEST and math.prod(max(n, 1) for n in counts) <= _MOST_REPEATS
    groups = _groups(pattern) if is_small and _PARTS.fullmatch(pattern) else None
    if groups is None:
        raise scope.question.refuse("regexp", node)
    return found, groups


def _groups(pattern: str) -> int | None:
    try:
        return re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError):
        return None


def _flags(node: exp.Expression | None, scope: Scope, allowed: str) -> str:
    if node is None:
        return ""
    flags = str(written_text(node, scope, word="a regular expression").value)
    if not set(flags) <= set(allowed):
        raise scope.question.refuse("regexp", node)
    return "".join(sorted(set(flags)))


def _matches(node: exp.Expression, scope: Scope) -> Term:
    """Translate REGEXP_LIKE(x, 'a.*'), x ~ 'a.*', REGEXP_FULL_MATCH and SIMILAR TO."""
    if isinstance(node, exp.Anonymous):
        given = [*node.expressions, None, None][:3]
    else:
        scope.question.arguments(node, "this", "expression", "flag", "options")
        given = [node.this, node.expression, node.args.get("flag") or node.args.get("options")]
    if given[0] is None or given[1] is None:
        example = "REGEXP_LIKE(x, 'n.*')"
        raise scope.question.refuse("arguments", node, word="REGEXP_LIKE", example=example)
    term = need(scope, given[0], "text", word="REGEXP_LIKE")
    pattern, _ = _pattern(given[1], scope, word="REGEXP_LIKE")
    flags = "i" if isinstance(node, exp.RegexpILike) else _flags(given[2], scope, "ci")
    flags = flags.replace("c", "")
    is_whole = isinstance(node, exp.RegexpFullMatch | exp.SimilarTo)
    word = "matches_whole" if is_whole else "matches"
    found = Call(word, (term.node, pattern, Literal(flags, "text")))  # type: ignore[arg-type]
    return boolean(found, is_nullable=term.is_nullable)


def _extract(node: exp.Expression, scope: Scope) -> Term:
    """Translate REGEXP_EXTRACT(x, '(n).*', 1): '' where nothing matches."""
    scope.question.arguments(node, "this", "expression", "group", "null_if_pos_overflow")
    term = need(scope, node.this, "text", word="REGEXP_EXTRACT")
    pattern, groups = _pattern(node.expression, scope, word="REGEXP_EXTRACT")
    example = "REGEXP_EXTRACT(x, 'n(.*)', 1)"
    group = 0
    if node.args.get("group") is not None:
        group = whole_literal(node.args["group"], scope, word="REGEXP_EXTRACT", example=example)
    if not 0 <= group <= min(groups, 9):
        raise scope.question.refuse("arguments", node, word="REGEXP_EXTRACT", example=example)
    found = Call("match", (term.node, pattern, Literal(group, "int32")))
    return text(found, is_nullable=term.is_nullable)


def _replace(node: exp.Expression, scope: Scope) -> Term:
    r"""Translate REGEXP_REPLACE(x, 'n(.*)', '\1'), with 'g' of all matches and not only the first.

    NULL where the text could become too long.
    """
    keys = ("this", "expression", "replacement", "modifiers", "single_replace")
    scope.question.arguments(node, *keys)
    term = need(scope, node.this, "text", word="REGEXP_REPLACE")
    pattern, groups = _pattern(node.expression, scope, word="REGEXP_REPLACE")
    example = r"REGEXP_REPLACE(x, 'n(.*)', '\1', 'g')"
    if node.args.get("replacement") is None:
        raise scope.question.refuse("arguments", node, word="REGEXP_REPLACE", example=example)
    made = written_text(node.args["replacement"], scope, word="REGEXP_REPLACE")
    parts = re.fullmatch(r"(?:[^\\]|\\\\|\\\d)*", str(made.value))
    named = [int(sign) for sign in re.findall(r"\\(\d)", str(made.value).replace(r"\\", ""))]
    if parts is None or max(named, default=0) > groups:
        raise scope.question.refuse("arguments", node, word="REGEXP_REPLACE", example=example)
    flags = Literal(_flags(node.args.get("modifiers"), scope, "gi"), "text")
    return text(Call("replace_matches", (term.node, pattern, made, flags)))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.RegexpLike: _matches,
    exp.RegexpILike: _matches,
    exp.RegexpFullMatch: _matches,
    exp.SimilarTo: _matches,
    exp.RegexpExtract: _extract,
    exp.RegexpSubstr: _extract,
    exp.RegexpReplace: _replace,
}
ANONYMOUS: Final[dict[str, Rule]] = {"regexp_contains": _matches}
