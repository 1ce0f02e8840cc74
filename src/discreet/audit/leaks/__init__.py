"""Plant canaries in data, exercise what was given it, and search all that comes out for them."""

from discreet.audit.leaks.analysts import scan_analysts
from discreet.audit.leaks.canaries import Planted, plant
from discreet.audit.leaks.determinism import scan_determinism
from discreet.audit.leaks.report import Leak, LeakReport
from discreet.audit.leaks.requesting import WebRequest, requesting
from discreet.audit.leaks.scanning import scan

__all__ = [
    "Leak",
    "LeakReport",
    "Planted",
    "WebRequest",
    "plant",
    "requesting",
    "scan",
    "scan_analysts",
    "scan_determinism",
]
