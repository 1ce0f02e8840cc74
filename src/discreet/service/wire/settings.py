"""How the front end is set up: who may connect how, and how much of everything one may have."""

from dataclasses import dataclass
from typing import Final, Literal, final

__all__ = ["LONGEST_STATEMENT", "WireSettings"]

LONGEST_STATEMENT: Final = 100_000  # characters; a question may have half of it


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings:
    """Limits and rules of the front end; every default is the safe one.

    ``without_tls`` says from where connections without TLS are taken; passwords that are sent as
    they are need TLS or the loopback in any case. ``certificate`` is the server's own in DER: with
    it, SCRAM binds the login to the TLS channel, so that nobody in between can pass it on.

    >>> WireSettings().without_tls
    'loopback'
    """

    without_tls: Literal["nowhere", "loopback", "anywhere"] = "loopback"
    certificate: bytes | None = None
    largest_message: int = 2**20  # bytes
    prepared_statements: int = 256  # of one connection
    prepared_characters: int = 2**21  # of one connection, in all
    portals: int = 64  # of one connection
    portal_bytes: int = 2**25  # about, of rows that they hold, where they are several
    connections: int = 400
    connections_per_login: int = 20
    authentication_seconds: float = 15.0  # from the first byte to the end of the login
    idle_seconds: float = 3600.0  # between two messages
    message_seconds: float = 30.0  # from the first byte of a message to its last
    write_seconds: float = 60.0  # that a client may leave what it asked for unread
    catalogue_seconds: float = 3.0  # of one question about tables and columns
    catalogue_rows: int = 10_000
