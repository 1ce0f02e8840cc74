"""The words of privacy: who is protected, against which change, how strongly, and what it means.

Plain data and arithmetic, standard library only: nothing here draws randomness or reads data.
"""

from discreet.privacy._guarantee import Guarantee, advised_delta
from discreet.privacy._meaning import (
    Odds,
    advantage,
    detection,
    odds,
    posterior,
    strength,
    success,
)
from discreet.privacy._neighbours import Neighbours, convert
from discreet.privacy._sensitive import Sensitive
from discreet.privacy._unit import Period, Unit

__all__ = [
    "Guarantee",
    "Neighbours",
    "Odds",
    "Period",
    "Sensitive",
    "Unit",
    "advantage",
    "advised_delta",
    "convert",
    "detection",
    "odds",
    "posterior",
    "strength",
    "success",
]
