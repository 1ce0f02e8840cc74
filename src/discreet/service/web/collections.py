"""Collections at `/collections/NAME`: the collector's own application, for whoever asks."""

import re
from typing import Final

from starlette.routing import BaseRoute, Mount

from discreet.errors import ParameterError
from discreet.local.collection.app import CollectorLimits, collector
from discreet.service.desk.gateway import Gateway

__all__ = ["collection_routes"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


def collection_routes(gateway: Gateway) -> list[BaseRoute]:
    """Return the routes of the collections that a gateway has: one for each, by its file's name.

    >>> import tempfile
    >>> from discreet.service.settings.gateway import GatewaySettings
    >>> gateway = Gateway.open(GatewaySettings(ledger=f"{tempfile.mkdtemp()}/budget.db"))
    >>> collection_routes(gateway)
    []
    >>> gateway.close()
    """
    limits = CollectorLimits(reports_per_minute=gateway.settings.reports_per_minute)
    names = [collection.path.stem for collection in gateway.collections]
    for name in names:
        if not _NAME.fullmatch(name) or names.count(name) > 1:
            raise ParameterError(
                "collections must be files of different names, of letters, digits, - and _: they "
                "are parts of addresses.",
                parameter="collections",
            )
    return [
        Mount(f"/collections/{name}", app=collector(collection, limits=limits))
        for name, collection in zip(names, gateway.collections, strict=True)
    ]
