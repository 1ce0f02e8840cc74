"""The finished text of a statement, with the few words changed that PostgreSQL has others for.

What is asked is written with doubles such as 0.5e0, which PostgreSQL takes for decimals, and with a
salt by name. Tables, and lists of public keys that come along as arrays, are put in front as WITH.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from discreet.tables.engines.compile.dialect import SALT
from discreet.tables.engines.compile.keys import KeyTable
from discreet.tables.engines.compile.text import quoted

__all__ = ["Finished", "finished"]

_TOKENS: Final = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | (?P<double>\b\d+(?:\.\d*)?e[+-]?\d+)"""
    r"| (?P<type>\bAS\ DOUBLE\b) | (?P<salt>\$salt\b)",
    re.VERBOSE,
)


class Finished(NamedTuple):
    """A text, its parameters by name, and the text for people, without the salt."""

    text: str
    parameters: dict[str, Any]
    shown: str


def _word(match: "re.Match[str]") -> str:
    if match["double"]:
        return f"float8 '{match['double']}'"
    if match["type"]:
        return "AS float8"
    return match[0]


def words(text: str) -> str:
    """Exchange words for PostgreSQL's.

    >>> words("SELECT CAST(x AS DOUBLE) * 0.5e0, '1e0 AS DOUBLE'")
    "SELECT CAST(x AS float8) * float8 '0.5e0', '1e0 AS DOUBLE'"
    """
    return _TOKENS.sub(_word, text)


def finished(text: str, tables: Mapping[str, str], keys: Sequence[KeyTable], salt: str) -> Finished:
    """Return a statement over these tables (SELECTs by name) as it is sent.

    >>> finished('SELECT "a" FROM "t"', {"t": "SELECT a FROM s.t"}, (), "").text
    'WITH "t" AS NOT MATERIALIZED (SELECT a FROM s.t) SELECT * FROM (SELECT "a" FROM "t") AS answer'
    """
    parameters: dict[str, Any] = {}
    steps = [
        f"{quoted(name)} AS NOT MATERIALIZED ({reader})"
        for name, reader in tables.items()
        if quoted(name) in text
    ]
    for number, table in enumerate(keys):
        (code, _), *columns = table.columns
        arrays = []
        for place, (_, values) in enumerate(columns):
            name = f"keys_{number}_{place}"
            parameters[name] = list(values)
            arrays.append(f"\x00{name}\x00")
        names = ", ".join(f'{name} COLLATE "C" AS {name}' for name, _ in columns)
        shown = ", ".join([*(name for name, _ in columns), "place"])
        listed = f"unnest({', '.join(arrays)}) WITH ORDINALITY AS k({shown})"
        numbered = f"SELECT place - 1 AS {code}, {names} FROM {listed}"  # noqa: S608
        steps.append(f"{quoted(table.name)} AS ({numbered})")
    whole = text
    if steps:
        whole = f"WITH {', '.join(steps)} SELECT * FROM ({text}) AS answer"  # noqa: S608
    made, has_salt = _sent(words(whole))
    if has_salt:
        parameters["salt"] = salt
    shown = re.sub("\x00(\\w+)\x00", r"CAST($\1 AS text[])", words(whole))
    return Finished(made, parameters, shown)


def _sent(text: str) -> tuple[str, bool]:
    """Write parameters as the driver wants them, among percent signs that mean themselves."""
    found = False

    def word(match: "re.Match[str]") -> str:
        nonlocal found
        if match["salt"]:
            found = True
            return "\x00salt\x00"
        return match[0]

    marked = _TOKENS.sub(word, text).replace("%", "%%")
    made = re.sub("\x00(salt)\x00", r"CAST(%(\1)s AS text)", marked)
    return re.sub("\x00(\\w+)\x00", r"CAST(%(\1)s AS text[])", made), found


assert SALT == "$salt"
