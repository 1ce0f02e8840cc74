"""Local privacy: devices that trust nobody, and what their reports say about everybody.

>>> from discreet import local
>>> local.HadamardResponse(domain=1_000_000, epsilon=1).loss
PureLoss(epsilon=1)
"""

from discreet.local.estimates.estimate import Estimate
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

__all__ = [
    "BitCoins",
    "DirectResponse",
    "Estimate",
    "FrequencyOracle",
    "HadamardResponse",
    "HashFamily",
    "LinearForms",
    "LocalHashing",
    "OptimizedUnary",
    "OracleChoice",
    "Preference",
    "ProjectiveResponse",
    "PublicHashing",
    "RatedOracle",
    "SubsetSelection",
    "Support",
    "SymmetricUnary",
    "choose",
]
