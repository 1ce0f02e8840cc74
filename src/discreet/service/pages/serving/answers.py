"""What a browser gets: a page or its twin, a redirect, a file, events, or a problem."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, final

from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from discreet.errors import DiscreetError
from discreet.service.pages.page import Page, PageFile, Redirect
from discreet.service.pages.rendering.environment import Renderer
from discreet.service.pages.serving.door import PageDoor, PageGuest, sign_in_address
from discreet.service.pages.serving.headers import PAGE_HEADERS
from discreet.service.web.problems import MEDIA_TYPE, Problem, internal, problem_of

__all__ = ["PageAnswers", "address_of"]

_HTML: Final = "text/html; charset=utf-8"
_RELOADING: Final = "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=0>"


@final
class PageAnswers:
    """Makes answers, and sees to it that a new session is kept by its browser."""

    def __init__(self, door: PageDoor, renderer: Renderer) -> None:
        self._door, self._renderer = door, renderer

    def page(self, page: Page, view: Mapping[str, Any], guest: PageGuest, scope: Scope) -> Response:
        """Return a view as HTML."""
        path, mark, query = address_of(scope).partition("?")
        twin = f"{path}{page.twin.removeprefix(page.path)}{mark}{query}"
        html = self._html(page.template, view, page.title, guest, scope, twin)
        return _response(html, _HTML, more=self._kept(guest))

    def twin(self, view: Mapping[str, Any]) -> Response:
        """Return a view as JSON."""
        return _response(json.dumps(view).encode(), "application/json")

    def file(self, file: PageFile) -> Response:
        """Return what the browser keeps as a file."""
        kept = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        return _response(file.content, file.media_type, more=kept)

    def events(
        self, first: Mapping[str, Any], events: AsyncIterator[Mapping[str, Any]]
    ) -> Response:
        """Return documents one after the other, as they come."""
        return StreamingResponse(
            _sent(first, events), headers=PAGE_HEADERS, media_type="text/event-stream"
        )

    def redirect(self, found: Redirect, guest: PageGuest) -> Response:
        """Lead on, and sign the browser in or out where that is meant."""
        more = {"Location": found.to}
        if found.token is not None:
            more["Set-Cookie"] = self._door.seal.set_cookie(self._door.seal.begin(found.token))
        elif found.signs_out:
            more["Set-Cookie"] = self._door.seal.end_cookie()
        elif found.told is not None:
            path = found.to.partition("?")[0]
            more["Set-Cookie"] = self._door.seal.tell_once(guest.session, path, found.told)
        return _response(b"", _HTML, status=303, more=more)

    def told(self, answer: Response) -> Response:
        """Let the browser forget what it was told once."""
        answer.headers.append("Set-Cookie", self._door.seal.forget_told())
        return answer

    def once_more(self) -> Response:
        """Let the browser load the page again.

        A link elsewhere led here, so it held its strict cookie back. It brings the cookie along
        where a page of this gateway leads.
        """
        return _response(_RELOADING.encode(), _HTML)

    def problem(self, scope: Scope, found: Problem, guest: PageGuest | None) -> Response:
        """Return a problem as a page; whoever is not signed in gets there first."""
        status, more = found.kind.status, dict(found.headers)
        more.pop("WWW-Authenticate", None)  # a browser would ask for a password
        if found.kind.name == "unauthenticated":
            to = sign_in_address(address_of(scope) if scope["method"] == "GET" else "/")
            if any(name == b"hx-request" for name, _ in scope["headers"]):
                return _response(b"", _HTML, more={"HX-Redirect": to})
            return _response(b"", _HTML, status=303, more={"Location": to})
        # Where nobody looked at its session, the browser keeps the one that it has.
        guest = guest or PageGuest(self._door.seal.begin(), False, None)
        view = {"problem": found.document}
        html = self._html("problem.html", view, found.kind.title, guest, scope, None)
        return _response(html, _HTML, status=status, more=more | self._kept(guest))

    def problem_document(self, found: Problem) -> Response:
        """Return a problem as programs read it."""
        return _response(found.body, MEDIA_TYPE, status=found.kind.status, more=dict(found.headers))

    def _html(
        self,
        template: str,
        view: Mapping[str, Any],
        title: str,
        guest: PageGuest,
        scope: Scope,
        twin: str | None,
    ) -> bytes:
        return self._renderer.render(
            template,
            view,
            title=title,
            login=guest.login,
            guard=self._door.seal.guard(guest.session),
            address=address_of(scope),
            twin=twin,
        ).encode()

    def _kept(self, guest: PageGuest) -> dict[str, str]:
        """Let a browser that has no session keep the one that its forms were made for."""
        if not guest.is_new:
            return {}
        return {"Set-Cookie": self._door.seal.set_cookie(guest.session)}


def address_of(scope: Scope) -> str:
    """Return the path and query that were asked for."""
    path: str = scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or scope["path"]
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _response(
    content: bytes, media_type: str, *, status: int = 200, more: Mapping[str, str] | None = None
) -> Response:
    headers = {**PAGE_HEADERS, **(more or {})}
    return Response(content, status_code=status, headers=headers, media_type=media_type)


async def _sent(
    first: Mapping[str, Any], events: AsyncIterator[Mapping[str, Any]]
) -> AsyncIterator[bytes]:
    """Return documents as server-sent events; what fails meanwhile is told as the last one."""
    yield _event(first)
    try:
        async for document in events:
            yield _event(document)
    except DiscreetError as error:
        yield _event(problem_of(error).document, kind="problem")
    except Exception as error:
        yield _event(internal(error).document, kind="problem")


def _event(document: Mapping[str, Any], *, kind: str = "message") -> bytes:
    return f"event: {kind}\ndata: {json.dumps(document, allow_nan=False)}\n\n".encode()
