"""Measure what a mechanism, a trainer or a query path leaks, without believing anybody.

:func:`mechanism` runs a callable on two neighbouring inputs and proves a lower bound on its
epsilon from counts alone; :func:`search` does so over several pairs, which
:func:`neighbouring_pairs` makes from one input; :func:`low_bits` looks at the last bits of
floating-point answers; :func:`run_catalogue` audits every mechanism of the library.
:func:`training` audits a trainer in one run, through canaries, and :func:`table` a whole query
path, with all that it shows. A bound above the claim is a proof, at the stated confidence, that
the claim is false. A bound below it proves nothing: an audit can convict, not acquit.

:func:`scan` plants canaries in the data of a whole program and searches everything that comes out
of it for them.
"""

from discreet.audit._hints import neighbouring_pairs
from discreet.audit._low_bits import low_bits
from discreet.audit._mechanism import mechanism
from discreet.audit._result import Audit
from discreet.audit._search import search
from discreet.audit.canaries import TrainingAudit, gradient_canaries, loss_canaries, training
from discreet.audit.catalogue import (
    CATALOGUE,
    NOT_AUDITED,
    CatalogueEntry,
    CatalogueLine,
    CatalogueReport,
    KeptCatalogue,
    kept_catalogue,
    run_catalogue,
)
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
from discreet.audit.query_paths import ChannelFinding, Observation, TableAudit, table

__all__ = [
    "CATALOGUE",
    "NOT_AUDITED",
    "Audit",
    "CatalogueEntry",
    "CatalogueLine",
    "CatalogueReport",
    "ChannelFinding",
    "KeptCatalogue",
    "Leak",
    "LeakReport",
    "Observation",
    "Planted",
    "TableAudit",
    "TrainingAudit",
    "WebRequest",
    "gradient_canaries",
    "kept_catalogue",
    "loss_canaries",
    "low_bits",
    "mechanism",
    "neighbouring_pairs",
    "plant",
    "requesting",
    "run_catalogue",
    "scan",
    "scan_analysts",
    "scan_determinism",
    "search",
    "table",
    "training",
]
