"""Pieces of SQL text: names, texts and numbers, written so that no reader can mistake them."""

import math
import re
from collections.abc import Iterable
from fractions import Fraction

__all__ = [
    "as_double",
    "column_list",
    "identifier",
    "number",
    "quoted",
    "text",
]

_LARGEST = math.nextafter(math.inf, 0)
_PLAIN = re.compile(r"unit|[kv]\d+|(key|value)_\d+")  # names that plans give to columns


def quoted(name: str) -> str:
    """Quote a name.

    >>> quoted('my "own" table')
    '"my ""own"" table"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quote a text.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(column: str) -> str:
    """Write the name of a column: quoted, unless a plan gave it.

    >>> identifier("key_0"), identifier("age")
    ('key_0', '"age"')
    """
    return column if _PLAIN.fullmatch(column) else quoted(column)


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


def column_list(columns: Iterable[str]) -> str:
    """Join the names and expressions of a select list.

    >>> column_list(["key_0", "n"])
    'key_0, n'
    """
    return ", ".join(columns)
