"""The packet that begins a connection: who wants which database, TLS, or to cancel something."""

import struct
from dataclasses import dataclass
from typing import Final, final

from discreet.service.wire.protocol.failures import WireFailure, protocol_violation

__all__ = [
    "PROTOCOL_3_0",
    "CancelPacket",
    "EncryptionPacket",
    "StartupPacket",
    "read_first_packet",
]

PROTOCOL_3_0: Final = 3 << 16
_CANCEL: Final = 80_877_102
_ENCRYPTION: Final = {80_877_103: "tls", 80_877_104: "gss"}


@final
@dataclass(frozen=True, slots=True)
class EncryptionPacket:
    """A wish to go on encrypted, by TLS or by GSSAPI."""

    kind: str


@final
@dataclass(frozen=True, slots=True)
class CancelPacket:
    """A wish to stop what another connection waits for."""

    process: int
    secret: bytes


@final
@dataclass(frozen=True, slots=True)
class StartupPacket:
    """The beginning of a session: the version of the protocol, and parameters."""

    version: int
    parameters: dict[str, str]

    @property
    def unknown_options(self) -> list[str]:
        """The options of the protocol itself, of which there are none here."""
        return [name for name in self.parameters if name.startswith("_pq_.")]


def read_first_packet(body: bytes) -> EncryptionPacket | CancelPacket | StartupPacket:
    r"""Read what follows the length.

    >>> read_first_packet(b"\0\3\0\0user\0ana\0\0").parameters
    {'user': 'ana'}
    """
    (code,) = struct.unpack_from("!I", body)
    if code in _ENCRYPTION:
        return EncryptionPacket(_ENCRYPTION[code])
    if code == _CANCEL:
        if not 8 < len(body) <= 264:
            raise protocol_violation("this is no wish to cancel")
        return CancelPacket(struct.unpack_from("!I", body, 4)[0], body[8:])
    if code >> 16 != 3:
        raise WireFailure("0A000", "only version 3 of the protocol is spoken here", is_fatal=True)
    return StartupPacket(code, _parameters(body[4:]))


def _parameters(body: bytes) -> dict[str, str]:
    if not body.endswith(b"\0\0") and body != b"\0":
        raise protocol_violation("the packet that begins a session has no end")
    try:
        words = [word.decode() for word in body[:-2].split(b"\0")] if len(body) > 1 else []
    except UnicodeDecodeError:
        raise protocol_violation("names and values must be UTF-8") from None
    if len(words) % 2:
        raise protocol_violation("a parameter has no value")
    return dict(zip(words[::2], words[1::2], strict=True))
