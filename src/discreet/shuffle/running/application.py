"""The shuffler's application: what devices and the analyser ask of it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from threading import Event, Thread
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from discreet.errors import LedgerUnavailable, TryLater
from discreet.shuffle.running.intake import Intake
from discreet.shuffle.shuffler.shuffler import Shuffler
from discreet.shuffle.shuffler.verdict import Arrival, Verdict

__all__ = ["create_shuffler_app"]

_logger = logging.getLogger("discreet.shuffle")
_PATIENCE: Final = 15.0  # seconds in which an envelope has to arrive
_STATUS: Final = {
    Verdict.waiting: 202,
    Verdict.known: 202,
    Verdict.stranger: 401,
    Verdict.malformed: 400,
    Verdict.foreign: 400,
    Verdict.excess: 409,
    Verdict.full: 503,
}


def create_shuffler_app(shuffler: Shuffler) -> Starlette:
    """Return the application of an open shuffler, which it closes at its end.

    ``POST /v1/envelopes`` takes an envelope; ``GET /v1/batches/next`` gives the analyser the oldest
    batch until ``DELETE /v1/batches/{number}`` says that it has it; ``GET /v1/shuffler`` says what
    is public. Nothing of a request is written to any log. Pages of any origin may send: a token
    is a header that a page must know, not a cookie that a browser adds.
    """
    intake: Intake | None = None

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        nonlocal intake
        intake, stop = Intake(shuffler), Event()
        clock = Thread(target=_keep_time, args=(shuffler, stop), name="clock", daemon=True)
        clock.start()
        try:
            yield
        finally:
            stop.set()
            clock.join()
            intake.close()
            shuffler.close()

    async def take(request: Request) -> Response:
        assert intake is not None
        envelope = await _body(request, longest=shuffler.envelopes.length)
        verdict = await intake.put(Arrival(_token(request), envelope))
        return JSONResponse({"state": verdict.value}, status_code=_STATUS[verdict])

    async def give(request: Request) -> Response:
        if not shuffler.is_analyser(_token(request)):
            return JSONResponse({"state": Verdict.stranger.value}, status_code=401)
        batch = await run_in_threadpool(shuffler.next)
        return (
            Response(batch, media_type="application/octet-stream")
            if batch
            else Response(status_code=204)
        )

    async def forget(request: Request) -> Response:
        if not shuffler.is_analyser(_token(request)):
            return JSONResponse({"state": Verdict.stranger.value}, status_code=401)
        await run_in_threadpool(shuffler.taken, request.path_params["number"])
        return Response(status_code=204)

    async def tell(_: Request) -> Response:
        return JSONResponse(_public(shuffler))

    return Starlette(
        routes=[
            Route("/v1/envelopes", take, methods=["POST"]),
            Route("/v1/batches/next", give, methods=["GET"]),
            Route("/v1/batches/{number:int}", forget, methods=["DELETE"]),
            Route("/v1/shuffler", tell, methods=["GET"]),
        ],
        middleware=[
            Middleware(
                CORSMiddleware,
                allow_origins=["*"],
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-type"],
            )
        ],
        exception_handlers={TryLater: _later, LedgerUnavailable: _later, TimeoutError: _too_slow},
        lifespan=lifespan,
    )


def _public(shuffler: Shuffler) -> dict[str, Any]:
    settings = shuffler.settings
    return {
        "format": "discreet-shuffler/1",
        "parameters": settings.parameters.document,
        "analyser": settings.analyser.text,
        "shuffler": shuffler.key,
        "length": shuffler.envelopes.length,
        "minimum": settings.minimum,
        "limit": settings.limit,
        "dummies": settings.dummies,
        "seconds": settings.seconds,
    }


def _keep_time(shuffler: Shuffler, stop: Event) -> None:
    """Look at fixed times whether a batch can leave, whatever anybody asks meanwhile."""
    while not stop.wait(shuffler.settings.seconds):
        try:
            shuffler.release()
        except LedgerUnavailable as problem:  # a full disk, say: the next time may do
            _logger.error("no batch was made: %s", problem)


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


async def _body(request: Request, *, longest: int) -> bytes:
    """Return the body, or as much of it as shows that it is too long; give up on a slow one."""
    found = bytearray()
    async with asyncio.timeout(_PATIENCE):
        with contextlib.suppress(ClientDisconnect):
            async for piece in request.stream():
                found += piece
                if len(found) > longest:
                    break
    return bytes(found[: longest + 1])


async def _later(_: Request, problem: Exception) -> Response:
    return JSONResponse({"state": "later", "detail": str(problem)}, status_code=503)


async def _too_slow(request: Request, _: Exception) -> Response:
    answer = await _later(request, TimeoutError("the envelope took too long to arrive."))
    answer.headers["Connection"] = "close"
    return answer
