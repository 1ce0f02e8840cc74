"""A route as data: who may use it, what goes in and comes out, and the function that serves it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final

from pydantic import BaseModel

from discreet.service.identity.login import Login, Role

if TYPE_CHECKING:
    from discreet.service.desk.gateway import Gateway

__all__ = ["ANYBODY", "WebCall", "Handler", "Number", "WebReply", "Route"]

ANYBODY = tuple(Role)  # whoever has a login


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebCall:
    """One request, read and checked: everything that a handler may look at."""

    gateway: "Gateway"
    login: Login | None
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, int] = field(default_factory=dict)
    body: Any = None
    key: str | None = None

    @property
    def who(self) -> Login:
        """The login; routes for which nobody needs one do not ask."""
        assert self.login is not None
        return self.login

    @property
    def dataset(self) -> str:
        """The dataset that the address names."""
        return self.path["dataset"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebReply:
    """What a handler gives back: a document, or bytes of another kind.

    ``again`` are the bytes to give for the same request of the same login while the data stays as
    it is, where that is allowed. It ``is_due`` if it comes at a public time.
    """

    document: Any = None
    status: int = 200
    raw: bytes | None = None
    media_type: str = "application/json"
    again: Callable[[], bytes] | None = None
    version: str | None = None
    is_due: bool = False


Handler: TypeAlias = Callable[[WebCall], Awaitable[WebReply]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A whole number in the query of an address."""

    name: str
    summary: str
    default: int
    most: int = 2**53


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. ``roles`` None means that nobody needs a login.

    ``body`` and ``answer`` are the models of what goes in and comes out, ``problems`` the kinds of
    problems that are its own, besides those that every route of its sort has. It ``takes_key`` if a
    repeated request is the same one, and ``is_remembered`` if its answer is. Whether a login is
    good for the ``{dataset}`` in the path is checked by the desk.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Handler
    roles: tuple[Role, ...] | None
    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200
    numbers: tuple[Number, ...] = ()
    problems: tuple[str, ...] = ()
    takes_key: bool = False
    is_remembered: bool = False
    media_type: str = "application/json"

    @property
    def is_limited(self) -> bool:
        """Say whether requests count, which those that ask whether the gateway is well do not.

        Behind a proxy these may come from the same address as everybody's.
        """
        return self.roles is not None or self.path.startswith("/v1/")

    @property
    def every_problem(self) -> tuple[str, ...]:
        """The kinds of problems that it can answer with."""
        found = [*self.problems, "bad-method", "internal"]
        if self.roles is not None:
            found += ["unauthenticated", "not-allowed"]
        if self.is_limited:
            found.append("try-later")
        if "{" in self.path:
            found.append("not-found")
        if self.body is not None:
            found += ["bad-request", "too-large", "bad-media-type", "invalid"]
        if self.numbers:
            found.append("invalid")
        return tuple(dict.fromkeys(found))
