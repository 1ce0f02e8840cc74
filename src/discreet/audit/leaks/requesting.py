"""Ask a web application: in this process by the ASGI protocol, or at its address."""

import asyncio
import inspect
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final
from urllib.parse import urlsplit

from discreet.audit.leaks.reading import read_error
from discreet.errors import ParameterError

__all__ = ["App", "WebRequest", "is_app", "requesting"]

_Message: TypeAlias = MutableMapping[str, Any]
App: TypeAlias = Callable[
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]],
    Awaitable[None],
]
_PATIENCE = 30.0  # seconds


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    """Hold one request to a web application.

    >>> WebRequest(path="/query", method="POST", body=b"{}").path
    '/query'
    """

    path: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ParameterError(f"path must begin with '/', got {self.path!r}.", parameter="path")


def requesting(
    surface: "App | str", requests: Iterable[WebRequest | str]
) -> Callable[[], list[tuple[str, bytes]]]:
    """Return a callable that sends the requests and returns status, headers and body of each.

    ``surface`` is an ASGI application or the address of a running server; a text among the
    requests is a path to get.

    >>> async def app(scope, receive, send):
    ...     await send({"type": "http.response.start", "status": 200, "headers": []})
    ...     await send({"type": "http.response.body", "body": b"hello"})
    >>> requesting(app, ["/"])()
    [('status of GET /', b'200'), ('body of GET /', b'hello')]
    """
    asked = [WebRequest(path=one) if isinstance(one, str) else one for one in requests]
    if not isinstance(surface, str):
        return lambda: asyncio.run(_ask_app(surface, asked))
    if urlsplit(surface).scheme not in ("http", "https"):
        raise ParameterError(
            f"the address must begin with http:// or https://, got {surface!r}. A folder is given "
            "as a Path.",
            parameter="surface",
        )
    return lambda: [part for one in asked for part in _ask_server(surface, one)]


def is_app(surface: object) -> bool:
    """Say whether something is an ASGI application: called with three things, and awaited."""
    call = surface if inspect.isfunction(surface) else getattr(surface, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(call) and len(inspect.signature(call).parameters) == 3


def _response(
    request: WebRequest, status: int, headers: Iterable[tuple[str, str]], body: bytes
) -> list[tuple[str, bytes]]:
    title = f"{request.method} {request.path}"
    shown = [(f"header {name.lower()} of {title}", value.encode()) for name, value in headers]
    return [(f"status of {title}", str(status).encode()), *shown, (f"body of {title}", body)]


def _ask_server(address: str, request: WebRequest) -> list[tuple[str, bytes]]:
    sent = urllib.request.Request(  # noqa: S310
        address.rstrip("/") + request.path,
        data=request.body or None,
        headers=dict(request.headers),
        method=request.method,
    )
    try:
        with urllib.request.urlopen(sent, timeout=_PATIENCE) as answer:  # noqa: S310
            return _response(request, answer.status, answer.headers.items(), answer.read())
    except urllib.error.HTTPError as answer:  # a refusal is an answer too
        with answer:
            return _response(request, answer.code, answer.headers.items(), answer.read())


async def _ask_app(app: App, requests: list[WebRequest]) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    stop = await _start(app)
    try:
        for request in requests:
            found += await _ask_once(app, request)
    finally:
        await stop()
    return found


async def _start(app: App) -> Callable[[], Awaitable[None]]:
    """Send the startup event, and return what sends the shutdown; an app may know of neither."""
    coming: asyncio.Queue[_Message] = asyncio.Queue()
    answered: asyncio.Queue[_Message] = asyncio.Queue()
    scope: _Message = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}
    task = asyncio.ensure_future(app(scope, coming.get, answered.put))

    async def tell(event: str) -> None:
        await coming.put({"type": event})
        waiting = asyncio.ensure_future(answered.get())
        await asyncio.wait({task, waiting}, timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def stop() -> None:
        if not task.done():
            await tell("lifespan.shutdown")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    await tell("lifespan.startup")
    return stop


async def _ask_once(app: App, request: WebRequest) -> list[tuple[str, bytes]]:
    path, _, query = request.path.partition("?")
    scope: _Message = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(k.lower().encode(), v.encode()) for k, v in request.headers.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
    }
    coming = iter([{"type": "http.request", "body": request.body, "more_body": False}])
    sent: list[_Message] = []

    async def receive() -> _Message:
        return next(coming, {"type": "http.disconnect"})

    async def send(message: _Message) -> None:
        sent.append(message)

    failed: list[tuple[str, bytes]] = []
    try:
        await app(scope, receive, send)
    except Exception as error:
        failed = [(f"error of {request.method} {request.path}", read_error(error))]
    starts = [one for one in sent if one["type"] == "http.response.start"]
    headers = [
        (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
        for one in starts
        for name, value in one.get("headers", ())
    ]
    body = b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body")
    status = starts[0]["status"] if starts else 500
    return _response(request, status, headers, body) + failed
