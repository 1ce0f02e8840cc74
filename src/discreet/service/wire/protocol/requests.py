"""Messages of clients, from bytes."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from discreet.service.wire.protocol.failures import WireFailure, protocol_violation

__all__ = [
    "BindMessage",
    "ExecuteMessage",
    "ParseMessage",
    "QueryMessage",
    "Request",
    "TargetMessage",
    "read_password",
    "read_request",
    "read_sasl_first",
]


@final
@dataclass(frozen=True, slots=True)
class QueryMessage:
    """Some statements, to be run one after the other."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class ParseMessage:
    """A statement to be kept under a name, with the types of some of its parameters."""

    name: str
    text: str
    types: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class BindMessage:
    """Values for the parameters of a statement: together they are a portal."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class ExecuteMessage:
    """A portal to be run, for so many rows: 0 is for all."""

    portal: str
    most: int


@final
@dataclass(frozen=True, slots=True)
class TargetMessage:
    """A statement ("S") or portal ("P") to be described (``D``) or closed (``C``)."""

    action: str
    kind: str
    name: str


Request = QueryMessage | ParseMessage | BindMessage | ExecuteMessage | TargetMessage


class _Body:
    """Reads the parts of one message; none may be missing, and nothing be left."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise protocol_violation("a text in a message has no end")
        found, self._at = self._body[self._at : end], end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise WireFailure("22021", "texts must be UTF-8") from None

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        if self._at + size > len(self._body):
            raise protocol_violation("a message is too short")
        (found,) = struct.unpack_from(form, self._body, self._at)
        self._at += size
        return int(found)

    def numbers(self, form: str) -> tuple[int, ...]:
        return tuple(self.number(form) for _ in range(self.number("!H")))

    def value(self) -> bytes | None:
        size = self.number("!i")
        if size == -1:
            return None
        if size < 0 or self._at + size > len(self._body):
            raise protocol_violation("a value is longer than its message")
        found, self._at = self._body[self._at : self._at + size], self._at + size
        return found

    def rest(self) -> bytes:
        found, self._at = self._body[self._at :], len(self._body)
        return found

    def end(self) -> None:
        if self._at != len(self._body):
            raise protocol_violation("a message is too long")


def read_request(kind: bytes, body: bytes) -> Request:
    r"""Read the body of a message of some kind.

    >>> read_request(b"Q", b"SELECT 1\0")
    QueryMessage(text='SELECT 1')
    """
    read = _READERS.get(kind)
    if read is None:
        raise protocol_violation("there is no such message")
    rest = _Body(body)
    found = read(rest)
    rest.end()
    return found


def _bind(body: _Body) -> BindMessage:
    portal, statement = body.text(), body.text()
    formats = body.numbers("!H")
    values = tuple(body.value() for _ in range(body.number("!H")))
    return BindMessage(portal, statement, formats, values, body.numbers("!H"))


def _target(action: str, body: _Body) -> TargetMessage:
    kind = chr(body.number("!B"))
    if kind not in "SP":
        raise protocol_violation("only statements and portals can be described or closed")
    return TargetMessage(action, kind, body.text())


_READERS: Final[dict[bytes, Callable[[_Body], Request]]] = {
    b"Q": lambda body: QueryMessage(body.text()),
    b"P": lambda body: ParseMessage(body.text(), body.text(), body.numbers("!I")),
    b"B": _bind,
    b"E": lambda body: ExecuteMessage(body.text(), body.number("!i")),
    b"D": lambda body: _target("D", body),
    b"C": lambda body: _target("C", body),
}


def read_password(body: bytes) -> str:
    r"""Read a password that was sent as it is.

    >>> read_password(b"secret\0")
    'secret'
    """
    rest = _Body(body)
    found = rest.text()
    rest.end()
    return found


def read_sasl_first(body: bytes) -> tuple[str, bytes]:
    """Read the first answer of SASL: the mechanism, and what it begins with."""
    rest = _Body(body)
    mechanism, first = rest.text(), rest.value()
    rest.end()
    return mechanism, first or b""
