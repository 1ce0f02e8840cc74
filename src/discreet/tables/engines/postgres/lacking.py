"""What PostgreSQL cannot compute as all engines do."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from typing import Final, TypeVar

from discreet.tables.engines.postgres.words.moments import FORMATS, pieces
from discreet.tables.engines.postgres.words.parsing import READABLE, readable
from discreet.tables.engines.postgres.words.patterns import has_one_way, translated
from discreet.tables.model.relation import Joined, sources_of
from discreet.tables.model.scalar import Call, Literal

__all__ = ["CASES", "lacking", "lacking_join", "parts_of"]

T = TypeVar("T")
CASES: Final = ("lower", "upper", "initcap", "ilike")


def lacking(call: Call, *, has_letters: bool, zones: AbstractSet[str] | None) -> str | None:
    r"""Say what of a call PostgreSQL cannot compute.

    ``has_letters``: there is a collation that knows the cases of all letters. ``zones`` are the
    time zones that it knows, None if nobody asked for them yet.

    >>> from discreet.tables.model.scalar import ColumnRef
    >>> words = Call("matches", (ColumnRef("x"), Literal("\\bno", "text"), Literal("", "text")))
    >>> lacking(words, has_letters=True, zones=None)
    "the regular expression '\\\\bno'"
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
            return f"the part {names[0]} of a moment's text" if names else None
        case "parse_time":
            if readable(str(written[-1])):
                return None
            known = ", ".join(f"%{name}" for name in READABLE if len(name) == 1)
            return f"moments read by other parts than {known}, each once, with signs between"
        case "to_zone" | "from_zone":
            name = str(written[-1])
            known_zone = zones is None or name in zones
            return None if known_zone else f"the time zone {name!r}"
        case "substring" if len(written) > 1 and isinstance(written[-1], int) and written[-1] < 0:
            return "parts of a text of negative length"
        case "split_part" if len(written) > 1 and written[-2] == "":
            return "splitting a text where nothing stands"
        case function if function in CASES and not has_letters:
            return "cases of letters, as the server is built without ICU"
        case _:
            return None


def _pattern(
    pattern: str, flags: str, *, is_found: bool = False, is_replaced: bool = False
) -> str | None:
    if translated(pattern, flags) is None:
        return f"the regular expression {pattern!r}"
    if not is_found:
        return None
    is_one = has_one_way(pattern) and not ("i" in flags and re.search(r"[*+?]", pattern))
    if not is_one or (is_replaced and re.fullmatch(pattern, "") is not None):
        return (
            f"what matches {pattern!r} first, which is the same everywhere for signs and sets in a "
            "row alone, of which those that repeat are followed by others"
        )
    return None


def parts_of(plan: object, kind: type[T]) -> Iterator[T]:
    """Yield all parts of a plan that are of a kind.

    >>> from discreet.tables.model.relation import Select
    >>> list(parts_of(Select.of("people", unit="id"), Call))
    []
    """
    if isinstance(plan, kind):
        yield plan
    if isinstance(plan, tuple):
        for part in plan:
            yield from parts_of(part, kind)
    elif is_dataclass(plan) and not isinstance(plan, type):
        for one in fields(plan):
            yield from parts_of(getattr(plan, one.name), kind)


def lacking_join(joined: Joined) -> str | None:
    """Say whether a full join equates nothing that it could look partners up by."""
    if joined.kind != "full":
        return None
    for node in joined.on:
        if isinstance(node, Call) and node.function in ("equal", "same"):
            sides = [sources_of(argument) for argument in node.arguments]
            if {joined.alias} in sides and any(one and joined.alias not in one for one in sides):
                return None
    return "a FULL JOIN whose condition has no equality of both sides"
