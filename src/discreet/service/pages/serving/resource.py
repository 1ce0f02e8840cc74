"""One address of the pages: who asks, what they may see, and what they get."""

import contextlib
import json
import logging
from collections.abc import Mapping
from typing import Any, TypeAlias, final

from pydantic import ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from discreet._json import read_json
from discreet.errors import DiscreetError, Unauthenticated
from discreet.service.pages.page import Action, Download, EventStream, Page, PageCall, Redirect
from discreet.service.pages.rendering.environment import Renderer
from discreet.service.pages.serving.answers import PageAnswers
from discreet.service.pages.serving.door import PageDoor, PageGuest, read_fields
from discreet.service.web.problems import (
    KINDS,
    Problem,
    internal,
    problem,
    problem_of,
    problem_of_body,
)
from discreet.service.web.reading import RequestRefused, read_headers
from discreet.service.web.resource import Surroundings

__all__ = ["PageNowhere", "PageResource", "PageSurroundings"]

Served: TypeAlias = Page | Action | Download | EventStream
_logger = logging.getLogger("discreet.service")


@final
class PageSurroundings:
    """What all pages of one worker share."""

    def __init__(self, around: Surroundings, renderer: Renderer) -> None:
        self.gateway, self.metrics = around.gateway, around.metrics
        self.door = PageDoor(around.gateway)
        self.answers = PageAnswers(self.door, renderer)


@final
class PageResource:
    """What is shown at an address and the action there, or a page's twin."""

    def __init__(
        self,
        around: PageSurroundings,
        *,
        shown: Page | Download | EventStream | None = None,
        action: Action | None = None,
        is_twin: bool = False,
    ) -> None:
        self._around, self._shown, self._action = around, shown, action
        self._is_twin = is_twin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; nothing that a view raises gets out of here."""
        guest: PageGuest | None = None
        name = "page"
        try:
            served = self._served(scope["method"])
            name = f"page {served.name}"
            headers = read_headers(scope)
            if not isinstance(served, Action) and self._around.door.is_from_elsewhere(headers):
                answer = self._around.answers.once_more()
            else:
                guest = await self._around.door.guest(scope, headers)
                answer = await self._answer(served, guest, headers, scope, receive)
        except RequestRefused as refusal:
            answer = self._problem(scope, refusal.problem, guest)
        except ValidationError as error:
            answer = self._problem(scope, problem_of_body(error), guest)
        except DiscreetError as error:
            answer = self._problem(scope, problem_of(error), guest)
        except Exception as error:
            answer = self._problem(scope, internal(error), guest)
        await answer(scope, receive, send)
        self._around.metrics.served(name, answer.status_code)
        if _logger.isEnabledFor(logging.INFO):
            who = guest.login.who if guest and guest.login else None
            line = {"event": "request", "route": name, "status": answer.status_code, "who": who}
            _logger.info(json.dumps(line, sort_keys=True))

    def _served(self, method: str) -> Served:
        found = {"GET": self._shown, "HEAD": self._shown, "POST": self._action}.get(method)
        if found is None:
            allowed = [*(["GET"] if self._shown else []), *(["POST"] if self._action else [])]
            told = f"this address takes {' and '.join(allowed)}."
            headers = {"Allow": ", ".join(allowed)}
            raise RequestRefused(Problem(KINDS["bad-method"], told, headers=headers))
        return found

    async def _answer(
        self,
        served: Served,
        guest: PageGuest,
        headers: Mapping[bytes, bytes],
        scope: Scope,
        receive: Receive,
    ) -> Response:
        answers, form = self._around.answers, dict[str, str]()
        if isinstance(served, Action):
            form = await self._around.door.form(scope, headers, receive, guest.session)
        if served.roles is not None:
            if guest.login is None:
                raise Unauthenticated
            guest.login.needs(served.roles)
        call = PageCall(
            gateway=self._around.gateway,
            login=guest.login,
            visitor=guest.session.name,
            path=scope["path_params"],
            query=read_fields(scope["query_string"]),
            form=form,
            told=self._around.door.told_once(scope, headers, guest.session),
        )
        match served:
            case Page():
                view = await _viewed(served, call)
                answer = answers.twin(view) if self._is_twin else answers.page(
                    served, view, guest, scope
                )  # fmt: skip
                return answer if call.told is None else answers.told(answer)
            case Action():
                return answers.redirect(await self._signed_in(await served.act(call), scope), guest)
            case Download():
                return answers.file(await served.file(call))
            case EventStream():
                events = served.events(call)
                # A refusal comes before the first one, and is a problem like others.
                return answers.events(await anext(events), events)

    async def _signed_in(self, found: Redirect, scope: Scope) -> Redirect:
        if found.token is None:
            return found
        try:
            await self._around.door.login(found.token, scope)
        except Unauthenticated:
            return Redirect(to=found.otherwise)
        return found

    def _problem(self, scope: Scope, found: Problem, guest: PageGuest | None) -> Response:
        if self._is_twin or isinstance(self._shown, EventStream):
            return self._around.answers.problem_document(found)
        return self._around.answers.problem(scope, found, guest)


async def _viewed(page: Page, call: PageCall) -> dict[str, Any]:
    """Return a view as JSON has it, which is all that its template sees."""
    found: dict[str, Any] = read_json(json.dumps(await page.view(call), allow_nan=False))
    return found


@final
class PageNowhere:
    """Says that there is nothing: as a page to browsers, as a document to programs."""

    def __init__(self, around: PageSurroundings) -> None:
        self._around = around

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever the method was."""
        found = problem("not-found", "there is nothing at this address.")
        headers = dict(scope["headers"])
        if b"text/html" in headers.get(b"accept", b"") and not scope["path"].startswith("/v1/"):
            guest = None
            with contextlib.suppress(DiscreetError):
                guest = await self._around.door.guest(scope, headers)
            answer = self._around.answers.problem(scope, found, guest)
        else:
            answer = self._around.answers.problem_document(found)
        await answer(scope, receive, send)
