"""Measure what a mechanism leaks, without believing anybody.

:func:`mechanism` runs a callable on two neighbouring inputs and proves a lower bound on its
epsilon from counts alone; :func:`low_bits` does so through the last bits of floating-point
answers. A bound above the claim is a proof, at the stated confidence, that the claim is false. A
bound below it proves nothing: an audit can convict, not acquit. :func:`scan` plants canaries in the
data of a whole program and searches everything that comes out of it for them.
"""

from discreet.audit._low_bits import low_bits
from discreet.audit._mechanism import mechanism
from discreet.audit._result import Audit
from discreet.audit.leaks import (
    Leak,
    LeakReport,
    Planted,
    WebRequest,
    plant,
    requesting,
    scan,
    scan_analysts,
    scan_determinism,
)

__all__ = [
    "Audit",
    "Leak",
    "LeakReport",
    "Planted",
    "WebRequest",
    "low_bits",
    "mechanism",
    "plant",
    "requesting",
    "scan",
    "scan_analysts",
    "scan_determinism",
]
