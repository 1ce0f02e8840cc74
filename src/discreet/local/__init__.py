"""Local privacy: devices that trust nobody, and what their reports say about everybody.

>>> from discreet import local
>>> local.HadamardResponse(domain=1_000_000, epsilon=1).loss
PureLoss(epsilon=1)
"""

from discreet.local.estimates.estimate import Estimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.laws.preference import Preference
from discreet.local.postprocessing.hierarchy import consistent
from discreet.local.postprocessing.order import monotone
from discreet.local.postprocessing.simplex import norm_sub, onto_simplex
from discreet.local.strings.count_mean_sketch import CountMeanSketch
from discreet.local.strings.hadamard_sketch import HadamardSketch
from discreet.local.strings.heavy_hitters import HeavyHitters
from discreet.local.strings.prefix_tree import PrefixTree
from discreet.local.strings.rappor import Rappor
from discreet.local.strings.string_estimate import StringEstimate

__all__ = [
    "CountMeanSketch",
    "DirectResponse",
    "Estimate",
    "HadamardResponse",
    "HadamardSketch",
    "HeavyHitters",
    "Preference",
    "PrefixTree",
    "Rappor",
    "StringEstimate",
    "Support",
    "consistent",
    "monotone",
    "norm_sub",
    "onto_simplex",
]
