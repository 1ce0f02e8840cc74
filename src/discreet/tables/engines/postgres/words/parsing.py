"""Texts read as moments by a format, NULL where they do not fit."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from discreet.tables.engines.compile.text import text
from discreet.tables.engines.postgres.words.bound import once
from discreet.tables.engines.postgres.words.casts import made_moment
from discreet.tables.engines.postgres.words.moments import pieces
from discreet.tables.model.scalar import Literal, Scalar

__all__ = ["READABLE", "parse_time"]

# The parts that are read, each with its pattern.
READABLE: Final = {
    "Y": "([0-9]{1,4})", "m": "([0-9]{1,2})", "d": "([0-9]{1,2})", "H": "([0-9]{1,2})",
    "M": "([0-9]{1,2})", "S": "([0-9]{1,2})", "-m": "([0-9]{1,2})", "-d": "([0-9]{1,2})",
    "-H": "([0-9]{1,2})", "-M": "([0-9]{1,2})", "-S": "([0-9]{1,2})", "f": "([0-9]{1,6})",
}  # fmt: skip


def readable(format_: str) -> bool:
    """Whether texts of a format can be read: its parts are numbers, each is there once.

    >>> readable("%d.%m.%Y"), readable("%d %B %Y"), readable("%Y%m")
    (True, False, False)
    """
    found = pieces(format_)
    names = [name.removeprefix("-") for name, is_part in found if is_part]
    if not set(names) <= set(READABLE) or len(set(names)) < len(names):
        return False
    # Numbers that nothing parts could be cut in several ways.
    return not any(one[1] and other[1] for one, other in pairwise(found))


def parse_time(nodes: Sequence[Scalar], texts: Sequence[str]) -> str:
    """Write a text that is read by a format."""
    assert isinstance(nodes[1], Literal)
    pattern, place, where = "", 0, dict[str, int]()
    for name, is_part in pieces(str(nodes[1].value)):
        if is_part:
            place += 1
            where[name.removeprefix("-")] = place
            pattern += READABLE[name]
        else:
            pattern += name if name.isalnum() or ord(name) > 127 else f"\\{name}"
    year, month, day = (
        f"m.p[{where[name]}]" if name in where else usual
        for name, usual in (("Y", "'1900'"), ("m", "'1'"), ("d", "'1'"))
    )
    clock, fits = "", ["TRUE"]
    for name, unit, most in (("H", "hour", 23), ("M", "minute", 59), ("S", "second", 59)):
        if name in where:
            number = f"CAST(m.p[{where[name]}] AS integer)"
            clock += f" + {number} * INTERVAL '1 {unit}'"
            fits.append(f"{number} <= {most}")
    if "f" in where:
        number = f"CAST(rpad(m.p[{where['f']}], 6, '0') AS integer)"
        clock += f" + {number} * INTERVAL '1 microsecond'"
    made = f"CASE WHEN {' AND '.join(fits)} THEN {made_moment(year, month, day, clock)} END"
    found = f"SELECT regexp_match(?, {text(f'^{pattern}$')}) AS p OFFSET 0"
    whole = f"(SELECT {made} FROM ({found}) AS m)"  # noqa: S608
    template = whole.replace("{", "{{").replace("}", "}}").replace("(?,", "({0},")
    return once(f"CASE WHEN length({{0}}) <= 200 THEN {template} END", nodes[:1], texts[:1])
