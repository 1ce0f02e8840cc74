"""Pieces of SQL text: numbers, keys and conditions, written so that no reader can mistake them."""

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction

from discreet.errors import ParameterError
from discreet.tables.model.query import Key

__all__ = ["as_double", "clean_key", "column_list", "key_literal", "listed", "number"]

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
        return f"CAST(NULL AS {key.type})"
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


def listed(
    keys: Sequence[Key], groups: Sequence[Sequence[object]]
) -> list[tuple[tuple[int, ...], list[tuple[str, ...]]]]:
    """Return short lists that groups are made of: positions of keys, and rows of literals.

    All combinations of several keys need one list for each key; anything else is one list.

    >>> region = Key(name="region", type="VARCHAR", values=None)
    >>> listed([region], [("north",), (None,)])
    [((0,), [("'north'",), ('CAST(NULL AS VARCHAR)',)])]
    """
    if any(len(group) != len(keys) for group in groups):
        raise ParameterError(
            f"every group must have {len(keys)} keys, one for each column.", parameter="groups"
        )
    rows = list(
        dict.fromkeys(
            tuple(key_literal(value, key) for value, key in zip(group, keys, strict=True))
            for group in groups
        )
    )
    columns = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    if len(rows) == math.prod(map(len, columns)):
        return [((i,), [(item,) for item in column]) for i, column in enumerate(columns)]
    return [(tuple(range(len(keys))), rows)]


def column_list(columns: Iterable[str]) -> str:
    """Join the names and expressions of a select list.

    >>> column_list(["key_0", "n"])
    'key_0, n'
    """
    return ", ".join(columns)
