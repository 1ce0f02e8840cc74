"""The door to the network: listens, and attends to whoever comes."""

import asyncio
import ssl
from typing import final

from discreet._version import __version__
from discreet.service.identity.limits import RequestLimits
from discreet.service.wire.catalogue.clerks import CatalogueClerk
from discreet.service.wire.connection import WireHouse, attend
from discreet.service.wire.interfaces import WireDesk, WireDoor
from discreet.service.wire.link import WireLink
from discreet.service.wire.settings import WireSettings

__all__ = ["WireServer", "serve_wire"]


@final
class WireServer:
    """Listens until it is closed; :func:`serve_wire` makes one."""

    def __init__(self, house: WireHouse) -> None:
        self._house = house
        self._server: asyncio.Server | None = None
        self._attended: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def listen(self, host: str, port: int, *, reuse_port: bool) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(
            self._take, host, port, reuse_port=reuse_port or None, backlog=128
        )

    async def close(self, *, seconds: float = 0) -> None:
        """Take nobody any more, say goodbye to those that are here, and end the clerk.

        Whoever waits for an answer gets it first, if it comes within some ``seconds``.
        """
        if self._server is not None:
            self._server.close()
        answered = self._house.end()
        for task in self._attended - answered:
            task.cancel()
        if answered:
            await asyncio.wait(answered, timeout=seconds)
        for task in self._attended:
            task.cancel()
        await asyncio.gather(*self._attended, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        await self._house.clerk.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._attended.add(task)
        try:
            await attend(self._house, WireLink(reader, writer, self._house.settings))
        except asyncio.CancelledError:
            pass  # from close(), which is the end of it
        finally:
            self._attended.discard(task)


async def serve_wire(
    desk: WireDesk,
    door: WireDoor,
    *,
    limits: RequestLimits,
    host: str = "127.0.0.1",
    port: int = 5432,
    tls: ssl.SSLContext | None = None,
    settings: WireSettings | None = None,
    reuse_port: bool = False,
) -> WireServer:
    """Serve PostgreSQL's protocol: psql, drivers and dashboards ask private SQL by it.

    The database of a connection is a dataset. The user is ``token``, with an API key or a token of
    an issuer as the password, or the id of an API key, whose secret then never crosses the wire.
    ``reuse_port`` lets several processes listen on one port. Returns at once; close what it
    returns.
    """
    rules = settings or WireSettings()
    clerk = CatalogueClerk(seconds=rules.catalogue_seconds, rows=rules.catalogue_rows)
    house = WireHouse(
        desk=desk,
        door=door,
        limits=limits,
        settings=rules,
        tls=tls,
        clerk=clerk,
        version=__version__,
    )
    server = WireServer(house)
    await server.listen(host, port, reuse_port=reuse_port)
    return server
