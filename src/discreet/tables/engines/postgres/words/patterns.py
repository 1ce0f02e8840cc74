"""Regular expressions of RE2 that PostgreSQL's mean as well, written in PostgreSQL's.

Whether a text matches depends on the language of an expression alone, so laziness can be left out.
What a match *is* depends on preferences, in which the two differ: RE2 takes the first of several
ways, PostgreSQL the longest. They agree where there is one way only, so others are not written.
"""

import re
from collections.abc import Sequence
from typing import Final

from discreet.tables.engines.compile.dialect import Template
from discreet.tables.engines.compile.text import text
from discreet.tables.engines.postgres.words.bound import once
from discreet.tables.model.scalar import LONGEST_TEXT, Literal, Scalar

__all__ = ["extracting", "has_one_way", "matching", "replacing", "translated"]

_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
_PARTS: Final = re.compile(
    r"(?P<escape>\\(?P<sign>.))|(?P<set>\[(?P<not>\^?)(?P<inside>(?:\\.|[^\]\\])+)\])"
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<count>[*+?]|\{\d+(?:,\d*)?\})(?P<lazy>\??)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_FOLDED: Final = {"k": "kK\u212a", "s": "sS\u017f"}  # signs that RE2 takes for these letters, too


def _named(name: str, *, folds: bool) -> str:
    """Return the signs of a class, with letters beyond ASCII where cases do not count."""
    return _CLASSES[name] + ("\u017f\u212a" if folds and name == "w" else "")


def _letter(sign: str, *, folds: bool) -> str | None:
    if sign.isascii() and sign.isalpha() and folds:
        return f"[{_FOLDED.get(sign.lower(), sign.lower() + sign.upper())}]"
    if not sign.isascii() and folds:
        return None
    if sign.isalnum() or ord(sign) > 127 or sign in " _-,;:'\"/<>=!@#%&~`":
        return sign
    return f"\\{sign}" if sign.isprintable() and sign.isascii() else None


def _inside(written: str, *, folds: bool) -> str | None:
    """Return what is in a bracket, in PostgreSQL's words."""
    found, place = "", 0
    while place < len(written):
        sign = written[place]
        if sign == "\\":
            name = written[place + 1]
            if name in _CLASSES:
                found += _named(name, folds=folds)
            elif name.isalnum():
                return None
            else:
                found += f"\\{name}"
            place += 2
            continue
        is_range = re.fullmatch(r"[A-Za-z0-9]-[A-Za-z0-9]", written[place : place + 3])
        part = is_range[0] if is_range else sign
        place += len(part)
        if folds and any(one.isalpha() for one in part):
            if not is_range:
                if not sign.isascii():
                    return None
                found += _FOLDED.get(sign.lower(), sign.lower() + sign.upper())
                continue
            if not part.isascii() or part[0].isupper() != part[2].isupper():
                return None
            found += part.lower() + part.upper()
            found += "".join(
                signs[2]
                for one, signs in _FOLDED.items()
                if part[0].lower() <= one <= part[2].lower()
            )
            continue
        if not is_range and (sign in "[]^\\-" or not sign.isprintable()):
            if sign != "-":
                return None
            part = "\\-"
        found += part
    return found


def translated(pattern: str, flags: str) -> str | None:
    r"""Return an expression of the same language in PostgreSQL's words; None where there is none.

    >>> translated(r"^b.u\d+$", ""), translated("ab", "i"), translated(r"\bword\b", "")
    ('^b[^\\n]u[0-9]+$', '[aA][bB]', None)
    """
    folds, found = "i" in flags, ""
    for match in _PARTS.finditer(pattern):
        part: str | None
        if match["escape"]:
            sign = match["sign"]
            if sign.lower() in _CLASSES:
                part = f"[{'' if sign.islower() else '^'}{_named(sign.lower(), folds=folds)}]"
            else:
                part = None if sign.isalnum() else f"\\{sign}"
        elif match["set"]:
            inside = _inside(match["inside"], folds=folds)
            part = None if inside is None else f"[{match['not']}{inside}]"
        elif match["count"]:
            part = match["count"]
            numbers = [int(n) for n in re.findall(r"\d+", part)]
            if any(n > 255 for n in numbers):  # the most that PostgreSQL repeats
                part = None
        elif match["open"] or match["close"]:
            part = match[0]
        elif match["other"] == ".":
            part = "[^\\n]"
        elif match["other"] in "^$|":
            part = match["other"]
        else:
            part = _letter(match["other"], folds=folds)
        if part is None:
            return None
        found += part
    return None if found.startswith("***") else found


def has_one_way(pattern: str) -> bool:
    """Whether a text can match an expression in one way at most, from one place on.

    Only the simplest are taken for such: signs and sets in a row, in groups perhaps, each of which
    may repeat if what follows it begins otherwise.

    >>> has_one_way("(k)=(v+)"), has_one_way("[0-9]+"), has_one_way("a|ab"), has_one_way("a+?")
    (True, True, False, False)
    """
    items: list[tuple[str, bool]] = []
    if "|" in pattern or re.search(r"\)[*+?{]|[*+?}]\?|\{", pattern):
        return False
    for match in _PARTS.finditer(pattern):
        if match["count"]:
            if not items:
                return False
            items[-1] = (items[-1][0], True)
        elif not (match["open"] or match["close"]):
            items.append((match[0], False))
    for place, (item, repeats) in enumerate(items):
        if not repeats:
            continue
        for other, again in items[place + 1 :]:
            if other != "$" and not _are_apart(item, other):
                return False
            if not again:
                break
    return True


def _are_apart(one: str, other: str) -> bool:
    """Whether no sign matches both of two signs or sets."""
    try:
        first, second = (re.compile(part, re.ASCII | re.DOTALL) for part in (one, other))
    except re.error:
        return False
    if not all(map(str.isascii, (one, other))) or "." in (one, other) or "^" in (one, other):
        return False
    if all(part.startswith("[^") or part in ("\\D", "\\W", "\\S") for part in (one, other)):
        return False  # both have all signs that are not named
    return not any(first.fullmatch(chr(i)) and second.fullmatch(chr(i)) for i in range(128))


def _literal(node: Scalar) -> str:
    assert isinstance(node, Literal)
    return str(node.value)


def _pattern(node: Scalar, flags: str) -> str:
    found = translated(_literal(node), flags)
    assert found is not None  # it was asked before
    return found


def matching(*, is_whole: bool) -> Template:
    """Return how a text is matched."""

    def written(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
        pattern = _pattern(nodes[1], _literal(nodes[2]))
        return f"({texts[0]} ~ {text(f'^(?:{pattern})$' if is_whole else pattern)})"

    return written


def extracting(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write what of a text matches, or a group of it; '' where nothing does."""
    group = int(_literal(nodes[2]))
    pattern = _pattern(nodes[1], "")
    place = 1
    if group == 0:
        # The whole is a group of its own, and the others are none.
        pattern = "(" + re.sub(r"((?:^|[^\\])(?:\\\\)*)\((?!\?)", r"\1(?:", pattern) + ")"
    else:
        place = group
    found = f"coalesce((regexp_match(?, {text(pattern)}))[{place}], '')"
    made = found.replace("{", "{{").replace("}", "}}").replace("(?,", "({0},", 1)
    return once(f"CASE WHEN {{0}} IS NOT NULL THEN {made} END", nodes[:1], texts[:1])


def replacing(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write a text with what matches exchanged, NULL where it could become too long."""
    new, flags = _literal(nodes[2]), _literal(nodes[3])
    pattern = _pattern(nodes[1], flags)
    times = "(length({0}) + 1)" if "g" in flags else "1"
    longest = f"length({{0}}) * {1 + new.count(chr(92))} + {times} * {len(new)}"
    # What \\0 is to RE2, \\& is to PostgreSQL.
    put = re.sub(r"\\(.)", lambda m: "\\&" if m[1] == "0" else m[0], new)
    made = (
        f"regexp_replace(?, {text(pattern)}, {text(put)}{', ' + text('g') if 'g' in flags else ''})"
    )
    made = made.replace("{", "{{").replace("}", "}}").replace("(?,", "({0},", 1)
    return once(f"CASE WHEN {longest} <= {LONGEST_TEXT} THEN {made} END", nodes[:1], texts[:1])
