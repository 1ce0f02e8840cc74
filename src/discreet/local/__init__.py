"""Local privacy: devices that trust nobody, and what their reports say about everybody.

>>> from discreet import local
>>> local.HadamardResponse(domain=1_000_000, epsilon=1).loss
PureLoss(epsilon=1)
"""

from discreet.local.estimates.estimate import Estimate
from discreet.local.estimates.means import MeanEstimate, Spread
from discreet.local.estimates.smoothing import HistogramEstimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
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

__all__ = [
    "BitPushing",
    "BitsEstimate",
    "DirectResponse",
    "Duchi",
    "Estimate",
    "HadamardResponse",
    "HistogramEstimate",
    "Hybrid",
    "JointEstimate",
    "JointTable",
    "KeyValue",
    "KeyValueEstimate",
    "MeanEstimate",
    "Moments",
    "MomentsEstimate",
    "Piecewise",
    "Preference",
    "Ranges",
    "RangesEstimate",
    "Spread",
    "SquareWave",
    "Support",
    "UnitVectors",
    "VectorEstimate",
    "Window",
]
