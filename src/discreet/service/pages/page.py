"""A page as data: who may see it, the view that it shows, and the template that shows it.

A view returns what JSON can hold. The page is its template over that, and its twin at
``<path>.json`` is the very same, so that the two never say different things.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from pydantic import BaseModel

from discreet.errors import ParameterError
from discreet.service.desk.gateway import Gateway
from discreet.service.identity.login import Login, Role
from discreet.service.web.route import ANYBODY, Handler, WebCall

__all__ = [
    "ANYBODY",
    "Action",
    "Download",
    "EventStream",
    "Page",
    "PageArea",
    "PageCall",
    "PageFile",
    "Redirect",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PageCall:
    """One request of a browser, read and checked: everything that a view may look at.

    ``query`` is that of the address and ``form`` what a form sent. ``visitor`` names the browser's
    session, whether somebody signed in or not; nobody can guess one.
    """

    gateway: Gateway
    login: Login | None
    visitor: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def who(self) -> Login:
        """The login; pages for which nobody needs one do not ask."""
        assert self.login is not None
        return self.login

    @property
    def dataset(self) -> str:
        """The dataset that the address names."""
        return self.path["dataset"]

    def web(
        self,
        body: BaseModel | None = None,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, int] | None = None,
        key: str | None = None,
    ) -> WebCall:
        """Return the same request as a route of /v1 gets it."""
        return WebCall(
            gateway=self.gateway,
            login=self.login,
            path={**self.path, **(path or {})},
            query=query or {},
            body=body,
            key=key,
        )

    async def ask(self, handler: Handler, body: BaseModel | None = None, **more: Any) -> Any:
        """Return what a route of /v1 answers to the same login: same checks, same document."""
        return (await handler(self.web(body, **more))).document

    def number(self, name: str, default: float, *, least: float = 0.0, most: float = 1e15) -> float:
        """Return a number from the query, or from the form that was sent."""
        text = {**self.query, **self.form}.get(name, "").strip()
        if not text:
            return default
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not least <= found <= most:  # phrased so that NaN fails too
            raise ParameterError(
                f"{name} must be a number from {least:g} to {most:g}.", parameter=name
            )
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Where an action leads. ``signs_out`` ends the browser's session.

    ``token`` signs it in, if it opens something, and leads to ``otherwise`` if not.
    """

    to: str
    token: str | None = None
    otherwise: str = "/"
    signs_out: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file to be kept: its name, its kind, and what is in it."""

    name: str
    media_type: str
    content: bytes


View: TypeAlias = Callable[[PageCall], Awaitable[Mapping[str, Any]]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One address to look at, with GET. ``roles`` None means that nobody needs a login.

    ``nav`` is its name in the navigation of whoever may see it, None if it is not there.
    """

    path: str
    name: str
    title: str
    roles: tuple[Role, ...] | None
    view: View
    template: str
    nav: str | None = None

    @property
    def twin(self) -> str:
        """The address of the same as JSON."""
        return f"{self.path}index.json" if self.path.endswith("/") else f"{self.path}.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What a form does, with POST: always answered by a redirect.

    The form holds the guards of the session: without them the action is refused. Where it may
    cost something, its ``act`` takes ``form["key"]`` into account, which is drawn with the form.
    """

    path: str
    name: str
    roles: tuple[Role, ...] | None
    act: Callable[[PageCall], Awaitable[Redirect]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One address with a file to be kept."""

    path: str
    name: str
    roles: tuple[Role, ...] | None
    file: Callable[[PageCall], Awaitable[PageFile]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """One address whose answer goes on: each document is a server-sent event.

    ``events`` may refuse before its first document, as any page may.
    """

    path: str
    name: str
    roles: tuple[Role, ...] | None
    events: Callable[[PageCall], AsyncIterator[Mapping[str, Any]]]


PageArea: TypeAlias = tuple[Page | Action | Download | EventStream, ...]
