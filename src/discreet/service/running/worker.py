"""One worker process: it reads the settings again, opens its own gateway, and serves it."""

import asyncio
import contextlib
import json
import logging
import multiprocessing
import os
import resource
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from starlette.types import ASGIApp

from discreet.errors import DiscreetError, ParameterError
from discreet.service.desk.gateway import Gateway
from discreet.service.running.application import create_app
from discreet.service.running.logs import place_of, quiet_loop, set_up_logs
from discreet.service.running.warming import warm_up
from discreet.service.settings.gateway import GatewaySettings
from discreet.service.settings.reading import read_settings

__all__ = ["CONFIG", "app", "tls_of"]

_MOST_FILES: Final = 4096
CONFIG: Final = "DISCREET_CONFIG"  # the settings file, for workers that are started anew


def app() -> ASGIApp:
    """Return the application of this process, for whatever serves ASGI applications.

    The settings are those of the environment, and of the file that DISCREET_CONFIG names.
    """
    set_up_logs(logging.WARNING)  # what warming up charges is of no ledger that anybody keeps
    try:
        file = os.environ.get(CONFIG)
        settings = read_settings(Path(file) if file else None)
        _allow_files()
        warm_up()
        set_up_logs()
        return create_app(Gateway.open(settings), beside=_beside)
    except Exception as error:
        if multiprocessing.parent_process() is None:
            raise
        # Python would end the process with a traceback, and with the words of the error.
        told = {"why": str(error)} if isinstance(error, DiscreetError) else place_of(error)
        _tell_not_started(**told)
        raise SystemExit(1) from None


def _allow_files() -> None:
    """Let this process have as many files open as it may, up to some thousands."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _tell_not_started(**told: object) -> None:
    line = json.dumps({"event": "not started", **told}, sort_keys=True)
    logging.getLogger("discreet.service").error(line)


@contextlib.asynccontextmanager
async def _beside(gateway: Gateway) -> AsyncIterator[None]:
    """Speak PostgreSQL's protocol, too, where that is wished."""
    quiet_loop(asyncio.get_running_loop())
    settings = gateway.settings
    if settings.pg_port is None:
        yield
        return
    from discreet.service.wire import WireSettings, serve_wire

    try:
        served = await serve_wire(
            gateway.desk,
            gateway.door,
            limits=gateway.limits,
            host=settings.host,
            port=settings.pg_port,
            tls=tls_of(settings),
            settings=WireSettings(certificate=_certificate(settings)),
            reuse_port=settings.workers > 1,
        )
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        _tell_not_started(
            why=f"nothing can listen on pg_port {settings.pg_port} of {settings.host}: {reason}."
        )
        raise
    try:
        yield
    finally:
        await served.close(seconds=settings.shutdown_seconds)


def _certificate(settings: GatewaySettings) -> bytes | None:
    """Return the server's own certificate in DER, to which logins are bound."""
    if settings.certificate is None:
        return None
    text = settings.certificate.read_text()
    begin = text.index(ssl.PEM_HEADER)  # the key may stand before it, in the same file
    return ssl.PEM_cert_to_DER_cert(text[begin : text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)])


def tls_of(settings: GatewaySettings) -> ssl.SSLContext | None:
    """Return what encrypts connections, if there is a certificate."""
    if settings.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(
            settings.certificate,
            settings.certificate_key,
            password=lambda: b"",  # rather than ask for one on a terminal that nobody watches
        )
    except OSError as error:
        reason = error.strerror
        if isinstance(error, ssl.SSLError):
            reason = error.reason or "not PEM, or a password is asked"
        raise ParameterError(
            f"{settings.certificate} and {settings.certificate_key} cannot be used as certificate "
            f"and key ({reason}). Both are PEM files, the key without a password, and this user "
            "must be able to read them.",
            parameter="certificate",
        ) from None
    return context
