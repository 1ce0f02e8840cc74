"""Measure what a mechanism leaks, without believing anybody.

:func:`mechanism` runs a callable on two neighbouring inputs and proves a lower bound on its
epsilon from counts alone; :func:`search` does so over several pairs, which
:func:`neighbouring_pairs` makes from one input; :func:`low_bits` looks at the last bits of
floating-point answers; :func:`run_catalogue` audits every mechanism of the library. A bound above
the claim is a proof, at the stated confidence, that the claim is false. A bound below it proves
nothing: an audit can convict, not acquit.
"""

from discreet.audit._hints import neighbouring_pairs
from discreet.audit._low_bits import low_bits
from discreet.audit._mechanism import mechanism
from discreet.audit._result import Audit
from discreet.audit._search import search
from discreet.audit.catalogue import (
    CATALOGUE,
    NOT_AUDITED,
    CatalogueEntry,
    CatalogueLine,
    CatalogueReport,
    run_catalogue,
)

__all__ = [
    "CATALOGUE",
    "NOT_AUDITED",
    "Audit",
    "CatalogueEntry",
    "CatalogueLine",
    "CatalogueReport",
    "low_bits",
    "mechanism",
    "neighbouring_pairs",
    "run_catalogue",
    "search",
]
