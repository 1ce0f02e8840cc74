"""The types of PostgreSQL that are spoken here, and which of ours each stands for."""

from dataclasses import dataclass
from typing import Final, final

__all__ = ["BY_OID", "TEXT", "TYPES", "WireType", "answer_type", "declared_type", "type_named"]


@final
@dataclass(frozen=True, slots=True)
class WireType:
    """A type of PostgreSQL: its number, its names, its size in bytes (-1 where that varies).

    >>> type_named("float8").shown
    'double precision'
    """

    oid: int
    name: str
    shown: str
    size: int
    category: str
    array: int = 0
    element: int = 0


_PLAIN: Final = (
    WireType(16, "bool", "boolean", 1, "B", 1000),
    WireType(17, "bytea", "bytea", -1, "U", 1001),
    WireType(18, "char", '"char"', 1, "Z", 1002),
    WireType(19, "name", "name", 64, "S", 1003),
    WireType(20, "int8", "bigint", 8, "N", 1016),
    WireType(21, "int2", "smallint", 2, "N", 1005),
    WireType(23, "int4", "integer", 4, "N", 1007),
    WireType(25, "text", "text", -1, "S", 1009),
    WireType(26, "oid", "oid", 4, "N", 1028),
    WireType(114, "json", "json", -1, "U", 199),
    WireType(700, "float4", "real", 4, "N", 1021),
    WireType(701, "float8", "double precision", 8, "N", 1022),
    WireType(1042, "bpchar", "character", -1, "S", 1014),
    WireType(1043, "varchar", "character varying", -1, "S", 1015),
    WireType(1082, "date", "date", 4, "D", 1182),
    WireType(1083, "time", "time without time zone", 8, "D", 1183),
    WireType(1114, "timestamp", "timestamp without time zone", 8, "D", 1115),
    WireType(1184, "timestamptz", "timestamp with time zone", 8, "D", 1185),
    WireType(1700, "numeric", "numeric", -1, "N", 1231),
    WireType(2950, "uuid", "uuid", 16, "U", 2951),
)
TYPES: Final = (
    *_PLAIN,
    *(
        WireType(one.array, f"_{one.name}", f"{one.shown}[]", -1, "A", element=one.oid)
        for one in _PLAIN
    ),
)
BY_OID: Final = {one.oid: one for one in TYPES}
_BY_NAME: Final = {one.name: one for one in TYPES}
TEXT: Final = _BY_NAME["text"]

_DECLARED: Final = {
    "BOOLEAN": "bool",
    "TINYINT": "int2", "SMALLINT": "int2", "UTINYINT": "int2",
    "INTEGER": "int4", "USMALLINT": "int4",
    "BIGINT": "int8", "UINTEGER": "int8",
    "HUGEINT": "numeric", "UBIGINT": "numeric", "UHUGEINT": "numeric", "BIGNUM": "numeric",
    "FLOAT": "float4", "DOUBLE": "float8",
    "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp", "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp", "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz", "UUID": "uuid", "BLOB": "bytea",
}  # fmt: skip


def type_named(name: str) -> WireType:
    """Return a type by PostgreSQL's short name for it."""
    return _BY_NAME[name]


def declared_type(declared: str) -> WireType:
    """Return how tools shall see a column that is declared so in DuckDB's words.

    >>> declared_type("DECIMAL(18,3)").name, declared_type("ENUM").name
    ('numeric', 'text')
    """
    if declared.startswith("DECIMAL"):
        return _BY_NAME["numeric"]
    return _BY_NAME[_DECLARED.get(declared, "text")]


def answer_type(declared: str) -> WireType:
    """Return the type in which values of a type of DuckDB are sent.

    There is one of each kind: numbers that no integer holds are sent as doubles, whatever has no
    kind of its own as text.

    >>> answer_type("DECIMAL(18,3)").name, answer_type("VARCHAR[]").name
    ('float8', 'text')
    """
    found = declared_type(declared)
    if found.name == "numeric" and declared == "HUGEINT":  # what counts and sums are, mostly
        return _BY_NAME["int8"]
    swapped = {"numeric": "float8", "float4": "float8", "timestamptz": "text", "uuid": "text"}
    return _BY_NAME[swapped.get(found.name, "text" if found.name == "bytea" else found.name)]
