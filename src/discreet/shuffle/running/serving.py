"""Run a shuffler until somebody stops it."""

from ipaddress import ip_address
from pathlib import Path

import uvicorn

from discreet.errors import ParameterError
from discreet.shuffle.running.application import create_shuffler_app
from discreet.shuffle.shuffler.shuffler import Shuffler

__all__ = ["serve_shuffler"]


def serve_shuffler(
    shuffler: Shuffler,
    *,
    host: str,
    port: int,
    certificate: Path | None = None,
    certificate_key: Path | None = None,
    is_behind_tls: bool = False,
) -> None:
    """Serve until interrupted, without any log of who sent when.

    >>> serve_shuffler(None, host="0.0.0.0", port=8100)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: tokens would cross the network in the clear. Give certificate...
    """
    if not (_is_local(host) or certificate or is_behind_tls):
        raise ParameterError(
            "tokens would cross the network in the clear. Give certificate and certificate_key, "
            "say that something in front of the shuffler encrypts, or listen on 127.0.0.1 only.",
            parameter="certificate",
        )
    uvicorn.run(
        create_shuffler_app(shuffler),
        host=host,
        port=port,
        ssl_certfile=certificate,
        ssl_keyfile=certificate_key,
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        limit_concurrency=1000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
