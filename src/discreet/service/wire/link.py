"""One connection: bytes in, bytes out, and what is between the two."""

import asyncio
import ipaddress
import ssl
from contextlib import suppress
from typing import Final, final

from discreet.service.wire.protocol.failures import protocol_violation
from discreet.service.wire.protocol.inbox import Inbox
from discreet.service.wire.settings import WireSettings

__all__ = ["WireLink"]

_FLUSH_AT: Final = 64 * 1024


@final
class WireLink:
    """Sends and receives on one connection, with or without TLS."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        settings: WireSettings,
    ) -> None:
        self._reader, self._writer, self._settings = reader, writer, settings
        self._inbox = Inbox(reader)
        self._held = bytearray()
        self.is_tls = False

    @property
    def address(self) -> str:
        """Where the client is."""
        peer = self._writer.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else "unknown"

    @property
    def is_loopback(self) -> bool:
        """Whether the client is on this machine."""
        peer = self._writer.get_extra_info("peername")
        if not isinstance(peer, tuple):
            return True  # a socket of this machine
        try:
            found = ipaddress.ip_address(str(peer[0]).partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return bool((mapped or found).is_loopback)

    async def first_packet(self) -> bytes | None:
        """Return the packet that a connection begins with."""
        return await self._inbox.first_packet(largest=10_000)

    async def message(
        self, *, is_known: bool, largest: int | None = None
    ) -> tuple[bytes, bytes] | None:
        """Return the next message; of a client that is not known, without a limit of its own."""
        settings = self._settings
        return await self._inbox.message(
            largest=largest or settings.largest_message,
            idle=settings.idle_seconds if is_known else None,
            within=settings.message_seconds if is_known else None,
        )

    async def begin_tls(self, context: ssl.SSLContext) -> None:
        """Agree to TLS, and go on with it."""
        if not self._inbox.is_empty:
            raise protocol_violation("nothing may come before TLS has begun")
        self._writer.write(b"S")
        await self._writer.start_tls(context)
        self.is_tls = True

    def send(self, *messages: bytes) -> None:
        """Hold messages until the next flush."""
        for message in messages:
            self._held += message

    async def flush(self) -> None:
        """Send what is held; a client that does not read it in time is let go."""
        if self._held:
            held, self._held = self._held, bytearray()
            self._writer.write(held)
        try:
            async with asyncio.timeout(self._settings.write_seconds):
                await self._writer.drain()
        except TimeoutError:
            self._writer.transport.abort()
            raise ConnectionResetError from None

    async def flush_if_full(self) -> None:
        """Send what is held, where that is much."""
        if len(self._held) >= _FLUSH_AT:
            await self.flush()

    async def close(self) -> None:
        """Send what is held, and end the connection; nothing that happens then matters."""
        with suppress(OSError, TimeoutError, ssl.SSLError):
            if self._held and not self._writer.is_closing():
                self._writer.write(bytes(self._held))
            self._writer.close()
            async with asyncio.timeout(2):
                await self._writer.wait_closed()
        self._writer.transport.abort()
