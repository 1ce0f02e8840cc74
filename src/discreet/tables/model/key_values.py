"""Which values a key of some type can have, and the one way in which each is written."""

from datetime import UTC, date, datetime, time
from typing import Final

from discreet.tables.model.query import KeyValue
from discreet.tables.sql.expressions.term import INTEGERS, Term

__all__ = ["key_type", "key_value"]

_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}


def key_type(term: Term) -> str:
    """Return the type that a term has as a key: whole numbers are shown as integers.

    >>> from discreet.tables.sql.expressions.term import number
    >>> key_type(number("floor(x)", is_whole=True)), key_type(number("x"))
    ('BIGINT', 'DOUBLE')
    """
    if term.kind == "null":
        return "VARCHAR"
    return "BIGINT" if term.type == "DOUBLE" and term.is_whole else term.type


def key_value(value: KeyValue, type_: str) -> KeyValue:
    """Return a value as a key of this type is written; a ValueError says that it cannot be one.

    >>> key_value("20250131", "DATE"), key_value(3, "DOUBLE")
    ('2025-01-31', 3.0)
    >>> key_value(300, "TINYINT")
    Traceback (most recent call last):
        ...
    ValueError: no key of this type
    """
    try:
        return None if value is None else _converted(value, type_)
    except (ValueError, OverflowError, TypeError):
        raise ValueError("no key of this type") from None


def _converted(value: str | int | float | bool, type_: str) -> KeyValue:
    if isinstance(value, bool) or type_ == "BOOLEAN":
        return _only(value, isinstance(value, bool) and type_ == "BOOLEAN")
    if isinstance(value, str):
        if type_ == "DATE":
            return _moment(value, is_date=True)
        if type_ == "TIMESTAMP":
            return _moment(value, is_date=False)
        value.encode()  # half a surrogate pair is no text
        return _only(value, type_ == "VARCHAR" and "\0" not in value)
    if type_ in INTEGERS:
        low, high = _range(type_)
        # A larger double may stand for many integers.
        is_exact = isinstance(value, int) or (value.is_integer() and abs(value) <= 2**53)
        return _only(int(value), is_exact and low <= value <= high)
    number = float(value) + 0.0  # no minus zero
    return _only(number, type_ == "DOUBLE" and number - number == 0)


def _only(value: KeyValue, is_right: bool) -> KeyValue:
    if not is_right:
        raise ValueError
    return value


def _range(type_: str) -> tuple[int, int]:
    if type_.startswith("U"):
        return 0, 2 ** _BITS[type_[1:]] - 1
    return -(2 ** (_BITS[type_] - 1)), 2 ** (_BITS[type_] - 1) - 1


def _moment(written: str, *, is_date: bool) -> str:
    moment = datetime.fromisoformat(written.strip())
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    if not is_date:
        return moment.isoformat()
    if moment.time() != time.min:
        raise ValueError
    return date.isoformat(moment.date())
