"""Columns of Spark in the types that are declared, and how they are read whatever is in them."""

import re
from typing import Final

from discreet.tables.engines.compile.text import quoted
from discreet.tables.model.scalar import LARGEST_TEXT
from discreet.tables.model.types import kind_of
from discreet.tables.sources.arrow_columns import FIRST_DAY, LAST_DAY

__all__ = ["COARSE", "declared", "reader"]

COARSE: Final = ("timestamp_ntz in ms", "timestamp in ms")
"""What we call timestamps in milliseconds, without a zone and with one, as whole numbers."""

_FIRST, _LAST = FIRST_DAY * 86_400_000, (LAST_DAY + 1) * 86_400_000 - 1
_NAMES: Final = {
    "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER",
    "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE", "timestamp_ltz": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP", "binary": "BLOB",
    COARSE[0]: "TIMESTAMP", COARSE[1]: "TIMESTAMP WITH TIME ZONE",
}  # fmt: skip


def declared(kind: str) -> str:
    """Return the name that a type of Spark's has in declarations.

    >>> declared("timestamp_ntz"), declared("decimal(9,2)"), declared("string collate UNICODE_CI")
    ('TIMESTAMP', 'DECIMAL(9,2)', 'VARCHAR')
    """
    plain = kind.strip().lower()
    if re.fullmatch(r"(string|varchar|char)\b.*", plain):
        return "VARCHAR"
    if plain.startswith("decimal"):
        return plain.upper()
    # Of no use to questions. What is inside of it may have names, which are no business here.
    return _NAMES.get(plain, re.split(r"[<( ]", plain)[0].upper())


def reader(name: str, kind: str, *, is_new: bool) -> str | None:
    """Return the expression that reads a column; None for one that no question can use.

    Texts are told apart by their bytes, whatever collation they have, and bytes that are no UTF-8
    are read as the sign for that; texts larger than ``LARGEST_TEXT`` count as missing. ``is_new``
    says that Spark has a function for it.

    >>> reader("name", "string", is_new=True)
    'CASE WHEN octet_length("name") <= 1048576 THEN make_valid_utf8("name") END AS "name"'
    """
    shown = declared(kind)
    if kind_of(shown) is None:
        return None
    column = quoted(name)
    if kind in COARSE:
        made = f"timestamp_micros({column} * 1000)"
        made = f"CAST({made} AS TIMESTAMP_NTZ)" if kind == COARSE[0] else made
        return f"CASE WHEN {column} BETWEEN {_FIRST} AND {_LAST} THEN {made} END AS {column}"
    if shown != "VARCHAR":
        return column
    if "collate" in kind.lower():
        column = f"({column} COLLATE UTF8_BINARY)"
    made = f"make_valid_utf8({column})" if is_new else f"decode(CAST({column} AS BINARY), 'UTF-8')"
    return f"CASE WHEN octet_length({column}) <= {LARGEST_TEXT} THEN {made} END AS {quoted(name)}"
