"""Functions of texts. Cases of letters are those of Unicode; everything else goes by bytes."""

from collections.abc import Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import Template
from discreet.tables.engines.compile.text import text
from discreet.tables.engines.postgres.words.bound import bound, once
from discreet.tables.engines.postgres.words.patterns import extracting, matching
from discreet.tables.model.scalar import LONGEST_TEXT, Call, Function, Literal, Scalar

__all__ = ["FUNCTIONS", "LETTERS"]

LETTERS: Final = '"und-x-icu"'
"""The collation whose letters have cases; that of texts themselves is by bytes."""


def _chain(word: str) -> Template:
    return lambda nodes, texts: f"({f' {word} '.join(texts)})"


def _listed(word: str) -> Template:
    return lambda nodes, texts: f"{word}({', '.join(texts)})"


def _not(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    inner = nodes[0]
    if isinstance(inner, Call) and inner.function == "is_null":
        return texts[0].removesuffix("IS NULL)") + "IS NOT NULL)"
    return f"(NOT {texts[0]})"


def _in(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    return f"({texts[0]} IN ({', '.join(texts[1:])}))"


def _like(word: str) -> Template:
    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        subject, pattern, *sign = texts
        if word == "ILIKE":
            subject = f"{subject} COLLATE {LETTERS}"
        return f"({subject} {word} {pattern} ESCAPE {sign[0] if sign else text('')})"

    return written


def _concat(*, skips_null: bool) -> Template:
    """Write texts put together, where they are not too long together."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        names = [f"{{{i}}}" for i in range(len(texts))]
        typed = [f"CAST({one} AS text)" if isinstance(node, Literal) else one
                 for node, one in zip(nodes, names, strict=True)]  # fmt: skip
        made = f"concat({', '.join(typed)})" if skips_null else f"({' || '.join(typed)})"
        known = sum(len(str(n.value)) for n in nodes if isinstance(n, Literal) and n.value)
        length = "coalesce(length({}), 0)" if skips_null else "length({})"
        lengths = [
            length.format(one)
            for node, one in zip(nodes, names, strict=True)
            if not isinstance(node, Literal)
        ]
        if not lengths:
            return made.format(*texts)
        guarded = f"CASE WHEN {' + '.join(lengths)} <= {LONGEST_TEXT - known} THEN {made} END"
        return once(guarded, nodes, texts)

    return written


def _replace(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    made = "replace({0}, {1}, {2})"
    before, after = (len(str(n.value)) for n in nodes[1:] if isinstance(n, Literal))
    if not 0 < before < after:  # then it does not grow
        return made.format(*texts)
    guarded = f"CASE WHEN length({{0}}) * {after} <= {LONGEST_TEXT * before} THEN {made} END"
    return once(guarded, nodes, texts)


def _whole(node: Scalar) -> int:
    assert isinstance(node, Literal)
    assert isinstance(node.value, int)
    return node.value


def _substring(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    start = _whole(nodes[1])
    length = _whole(nodes[2]) if len(nodes) > 2 else None
    if start >= 0:
        # From before the first character on, there are fewer of them.
        return f"substr({texts[0]}, {start}{'' if length is None else f', {max(length, 0)}'})"
    first = f"length({{0}}) + {start + 1}"
    end = "" if length is None else f", {max(length, 0)}"
    return once(f"substr({{0}}, {first}{end})", nodes[:1], texts[:1])


def _split_part(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    if not _whole(nodes[2]):
        return f"left({texts[0]}, 0)"
    return f"split_part({', '.join(texts)})"


def _cased(word: str) -> str:
    return f'({word}({{0}} COLLATE {LETTERS}) COLLATE "C")'


_INITCAP: Final = (
    "CASE WHEN {0} IS NOT NULL THEN coalesce((SELECT string_agg("  # noqa: S608
    f"upper(left(w.m[1], 1) COLLATE {LETTERS}) || lower(substr(w.m[1], 2) COLLATE {LETTERS}), '' "
    f"ORDER BY w.i) FROM regexp_matches({{0}} COLLATE {LETTERS}, "
    "'[[:alnum:]]+|[^[:alnum:]]+', 'g') WITH ORDINALITY AS w(m, i)) COLLATE \"C\", '') END"
)


FUNCTIONS: Final[dict[Function, Template]] = {
    "equal": "({0} = {1})", "not_equal": "({0} <> {1})", "less": "({0} < {1})",
    "less_equal": "({0} <= {1})", "greater": "({0} > {1})", "greater_equal": "({0} >= {1})",
    "different": "({0} IS DISTINCT FROM {1})",
    "in": _in, "is_null": "({0} IS NULL)", "not": _not, "and": _chain("AND"), "or": _chain("OR"),
    "lower": _cased("lower"), "upper": _cased("upper"), "initcap": bound(_INITCAP),
    "trim": _listed("btrim"), "ltrim": _listed("ltrim"), "rtrim": _listed("rtrim"),
    "length": "CAST(length({0}) AS bigint)", "byte_length": "CAST(octet_length({0}) AS bigint)",
    "substring": _substring, "left": "left({0}, {1})", "right": "right({0}, {1})",
    "concat": _concat(skips_null=False), "concat_present": _concat(skips_null=True),
    "replace": _replace, "split_part": _split_part, "reverse": "reverse({0})",
    "pad_left": "lpad({0}, {1}, {2})", "pad_right": "rpad({0}, {1}, {2})",
    "position": "CAST(strpos({0}, {1}) AS bigint)",
    "starts_with": "starts_with({0}, {1})",
    "ends_with": bound("(right({0}, length({1})) = {1})"),
    "contains": "(strpos({0}, {1}) > 0)", "like": _like("LIKE"), "ilike": _like("ILIKE"),
    "matches": matching(is_whole=False), "matches_whole": matching(is_whole=True),
    "match": extracting, "tagged": "concat({0}, '|', {1})",
}  # fmt: skip
