"""Bytes that arrive, taken whole messages at a time, in bounded space and time."""

import asyncio
from typing import Final, final

from discreet.service.wire.protocol.failures import protocol_violation

__all__ = ["Inbox"]

_CHUNK: Final = 65_536


@final
class Inbox:
    """Holds what has arrived of one connection.

    It keeps its own buffer, so that it can tell whether anything came before TLS began: such bytes
    were sent by somebody in between, and must not be taken for the client's.
    """

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader, self._held = reader, bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether nothing more has been read than was taken."""
        return not self._held

    async def first_packet(self, *, largest: int) -> bytes | None:
        """Return a packet without a type, as connections begin with; None where there is none."""
        head = await self._exactly(4)
        if head is None:
            return None
        size = int.from_bytes(head, "big") - 4
        if not 4 <= size <= largest:
            raise protocol_violation("this is no packet that begins a connection")
        return await self._exactly(size)

    async def message(
        self, *, largest: int, idle: float | None, within: float | None
    ) -> tuple[bytes, bytes] | None:
        """Return type and body of the next message, None where the client has gone.

        A TimeoutError says that nothing came in ``idle`` seconds; a message that began and does not
        end ``within`` some is against the protocol.
        """
        async with asyncio.timeout(idle):
            kind = await self._exactly(1)
        if kind is None:
            return None
        try:
            async with asyncio.timeout(within):
                head = await self._exactly(4)
                if head is None:
                    return None
                size = int.from_bytes(head, "big") - 4
                if not 0 <= size <= largest:
                    raise protocol_violation(f"a message may have at most {largest} bytes")
                body = await self._exactly(size)
        except TimeoutError:
            raise protocol_violation("a message did not arrive in time") from None
        return None if body is None else (kind, body)

    async def _exactly(self, size: int) -> bytes | None:
        while len(self._held) < size:
            found = await self._reader.read(_CHUNK)
            if not found:
                return None
            self._held += found
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken
