"""Rows that a server sent, as Arrow tables."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

__all__ = ["as_batch", "prepared"]

_DAYS: Final = 10_957  # from 1970 to 2000
_MICROSECONDS: Final = _DAYS * 86_400 * 10**6
_MOST: Final = 2**63 - 1


def prepared(cursor: "psycopg.Cursor[Any]") -> None:
    """Let dates and timestamps arrive as numbers: Python has none for years beyond 9999."""
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    class Days(Loader):
        format = Format.BINARY

        def load(self, data: Any) -> int:
            found: int = struct.unpack("!i", data)[0] + _DAYS
            return max(-(2**31), min(found, 2**31 - 1))

    class Microseconds(Loader):
        format = Format.BINARY

        def load(self, data: Any) -> int:
            found: int = struct.unpack("!q", data)[0] + _MICROSECONDS
            return max(-_MOST, min(found, _MOST))

    cursor.adapters.register_loader("date", Days)
    cursor.adapters.register_loader("timestamp", Microseconds)
    cursor.adapters.register_loader("timestamptz", Microseconds)


def as_batch(cursor: "psycopg.Cursor[Any]", rows: Sequence[Sequence[Any]]) -> "pa.RecordBatch":
    """Return rows, each column in the type that the server gives it."""
    import pyarrow as pa

    described = cursor.description or []
    columns = list(zip(*rows, strict=True)) or [()] * len(described)
    arrays = [_array(one.type_code, values) for one, values in zip(described, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[one.name for one in described])


def _array(oid: int, values: Sequence[Any]) -> "pa.Array":
    import pyarrow as pa

    kinds = {
        16: pa.bool_(), 21: pa.int16(), 23: pa.int32(), 20: pa.int64(), 700: pa.float32(),
        701: pa.float64(), 25: pa.string(), 17: pa.binary(),
    }  # fmt: skip
    numbered = {
        1082: (pa.int32(), pa.date32()),
        1114: (pa.int64(), pa.timestamp("us")),
        1184: (pa.int64(), pa.timestamp("us", tz="UTC")),
    }
    if oid in numbered:
        whole, kind = numbered[oid]
        return pa.array(values, whole).cast(kind)
    if oid in kinds:
        return pa.array(values, kinds[oid])
    # Numbers of any size, NaN and infinities among them: as their digits.
    return pa.array([None if one is None else str(one) for one in values], pa.string())
