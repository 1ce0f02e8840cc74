"""The ASGI application of a gateway: one resource for each address, and nothing else."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from starlette.routing import Route as Address
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.errors import DiscreetError
from discreet.service.desk.gateway import Gateway
from discreet.service.web.collections import collection_routes
from discreet.service.web.metrics import Metrics
from discreet.service.web.openapi import openapi
from discreet.service.web.problems import internal, problem
from discreet.service.web.resource import Resource, Surroundings, send_problem
from discreet.service.web.route import Route, WebCall, WebReply
from discreet.service.web.routes import routes
from discreet.service.web.site import site_routes

__all__ = ["create_api", "every_route"]

_logger = logging.getLogger("discreet.service")


def create_api(
    gateway: Gateway,
    *,
    beside: Callable[[Gateway], contextlib.AbstractAsyncContextManager[None]] | None = None,
    pages: Callable[[Surroundings], Sequence[Address]] | None = None,
) -> ASGIApp:
    """Return the application of an open gateway, which it closes at its end.

    ``beside`` is what else serves the same desk while the application runs, such as the protocol
    of PostgreSQL; ``pages`` makes further addresses, which are looked at after its own.

    >>> import tempfile
    >>> from discreet.service.settings.gateway import GatewaySettings
    >>> gateway = Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db"))
    >>> app = create_api(gateway)
    >>> gateway.close()
    """
    around = Surroundings(gateway, Metrics())
    table = every_route(gateway, around.metrics)
    by_path: dict[str, dict[str, Route]] = {}
    for one in table:
        by_path.setdefault(one.path, {})[one.method] = one

    @contextlib.asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        catching_up = asyncio.create_task(_catch_up(gateway))
        loop = asyncio.get_running_loop()
        ending = loop.time()
        try:
            async with contextlib.nullcontext() if beside is None else beside(gateway):
                try:
                    yield
                finally:
                    ending = loop.time()
        finally:
            catching_up.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(ending + gateway.settings.shutdown_seconds):
                    await gateway.drained()
            await asyncio.to_thread(gateway.close)

    return Router(
        # The addresses of datasets are asked most, and looked at one after the other.
        [
            Address(path, endpoint=Resource(by_path[path], around))
            for path in sorted(by_path, key=lambda path: "{dataset}/q" not in path)
        ]
        + site_routes(gateway.settings.docs)
        + collection_routes(gateway)
        + list(pages(around) if pages else ()),  # last, as they answer for what is nowhere
        default=_nowhere,
        redirect_slashes=False,
        lifespan=lifespan,
    )


async def _catch_up(gateway: Gateway) -> None:
    """Look every second for datasets that were registered with another worker."""
    while True:
        await asyncio.sleep(1)
        try:
            await gateway.beside(partial(gateway.shelf.catch_up, on_error=_note))
        except Exception as error:  # none of which may be the last look
            _note(error)


def _note(error: Exception) -> None:
    """Tell the custodian what could not be served."""
    if isinstance(error, DiscreetError):
        _logger.error(json.dumps({"event": "unreadable", "why": str(error)}, sort_keys=True))
    else:
        internal(error)


def every_route(gateway: Gateway, metrics: Metrics) -> list[Route]:
    """Return the table of routes, its own description among them."""
    made: list[bytes] = []

    async def document(call: WebCall) -> WebReply:
        if not made:
            made.append(json.dumps(openapi(table)).encode())
        return WebReply(raw=made[0])

    is_open = gateway.settings.is_metered_openly
    table = routes(metrics, document, is_metered_openly=is_open)
    return table


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await send_problem(send, problem("not-found", "there is nothing at this address."))
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
