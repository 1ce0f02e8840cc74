"""The columns that an answer would have: known before anything is paid."""

from typing import TYPE_CHECKING, Any

from discreet.tables.engines.post_processing import empty_answer
from discreet.tables.engines.protocol import Connection
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.composite import Composite
from discreet.tables.model.query import Query
from discreet.tables.release.composite import keys_shown
from discreet.tables.release.outer import check_outer
from discreet.tables.results.columns import with_bars

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["answer_columns"]


def answer_columns(
    found: Query | Composite, catalog: Catalog, connection: Connection, *, errors: bool
) -> dict[str, str]:
    """Return names and types of columns, with those of error bars where ``errors`` are wanted.

    No protected table is read: a query runs over no rows.
    """
    if isinstance(found, Query):
        types = {field.name: _type_name(field.type) for field in empty_answer(found).schema}
        keys = found.key_names
    else:
        empty = check_outer(found, catalog, connection)
        types = {name: _type_name(column.type) for name, column in empty.items()}
        keys = keys_shown(found, types)
    if not errors:
        return types
    return {
        shown: {"values": types[name], "reliable": "BOOLEAN"}.get(part, "DOUBLE")
        for shown, name, part in with_bars(list(types), keys)
    }


def _type_name(type_: "pa.DataType") -> str:
    """Return the type in which a result holds values of an Arrow type, in SQL's words."""
    import pyarrow as pa

    kinds: list[tuple[Any, str]] = [
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_integer, "BIGINT"),
        (pa.types.is_floating, "DOUBLE"),
        (pa.types.is_decimal, "DOUBLE"),
        (pa.types.is_date, "DATE"),
        (pa.types.is_timestamp, "TIMESTAMP"),
        (pa.types.is_time, "TIME"),
    ]
    return next((name for is_kind, name in kinds if is_kind(type_)), "VARCHAR")
