"""Parquet files with timestamps in milliseconds, which DuckDB cannot read whatever their values.

It turns them into microseconds while it reads, and gives up where one is out of range: a single
such value would make every question about its column fail. So Arrow reads these files, as integers,
and whatever lies outside the years 1 to 9999 is NULL.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from discreet.tables.engines.compile.text import quoted
from discreet.tables.model.types import kind_of, plain_type
from discreet.tables.sources.arrow_columns import FIRST_DAY, LAST_DAY

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

__all__ = ["by_arrow", "coarse_times"]

_STEPS: Final = {"s": 1_000_000, "ms": 1_000}  # microseconds
_DAY: Final = 86_400_000_000
_ARROW: Final = {
    "BOOLEAN": "bool", "FLOAT": "float32", "DOUBLE": "float64", "DATE": "date32",
    "TINYINT": "int8", "SMALLINT": "int16", "INTEGER": "int32", "BIGINT": "int64",
    "UTINYINT": "uint8", "USMALLINT": "uint16", "UINTEGER": "uint32", "UBIGINT": "uint64",
    "VARCHAR": "binary", "TIMESTAMP": "timestamp[us]", "TIMESTAMP_NS": "timestamp[ns]",
}  # fmt: skip


def coarse_times(schema: "pa.Schema") -> dict[str, str]:
    """Return the columns of timestamps in seconds or milliseconds, with their units.

    >>> import pyarrow as pa
    >>> coarse_times(pa.schema({"at": pa.timestamp("ms"), "day": pa.date32()}))
    {'at': 'ms'}
    """
    import pyarrow as pa

    return {
        field.name: field.type.unit
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.unit in _STEPS
    }


def by_arrow(
    alias: str,
    paths: Sequence[str],
    columns: Sequence[tuple[str, str]],
    units: Mapping[str, str],
) -> "tuple[str, ds.Dataset]":
    """Return a SELECT of the columns, over files that are registered under the name ``alias``."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    own = pq.read_schema(paths[0])
    fields, shown = [], []
    for column, type_ in columns:
        name = quoted(column)
        if kind_of(type_) is None:  # of no use to questions, so never read
            shown.append(f"NULL::{type_} AS {name}")
            continue
        fields.append(_field(own.field(column), type_, is_coarse=column in units))
        if column in units:
            shown.append(f"{_moment(name, units[column])}::{type_} AS {name}")
        elif plain_type(type_) == "VARCHAR":
            shown.append(f"DECODE({name}, 'replace') AS {name}")
        else:
            shown.append(name)
    dataset = ds.dataset(list(paths), schema=pa.schema(fields), format="parquet")
    return f"(SELECT {', '.join(shown)} FROM {quoted(alias)})", dataset  # noqa: S608


def _moment(column: str, unit: str) -> str:
    steps = _STEPS[unit]
    low, high = FIRST_DAY * (_DAY // steps), (LAST_DAY + 1) * (_DAY // steps) - 1
    kept = f"CASE WHEN {column} BETWEEN {low} AND {high} THEN {column} * {steps} END"
    return f"MAKE_TIMESTAMP({kept})"


def _field(own: "pa.Field", type_: str, *, is_coarse: bool) -> "pa.Field":
    import pyarrow as pa

    plain = plain_type(type_)
    if is_coarse:
        made = pa.int64()
    elif plain in _ARROW:
        made = pa.type_for_alias(_ARROW[plain])
    elif plain.startswith("TIMESTAMP"):
        made = pa.timestamp("ns" if plain.endswith("_NS") else "us", "UTC")
    else:
        made = own.type
    return own.with_type(made)
