"""The relations of the catalogue: their columns, as a file beside this one lists them."""

from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["RELATIONS_FILE", "column_types", "relation_named"]

RELATIONS_FILE: Final = "relations.txt"
_TYPES: Final = {
    "oid": "BIGINT", "text": "VARCHAR", "bool": "BOOLEAN", "timestamp": "TIMESTAMP",
    "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float8": "DOUBLE",
}  # fmt: skip


@cache
def column_types() -> dict[str, dict[str, str]]:
    """Return the columns of every relation, with their types in DuckDB.

    >>> column_types()["pg_catalog.pg_am"]["amname"]
    'VARCHAR'
    """
    text = files(__package__).joinpath(RELATIONS_FILE).read_text("utf-8")
    found: dict[str, dict[str, str]] = {}
    columns: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        words = line.split()
        if not line.startswith(" "):
            columns = found[words.pop(0)] = {}
        for word in words:
            name, _, type_ = word.partition(":")
            plain, bracket, _ = type_.partition("[")
            columns[name] = _TYPES[plain] + ("[]" if bracket else "")
    return found


def relation_named(schema: str, name: str) -> str | None:
    """Return the full name of a relation of the catalogue, None where there is none.

    >>> relation_named("", "pg_class"), relation_named("", "tables")
    ('pg_catalog.pg_class', None)
    """
    full = f"{schema.lower() or 'pg_catalog'}.{name.lower()}"
    return full if full in column_types() else None
