"""Measure what a mechanism leaks, without believing anybody.

:func:`mechanism` runs a callable on two neighbouring inputs and proves a lower bound on its
epsilon from counts alone; :func:`low_bits` does so through the last bits of floating-point
answers, and :func:`table` for a whole query path, with all that it shows. A bound above the claim
is a proof, at the stated confidence, that the claim is false. A bound below it proves nothing: an
audit can convict, not acquit.
"""

from discreet.audit._low_bits import low_bits
from discreet.audit._mechanism import mechanism
from discreet.audit._result import Audit
from discreet.audit.query_paths import ChannelFinding, Observation, TableAudit, table

__all__ = [
    "Audit",
    "ChannelFinding",
    "Observation",
    "TableAudit",
    "low_bits",
    "mechanism",
    "table",
]
