"""The conversation by which a client shows who it is."""

import asyncio
import time

from discreet.errors import Unauthenticated
from discreet.service.identity.limits import RequestLimit
from discreet.service.identity.login import Login
from discreet.service.wire.auth.scram import ScramExchange, channel_binding, mechanisms
from discreet.service.wire.interfaces import WireDoor
from discreet.service.wire.link import WireLink
from discreet.service.wire.protocol import replies
from discreet.service.wire.protocol.failures import WireFailure, protocol_violation
from discreet.service.wire.protocol.requests import read_password, read_sasl_first
from discreet.service.wire.settings import WireSettings

__all__ = ["TOKEN_USERS", "authenticated", "check_expiry", "renewed"]

TOKEN_USERS = ("token", "oidc")
_LARGEST = 32 * 1024  # bytes of a message with a token


async def authenticated(
    link: WireLink, user: str, door: WireDoor, settings: WireSettings, strangers: RequestLimit
) -> Login:
    """Return whose connection it is; ``strangers`` counts those that are nobody's.

    The user of the connection is ``token``, and the password an API key or a token of an issuer; or
    it is the id of an API key, and its secret is shown to be known without being sent.
    """
    try:
        if user.lower() in TOKEN_USERS:
            login = await _by_token(link, door)
        else:
            login = await _by_scram(link, user, door, settings)
    except Unauthenticated as error:
        strangers.take(link.address)
        raise WireFailure("28P01", str(error), is_fatal=True) from None
    check_expiry(login)
    return login


def check_expiry(login: Login) -> None:
    """End the connection of a login whose time is over."""
    if login.expires is not None and login.expires <= time.time():
        raise WireFailure("28P01", str(Unauthenticated()), is_fatal=True)


async def renewed(login: Login, door: WireDoor) -> Login:
    """Return what a login is by now, or end its connection: keys are revoked while it is open."""
    check_expiry(login)
    if login.key is None:
        return login  # by a token, which holds until it expires
    try:
        return await asyncio.to_thread(door.login_by_id, login.key)
    except Unauthenticated as error:
        raise WireFailure("28P01", str(error), is_fatal=True) from None


async def _by_token(link: WireLink, door: WireDoor) -> Login:
    if not link.is_tls and not link.is_loopback:
        raise WireFailure(
            "28000",
            "a token is not taken over a connection that anybody can read",
            hint="Connect with TLS, as with sslmode=require, or with an API key's id as the user.",
            is_fatal=True,
        )
    link.send(replies.CLEARTEXT_WANTED)
    token = read_password(await _answer(link))
    return await asyncio.to_thread(door.login, token)


async def _by_scram(link: WireLink, user: str, door: WireDoor, settings: WireSettings) -> Login:
    verifier = await asyncio.to_thread(door.scram, user)
    is_bound = link.is_tls and settings.certificate is not None
    binding = channel_binding(settings.certificate or b"") if is_bound else None
    exchange = ScramExchange(verifier, binding=binding)
    link.send(replies.sasl_wanted(mechanisms(binding)))
    first = exchange.first(*read_sasl_first(await _answer(link)))
    link.send(replies.sasl_continued(first))
    last = exchange.final(await _answer(link))
    login = await asyncio.to_thread(door.login_by_id, user)
    link.send(replies.sasl_final(last))
    return login


async def _answer(link: WireLink) -> bytes:
    await link.flush()
    found = await link.message(is_known=False, largest=_LARGEST)
    if found is None:
        raise ConnectionResetError
    kind, body = found
    if kind != b"p":
        raise protocol_violation("a password was expected")
    return body
