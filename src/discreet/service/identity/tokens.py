"""Tokens of issuers: who signed them, for whom, until when, and whom they let in."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, final

import jwt

from discreet.errors import ParameterError, Unauthenticated
from discreet.service.identity.issuer_keys import IssuerKeys
from discreet.service.identity.issuers import Issuer
from discreet.service.identity.login import Login

__all__ = ["TokenReader"]

_log = logging.getLogger(__name__)


@final
class TokenReader:
    """Check tokens against the issuers that are trusted."""

    def __init__(self, issuers: Iterable[Issuer], *, clock: Callable[[], float]) -> None:
        trusted = list(issuers)
        self._issuers = {one.url: (one, IssuerKeys(one, clock=clock)) for one in trusted}
        if len({one.name for one in trusted}) < len(trusted) or len(self._issuers) < len(trusted):
            raise ParameterError(
                "issuers must have names and addresses of their own. An issuer can have several "
                "audiences.",
                parameter="issuers",
            )

    def login(self, token: str) -> Login:
        """Return whom a token lets in, or raise ``Unauthenticated``."""
        try:
            return self._login(token)
        except Unauthenticated:
            raise
        except Exception as error:
            # A token may say anything, and no two readers choke on the same: numbers beyond all
            # bounds, lists for texts. Whatever it brings about, it is a token that nobody knows.
            if not isinstance(error, jwt.PyJWTError):
                _log.debug("a token could not be read: %s", type(error).__name__)
            raise Unauthenticated from None

    def _login(self, token: str) -> Login:
        told = jwt.decode_complete(token, options={"verify_signature": False})
        issuer, keys = self._issuers[told["payload"]["iss"]]
        claims = _verified(token, told["header"], issuer, keys)
        who = issuer.who(claims)
        if who is None:
            raise Unauthenticated
        return Login(who=who, roles=issuer.roles_of(claims), expires=float(claims["exp"]))


def _lets_in(header: Mapping[str, Any]) -> bool:
    """Say whether a token is of a kind that is for logging in.

    Issuers sign others for the same audience, such as logout+jwt, which every client may receive.
    """
    kind = str(header.get("typ") or "JWT").lower().removeprefix("application/")
    return kind in ("jwt", "at+jwt", "id+jwt") or not kind.endswith("+jwt")


def _verified(
    token: str, header: Mapping[str, Any], issuer: Issuer, keys: IssuerKeys
) -> dict[str, Any]:
    """Return the claims of a token whose signature, issuer, audience and times are right."""
    algorithm = header["alg"]
    if algorithm not in issuer.algorithms or not _lets_in(header):
        raise Unauthenticated
    for offer in keys.offers(header.get("kid"), algorithm):
        for key in offer:
            with suppress(jwt.InvalidSignatureError):
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    issuer=issuer.url,
                    audience=issuer.audiences,
                    leeway=issuer.leeway,
                    options={"require": ["iss", "aud", "exp", issuer.who_claim]},
                )
                if "events" in claims:  # a security event, which tells about a login and is none
                    raise Unauthenticated
                return claims
    raise Unauthenticated
