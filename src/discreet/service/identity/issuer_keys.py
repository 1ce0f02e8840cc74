"""The public keys of an issuer: fetched when needed, kept for a while, never asked for often."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, final

import jwt

from discreet.service.identity.fetching import check_address, fetch_json
from discreet.service.identity.issuers import ALGORITHMS, Issuer

__all__ = ["IssuerKeys", "PublishedKey"]

KEPT: Final = 600.0  # seconds until keys are fetched anew
PAUSE: Final = 10.0  # seconds between two attempts, whatever tokens come
SMALLEST_RSA: Final = 2048  # bits

_log = logging.getLogger(__name__)


class PublishedKey(NamedTuple):
    """A public key, and the one algorithm that it is used with here."""

    kid: str | None
    algorithm: str
    key: jwt.PyJWK


@final
class IssuerKeys:
    """Keep the keys of an issuer. ``clock`` counts seconds, for tests that cannot wait.

    Tokens with made-up key ids make the gateway ask once in ten seconds at most. While an issuer
    does not answer, the keys that it published last go on.
    """

    def __init__(self, issuer: Issuer, *, clock: Callable[[], float]) -> None:
        self._issuer, self._clock = issuer, clock
        self._asking = threading.Lock()
        self._keys: tuple[PublishedKey, ...] = ()
        self._stale_at = self._pause_ends = float("-inf")

    def offers(self, kid: str | None, algorithm: str) -> Iterator[list[jwt.PyJWK]]:
        """Yield the keys that a token may be signed with; and again, if those were not enough.

        The second time they are fresh: the issuer may have changed its keys meanwhile.
        """
        keys = self._keys
        if self._clock() >= self._stale_at:
            keys = self._newer(keys, is_urgent=not keys)
        fitting = _fitting(keys, kid, algorithm)
        yield fitting
        if kid is None or not fitting:
            newer = self._newer(keys, is_urgent=True)
            if newer is not keys:
                yield _fitting(newer, kid, algorithm)

    def _newer(
        self, seen: tuple[PublishedKey, ...], *, is_urgent: bool
    ) -> tuple[PublishedKey, ...]:
        """Ask the issuer, unless somebody did; only what is urgent waits for somebody's answer."""
        if not self._asking.acquire(blocking=is_urgent):
            return seen
        try:
            if self._keys is seen and self._clock() >= self._pause_ends:
                self._pause_ends = self._clock() + PAUSE
                self._keys = _published(self._issuer)
                self._stale_at = self._clock() + KEPT
        except ValueError as problem:
            what = "its last keys go on" if seen else "its tokens are not taken"
            _log.warning("issuer %s: no keys, %s: %s", self._issuer.name, what, problem)
        finally:
            self._asking.release()
        return self._keys


def _fitting(keys: tuple[PublishedKey, ...], kid: str | None, algorithm: str) -> list[jwt.PyJWK]:
    return [each.key for each in keys if each.algorithm == algorithm and kid in (None, each.kid)]


def _published(issuer: Issuer) -> tuple[PublishedKey, ...]:
    """Return the keys that an issuer publishes; raise ``ValueError`` where there are none."""
    address = issuer.jwks_url
    if address is None:
        found = fetch_json(f"{issuer.url.rstrip('/')}/.well-known/openid-configuration")
        address = found.get("jwks_uri")
        if found.get("issuer") != issuer.url or not isinstance(address, str):
            raise ValueError("its configuration is of another issuer, or names no keys")
        check_address(address)
    told = fetch_json(address).get("keys")
    if not isinstance(told, list):
        raise ValueError(f"{address} has no keys")
    keys = tuple(
        key for one in told if isinstance(one, dict) for key in _usable(one, issuer.algorithms)
    )
    if not keys:  # it may have withdrawn them all: its word counts
        _log.warning("issuer %s publishes no key that can be used here", issuer.name)
    return keys


def _usable(told: Mapping[str, Any], algorithms: tuple[str, ...]) -> Iterator[PublishedKey]:
    """Yield a key once for each algorithm that it is good for."""
    kid = told.get("kid")
    if told.get("use") not in (None, "sig") or not isinstance(kid, str | None) or "d" in told:
        return
    for algorithm in algorithms:
        kind, curve = ALGORITHMS[algorithm]
        if told.get("kty") != kind or told.get("alg") not in (None, algorithm):
            continue
        if curve in (None, told.get("crv")):
            with contextlib.suppress(jwt.PyJWTError, ValueError, TypeError):  # not a key at all
                key = jwt.PyJWK(dict(told), algorithm)
                if kind != "RSA" or key.key.key_size >= SMALLEST_RSA:
                    yield PublishedKey(kid, algorithm, key)
