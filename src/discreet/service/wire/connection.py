"""One client, from its first byte to its last."""

import asyncio
import logging
import re
import secrets
import shlex
import ssl
from dataclasses import dataclass, field
from typing import Any, Final, final

from discreet.service.identity.limits import RequestLimits
from discreet.service.identity.login import Login
from discreet.service.wire.auth.conversation import authenticated
from discreet.service.wire.catalogue.clerks import CatalogueClerk
from discreet.service.wire.interfaces import WireDesk, WireDoor
from discreet.service.wire.link import WireLink
from discreet.service.wire.protocol import replies
from discreet.service.wire.protocol.failures import (
    WireFailure,
    failure_of,
    place_of,
    protocol_violation,
    shutting_down,
)
from discreet.service.wire.protocol.startup import (
    PROTOCOL_3_0,
    CancelPacket,
    EncryptionPacket,
    StartupPacket,
    read_first_packet,
)
from discreet.service.wire.session.loop import MessageLoop
from discreet.service.wire.session.state import SessionState
from discreet.service.wire.session.variables import REPORTED, SERVER_VERSION, SessionVariables
from discreet.service.wire.settings import WireSettings

__all__ = ["WireHouse", "attend"]

_LOG: Final = logging.getLogger(__name__)
_OPTION: Final = re.compile(r"([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


@final
@dataclass(slots=True, kw_only=True)
class WireHouse:
    """What all connections of one server share."""

    desk: WireDesk
    door: WireDoor
    limits: RequestLimits
    settings: WireSettings
    tls: ssl.SSLContext | None
    clerk: CatalogueClerk
    version: str
    sessions: dict[int, tuple[bytes, SessionState]] = field(default_factory=dict)
    connections: int = 0

    def admit(self, session: SessionState) -> bytes:
        """Take a session in, and return the secret with which it may be cancelled."""
        who = session.login.who
        own = [1 for _, other in self.sessions.values() if other.login.who == who]
        most = self.settings.connections_per_login
        if len(own) >= most:
            raise WireFailure("53300", f"a login has at most {most} connections", is_fatal=True)
        secret = secrets.token_bytes(4)
        self.sessions[session.process] = (secret, session)
        return secret

    def end(self) -> "set[asyncio.Task[Any]]":
        """Let sessions end once they have answered; return the tasks of those that answer now."""
        answering = [one for _, one in self.sessions.values() if one.is_answering]
        for session in answering:
            session.is_ending = True
        return {session.task for session in answering if session.task is not None}

    def cancel(self, packet: CancelPacket) -> None:
        """Stop what a session waits for, if the secret is right."""
        secret, session = self.sessions.get(packet.process, (b"", None))
        if session is not None and secrets.compare_digest(secret, packet.secret):
            session.waiting.cancel()

    def new_process(self) -> int:
        """Return a number that no session has."""
        while (number := secrets.randbelow(2**31 - 1) + 1) in self.sessions:
            pass
        return number


async def attend(house: WireHouse, link: WireLink) -> None:
    """Serve one connection; nothing that a client does comes out of here as an error."""
    house.connections += 1
    session = None
    try:
        if house.connections > house.settings.connections:
            raise WireFailure("53300", "there are too many connections", is_fatal=True)
        try:
            async with asyncio.timeout(house.settings.authentication_seconds):
                session = await _begun(house, link)
        except TimeoutError:
            return  # whoever does not say who it is gets no answer either
        if session is not None:
            await MessageLoop(
                link, session, house.door, house.settings, house.limits.of_logins
            ).run()
    except (OSError, ssl.SSLError, EOFError):
        pass  # the client has gone
    except asyncio.CancelledError:
        link.send(replies.error_response(shutting_down().fields()))
        raise
    except Exception as error:  # a mistake of ours must not end the worker
        failure = failure_of(error)
        if failure.code == "XX000":
            _LOG.error("a connection failed: %s", place_of(error))
        failure.is_fatal = True
        link.send(replies.error_response(failure.fields()))
    finally:
        house.connections -= 1
        if session is not None:
            house.sessions.pop(session.process, None)
        await link.close()


async def _begun(house: WireHouse, link: WireLink) -> SessionState | None:
    """Return the session that a client begins; None where it wanted something else."""
    packet = await _startup(house, link)
    if packet is None:
        return None
    if packet.version != PROTOCOL_3_0 or packet.unknown_options:
        link.send(replies.negotiate_version(packet.unknown_options))
    user = packet.parameters.get("user", "")
    if not user:
        raise WireFailure("28000", "no user is named", is_fatal=True)
    login = await authenticated(link, user, house.door, house.settings, house.limits.of_strangers)
    dataset = await _dataset(house, login, packet.parameters.get("database"))
    session = SessionState(
        login=login, dataset=dataset, desk=house.desk, clerk=house.clerk,
        variables=_variables(packet, login, house.version), process=house.new_process(),
        task=asyncio.current_task(),
    )  # fmt: skip
    secret = house.admit(session)
    link.send(
        replies.AUTHENTICATED,
        *(replies.parameter_status(name, session.variables[name]) for name in REPORTED),
        replies.backend_key(session.process, secret),
    )
    return session


async def _startup(house: WireHouse, link: WireLink) -> StartupPacket | None:
    """Return the packet that begins a session, after what may come before it."""
    for _ in range(3):  # GSSAPI, TLS, and the session
        body = await link.first_packet()
        packet = None if body is None else read_first_packet(body)
        match packet:
            case None:
                return None
            case CancelPacket():
                house.cancel(packet)
                return None
            case EncryptionPacket(kind="tls") if house.tls is not None and not link.is_tls:
                await link.begin_tls(house.tls)
            case EncryptionPacket():
                link.send(b"N")
                await link.flush()
            case StartupPacket():
                _check_tls(house, link)
                return packet
    raise protocol_violation("a session was expected")


def _check_tls(house: WireHouse, link: WireLink) -> None:
    rule = house.settings.without_tls
    if link.is_tls or rule == "anywhere" or (rule == "loopback" and link.is_loopback):
        return
    raise WireFailure(
        "28000",
        "connections without TLS are not taken",
        hint="Connect with sslmode=require, or verify-full.",
        is_fatal=True,
    )


async def _dataset(house: WireHouse, login: Login, name: str | None) -> str:
    """Return the dataset that a client wants; what it may not see might as well not exist."""
    visible = await asyncio.to_thread(house.desk.visible, login)
    if name in visible:
        return str(name)
    if name is None and len(visible) == 1:
        return visible[0]
    listed = ", ".join(visible) or "none"
    raise WireFailure(
        "3D000",
        "there is no such dataset, or it is not for this login",
        hint=f"The database of a connection is a dataset. For this login there are: {listed}.",
        is_fatal=True,
    )


def _variables(packet: StartupPacket, login: Login, version: str) -> SessionVariables:
    given = {
        name: value
        for name, value in packet.parameters.items()
        if name not in ("user", "database", "options", "replication")
        and not name.startswith("_pq_.")
    }
    try:
        words = shlex.split(packet.parameters.get("options", ""))
    except ValueError:
        raise WireFailure("22023", "the options have an open quote", is_fatal=True) from None
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        found = _OPTION.fullmatch(word.removeprefix("-c").removeprefix("--"))
        if found is None:
            raise WireFailure(
                "22023", "the options are not understood",
                hint="Write them as in options='-c discreet.epsilon=0.1'.", is_fatal=True,
            )  # fmt: skip
        given[found[1]] = found[2]
    told = f"{SERVER_VERSION} (discreet {version})"
    return SessionVariables(given, server_version=told, session_authorization=login.who)
