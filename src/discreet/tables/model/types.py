"""What values are: our own names of types, and those in which columns are declared."""

import re
from typing import Final, Literal

__all__ = [
    "INTEGERS",
    "SQL_NAMES",
    "WIDE",
    "ZONED",
    "Kind",
    "Type",
    "column_type",
    "kind_of",
    "plain_type",
    "without_labels",
]

Kind = Literal["number", "text", "boolean", "date", "timestamp", "null"]
"""What a question can do with a value."""

Type = Literal[
    "boolean",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "int128",  # holds sums of any number of int64
    "double",
    "text",
    "date",
    "timestamp",  # without a time zone, in microseconds
    "null",  # of a bare NULL, which fits anywhere
    "released",  # of a released aggregate: whatever the releaser made of it
]  # fmt: skip
"""The types of a plan, which engines map to their own."""

SQL_NAMES: Final[dict[Type, str]] = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
    "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT",
    "int128": "HUGEINT",
    "double": "DOUBLE", "text": "VARCHAR", "date": "DATE", "timestamp": "TIMESTAMP",
}  # fmt: skip
"""The names of types in questions, declarations and refusals."""

INTEGERS: Final[frozenset[Type]] = frozenset(
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
_INTEGERS: Final[dict[str, Type]] = {SQL_NAMES[type_]: type_ for type_ in INTEGERS}
WIDE: Final = frozenset({"HUGEINT", "UHUGEINT", "BIGNUM"})
_ALIASES: Final = {
    "INT": "INTEGER", "INT1": "TINYINT", "INT2": "SMALLINT", "INT4": "INTEGER", "INT8": "BIGINT",
    "LONG": "BIGINT", "SHORT": "SMALLINT", "REAL": "FLOAT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
    "TEXT": "VARCHAR", "STRING": "VARCHAR", "CHAR": "VARCHAR", "BPCHAR": "VARCHAR",
    "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN", "DATETIME": "TIMESTAMP",
}  # fmt: skip
ZONED: Final = frozenset({"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"})
_TIMESTAMPS: Final = ZONED | {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}


def kind_of(declared: str) -> Kind | None:
    """Return the kind of a declared type, or None where questions cannot use it.

    >>> kind_of("DECIMAL(18,3)"), kind_of("INTEGER[]")
    ('number', None)
    """
    plain = plain_type(declared)
    if plain in _INTEGERS or plain in WIDE or plain in ("FLOAT", "DOUBLE"):
        return "number"
    if re.fullmatch(r"(DECIMAL|NUMERIC)(\(.*\))?", plain):
        return "number"
    if re.fullmatch(r"VARCHAR(\(\d+\))?|UUID|ENUM(\(.*\))?", plain, re.DOTALL):
        return "text"
    if plain in _TIMESTAMPS:
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(plain)  # type: ignore[return-value]


def column_type(declared: str) -> Type | None:
    """Return the type in which questions see a column, or None where they cannot use it.

    >>> column_type("INT"), column_type("DECIMAL(18,3)"), column_type("UUID"), column_type("BLOB")
    ('int32', 'double', 'text', None)
    """
    kind = kind_of(declared)
    if kind == "number":
        return _INTEGERS.get(plain_type(declared), "double")
    return kind


def plain_type(declared: str) -> str:
    """Return the one name that a declared type has here.

    >>> plain_type("int8"), plain_type("decimal(18,3)")
    ('BIGINT', 'DECIMAL(18,3)')
    """
    # Only the name is made upper case: the labels of an ENUM keep theirs.
    head, bracket, rest = declared.strip().partition("(")
    head = head.strip().upper()
    return _ALIASES.get(head, head) + bracket + rest


def without_labels(declared: str) -> str:
    """Return a declared type without the labels of an ENUM, which are data and not public.

    >>> without_labels("ENUM('spy', 'it''s')[]")
    'ENUM[]'
    """
    label = r"'(?:[^']|'')*'"
    return re.sub(rf"\bENUM\({label}(?:, ?{label})*\)", "ENUM", declared, flags=re.IGNORECASE)
