"""``discreet collect serve``: take reports over HTTP."""

import socket
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.collect.opening import NameArgument, opened
from discreet.cli.options import BUDGET, KeyOption, LedgerOption
from discreet.cli.output import tell, tell_command
from discreet.errors import ParameterError

__all__ = ["serve"]


def serve(
    name: NameArgument,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0: any.")] = 8080,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A certificate, to encrypt.")
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option("--certificate-key", metavar="FILE", help="And its key.")
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="What encrypts in front, and says who sends: X-Forwarded-For."
        ),
    ] = None,
    per_minute: Annotated[
        int,
        typer.Option("--per-minute", metavar="N", help="Reports of one address; 0 for no limit."),
    ] = 6000,
    body_bytes: Annotated[
        int, typer.Option("--body-bytes", metavar="N", help="The largest request.")
    ] = 1 << 20,
    seconds: Annotated[
        int, typer.Option(metavar="N", help="Publish no more often than this.")
    ] = 60,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Take reports of devices, and tell estimates to whoever asks.

    Reports are on the disk before they are acknowledged. Nobody who sends is logged.

    Example: [bold]discreet collect serve emoji --port 8080[/bold]
    """
    from discreet.local.collection.app import CollectorLimits, collector

    if host not in ("127.0.0.1", "::1", "localhost") and certificate is None and proxy is None:
        raise ParameterError(
            "whoever listens on the way would know which report is whose. Give --certificate and "
            "--certificate-key; or --proxy, the address of what encrypts in front of it; or listen "
            "on 127.0.0.1 only.",
            parameter="certificate",
        )
    if (certificate is None) != (certificate_key is None):
        raise ParameterError(
            "--certificate and --certificate-key go together.", parameter="certificate"
        )
    limits = CollectorLimits(body_bytes=body_bytes, reports_per_minute=per_minute, seconds=seconds)
    with opened(name, ledger=ledger, key=key) as collection, _listening(host, port) as listening:
        scheme = "http" if certificate is None else "https"
        url = f"{scheme}://{host}:{listening.getsockname()[1]}"
        tell(f"{collection.parameters.name} takes reports at {url}/reports", bold=True)
        tell_command(f"  curl --data-binary @reports.bin {url}/reports")
        tell(f"Estimates are at {url}/estimate, what devices are told at {url}/parameters.")
        tell("It ends with Ctrl-C.")
        _run(
            collector(collection, limits=limits),
            listening,
            certificate=certificate,
            certificate_key=certificate_key,
            proxy=proxy,
        )


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ParameterError(
            f"nothing can listen on port {port} of {host} ({error.strerror}). Choose another one "
            "with --port, or end what listens there.",
            parameter="port",
        ) from None


def _run(
    app: object,
    listening: socket.socket,
    *,
    certificate: Path | None,
    certificate_key: Path | None,
    proxy: str | None,
) -> None:
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # an application of Starlette
        ssl_certfile=certificate,
        ssl_keyfile=certificate_key,
        access_log=False,  # which would say who sends
        log_level="warning",
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        lifespan="off",
        ws="none",
        limit_concurrency=1000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(config).run(sockets=[listening])
