"""One address of the gateway: logs in, limits, reads, serves, and answers problems as documents."""

import json
import logging
from collections.abc import Mapping
from functools import lru_cache
from time import monotonic
from typing import Any, Final, final

from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from discreet.errors import DiscreetError, ParameterError, Unauthenticated
from discreet.service.desk.gateway import Gateway
from discreet.service.identity.login import Login
from discreet.service.web.memory import AnswerMemory
from discreet.service.web.metrics import Metrics
from discreet.service.web.problems import (
    KINDS,
    MEDIA_TYPE,
    Problem,
    internal,
    problem_of,
    problem_of_body,
)
from discreet.service.web.reading import RequestRefused, read_body, read_headers
from discreet.service.web.route import Route, WebCall

__all__ = ["Resource", "Surroundings", "send_problem"]

_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_JSON: Final = "application/json"
_logger = logging.getLogger("discreet.service")


@final
class Surroundings:
    """What all addresses of one worker share."""

    def __init__(self, gateway: Gateway, metrics: Metrics) -> None:
        self.gateway, self.metrics = gateway, metrics
        self.memory = AnswerMemory()


@final
class Resource:
    """All operations on one address, as an ASGI application."""

    def __init__(self, routes: Mapping[str, Route], surroundings: Surroundings) -> None:
        self._routes, self._around = routes, surroundings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; nothing that a handler raises gets out of here."""
        route = self._routes.get(scope["method"])
        if route is None:
            allowed = ", ".join(sorted(self._routes))
            told = f"this address takes {allowed}."
            await send_problem(send, Problem(KINDS["bad-method"], told, headers={"Allow": allowed}))
            return
        login: Login | None = None
        try:
            headers = read_headers(scope)
            login = await self._login(route, headers, scope)
            status = await self._serve(route, login, headers, scope, receive, send)
        except RequestRefused as refusal:
            status = await send_problem(send, refusal.problem)
        except DiscreetError as error:
            status = await send_problem(send, problem_of(error))
        except Exception as error:
            status = await send_problem(send, internal(error))
        self._around.metrics.served(route.name, status)
        if _logger.isEnabledFor(logging.INFO):
            _logger.info(_line(route.name, status, None if login is None else login.who))

    async def _login(
        self, route: Route, headers: Mapping[bytes, bytes], scope: Scope
    ) -> Login | None:
        client = (scope.get("client") or ("unknown", 0))[0]
        if route.roles is None:
            if route.is_limited:
                self._around.gateway.limits.of_guests.take(client)
            return None
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        try:
            if kind.lower() != b"bearer":
                raise Unauthenticated
            login = await self._around.gateway.login(token.decode("latin-1").strip())
        except Unauthenticated:
            self._around.gateway.limits.of_strangers.take(client)
            raise
        self._around.gateway.limits.of_logins.take(login.who)
        login.needs(route.roles)
        return login

    async def _serve(
        self,
        route: Route,
        login: Login | None,
        headers: Mapping[bytes, bytes],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> int:
        memory, path = self._around.memory, scope["path_params"]
        key = _key(headers) if route.takes_key else None
        numbers = _numbers(route, scope["query_string"])
        if route.body is None:
            raw, body, known = b"", None, None
        else:
            most = self._around.gateway.settings.question_bytes
            raw = await read_body(headers, receive, most=most, media_type=_JSON)
            known = (login.who, path["dataset"], raw) if login and route.is_remembered else None
            if known is not None and await self._is_current(login, path["dataset"]):
                again = memory.get(known)
                if again is not None:
                    return await _send(send, 200, again, _JSON.encode())
            body = _checked(route, raw)
        call = WebCall(
            gateway=self._around.gateway,
            login=login,
            path=path,
            query=numbers,
            body=body,
            key=key,
        )
        began = monotonic()
        reply = await route.handler(call)
        if reply.is_due:
            self._around.metrics.answered(call.dataset, monotonic() - began)
        if known is not None and reply.again is not None and reply.version is not None:
            memory.saw(call.dataset, reply.version)
            memory.put(known, reply.version, reply.again())
        content = reply.raw if reply.raw is not None else _dumped(reply.document)
        return await _send(send, reply.status, content, reply.media_type.encode())

    async def _is_current(self, login: Login | None, dataset: str) -> bool:
        """Look at the data's version, if that was not done a moment ago."""
        if login is None or not login.sees(dataset):
            return False
        if not self._around.memory.is_fresh(dataset):
            version = await self._around.gateway.desk.version(login, dataset)
            self._around.memory.saw(dataset, version)
        return True


@lru_cache(4096)
def _line(route: str, status: int, who: str | None) -> str:
    line = {"event": "request", "route": route, "status": status, "who": who}
    return json.dumps(line, sort_keys=True)


def _key(headers: Mapping[bytes, bytes]) -> str | None:
    given = headers.get(b"idempotency-key")
    if given is None:
        return None
    key = given.decode("latin-1")
    if not (1 <= len(key) <= 100 and key.isascii() and key.isprintable()):
        raise ParameterError(
            "Idempotency-Key must be 1 to 100 printable characters.", parameter="Idempotency-Key"
        )
    return key


def _checked(route: Route, raw: bytes) -> Any:
    assert route.body is not None
    try:
        return route.body.model_validate_json(raw)
    except ValidationError as error:
        raise RequestRefused(problem_of_body(error)) from None


def _numbers(route: Route, query: bytes) -> dict[str, int]:
    found = {one.name: one.default for one in route.numbers}
    for part in query.decode("latin-1").split("&") if query else ():
        name, _, value = part.partition("=")
        known = next((one for one in route.numbers if one.name == name), None)
        if known is None:
            listed = ", ".join(one.name for one in route.numbers) or "none"
            told = f"this address has no such parameter; known are: {listed}."
            raise ParameterError(told, parameter="query")
        is_number = value.isascii() and value.isdigit() and len(value) < 17
        if not is_number or int(value) > known.most:
            raise ParameterError(
                f"{name} must be a whole number of at most {known.most:,}.", parameter=name
            )
        found[name] = int(value)
    return found


def _dumped(document: Any) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


async def _send(
    send: Send,
    status: int,
    content: bytes,
    media_type: bytes,
    more: Mapping[str, str] | None = None,
) -> int:
    headers = [
        (b"content-type", media_type),
        (b"content-length", b"%d" % len(content)),
        *_HEADERS,
    ]
    if more:
        headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
    return status


async def send_problem(send: Send, found: Problem) -> int:
    """Answer with a problem document; return its status."""
    return await _send(send, found.kind.status, found.body, MEDIA_TYPE.encode(), found.headers)
