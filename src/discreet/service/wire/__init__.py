"""PostgreSQL's wire protocol: psql, drivers, pandas and dashboards ask private SQL by it."""

from discreet.service.wire.interfaces import WireDesk, WireDoor, WireVerifier
from discreet.service.wire.server import WireServer, serve_wire
from discreet.service.wire.settings import WireSettings

__all__ = ["WireDesk", "WireDoor", "WireServer", "WireSettings", "WireVerifier", "serve_wire"]
