"""Run a gateway: as many workers as the settings say, until somebody stops them."""

import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import ParameterError
from discreet.service.desk.gateway import Gateway
from discreet.service.running.logs import LogLine
from discreet.service.running.worker import CONFIG, tls_of
from discreet.service.settings.gateway import GatewaySettings
from discreet.service.settings.reading import FROM_FILE, PREFIX
from discreet.service.web.site import site_routes

__all__ = ["check_ports", "check_servable", "serve"]


def serve(settings: GatewaySettings, *, config: Path | None, flags: Mapping[str, object]) -> None:
    """Serve until interrupted. Workers read ``config``, the environment and ``flags`` again.

    >>> serve(GatewaySettings(datasets=(Path("a.toml"),), host="0.0.0.0"), config=None, flags={})
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: tokens would cross the network in the clear. ...
    """
    import uvicorn

    from discreet.service.running.heads import BriefHeads

    check_servable(settings)
    if settings.workers > 1:  # a worker that cannot open its gateway is started again and again
        Gateway.open(settings).close()
    if config is not None:
        os.environ[CONFIG] = str(config.absolute())
    for name, value in flags.items():
        os.environ.pop(f"{PREFIX}{name.upper()}{FROM_FILE}", None)
        os.environ[PREFIX + name.upper()] = _text(value)
    with tempfile.TemporaryDirectory(prefix="discreet-metrics-") as folder:
        if settings.workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        uvicorn.run(
            "discreet.service.running.worker:app",
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.certificate_key,
            log_config=_log_config(),
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http=BriefHeads,
            ws="none",
            lifespan="on",
            backlog=1024,
            limit_concurrency=1000,
            timeout_keep_alive=30,
            timeout_worker_healthcheck=60,  # after 5 it ends workers that are slow to begin
            timeout_graceful_shutdown=int(settings.shutdown_seconds) + 5,
        )


def check_servable(settings: GatewaySettings) -> None:
    """Refuse what could not be served: nothing, no site, no pair of keys, or tokens in the clear.

    >>> check_servable(GatewaySettings(datasets=(Path("people.toml"),), host="0.0.0.0"))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: tokens would cross the network in the clear. Give certificate...
    """
    if not settings.datasets and not settings.collections and settings.data is None:
        raise ParameterError(
            "there is nothing to serve. Name declarations with datasets = [...] in a settings "
            "file, or try: discreet serve --demo",
            parameter="datasets",
        )
    if settings.data is not None and not settings.data.is_dir():
        raise ParameterError(
            f"data must be a folder, and {settings.data} is none.", parameter="data"
        )
    site_routes(settings.docs)
    tls_of(settings)
    if not settings.is_local and settings.certificate is None and settings.public_url is None:
        raise ParameterError(
            "tokens would cross the network in the clear. Give certificate and certificate_key; or "
            "public_url, the https address of what encrypts in front of the gateway; or listen on "
            "127.0.0.1 only.",
            parameter="certificate",
        )


def check_ports(settings: GatewaySettings) -> None:
    """Refuse ports that nothing can listen on, before anybody is told of a gateway there.

    >>> with socket.create_server(("127.0.0.1", 0)) as taken:
    ...     check_ports(GatewaySettings(port=taken.getsockname()[1]))
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: nothing can listen on port ... of 127.0.0.1: Address already...
    """
    for name in ("port", "pg_port"):
        port = getattr(settings, name)
        if port is None:
            continue
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            socket.create_server((settings.host, port), family=family).close()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            option = f"--{name.replace('_', '-')}"
            raise ParameterError(
                f"nothing can listen on {name} {port} of {settings.host}: {reason}. Choose another "
                f"one with {option}, or end what listens there.",
                parameter=name,
            ) from None


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(Path(one).absolute()) for one in value)
    return str(value)


def _log_config() -> dict[str, Any]:
    """Let the parent of the workers write the same lines as they do."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": LogLine}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {"uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False}},
    }
