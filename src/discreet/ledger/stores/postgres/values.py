"""Values to and from the binary format of PostgreSQL."""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from discreet.errors import LedgerError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

__all__ = ["Parameter", "number", "numbers", "rows", "text", "texts", "values"]

Parameter = bytes | None

_INT2, _INT4, _INT8, _LENGTH = (struct.Struct(f">{letter}") for letter in "hiqi")
_ARRAY = struct.Struct(">iiIii")  # dimensions, has nulls, type of the elements, length, first index
_BOOL_OID, _BYTEA_OID, _INT8_OID, _INT2_OID, _INT4_OID, _TEXT_OID = 16, 17, 20, 21, 23, 25
_NULL = _LENGTH.pack(-1)
_DECODE: Final[dict[int, Callable[[bytes], Any]]] = {
    _BOOL_OID: lambda value: value == b"\x01",
    _BYTEA_OID: bytes,
    _INT8_OID: lambda value: _INT8.unpack(value)[0],
    _INT2_OID: lambda value: _INT2.unpack(value)[0],
    _INT4_OID: lambda value: _INT4.unpack(value)[0],
    _TEXT_OID: lambda value: value.decode(),
    2278: lambda _: None,  # void
}


def number(value: int) -> bytes:
    r"""Return a ``bigint``.

    >>> number(258)[-2:]
    b'\x01\x02'
    """
    return _INT8.pack(value)


def text(value: str) -> bytes:
    """Return a ``text``.

    >>> text("a" + chr(0))
    Traceback (most recent call last):
    discreet.errors.LedgerError: PostgreSQL keeps no text with the character U+0000. Nothing \
was written. Use a name without it.
    """
    if "\x00" in value:
        raise LedgerError(
            "PostgreSQL keeps no text with the character U+0000. Nothing was written. Use a name "
            "without it."
        )
    return value.encode()


def _array(oid: int, elements: Sequence[Parameter]) -> bytes:
    has_nulls = any(element is None for element in elements)
    parts = [_ARRAY.pack(1, has_nulls, oid, len(elements), 1)]
    for element in elements:
        if element is None:
            parts.append(_NULL)
        else:
            parts.append(_LENGTH.pack(len(element)))
            parts.append(element)
    return b"".join(parts)


def numbers(elements: Iterable[int]) -> bytes:
    """Return a ``bigint[]``.

    >>> len(numbers([1, 2]))
    44
    """
    return _array(_INT8_OID, [number(element) for element in elements])


def texts(elements: Iterable[str | None]) -> bytes:
    r"""Return a ``text[]``.

    >>> texts(["a", None])[-9:]
    b'\x00\x00\x00\x01a\xff\xff\xff\xff'
    """
    return _array(_TEXT_OID, [None if each is None else text(each) for each in elements])


def values(elements: Iterable[bytes | None]) -> bytes:
    r"""Return a ``bytea[]``.

    >>> values([b"ab"])[-6:]
    b'\x00\x00\x00\x02ab'
    """
    return _array(_BYTEA_OID, list(elements))


def rows(result: "PGresult") -> list[tuple[Any, ...]]:
    """Read the rows of an answer."""
    decoders = [_DECODE[result.ftype(column)] for column in range(result.nfields)]
    get = result.get_value
    found = []
    for row in range(result.ntuples):
        cells = []
        for column, decode in enumerate(decoders):
            value = get(row, column)
            cells.append(None if value is None else decode(value))
        found.append(tuple(cells))
    return found
