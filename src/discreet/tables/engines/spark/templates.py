"""Calls whose text depends on their arguments, in Spark's words."""

from collections.abc import Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import Template
from discreet.tables.model.scalar import LONGEST_TEXT, Call, Literal, Scalar

__all__ = [
    "chain", "concat", "divided", "function", "in_list", "left", "length", "negated", "one_of",
    "part", "replace", "right", "rounded", "trimmed",
]  # fmt: skip

_MOST: Final = 1 << 30  # of a place in a text: none is as long


def chain(word: str) -> Template:
    """Write arguments with a word between."""
    return lambda nodes, texts: f"({f' {word} '.join(texts)})"


def function(word: str) -> Template:
    """Write a function of all arguments."""
    return lambda nodes, texts: f"{word}({', '.join(texts)})"


def one_of(word: str) -> Template:
    """Write a function that wants two arguments; of one it is the argument."""
    return lambda nodes, texts: f"{word}({', '.join(texts)})" if len(texts) > 1 else texts[0]


def length(word: str) -> str:
    """Write a number of signs as an int64."""
    return f"CAST({word} AS BIGINT)"


def divided(sign: str) -> Template:
    """Write a division, NULL where the second is 0."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        top, below = texts
        is_safe = isinstance(nodes[1], Literal) and nodes[1].value
        return f"({top} {sign} {below if is_safe else f'nullif({below}, 0e0)'})"

    return written


def rounded(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Round as other engines do: a product, rounded half away from 0, and a quotient."""
    digits = nodes[1].value if isinstance(nodes[1], Literal) else 0
    assert isinstance(digits, int)
    by, back = ("*", "/") if digits >= 0 else ("/", "*")
    scale = f"1e{min(abs(digits), 300)}"
    scaled = f"({texts[0]} {by} {scale})" if digits else texts[0]
    made = f"(round({scaled}, 0) {back} {scale})" if digits else f"round({texts[0]}, 0)"
    # Doubles as large have no digits that could be rounded, or are not finite once multiplied.
    return f"CASE WHEN abs({scaled}) < 4503599627370496e0 THEN {made} ELSE {texts[0]} END"


def negated(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write NOT; of IS NULL what planners know better."""
    inner = nodes[0]
    if isinstance(inner, Call) and inner.function == "is_null":
        return texts[0].removesuffix("IS NULL)") + "IS NOT NULL)"
    return f"(NOT {texts[0]})"


def in_list(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write IN."""
    return f"({texts[0]} IN ({', '.join(texts[1:])}))"


def trimmed(side: str) -> Template:
    """Write TRIM of blanks, or of the second argument's characters."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        signs = texts[1] if len(texts) > 1 else "' '"
        return f"trim({side} {signs} FROM {texts[0]})"

    return written


def concat(start: str, size: str) -> Template:
    """Write texts put together, where they are not too long together."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        made = f"{start}{', '.join(texts)})"
        known = sum(len(str(n.value)) for n in nodes if isinstance(n, Literal) and n.value)
        pairs = zip(nodes, texts, strict=True)
        sizes = [size.format(one) for node, one in pairs if not isinstance(node, Literal)]
        if not sizes:  # all of them are written out
            return made
        return f"CASE WHEN {' + '.join(sizes)} <= {LONGEST_TEXT - known} THEN {made} END"

    return written


def replace(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write a replacement, where the text does not become too long."""
    made = f"replace({', '.join(texts)})"
    before, after = (len(str(n.value)) for n in nodes[1:] if isinstance(n, Literal))
    if not 0 < before < after:  # then it does not grow
        return made
    longest = LONGEST_TEXT * before
    return f"CASE WHEN {length(f'length({texts[0]})')} * {after} <= {longest} THEN {made} END"


def _places(nodes: Sequence[Scalar]) -> list[int]:
    given = [node.value for node in nodes[1:] if isinstance(node, Literal)]
    return [min(max(int(one or 0), -_MOST), _MOST) for one in given]


def part(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write substring(): place 0 is before the first sign, and a negative length goes back."""
    start, *sizes = _places(nodes)
    if not sizes:
        return f"substring({texts[0]}, {start or 1})"
    size = sizes[0]
    if size < 0:
        start, size = (start + size, -size) if start <= 0 else _back(start, size)
    if start == 0:
        start, size = 1, size - 1
    return f"substring({texts[0]}, {start}, {max(size, 0)})"


def _back(start: int, size: int) -> tuple[int, int]:
    first = max(start + size, 1)
    return first, start - first


def left(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write the first signs of a text: a negative number leaves as many off at the end."""
    (count,) = _places(nodes)
    size = str(count) if count >= 0 else f"greatest(length({texts[0]}) - {-count}, 0)"
    return f"substring({texts[0]}, 1, {size})"


def right(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write the last signs of a text: a negative number leaves as many off at the beginning."""
    (count,) = _places(nodes)
    if count < 0:
        return f"substring({texts[0]}, {1 - count})"
    return f"right({texts[0]}, {count})" if count else f"substring({texts[0]}, 1, 0)"
