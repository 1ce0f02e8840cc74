"""The application of a gateway: what programs ask, and beside it the pages for browsers."""

import contextlib
from collections.abc import Callable

from starlette.types import ASGIApp

from discreet.service.desk.gateway import Gateway
from discreet.service.pages.mounting import page_addresses
from discreet.service.web.app import create_api

__all__ = ["create_app"]


def create_app(
    gateway: Gateway,
    *,
    beside: Callable[[Gateway], contextlib.AbstractAsyncContextManager[None]] | None = None,
) -> ASGIApp:
    """Return the application of an open gateway, which it closes at its end.

    It has pages for browsers unless the settings say otherwise. ``beside`` is what else serves the
    same desk while the application runs, such as the protocol of PostgreSQL.

    >>> import tempfile
    >>> from discreet.service.settings.gateway import GatewaySettings
    >>> gateway = Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db"))
    >>> app = create_app(gateway)
    >>> gateway.close()
    """
    pages = page_addresses if gateway.settings.pages else None
    return create_api(gateway, beside=beside, pages=pages)
