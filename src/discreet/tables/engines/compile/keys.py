"""Keys of groups, written so that equal keys look the same."""

import math
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal

from discreet.errors import ParameterError
from discreet.tables.engines.compile.dialect import Dialect
from discreet.tables.engines.compile.text import text
from discreet.tables.model.query import Key

__all__ = ["clean_key", "key_literal", "listed"]


def key_literal(value: object, key: Key, dialect: Dialect) -> str:
    """Write one key with the type of its column; NaN is no key and counts as NULL.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> key_literal("it's", Key(name="a", type="text", values=None), DUCKDB)
    "'it''s'"
    >>> key_literal("2026-01-31", Key(name="a", type="date", values=None), DUCKDB)
    "CAST('2026-01-31' AS DATE)"
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return f"CAST(NULL AS {dialect.types[key.type]})"
    if isinstance(value, bool):
        return str(value).upper()
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
    written = text(value)
    return written if key.type == "text" else f"CAST({written} AS {dialect.types[key.type]})"


def clean_key(index: int, key: Key) -> str:
    """Select a key so that equal keys look the same: without NaN, and without a negative zero."""
    name = f"key_{index}"
    if key.type != "double":
        return name
    return f"CASE WHEN ISNAN({name}) THEN NULL WHEN {name} = 0 THEN 0 ELSE {name} END AS {name}"


def listed(
    keys: Sequence[Key], groups: Sequence[Sequence[object]], dialect: Dialect
) -> list[tuple[tuple[int, ...], list[tuple[str, ...]]]]:
    """Return short lists that groups are made of: positions of keys, and rows of literals.

    All combinations of several keys need one list for each key; anything else is one list.

    >>> from discreet.tables.engines.duckdb.dialect import DUCKDB
    >>> region = Key(name="region", type="text", values=None)
    >>> listed([region], [("north",), (None,)], DUCKDB)
    [((0,), [("'north'",), ('CAST(NULL AS VARCHAR)',)])]
    """
    if any(len(group) != len(keys) for group in groups):
        raise ParameterError(
            f"every group must have {len(keys)} keys, one for each column.", parameter="groups"
        )
    rows = list(
        dict.fromkeys(
            tuple(key_literal(value, key, dialect) for value, key in zip(group, keys, strict=True))
            for group in groups
        )
    )
    columns = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    if len(rows) == math.prod(map(len, columns)):
        return [((i,), [(item,) for item in column]) for i, column in enumerate(columns)]
    return [(tuple(range(len(keys))), rows)]
