"""Keys of groups: lists of public ones as tables, and equal keys that look the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import final

from discreet.errors import ParameterError
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.model.query import Key
from discreet.tables.model.statements import Combinations

__all__ = ["KeyTable", "clean_key", "key_text", "listed"]


@final
@dataclass(frozen=True, slots=True)
class KeyTable:
    """A table of public keys that a statement reads under this ``name``; the engine provides it.

    The first of its columns has whole numbers, the others texts or NULLs. A list of keys may be
    long: in the text of a statement it would take many times its size in memory.

    >>> KeyTable('keys"0', (("code_0", (0, 1)), ("key_0", ("north", None)))).name
    'keys"0'
    """

    name: str  # with a quote, which no table's name has: see discreet.tables.sources.names
    columns: tuple[tuple[str, Sequence[int] | Sequence[str | None]], ...]


def key_text(value: object, key: Key) -> str | None:
    """Write one key so that it can be cast to its column's type; NaN is no key and counts as NULL.

    >>> from datetime import date
    >>> key_text(date(2026, 1, 31), Key(name="a", type="date", values=None))
    '2026-01-31'
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | datetime | time):
        value = value.isoformat()
    elif isinstance(value, int | float | Decimal):
        value = str(value)
    if not isinstance(value, str) or "\0" in value:
        raise ParameterError(
            f"a key of {key.name!r} must be a text without NUL, a number, a boolean, a date or "
            f"None, got {type(value).__name__}.",
            parameter="groups",
        )
    return value


def clean_key(index: int, key: Key, dialect: Dialect) -> str:
    """Select a key so that equal keys look the same: without NaN, and without a negative zero."""
    name = f"key_{index}"
    if key.type != "double":
        return name
    is_nan = dialect.is_nan.format(name)
    return f"CASE WHEN {is_nan} THEN NULL WHEN {name} = 0 THEN 0 ELSE {name} END AS {name}"


def listed(
    keys: Sequence[Key], groups: Sequence[Sequence[object]]
) -> list[tuple[tuple[int, ...], list[Sequence[str | None]]]]:
    """Return short lists that groups are made of: positions of keys, and a column for each.

    All combinations of several keys need one list for each key; anything else is one list.

    >>> region = Key(name="region", type="text", values=None)
    >>> listed([region], [("north",), (None,)])
    [((0,), [['north', None]])]
    """
    if isinstance(groups, Combinations) and len(groups.lists) == len(keys):
        columns = [
            list(dict.fromkeys(key_text(value, key) for value in values))
            for key, values in zip(keys, groups.lists, strict=True)
        ]
        return [((i,), [column]) for i, column in enumerate(columns)]
    if any(len(group) != len(keys) for group in groups):
        raise ParameterError(
            f"every group must have {len(keys)} keys, one for each column.", parameter="groups"
        )
    written = [
        [key_text(value, key) for value in column]
        for key, column in zip(keys, zip(*groups, strict=True), strict=True)
    ]
    columns = [list(dict.fromkeys(column)) for column in written]
    if len(keys) == 1 or len(set(zip(*written, strict=True))) == math.prod(map(len, columns)):
        return [((i,), [column]) for i, column in enumerate(columns)]
    return [(tuple(range(len(keys))), list(written))]
