"""Local privacy: devices that trust nobody, and what their reports say about everybody.

>>> from discreet import local
>>> local.HadamardResponse(domain=1_000_000, epsilon=1).loss
PureLoss(epsilon=1)
"""

from discreet.local.collection.collection import Collection
from discreet.local.collection.facts import CollectionFacts
from discreet.local.collection.publication import Publication
from discreet.local.collection.terms import CollectionTerms
from discreet.local.estimates.estimate import Estimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.laws.preference import Preference

__all__ = [
    "Collection",
    "CollectionFacts",
    "CollectionTerms",
    "DirectResponse",
    "Estimate",
    "HadamardResponse",
    "Preference",
    "Publication",
    "Support",
]
