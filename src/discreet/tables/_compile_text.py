"""Pieces of SQL text: numbers, keys and conditions, written so that no reader can mistake them."""

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction

from discreet.errors import ParameterError
from discreet.tables.plan import Key

__all__ = ["among", "as_double", "column_list", "key_literal", "number"]

_LARGEST = math.nextafter(math.inf, 0)
_FLOATS = ("DOUBLE", "FLOAT")


def as_double(value: Fraction | int | float) -> float:
    """Return the nearest finite double.

    >>> as_double(Fraction(1, 10)), as_double(-(10**400))
    (0.1, -1.7976931348623157e+308)
    """
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf if value > 0 else -math.inf
    return min(max(nearest, -_LARGEST), _LARGEST)


def number(value: float) -> str:
    """Write a finite double so that it is read back as the same double, not as a decimal.

    >>> number(0.1), number(1e300), number(-2.0)
    ('0.1e0', '1e+300', '-2.0e0')
    """
    text = repr(float(value))
    return text if "e" in text else text + "e0"


def key_literal(value: object, key: Key) -> str:
    """Write one key with the type of its column; NaN is no key and counts as NULL.

    >>> key_literal("it's", Key(name="a", type="VARCHAR", values=None))
    "'it''s'"
    >>> key_literal("2026-01-31", Key(name="a", type="DATE", values=None))
    "CAST('2026-01-31' AS DATE)"
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "NULL"
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
    quoted = "'" + value.replace("'", "''") + "'"
    return quoted if key.type == "VARCHAR" else f"CAST({quoted} AS {key.type})"


def clean_key(index: int, key: Key) -> str:
    """Select a key so that equal keys look the same: without NaN, and without a negative zero."""
    name = f"key_{index}"
    if key.type not in _FLOATS:
        return name
    return f"CASE WHEN ISNAN({name}) THEN NULL WHEN {name} = 0 THEN 0 ELSE {name} END AS {name}"


def among(keys: Sequence[Key], groups: Sequence[Sequence[object]]) -> list[str]:
    """Return conditions that hold for rows of the listed groups only, NULL being a key like others.

    >>> region = Key(name="region", type="VARCHAR", values=None)
    >>> among([region], [("north",), (None,)])
    ["(key_0 IN ('north') OR key_0 IS NULL)"]
    """
    if any(len(group) != len(keys) for group in groups):
        raise ParameterError(
            f"every group must have {len(keys)} keys, one for each column.", parameter="groups"
        )
    if not groups or not keys:
        return [] if groups else ["FALSE"]
    literals = [
        tuple(key_literal(value, key) for value, key in zip(group, keys, strict=True))
        for group in groups
    ]
    columns = [tuple(dict.fromkeys(column)) for column in zip(*literals, strict=True)]
    if len(set(literals)) == math.prod(map(len, columns)):
        # All combinations of the columns' own lists: much shorter, and no join.
        return [_one_of(f"key_{i}", column) for i, column in enumerate(columns)]
    return [_one_of_rows(literals)]


def column_list(columns: Iterable[str]) -> str:
    """Join the names and expressions of a select list.

    >>> column_list(["key_0", "n"])
    'key_0, n'
    """
    return ", ".join(columns)


def _one_of(name: str, literals: Sequence[str]) -> str:
    given = [literal for literal in literals if literal != "NULL"]
    listed = f"{name} IN ({', '.join(given)})" if given else "FALSE"
    return f"({listed} OR {name} IS NULL)" if len(given) < len(literals) else listed


def _one_of_rows(literals: Iterable[tuple[str, ...]]) -> str:
    """Return one condition over several columns; rows with the same NULLs share a list."""
    by_nulls: dict[tuple[bool, ...], list[tuple[str, ...]]] = {}
    for row in dict.fromkeys(literals):
        by_nulls.setdefault(tuple(item == "NULL" for item in row), []).append(row)
    parts = []
    for nulls, rows in by_nulls.items():
        given = [i for i, is_null in enumerate(nulls) if not is_null]
        tests = [f"key_{i} IS NULL" for i, is_null in enumerate(nulls) if is_null]
        if given:
            left = column_list(f"key_{i}" for i in given)
            right = ", ".join(f"({column_list(row[i] for i in given)})" for row in rows)
            tests.append(f"({left}) IN ({right})" if len(given) > 1 else f"{left} IN ({right})")
        parts.append(" AND ".join(tests))
    return "(" + " OR ".join(f"({part})" for part in parts) + ")"
