"""Messages of the server, to bytes."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

__all__ = [
    "AUTHENTICATED",
    "BIND_COMPLETE",
    "CLEARTEXT_WANTED",
    "CLOSE_COMPLETE",
    "EMPTY_QUERY",
    "NO_DATA",
    "PARSE_COMPLETE",
    "PORTAL_SUSPENDED",
    "backend_key",
    "command_complete",
    "data_row",
    "error_response",
    "negotiate_version",
    "notice_response",
    "parameter_description",
    "parameter_status",
    "ready",
    "row_description",
    "sasl_continued",
    "sasl_final",
    "sasl_wanted",
]


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATED: Final = _message(b"R", struct.pack("!I", 0))
CLEARTEXT_WANTED: Final = _message(b"R", struct.pack("!I", 3))
PARSE_COMPLETE: Final = _message(b"1")
BIND_COMPLETE: Final = _message(b"2")
CLOSE_COMPLETE: Final = _message(b"3")
NO_DATA: Final = _message(b"n")
PORTAL_SUSPENDED: Final = _message(b"s")
EMPTY_QUERY: Final = _message(b"I")


def sasl_wanted(mechanisms: Iterable[str]) -> bytes:
    """Ask for one of some mechanisms of SASL."""
    listed = b"".join(_text(one) for one in mechanisms)
    return _message(b"R", struct.pack("!I", 10) + listed + b"\0")


def sasl_continued(data: bytes) -> bytes:
    """Go on with SASL."""
    return _message(b"R", struct.pack("!I", 11) + data)


def sasl_final(data: bytes) -> bytes:
    """Say the last word of SASL."""
    return _message(b"R", struct.pack("!I", 12) + data)


def negotiate_version(options: Sequence[str]) -> bytes:
    """Say that 3.0 is spoken, and which options of the protocol are not known."""
    listed = b"".join(_text(one) for one in options)
    return _message(b"v", struct.pack("!II", 3 << 16, len(options)) + listed)


def parameter_status(name: str, value: str) -> bytes:
    r"""Tell the value of a parameter.

    >>> parameter_status("a", "b")
    b'S\x00\x00\x00\x08a\x00b\x00'
    """
    return _message(b"S", _text(name) + _text(value))


def backend_key(process: int, secret: bytes) -> bytes:
    """Tell what a wish to cancel must name."""
    return _message(b"K", struct.pack("!I", process) + secret)


def ready(status: str) -> bytes:
    r"""Say that another statement may come: idle, in a transaction, or in a failed one.

    >>> ready("I")
    b'Z\x00\x00\x00\x05I'
    """
    return _message(b"Z", status.encode("ascii"))


def command_complete(tag: str) -> bytes:
    r"""Say that a statement is done.

    >>> command_complete("SELECT 1")
    b'C\x00\x00\x00\rSELECT 1\x00'
    """
    return _message(b"C", _text(tag))


def error_response(fields: Mapping[str, str]) -> bytes:
    r"""Tell an error.

    >>> error_response({"C": "0A000"})
    b'E\x00\x00\x00\x0cC0A000\x00\x00'
    """
    return _message(b"E", _fields(fields))


def notice_response(fields: Mapping[str, str]) -> bytes:
    """Tell something that is no error."""
    return _message(b"N", _fields(fields))


def _fields(fields: Mapping[str, str]) -> bytes:
    return b"".join(name.encode("ascii") + _text(text) for name, text in fields.items()) + b"\0"


def row_description(fields: Iterable[tuple[str, int, int, int]]) -> bytes:
    """Describe columns: name, number and size of the type, and format (1 is binary)."""
    made = [
        _text(name) + struct.pack("!IHIhiH", 0, 0, oid, size, -1, form)
        for name, oid, size, form in fields
    ]
    return _message(b"T", struct.pack("!H", len(made)) + b"".join(made))


def parameter_description(oids: Sequence[int]) -> bytes:
    """Describe the parameters of a statement by their types."""
    return _message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def data_row(values: Sequence[bytes | None]) -> bytes:
    r"""Write one row of values that are bytes already.

    >>> data_row([b"1", None])
    b'D\x00\x00\x00\x0f\x00\x02\x00\x00\x00\x011\xff\xff\xff\xff'
    """
    parts = [
        b"\xff\xff\xff\xff" if value is None else struct.pack("!I", len(value)) + value
        for value in values
    ]
    return _message(b"D", struct.pack("!H", len(values)) + b"".join(parts))
