"""What a request says: its headers and its body, within limits of size and time."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.types import Message, Receive, Scope

from discreet.service.web.problems import Problem, problem

__all__ = ["RequestRefused", "read_body", "read_headers"]

_PATIENCE: Final = 15.0  # seconds in which a body has to arrive


class RequestRefused(Exception):
    """Ends a request with a problem."""

    def __init__(self, found: Problem) -> None:
        self.problem = found


def read_headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers; those that decide something may not be there twice."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in found and name in (b"authorization", b"content-type", b"idempotency-key"):
            raise RequestRefused(
                problem("bad-request", f"the header {name.decode()} is there twice.")
            )
        found[name] = value
    return found


async def read_body(
    headers: Mapping[bytes, bytes], receive: Receive, *, most: int, media_type: str
) -> bytes:
    """Return the body, if it is of this kind by its name and small enough."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != media_type.encode():
        raise RequestRefused(problem("bad-media-type", f"send it with Content-Type: {media_type}."))
    too_large = problem("too-large", f"a request has at most {most:,} bytes.")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > most:
        raise RequestRefused(too_large)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                message: Message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestRefused(
                        problem("bad-request", "the request ended before its body.")
                    )
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > most:
                    raise RequestRefused(too_large)
                chunks.append(chunk)
                if not message.get("more_body"):
                    return b"".join(chunks)
    except TimeoutError:
        raise RequestRefused(problem("bad-request", "the body took too long to arrive.")) from None
