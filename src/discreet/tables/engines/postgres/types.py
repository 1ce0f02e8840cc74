"""Columns of a database by the names that types have here, and how they are read."""

from typing import Final

from discreet.tables.engines.compile.text import quoted
from discreet.tables.model.scalar import LARGEST_TEXT

__all__ = ["declared"]

_PLAIN: Final = {
    "bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT",
    "float4": "FLOAT", "float8": "DOUBLE", "date": "DATE", "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE", "bytea": "BLOB",
}  # fmt: skip
_TEXTS: Final = {
    "text": "VARCHAR", "varchar": "VARCHAR", "bpchar": "VARCHAR", "name": "VARCHAR",
    "uuid": "UUID",
}  # fmt: skip
_ANY_LENGTH: Final = ("text", "varchar", "bpchar")
OTHER: Final = "OTHER"
"""What questions cannot use: arrays, ranges, documents, and whatever extensions bring."""


def declared(
    column: str,
    type_: str,
    kind: str,
    modifier: int,
    is_builtin: bool,
) -> tuple[str, str]:
    """Return the name of a column's type, and the expression that reads it.

    Texts are compared by their bytes, whatever collation the column has, and without the blanks
    that fill up a ``char(n)``; those larger than ``LARGEST_TEXT`` count as missing. Values of an
    enum are texts; a domain is read as what it is made of.

    >>> declared("pay", "numeric", "b", (9 << 16 | 2) + 4, True)
    ('DECIMAL(9,2)', 'CAST("pay" AS numeric) AS "pay"')
    >>> declared("mood", "mood", "e", -1, False)
    ('VARCHAR', 'CAST("mood" AS text) COLLATE "C" AS "mood"')
    """
    name = quoted(column)
    if kind == "e" or (is_builtin and type_ in _TEXTS):
        shown = _TEXTS.get(type_, "VARCHAR")
        said = f'CAST({name} AS text) COLLATE "C"'
        if kind != "e" and type_ in _ANY_LENGTH:  # whose size is known without reading them
            said = f"CASE WHEN octet_length({name}) <= {LARGEST_TEXT} THEN {said} END"
        return shown, f"{said} AS {name}"
    if is_builtin and type_ == "numeric":
        shown = _decimal(modifier)
        # Without a scale 1.5 and 1.50 are equal, and have to look so to a hash as well.
        reader = f"CAST({name} AS numeric)" if "(" in shown else f"trim_scale({name})"
        return shown, f"{reader} AS {name}"
    if is_builtin and type_ in _PLAIN:
        return _PLAIN[type_], f"CAST({name} AS {type_}) AS {name}"
    return OTHER, name


def _decimal(modifier: int) -> str:
    if modifier < 4:
        return "DECIMAL"
    digits, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    scale = (scale ^ 1024) - 1024  # it may be negative
    return f"DECIMAL({digits},{scale})" if scale >= 0 else "DECIMAL"
