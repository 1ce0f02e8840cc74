"""Every mechanism of the library with the inputs that try it hardest, audited in one go."""

from discreet.audit.catalogue.additive import ADDITIVE
from discreet.audit.catalogue.counts import COUNTS
from discreet.audit.catalogue.entry import CatalogueEntry
from discreet.audit.catalogue.kept import KeptCatalogue, kept_catalogue
from discreet.audit.catalogue.report import CatalogueLine, CatalogueReport
from discreet.audit.catalogue.responses import RESPONSES
from discreet.audit.catalogue.running import run_catalogue
from discreet.audit.catalogue.selection import SELECTION
from discreet.audit.catalogue.streams import STREAMS

__all__ = [
    "CATALOGUE",
    "NOT_AUDITED",
    "CatalogueEntry",
    "CatalogueLine",
    "CatalogueReport",
    "KeptCatalogue",
    "kept_catalogue",
    "run_catalogue",
]

CATALOGUE = (*ADDITIVE, *COUNTS, *RESPONSES, *SELECTION, *STREAMS)
"""The entries; a new mechanism gets one or more, in the file of its kind."""

NOT_AUDITED = {
    "Answer": "what a sparse vector session returns",
    "FrequencyEstimate": "post-processing of randomized reports",
    "SparseVectorSession": "audited as AboveThreshold, which starts it",
    "clip": "adds no noise; it is inside 'sum, a huge record'",
    "clip_norm": "adds no noise; it is inside 'vector sum, a huge row'",
    "exact_sum": "adds no noise; it is inside 'sum, a huge record'",
    "sum_sensitivity": "a parameter of 'sum, a huge record'",
}
"""What :mod:`discreet.mechanisms` exports and the catalogue leaves out, with the reason."""
