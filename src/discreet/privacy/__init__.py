"""The words of privacy: who is protected, against which change, how strongly, and what it means.

Plain data and arithmetic, standard library only: nothing here draws randomness or reads data.
"""

from discreet.privacy.guarantee import Guarantee, advised_delta, weaknesses
from discreet.privacy.meaning import (
    Odds,
    advantage,
    detection,
    odds,
    posterior,
    posterior_bound,
    strength,
    success,
)
from discreet.privacy.neighbours import Neighbours, convert
from discreet.privacy.sensitive import Sensitive
from discreet.privacy.unit import Period, Unit
from discreet.privacy.withholding import quietly

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
    "posterior_bound",
    "quietly",
    "strength",
    "success",
    "weaknesses",
]
