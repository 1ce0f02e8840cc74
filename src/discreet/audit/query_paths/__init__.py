"""Audit a whole query path as a black box, by asking it about tables that differ in one unit."""

from discreet.audit.query_paths.auditing import table
from discreet.audit.query_paths.changes import KINDS
from discreet.audit.query_paths.observation import CHANNELS, Observation
from discreet.audit.query_paths.report import ChannelFinding, TableAudit

__all__ = ["CHANNELS", "KINDS", "ChannelFinding", "Observation", "TableAudit", "table"]
