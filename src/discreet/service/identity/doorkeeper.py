"""Who is at the door? The one place that turns what a client shows into a login."""

import hmac
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, final

from discreet.errors import LedgerUnavailable, Unauthenticated
from discreet.service.identity.api_keys import (
    PREFIX,
    ApiKey,
    all_keys,
    digest_of,
    id_of,
    login_of,
)
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Login
from discreet.service.identity.scram import ScramVerifier, decoy
from discreet.service.identity.tokens import TokenReader
from discreet.service.records.records import Records
from discreet.service.records.shared import shared_secret

__all__ = ["Doorkeeper"]

LONGEST: Final = 16_384  # characters of a token; more is not worth a look
FRESH: Final = 1.0  # seconds that a revoked key may live on
_SPARE: Final = 0.05  # seconds within which a question of memory is certainly answered

_NOBODY: Final = ApiKey(
    id="", who="", roles=frozenset(), datasets=None, digest=64 * "0", verifier="", created=0.0
)


@final
class Doorkeeper:
    """Recognise API keys and tokens of issuers. Any thread may ask.

    Most answers come from memory. Once a second somebody waits for the keys to be read again, and
    now and then for an issuer, so an event loop asks from a thread. ``clock`` counts seconds, for
    tests that cannot wait.
    """

    def __init__(
        self,
        records: Records,
        issuers: Iterable[Issuer] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = _LatestKeys(records, clock)
        self._tokens = TokenReader(issuers, clock=clock)
        # The same in all workers: a decoy that changed with them would give itself away.
        self._decoys = shared_secret(records, "decoys")

    def login(self, token: str) -> Login:
        """Return whom an API key or a token lets in; raise ``Unauthenticated`` for all others.

        Raises ``LedgerUnavailable`` for API keys while the records cannot be read.
        """
        if len(token) > LONGEST or not token.isascii():
            raise Unauthenticated
        if not token.startswith(PREFIX):
            return self._tokens.login(token)
        # The same work for every key, known or not, until it is clear that it is the right one.
        known = self._keys.latest().get(id_of(token) or "", _NOBODY)
        is_right = hmac.compare_digest(digest_of(token), known.digest)
        if not is_right or not known.is_good(time.time()):
            raise Unauthenticated
        return login_of(known)

    def at_once(self, token: str) -> Login | None:
        """Return whom an API key lets in, if that is known without waiting for anything."""
        if not (self._keys.is_fresh and len(token) <= LONGEST and token.startswith(PREFIX)):
            return None
        try:
            return self.login(token)
        except Unauthenticated:
            return None  # refused like all others, after the same look

    def scram(self, user: str) -> ScramVerifier:
        """Return the verifier of the API key with this id, or one that no password fits."""
        none = decoy(user, self._decoys)
        known = self._keys.latest().get(user)
        return none if known is None else ScramVerifier.read(known.verifier)

    def login_by_id(self, user: str) -> Login:
        """Return whom the API key with this id lets in: for a client that proved to have it."""
        known = self._keys.latest().get(user, _NOBODY)
        if known is _NOBODY or not known.is_good(time.time()):
            raise Unauthenticated
        return login_of(known)


class _Reading(NamedTuple):
    at: float
    keys: Mapping[str, ApiKey]
    problem: str | None = None


class _LatestKeys:
    """All API keys as they were at most a second ago."""

    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        self._records, self._clock = records, clock
        self._reading = threading.Lock()
        self._last = _Reading(float("-inf"), {})

    @property
    def is_fresh(self) -> bool:
        """Whether :meth:`latest` would answer from memory, with some room to spare."""
        last = self._last
        return last.problem is None and self._clock() - last.at < FRESH - _SPARE

    def latest(self) -> Mapping[str, ApiKey]:
        last = self._last
        if self._clock() - last.at >= FRESH:
            with self._reading:
                if self._clock() - self._last.at >= FRESH:
                    self._last = self._read()
                last = self._last
        if last.problem is not None:
            raise LedgerUnavailable(last.problem)
        return last.keys

    def _read(self) -> _Reading:
        at = self._clock()  # before reading: what is revoked from here on may be missing
        try:
            return _Reading(at, {key.id: key for key in all_keys(self._records)})
        except LedgerUnavailable as error:
            # Kept for a second as well, so that not everybody waits for a server that is gone.
            return _Reading(self._clock(), {}, str(error))
