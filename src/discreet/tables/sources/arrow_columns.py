"""Arrow columns that any engine can read, whatever their values: one that does not fit is NULL."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from discreet.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FIRST_DAY", "LAST_DAY", "readable"]

FIRST_DAY: Final = -719_162  # of the year 1, counted from 1970
LAST_DAY: Final = 2_932_896  # of the year 9999
_DAY: Final = {"s": 86_400, "ms": 86_400_000}


def readable(values: "pa.ChunkedArray", *, column: str, table: str) -> "pa.ChunkedArray":
    """Return a column in a type that engines have, without values that they could stumble on.

    Texts that are no UTF-8, and dates and moments that fit no timestamp in microseconds, are NULL:
    an error would tell that they are there. Which type comes out depends on the type alone.

    >>> import pyarrow as pa
    >>> moments = pa.chunked_array([pa.array([0, 10**17], pa.timestamp("s"))])
    >>> readable(moments, column="at", table="people").to_pylist()
    [datetime.datetime(1970, 1, 1, 0, 0), None]
    """
    import pyarrow as pa

    try:
        values.validate()
        if pa.types.is_dictionary(values.type) and not _is_text(values.type.value_type):
            values = values.cast(values.type.value_type)
        made = _converted(values)
        if _is_text(made.type) or pa.types.is_dictionary(made.type):
            made = _checked(made)
        return made
    except (pa.ArrowException, IndexError):
        pass
    raise DataError(
        f"column {column!r} of table {table!r} is broken: its buffers are not those of its type. "
        "Repair it where it comes from."
    )


def _converted(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    import pyarrow as pa
    import pyarrow.compute as pc

    type_ = values.type
    if pa.types.is_float16(type_):
        return values.cast(pa.float32())
    if pa.types.is_decimal256(type_):
        if type_.precision > 38:
            return values.cast(pa.float64())
        return _one_by_one(values, pa.decimal128(type_.precision, type_.scale))
    is_date = pa.types.is_date64(type_)
    if is_date or (pa.types.is_timestamp(type_) and type_.unit in _DAY):
        day = _DAY["ms" if is_date else type_.unit]
        counted = values.cast(pa.int64())
        low, high = pa.scalar(FIRST_DAY * day), pa.scalar((LAST_DAY + 1) * day - 1)
        fits = pc.and_(pc.greater_equal(counted, low), pc.less_equal(counted, high))
        kept = pc.if_else(fits, values, pa.scalar(None, type_))
        return kept.cast(pa.date32() if is_date else pa.timestamp("us", type_.tz), safe=False)
    return values


def _one_by_one(values: "pa.ChunkedArray", type_: "pa.DataType") -> "pa.ChunkedArray":
    import pyarrow as pa

    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        most = 10**type_.precision
        listed = values.to_pylist()
        kept = [v if v is not None and abs(v.scaleb(type_.scale)) < most else None for v in listed]
        return pa.chunked_array([pa.array(kept, type_)])


def _is_text(type_: "pa.DataType") -> bool:
    import pyarrow as pa

    kinds: tuple[Callable[[Any], bool], ...] = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    )  # fmt: skip
    return any(is_kind(type_) for is_kind in kinds)


def _checked(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return texts with those that are no UTF-8 made NULL."""
    import pyarrow as pa

    try:
        values.validate(full=True)
        return values
    except pa.ArrowInvalid:
        pass
    kept: list[str | None] = []
    for chunk in values.chunks:
        is_coded = pa.types.is_dictionary(chunk.type)
        plain = chunk.dictionary if is_coded else chunk
        texts = [_text(value) for value in plain.cast(pa.large_binary()).to_pylist()]
        codes = chunk.indices.to_pylist() if is_coded else []
        kept += [None if i is None else texts[i] for i in codes] if is_coded else texts
    return pa.chunked_array([pa.array(kept, pa.large_string())])


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
