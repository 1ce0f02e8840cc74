"""The collector: a small application that takes reports over HTTP and tells estimates.

What it answers to reports does not depend on what is in them: neither whether they are good, nor
whether they came before. Who sends is not logged, and forgotten as soon as it has been counted.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from discreet._exact import whole
from discreet.errors import DataError, DiscreetError, MissingExtra, TryLater
from discreet.local.collection.collection import Collection
from discreet.local.collection.gathering import Gathering
from discreet.local.collection.senders import SenderLimit
from discreet.local.wire import report_length

try:
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route, Router
    from starlette.types import Receive, Scope, Send
except ImportError:
    raise MissingExtra(
        room="discreet.local.collection.app", needs="starlette", extra="serve"
    ) from None

__all__ = ["CollectorLimits", "collector"]

_PATIENCE: Final = 15.0  # seconds in which a body has to arrive
_ROOM: Final = 64  # bodies of the largest size may wait for the disk
_JSON: Final = "application/json"
_OPEN: Final = {
    "Access-Control-Allow-Origin": "*",  # any page may bring reports: they are public by nature
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
_PREFLIGHT: Final = {
    **_OPEN,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "content-type",
    "Access-Control-Max-Age": "86400",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorLimits:
    """Say how much a sender may bring, and how often an estimate is published.

    A request has at most ``body_bytes``, and an address sends at most ``reports_per_minute``, 0 for
    no limit: behind a proxy all senders have one. Every ``seconds`` at most, an estimate is
    published, if enough reports are new and somebody asks.

    >>> CollectorLimits().body_bytes
    1048576
    """

    body_bytes: int = 1 << 20
    reports_per_minute: int = 6000
    seconds: int = 60

    def __post_init__(self) -> None:
        whole(self.body_bytes, name="body_bytes", minimum=1024)
        whole(self.reports_per_minute, name="reports_per_minute", minimum=0)
        whole(self.seconds, name="seconds", minimum=0)


def collector(collection: Collection, *, limits: CollectorLimits | None = None) -> Router:
    """Return the application of an open collection, which stays open at its end.

    ``POST /reports`` takes one report, or many, one directly after the other, and answers 202 once
    they are on the disk. ``GET /parameters`` is what devices are told, ``GET /estimate`` what was
    published last and how many reports there are, ``GET /healthz`` says that it is there.
    """
    desk = _Desk(collection, CollectorLimits() if limits is None else limits)
    return Router(
        [
            Route("/reports", desk.reports, methods=["POST", "OPTIONS"]),
            Route("/parameters", desk.parameters, methods=["GET", "OPTIONS"]),
            Route("/estimate", desk.estimate, methods=["GET", "OPTIONS"]),
            Route("/healthz", desk.healthz, methods=["GET"]),
        ],
        default=_nowhere,
        redirect_slashes=False,
    )


@final
class _Desk:
    def __init__(self, collection: Collection, limits: CollectorLimits) -> None:
        self._collection, self._limits = collection, limits
        self._length = report_length(collection.parameters)
        self._document = collection.parameters.canonical
        self._senders = SenderLimit(per_minute=limits.reports_per_minute)
        self._gathering = Gathering(self._store, room=_ROOM * limits.body_bytes)
        self._publishing = asyncio.Lock()
        self._looked: float | None = None
        self._told = b"}"

    async def reports(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        try:
            async with asyncio.timeout(_PATIENCE):
                body = await self._body(request)
        except TimeoutError:
            return _refused(408, "the reports took too long to arrive.", close=True)
        if body is None:
            most = f"at most {self._limits.body_bytes} bytes of reports fit into a request."
            return _refused(413, most, close=True)
        address = request.client.host if request.client else ""
        wait = self._senders.take(address, reports=-(-len(body) // self._length))
        if wait:
            return _refused(429, "too many reports from this address.", wait=wait)
        try:
            await self._gathering.put(body)
        except TryLater as full:
            return _refused(503, str(full), wait=1)
        except DiscreetError:  # its words are for the collector's owner
            return _refused(503, "nothing can be stored at the moment.", wait=60)
        return Response(status_code=202, headers=_OPEN)

    async def parameters(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        return Response(self._document, media_type=_JSON, headers=_OPEN)

    async def estimate(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        try:
            body = await self._estimate()
        except DiscreetError:
            return _refused(503, "nothing can be told at the moment.", wait=60)
        return Response(body, media_type=_JSON, headers=_OPEN)

    async def healthz(self, request: Request) -> Response:
        return Response('{"status":"ok"}', media_type=_JSON, headers=_OPEN)

    async def _body(self, request: Request) -> bytes | None:
        """Return what was sent; None where it is too much."""
        parts, size = [], 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > self._limits.body_bytes:
                    return None
                parts.append(part)
        except ClientDisconnect:
            return b""  # nobody waits for an answer
        return b"".join(parts)

    def _store(self, bodies: Sequence[bytes]) -> None:
        length = self._length
        self._collection.take(
            body[start : start + length] for body in bodies for start in range(0, len(body), length)
        )

    async def _estimate(self) -> bytes:
        """Return what is public, and publish first if it is time; one at a time."""
        if not self._publishing.locked() or self._looked is None:
            async with self._publishing:
                if self._looked is None or time.monotonic() - self._looked >= self._limits.seconds:
                    self._told = await asyncio.to_thread(self._look)
                    self._looked = time.monotonic()
        counts = await asyncio.to_thread(lambda: self._collection.counts)
        return b'{"counts":' + json.dumps(counts).encode() + b"," + self._told

    def _look(self) -> bytes:
        """Return what was published, as the rest of an object of JSON."""
        minimum = b'"minimum":%d,' % self._collection.terms.minimum
        try:
            published = self._collection.publish()
        except DataError:
            return minimum + b'"published":null}'
        receipt = self._collection.prove(published).to_json().encode()
        return minimum + b'"published":' + published.document + b',"receipt":' + receipt + b"}"


def _refused(status: int, why: str, *, wait: float = 0, close: bool = False) -> Response:
    headers = dict(_OPEN)
    if wait:
        headers["Retry-After"] = str(int(-(-wait // 1)))
    if close:
        headers["Connection"] = "close"
    body = json.dumps({"status": status, "detail": why})
    return Response(
        body, status_code=status, media_type="application/problem+json", headers=headers
    )


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await _refused(404, "there is nothing at this address.")(scope, receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
