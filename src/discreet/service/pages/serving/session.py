"""A browser's session: one sealed cookie, which every worker of every host can open.

It holds a random name, an expiry, and the token that somebody signed in with. The token itself is
looked at anew with each request, so that a revoked key ends within a second here, too.
"""

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from discreet._json import read_json
from discreet.errors import ParameterError
from discreet.service.records.records import Records
from discreet.service.records.shared import shared_secret
from discreet.service.settings.gateway import GatewaySettings

__all__ = ["BrowserSession", "SessionSeal"]

LASTS: Final = 8 * 3600.0  # seconds
_LONGEST: Final = 3800  # browsers keep 4096 bytes of a cookie, its name and attributes included
_PURPOSE: Final = b"discreet session 1"
_TOLD: Final = b"discreet told once 1"
_TOLD_LASTS: Final = 120.0  # seconds


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """One browser, signed in or not, until the time of the Unix clock that ``until`` says."""

    name: str
    until: float
    token: str | None = field(default=None, repr=False)


@final
class SessionSeal:
    """Seals sessions into cookies and opens them again; all workers have the same seal.

    >>> import tempfile
    >>> settings = GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db")
    >>> with Records.open(settings.records_location) as records:
    ...     seal, other = SessionSeal(records, settings), SessionSeal(records, settings)
    >>> session = seal.begin("dk_abc_def")
    >>> other.opened(seal.sealed(session)) == session
    True
    >>> seal.opened("forged") is None
    True
    """

    def __init__(
        self,
        records: Records,
        settings: GatewaySettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        secret = shared_secret(records, "pages")
        # A nonce is drawn for each cookie. That two of four billion are alike has a chance of
        # 2^-33, and it takes months to ask for so many.
        self._cipher = ChaCha20Poly1305(_derived(secret, b"cookies"))
        self._guards = _derived(secret, b"forms")
        self._clock = clock
        self.is_secure = settings.certificate is not None or settings.public_url is not None
        # With this prefix a browser takes it from the gateway itself only, over TLS.
        self.cookie = "__Host-discreet" if self.is_secure else "discreet"
        self.told_cookie = f"{self.cookie}-told"

    def begin(self, token: str | None = None) -> BrowserSession:
        """Return a new session: nobody keeps the name that a stranger may have given away."""
        name = secrets.token_urlsafe(24)
        return BrowserSession(name=name, until=self._clock() + LASTS, token=token)

    def sealed(self, session: BrowserSession) -> str:
        """Return the text of the cookie."""
        text = self._closed([session.name, session.until, session.token], _PURPOSE)
        if len(text) > _LONGEST:
            raise ParameterError(
                "this token is too long for a cookie. Ask a custodian for an API key, which is "
                "short: discreet keys create",
                parameter="token",
            )
        return text

    def opened(self, text: str) -> BrowserSession | None:
        """Return the session of a cookie, or None for what is forged, broken or too old."""
        found = self._opened(text, _PURPOSE)
        if found is None:
            return None
        name, until, token = found
        session = BrowserSession(name=name, until=until, token=token)
        return session if self._clock() < session.until else None

    def tell_once(self, session: BrowserSession, path: str, text: str) -> str:
        """Return the header that brings a text to the page at ``path``, for this session alone.

        It is in no address, in no history of the browser, and nowhere on this side.
        """
        told = self._closed([session.name, self._clock() + _TOLD_LASTS, path, text], _TOLD)
        return f"{self.told_cookie}={told}; Max-Age={_TOLD_LASTS:.0f}{self._attributes}"

    def told_once(self, session: BrowserSession, path: str, cookie: str) -> str | None:
        """Return the text that was brought to this page, if one was."""
        found = self._opened(cookie, _TOLD)
        if found is None:
            return None
        name, until, meant, text = found
        is_meant = (name, meant) == (session.name, path) and self._clock() < until
        return str(text) if is_meant else None

    def forget_told(self) -> str:
        """Return the header that forgets it."""
        return f"{self.told_cookie}=; Max-Age=0{self._attributes}"

    def _closed(self, document: list[Any], purpose: bytes) -> str:
        nonce = secrets.token_bytes(12)
        told = json.dumps(document).encode()
        return urlsafe_b64encode(nonce + self._cipher.encrypt(nonce, told, purpose)).decode()

    def _opened(self, text: str, purpose: bytes) -> list[Any] | None:
        try:
            raw = urlsafe_b64decode(text.encode("ascii"))
            told: list[Any] = read_json(self._cipher.decrypt(raw[:12], raw[12:], purpose))
        except (ValueError, InvalidTag):
            return None
        return told

    def guard(self, session: BrowserSession) -> str:
        """Return what the forms of a session hold, and those of no other one."""
        return hmac.new(self._guards, session.name.encode(), sha256).hexdigest()

    def is_guarded(self, session: BrowserSession, guard: str) -> bool:
        """Say whether a form was made for this session."""
        return hmac.compare_digest(self.guard(session).encode(), guard.encode())

    def set_cookie(self, session: BrowserSession) -> str:
        """Return the header that keeps a session."""
        left = max(0, int(session.until - self._clock()))
        return f"{self.cookie}={self.sealed(session)}; Max-Age={left}{self._attributes}"

    def end_cookie(self) -> str:
        """Return the header that forgets it."""
        return f"{self.cookie}=; Max-Age=0{self._attributes}"

    @property
    def _attributes(self) -> str:
        secure = "; Secure" if self.is_secure else ""
        return f"; Path=/; HttpOnly; SameSite=Strict{secure}"


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.new(secret, purpose, sha256).digest()
