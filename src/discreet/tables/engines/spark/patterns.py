"""Patterns for Java's regular expressions, which go back: only those that cannot go back far.

Java matches a pattern by trying. Most patterns take a time that grows with the square of a text's
length, or far worse, and groups that are repeated take stack as well; one person's long text would
then decide whether a question ends in time. So a pattern is accepted where the time is in
proportion to the text: signs and classes may be repeated without limit at the end only, and once
elsewhere in a pattern that is fixed to the beginning; groups are not repeated at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from discreet.tables.engines.compile.dialect import Lacking, Template
from discreet.tables.engines.compile.text import text
from discreet.tables.model.scalar import LONGEST_TEXT, Literal, Scalar

__all__ = ["ilike", "like", "match", "matches", "replace_matches"]

_MOST: Final = 1000  # ways to go on from one place of a text
_ITEM: Final = re.compile(
    r"(?P<atom>\\.|\[(?:\\.|[^\]\\])+\]|\((?:\?:)?|[)|^$.]|[^\\\[\](){}*+?|^$.])"
    r"(?P<times>[*+?]|\{\d+(?:,\d*)?\})?(?P<lazy>\??)"
)
_SPACE: Final = r"\t\n\f\r "
_WHY: Final = (
    "a regular expression that Java could take very long to match: repeat signs and classes "
    "without limit only at its end, or once after ^, and no groups"
)


def _fixed(node: Scalar) -> str:
    assert isinstance(node, Literal)
    return str(node.value)


@final
@dataclass(slots=True)
class _Cost:
    """How a pattern can be gone on with: in so many ways, and by as many unlimited repeats."""

    ways: int = 1
    unlimited: int = 0  # not counting one at the very end
    is_fixed: bool = False  # to the beginning


def _java(pattern: str, *, is_fixed: bool, most: int = 1) -> str:
    """Return a pattern of RE2 in Java's letters, or say that it is none for Java."""
    cost, made, place = _Cost(is_fixed=is_fixed), "", 0
    opened, last = 0, False  # groups that are open; whether the last atom is repeated
    branches, ended = 1, False
    while place < len(pattern):
        found = _ITEM.match(pattern, place)
        if found is None:
            raise Lacking(_WHY)
        atom, times, lazy = found["atom"], found["times"] or "", found["lazy"]
        if lazy and not times:
            raise Lacking(_WHY)
        place = found.end()
        if last and atom != ")":  # something comes after what was repeated
            cost.unlimited += 1
            last = False
        if times and (atom in ("^", "$", "|", ")") or atom.startswith("(")):
            raise Lacking(_WHY)
        opened += atom.startswith("(")
        opened -= atom == ")"
        branches += atom == "|"
        if atom == "^":
            if made:
                raise Lacking(_WHY)
            cost.is_fixed, atom = True, r"\A"
        elif atom == "$":
            ended, atom = True, r"\z"
        elif atom == "|" and (cost.is_fixed or ended):
            raise Lacking(_WHY)  # to which branch ^ and $ belong differs
        else:
            atom = _atom(atom)
        low, high = _range(times)
        if high is None:
            last = True
            cost.ways *= max(low, 1)
        else:
            cost.ways *= high - low + 1
        made += atom + times + lazy
    if last and lazy:
        cost.unlimited += 1
    allowed = most if cost.is_fixed and branches == 1 else 0
    if cost.unlimited > allowed or cost.ways * branches > _MOST or opened:
        raise Lacking(_WHY)
    return made


def _range(times: str) -> tuple[int, int | None]:
    if times in ("*", "+"):
        return times == "+", None
    if times == "?":
        return 0, 1
    if not times:
        return 1, 1
    low, _, high = times[1:-1].partition(",")
    if "," not in times:
        return int(low), int(low)
    return int(low), int(high) if high else None


def _atom(atom: str) -> str:
    if atom in (r"\b", r"\B"):  # Java takes letters of all alphabets for letters there
        raise Lacking(_WHY)
    if atom == r"\s":
        return f"[{_SPACE}]"
    if atom == r"\S":
        return f"[^{_SPACE}]"
    if atom.startswith("["):
        if r"\S" in atom:
            raise Lacking(_WHY)
        return atom.replace(r"\s", _SPACE)
    return atom


def _flags(signs: str) -> str:
    return "(?diu)" if "i" in signs else "(?d)"


def matches(*, whole: bool) -> Template:
    """Write whether a text matches a pattern, or the whole of it."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        made = _java(_fixed(nodes[1]), is_fixed=whole)
        if whole:
            if "|" in made:
                made = f"(?:{made})"
            # What is repeated at the end goes back from there at most once through the text.
            if r"\A" in made or r"\z" in made:
                raise Lacking(_WHY)
            _java(_fixed(nodes[1]) + "x", is_fixed=True)
            made = rf"\A{made}\z"
        return f"({texts[0]} RLIKE {text(_flags(_fixed(nodes[2])) + made)})"

    return written


def match(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write what of a text matches first, or a group of it."""
    made = "(?d)" + _java(_fixed(nodes[1]), is_fixed=False)
    return f"regexp_extract({texts[0]}, {text(made)}, {texts[2]})"


def replace_matches(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write the first match, or all of them, exchanged, where that does not become too long."""
    pattern, new, signs = (_fixed(node) for node in nodes[1:])
    flags, is_all = _flags(signs), "g" in signs
    made = _java(pattern, is_fixed=False, most=0)
    if not is_all and (r"\A" in made):
        raise Lacking(_WHY)
    shift = 0 if is_all else 2
    whole = flags + (made if is_all else rf"\A((?s:.*?))({made})")
    written = "" if is_all else "$1"
    for sign in re.findall(r"\\[\\\d]|[^\\]", new):
        if sign[0] == "\\" and sign[1].isdigit():
            written += f"${int(sign[1]) + shift}"
        else:
            written += "\\" + sign[-1]
    times = f"(CAST(length({texts[0]}) AS BIGINT) + 1)" if is_all else "1"
    longest = (
        f"CAST(length({texts[0]}) AS BIGINT) * {1 + new.count(chr(92))} + {times} * {len(new)}"
    )
    done = f"regexp_replace({texts[0]}, {text(whole)}, {text(written)})"
    return f"CASE WHEN {longest} <= {LONGEST_TEXT} THEN {done} END"


def _pieces(pattern: str, sign: str) -> list[str | None]:
    """Return the signs of a LIKE pattern: None for %, '' for _, and others as they are."""
    found, place = list[str | None](), 0
    while place < len(pattern):
        one = pattern[place]
        if sign and one == sign:
            place += 1
            found.append(pattern[place : place + 1])
        else:
            found.append(None if one == "%" else "" if one == "_" else one)
        place += 1
    return found


def _liked(value: str, pieces: list[str | None]) -> str:
    """Write LIKE by what takes a time in proportion to the text, however many % there are."""
    runs: list[list[str]] = [[]]
    for one in pieces:
        if one is None:
            runs.append([])
        else:
            runs[-1].append(one)
    first, *rest = runs
    if "" not in pieces and len(runs) <= 3:
        said = [text("".join(run)) for run in runs]
        if not rest:
            return f"({value} = {said[0]})"
        if len(rest) == 1:
            # Both ends may not overlap.
            least = len(first) + len(rest[0])
            ends = [f"startswith({value}, {said[0]})"] if first else []
            ends += [f"endswith({value}, {said[1]})"] if rest[0] else []
            if len(ends) == 2:
                ends.append(f"length({value}) >= {least}")
            return f"({' AND '.join(ends) or f'({value} IS NOT NULL OR NULL)'})"
        if not first and not rest[-1]:
            return f"contains({value}, {said[1]})"
    # Taking each run where it comes first leaves the most to those after it, so nothing has to be
    # gone back to: atomic groups say so.
    middle = "".join(f"(?>.*?{_signs(run)})" for run in rest[:-1] if run)
    end = (".*" if rest else "") + (_signs(rest[-1]) if rest else "")
    whole = rf"(?s)\A{_signs(first)}{middle}{end}\z"
    return f"({value} RLIKE {text(whole)})"


def _signs(run: list[str]) -> str:
    return "".join("." if one == "" else re.sub(r"([^\w\s]|_)", r"\\\1", one) for one in run)


def like(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write LIKE."""
    sign = _fixed(nodes[2]) if len(nodes) > 2 else ""
    return _liked(texts[0], _pieces(_fixed(nodes[1]), sign))


def ilike(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write LIKE in any case."""
    sign = _fixed(nodes[2]) if len(nodes) > 2 else ""
    pieces = [one and one.lower() for one in _pieces(_fixed(nodes[1]), sign)]
    return _liked(f"lower({texts[0]})", pieces)
