"""Local privacy: devices that trust nobody, and what their reports say about everybody.

>>> from discreet import local
>>> local.HadamardResponse(domain=1_000_000, epsilon=1).loss
PureLoss(epsilon=1)
"""

from discreet.local.collection.collection import Collection
from discreet.local.collection.facts import CollectionFacts
from discreet.local.collection.publication import Publication
from discreet.local.collection.terms import CollectionTerms
from discreet.local.estimates.estimate import CountEstimate
from discreet.local.estimates.means import MeanEstimate, Spread
from discreet.local.estimates.sampled import SampledEstimate
from discreet.local.estimates.smoothing import HistogramEstimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.choice import FrequencyOracle, OracleChoice, RatedOracle, choose
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.frequencies.hashing import HashFamily, LocalHashing
from discreet.local.frequencies.projective import LinearForms, ProjectiveResponse
from discreet.local.frequencies.public_hashing import PublicHashing
from discreet.local.frequencies.subset import SubsetSelection
from discreet.local.frequencies.unary import OptimizedUnary, SymmetricUnary
from discreet.local.laws.bits import BitCoins
from discreet.local.laws.preference import Preference
from discreet.local.laws.window import Window
from discreet.local.numbers.bit_pushing import BitPushing, BitsEstimate
from discreet.local.numbers.duchi import Duchi
from discreet.local.numbers.hybrid import Hybrid
from discreet.local.numbers.joint_table import JointEstimate, JointTable
from discreet.local.numbers.key_value import KeyValue, KeyValueEstimate
from discreet.local.numbers.moments import Moments, MomentsEstimate
from discreet.local.numbers.piecewise import Piecewise
from discreet.local.numbers.ranges import Ranges, RangesEstimate
from discreet.local.numbers.square_wave import SquareWave
from discreet.local.numbers.unit_vectors import UnitVectors, VectorEstimate
from discreet.local.postprocessing.hierarchy import hierarchical
from discreet.local.postprocessing.order import monotone
from discreet.local.postprocessing.simplex import norm_sub, onto_simplex
from discreet.local.repeated.bit_flip import BitFlip
from discreet.local.repeated.device import Device, DeviceReport
from discreet.local.repeated.direct import RepeatedDirect
from discreet.local.repeated.exposure import Exposure, exposure, is_linkable, require_unlinkable
from discreet.local.repeated.unary import RepeatedUnary
from discreet.local.strings.count_mean_sketch import CountMeanSketch
from discreet.local.strings.hadamard_sketch import HadamardSketch
from discreet.local.strings.heavy_hitters import HeavyHitters
from discreet.local.strings.prefix_tree import PrefixTree
from discreet.local.strings.rappor import Rappor
from discreet.local.strings.string_estimate import StringEstimate

__all__ = [
    "BitCoins",
    "BitFlip",
    "BitPushing",
    "BitsEstimate",
    "Collection",
    "CollectionFacts",
    "CollectionTerms",
    "CountEstimate",
    "CountMeanSketch",
    "Device",
    "DeviceReport",
    "DirectResponse",
    "Duchi",
    "Exposure",
    "FrequencyOracle",
    "HadamardResponse",
    "HadamardSketch",
    "HashFamily",
    "HeavyHitters",
    "HistogramEstimate",
    "Hybrid",
    "JointEstimate",
    "JointTable",
    "KeyValue",
    "KeyValueEstimate",
    "LinearForms",
    "LocalHashing",
    "MeanEstimate",
    "Moments",
    "MomentsEstimate",
    "OptimizedUnary",
    "OracleChoice",
    "Piecewise",
    "Preference",
    "PrefixTree",
    "ProjectiveResponse",
    "PublicHashing",
    "Publication",
    "Ranges",
    "RangesEstimate",
    "Rappor",
    "RatedOracle",
    "RepeatedDirect",
    "RepeatedUnary",
    "SampledEstimate",
    "Spread",
    "SquareWave",
    "StringEstimate",
    "SubsetSelection",
    "Support",
    "SymmetricUnary",
    "UnitVectors",
    "VectorEstimate",
    "Window",
    "choose",
    "exposure",
    "hierarchical",
    "is_linkable",
    "monotone",
    "norm_sub",
    "onto_simplex",
    "require_unlinkable",
]
