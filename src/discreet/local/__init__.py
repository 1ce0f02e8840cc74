"""Local privacy: devices that trust nobody, and what their reports say about everybody.

>>> from discreet import local
>>> local.HadamardResponse(domain=1_000_000, epsilon=1).loss
PureLoss(epsilon=1)
"""

from discreet.local.estimates.estimate import Estimate
from discreet.local.estimates.sampled import SampledEstimate
from discreet.local.estimates.support import Support
from discreet.local.frequencies.direct import DirectResponse
from discreet.local.frequencies.hadamard import HadamardResponse
from discreet.local.laws.preference import Preference
from discreet.local.repeated.bit_flip import BitFlip
from discreet.local.repeated.device import Device, DeviceReport
from discreet.local.repeated.direct import RepeatedDirect
from discreet.local.repeated.exposure import Exposure, exposure, is_linkable, require_unlinkable
from discreet.local.repeated.unary import RepeatedUnary

__all__ = [
    "BitFlip",
    "Device",
    "DeviceReport",
    "DirectResponse",
    "Estimate",
    "Exposure",
    "HadamardResponse",
    "Preference",
    "RepeatedDirect",
    "RepeatedUnary",
    "SampledEstimate",
    "Support",
    "exposure",
    "is_linkable",
    "require_unlinkable",
]
