"""Who a browser is: its session, the login behind it, and whether a form is its own."""

from collections.abc import Mapping
from typing import Final, NamedTuple, final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import cookie_parser
from starlette.types import Receive, Scope

from discreet.errors import Unauthenticated
from discreet.service.desk.gateway import Gateway
from discreet.service.identity.login import Login
from discreet.service.pages.serving.session import BrowserSession, SessionSeal
from discreet.service.web.problems import problem
from discreet.service.web.reading import RequestRefused, read_body

__all__ = ["PageDoor", "PageGuest", "local_address", "sign_in_address"]

_FORM: Final = "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 200
_NOT_YOURS: Final = (
    "this form is not of this browser's session, or it is too old. Nothing was done. Go back, load "
    "the page again, and send it anew."
)


class PageGuest(NamedTuple):
    """A browser at the door: its session, whether that is new, and who is signed in."""

    session: BrowserSession
    is_new: bool
    login: Login | None


@final
class PageDoor:
    """Looks at cookies and forms. The login is asked for anew with every request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.seal = SessionSeal(gateway.records, gateway.settings)

    async def guest(self, scope: Scope, headers: Mapping[bytes, bytes]) -> PageGuest:
        """Return who asks, and count a request without a login for its address."""
        guest = await self._guest(scope, headers)
        if guest.login is None:
            self._gateway.limits.of_guests.take(_client(scope))
        return guest

    async def _guest(self, scope: Scope, headers: Mapping[bytes, bytes]) -> PageGuest:
        """Return who asks. A session whose token opens nothing any more is one of a stranger."""
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() == "bearer":  # a program, that reads twins
            return PageGuest(self.seal.begin(), True, await self.login(token.strip(), scope))
        session = self._session(headers)
        if session is None:
            return PageGuest(self.seal.begin(), True, None)
        if session.token is None:
            return PageGuest(session, False, None)
        try:
            login = await self.login(session.token, scope)
        except Unauthenticated:
            return PageGuest(self.seal.begin(), True, None)
        return PageGuest(session, False, login)

    async def login(self, token: str, scope: Scope) -> Login:
        """Return whom a token lets in, counting what is asked for and what is tried."""
        try:
            login = await self._gateway.login(token)
        except Unauthenticated:
            self._gateway.limits.of_strangers.take(_client(scope))
            raise
        self._gateway.limits.of_logins.take(login.who)
        return login

    async def form(
        self,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        session: BrowserSession,
    ) -> dict[str, str]:
        """Return the fields of a form that this session was given, and of no other one."""
        if not self._is_from_here(scope, headers):
            raise RequestRefused(problem("not-allowed", _NOT_YOURS))
        raw = await read_body(
            headers, receive, most=self._gateway.settings.question_bytes, media_type=_FORM
        )
        fields = read_fields(raw)
        if not self.seal.is_guarded(session, fields.pop("guard", "")):
            raise RequestRefused(problem("not-allowed", _NOT_YOURS))
        return fields

    def told_once(
        self, scope: Scope, headers: Mapping[bytes, bytes], session: BrowserSession
    ) -> str | None:
        """Return what the action that led here left for this page, to be told once."""
        cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
        return self.seal.told_once(session, scope["path"], cookies.get(self.seal.told_cookie, ""))

    def is_from_elsewhere(self, headers: Mapping[bytes, bytes]) -> bool:
        """Say whether a link elsewhere led here, so that the browser held its cookie back."""
        has_cookie = self.seal.cookie.encode() in headers.get(b"cookie", b"")
        return not has_cookie and headers.get(b"sec-fetch-site") == b"cross-site"

    def _session(self, headers: Mapping[bytes, bytes]) -> BrowserSession | None:
        cookies = cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))
        return self.seal.opened(cookies.get(self.seal.cookie, ""))

    def _is_from_here(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        told = headers.get(b"origin", b"").decode("latin-1")
        outside = self._gateway.settings.public_url
        if outside is not None:  # what encrypts in front of the gateway has an address of its own
            parts = urlsplit(outside)
            return told == f"{parts.scheme}://{parts.netloc}"
        return told == f"{scope['scheme']}://{headers.get(b'host', b'').decode('latin-1')}"


def _client(scope: Scope) -> str:
    return str((scope.get("client") or ("unknown", 0))[0])


def read_fields(raw: bytes) -> dict[str, str]:
    """Return the fields of a query or form; one that is there twice counts as it was said last.

    >>> read_fields(b"a=1&b=x+y&a=2")
    {'a': '2', 'b': 'x y'}
    """
    try:
        return dict(
            parse_qsl(
                raw.decode(),
                keep_blank_values=True,
                max_num_fields=_MOST_FIELDS,
                errors="strict",
            )
        )
    except ValueError:
        raise RequestRefused(
            problem("bad-request", "the fields of this request cannot be read.")
        ) from None


def local_address(text: str) -> str:
    """Return an address of this gateway as it is, and the front page for all others.

    >>> local_address("/datasets?x=1"), local_address("//evil.example"), local_address("https://x")
    ('/datasets?x=1', '/', '/')
    """
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_local and "\\" not in text else "/"


def sign_in_address(address: str) -> str:
    """Return where somebody signs in to come back.

    >>> sign_in_address("/datasets/people?epsilon=1")
    '/sign-in?next=/datasets/people%3Fepsilon%3D1'
    """
    return f"/sign-in?next={quote(address, safe='/')}"
