"""What names and types say by themselves, and bounds and keys as people type them.

Nothing here looks at a value: a bound or a key that was read off the data is itself an answer that
nobody paid for.
"""

import csv
import re
from collections.abc import Mapping
from typing import Final

from discreet.errors import ParameterError
from discreet.tables.declarations.column import DeclaredColumn
from discreet.tables.model.catalog import column_kind
from discreet.tables.model.query import KeyValue

__all__ = ["likely_units", "read_bounds", "read_keys"]

_LIKELY: Final = re.compile(
    r"(user|person|people|customer|patient|member|subject|client|visitor|employee|household|"
    r"account|device)s?_?(id|uuid|key|number|no)?|id|uuid",
    re.IGNORECASE,
)
_BOOLEANS: Final = {"false": False, "true": True}


def likely_units(columns: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the columns that, by their names, may say whose rows they are; best first.

    >>> likely_units({"people": {"age": "INTEGER", "user_id": "BIGINT"}})
    ['user_id']
    """
    tables = list(columns.values())
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    likely = [name for name in shared if _LIKELY.fullmatch(name)]
    return sorted(likely, key=lambda name: name.lower() in ("id", "uuid"))  # the vague ones last


def read_bounds(answer: str) -> DeclaredColumn:
    """Read two numbers, or nothing.

    >>> read_bounds("0 120").bounds
    (0, 120)
    """
    parts = answer.replace(",", " ").split()
    if not parts:
        return DeclaredColumn()
    if len(parts) != 2:
        raise ParameterError("bounds must be two numbers, such as: 0 120", parameter="bounds")
    return DeclaredColumn(bounds=(_number(parts[0], "bounds"), _number(parts[1], "bounds")))


def read_keys(answer: str, *, column_type: str = "VARCHAR") -> DeclaredColumn:
    """Read a list with commas, or nothing; ``column_type`` says of what kind.

    >>> read_keys('north, "south, east"').keys, read_keys("1, 2", column_type="BIGINT").keys
    (('north', 'south, east'), (1, 2))
    """
    # As in a CSV file, so that a key may have commas: north, "south, east"
    listed = next(csv.reader([answer], skipinitialspace=True), [])
    keys = tuple(_key(key.strip(), column_kind(column_type)) for key in listed if key.strip())
    return DeclaredColumn(keys=keys) if keys else DeclaredColumn()


def _key(text: str, kind: str) -> KeyValue:
    if kind == "number":
        return _number(text, "keys")
    if kind != "boolean":
        return text
    if text.lower() not in _BOOLEANS:
        raise ParameterError("keys must be true and false.", parameter="keys")
    return _BOOLEANS[text.lower()]


def _number(text: str, name: str) -> int | float:
    try:
        return int(text) if re.fullmatch(r"[+-]?\d{1,400}", text) else float(text)
    except ValueError:
        count = "two numbers" if name == "bounds" else "numbers"
        raise ParameterError(f"{name} must be {count}, such as: 0 120", parameter=name) from None
