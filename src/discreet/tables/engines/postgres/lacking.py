"""What PostgreSQL cannot compute as all engines do."""

import re
from collections.abc import Set as AbstractSet
from typing import Final

from discreet.tables.engines.postgres.moments import FORMATS, pieces
from discreet.tables.engines.postgres.parsing import READABLE, readable
from discreet.tables.engines.postgres.patterns import has_one_way, translated
from discreet.tables.model.scalar import Call, Literal

__all__ = ["CASES", "lacking"]

CASES: Final = ("lower", "upper", "initcap", "ilike")


def lacking(call: Call, *, has_letters: bool, zones: AbstractSet[str] | None) -> str | None:
    r"""Say what of a call PostgreSQL cannot compute.

    ``has_letters``: there is a collation that knows the cases of all letters. ``zones`` are the
    time zones that it knows, None if nobody asked for them yet.

    >>> from discreet.tables.model.scalar import ColumnRef
    >>> words = Call("matches", (ColumnRef("x"), Literal("\\bno", "text"), Literal("", "text")))
    >>> lacking(words, has_letters=True, zones=None)
    "PostgreSQL has no expression that means '\\\\bno' as it is meant here."
    """
    written = [node.value for node in call.arguments if isinstance(node, Literal)]
    match call.function:
        case "matches" | "matches_whole":
            return _pattern(str(written[-2]), str(written[-1]))
        case "match":
            return _pattern(str(written[-2]), "", is_found=True)
        case "replace_matches":
            pattern, flags = str(written[-3]), str(written[-1])
            return _pattern(pattern, flags, is_found=True, is_replaced=True)
        case "format_time":
            unknown = [name for name, is_part in pieces(str(written[-1])) if is_part]
            names = [f"%{name}" for name in unknown if name not in FORMATS]
            return f"PostgreSQL cannot write {names[0]} of a moment." if names else None
        case "parse_time":
            if readable(str(written[-1])):
                return None
            known = ", ".join(f"%{name}" for name in READABLE if len(name) == 1)
            return f"PostgreSQL reads moments of the parts {known}, each once, with signs between."
        case "to_zone" | "from_zone":
            name = str(written[-1])
            known_zone = zones is None or name in zones
            return None if known_zone else f"PostgreSQL does not know the time zone {name!r}."
        case "substring" if len(written) > 1 and isinstance(written[-1], int) and written[-1] < 0:
            return "PostgreSQL has no part of a text of negative length."
        case "split_part" if len(written) > 1 and written[-2] == "":
            return "PostgreSQL does not split a text where nothing stands."
        case function if function in CASES and not has_letters:
            return "this PostgreSQL is built without ICU, and knows the cases of no letters."
        case _:
            return None


def _pattern(
    pattern: str, flags: str, *, is_found: bool = False, is_replaced: bool = False
) -> str | None:
    if translated(pattern, flags) is None:
        return f"PostgreSQL has no expression that means {pattern!r} as it is meant here."
    if not is_found:
        return None
    is_one = has_one_way(pattern) and not ("i" in flags and re.search(r"[*+?]", pattern))
    if not is_one or (is_replaced and re.fullmatch(pattern, "") is not None):
        return (
            f"which part of a text matches {pattern!r} first is not the same to PostgreSQL. It is "
            "for signs and sets in a row, those that repeat being followed by others."
        )
    return None
