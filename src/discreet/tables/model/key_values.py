"""Which values a key of some type can have, and the one way in which each is written."""

from datetime import UTC, date, datetime, time

from discreet.tables.model.query import KeyValue
from discreet.tables.model.types import INTEGERS, WIDE, Type, column_type, plain_type

__all__ = ["column_key_type", "key_type", "key_value"]


def key_type(type_: Type, *, is_whole: bool) -> Type:
    """Return the type that a value has as a key: whole numbers are shown as integers.

    >>> key_type("double", is_whole=True), key_type("double", is_whole=False)
    ('int64', 'double')
    """
    if type_ == "null":
        return "text"
    return "int64" if type_ == "double" and is_whole else type_


def column_key_type(declared: str) -> Type | None:
    """Return the type that a column has as a key, None where questions cannot use it.

    >>> column_key_type("HUGEINT"), column_key_type("DECIMAL(9,2)"), column_key_type("BLOB")
    ('int64', 'double', None)
    """
    type_ = column_type(declared)
    return None if type_ is None else key_type(type_, is_whole=plain_type(declared) in WIDE)


def key_value(value: KeyValue, type_: Type) -> KeyValue:
    """Return a value as a key of this type is written; a ValueError says that it cannot be one.

    >>> key_value("20250131", "date"), key_value(3, "double")
    ('2025-01-31', 3.0)
    >>> key_value(300, "int8")
    Traceback (most recent call last):
        ...
    ValueError: no key of this type
    """
    try:
        return None if value is None else _converted(value, type_)
    except (ValueError, OverflowError, TypeError):
        raise ValueError("no key of this type") from None


def _converted(value: str | int | float | bool, type_: Type) -> KeyValue:
    if isinstance(value, bool) or type_ == "boolean":
        return _only(value, isinstance(value, bool) and type_ == "boolean")
    if isinstance(value, str):
        if type_ == "date":
            return _moment(value, is_date=True)
        if type_ == "timestamp":
            return _moment(value, is_date=False)
        value.encode()  # half a surrogate pair is no text
        return _only(value, type_ == "text" and "\0" not in value)
    if type_ in INTEGERS:
        low, high = _range(type_)
        # A larger double may stand for many integers.
        is_exact = isinstance(value, int) or (value.is_integer() and abs(value) <= 2**53)
        return _only(int(value), is_exact and low <= value <= high)
    number = float(value) + 0.0  # no minus zero
    return _only(number, type_ == "double" and number - number == 0)


def _only(value: KeyValue, is_right: bool) -> KeyValue:
    if not is_right:
        raise ValueError
    return value


def _range(type_: Type) -> tuple[int, int]:
    bits = int(type_.partition("int")[2])
    if type_.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _moment(written: str, *, is_date: bool) -> str:
    moment = datetime.fromisoformat(written.strip())
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    if not is_date:
        return moment.isoformat()
    if moment.time() != time.min:
        raise ValueError
    return date.isoformat(moment.date())
