"""Whether the gateway is well, for whoever keeps it running."""

from functools import partial

from discreet.errors import DiscreetError, NotAllowed
from discreet.service.web.metrics import MEDIA_TYPE, Metrics
from discreet.service.web.route import Handler, WebCall, WebReply

__all__ = ["alive", "metrics_page", "ready"]


async def alive(call: WebCall) -> WebReply:
    """Answer as long as the process does."""
    return WebReply(document={"status": "alive"})


async def ready(call: WebCall) -> WebReply:
    """Say whether ledger and records answer."""

    def looked() -> bool:
        try:
            _ = call.gateway.shelf.ledger.size
            call.gateway.misses.count("")
        except DiscreetError:
            return False
        return True

    is_ready = await call.gateway.beside(looked)
    status = "ready" if is_ready else "unavailable"
    return WebReply(document={"status": status}, status=200 if is_ready else 503)


def metrics_page(metrics: Metrics) -> Handler:
    """Return what serves the page that Prometheus reads."""

    async def page(call: WebCall) -> WebReply:
        if call.login is not None and call.login.datasets is not None:
            raise NotAllowed("the metrics are of all datasets, and this login is for some.")
        raw = await call.gateway.beside(partial(metrics.page, call.gateway))
        return WebReply(raw=raw, media_type=MEDIA_TYPE)

    return page
