"""One frozen class per mechanism; the contract with ledgers.

Every loss listed here is a name of :mod:`discreet.accounting` and can be read from JSON.
"""

from discreet.accounting.losses.bounded_range import BoundedRangeLoss
from discreet.accounting.losses.composition import ComposedLoss, compose
from discreet.accounting.losses.discrete_gaussian import DiscreteGaussianLoss
from discreet.accounting.losses.discrete_laplace import DiscreteLaplaceLoss
from discreet.accounting.losses.finite import FinitePairLoss
from discreet.accounting.losses.gaussian import GaussianLoss
from discreet.accounting.losses.laplace import LaplaceLoss
from discreet.accounting.losses.loss import Loss
from discreet.accounting.losses.pure import ApproximateLoss, PureLoss
from discreet.accounting.losses.randomized_response import RandomizedResponseLoss
from discreet.accounting.losses.sampled import (
    SampledLoss,
    TruncatedPoissonLoss,
    WithoutReplacementLoss,
)
from discreet.accounting.losses.sampled_groups import SampledGroupLoss
from discreet.accounting.losses.shuffled import ShuffledLoss
from discreet.accounting.losses.zcdp import ZCDPLoss

__all__ = [
    "ApproximateLoss",
    "BoundedRangeLoss",
    "ComposedLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "FinitePairLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "PureLoss",
    "RandomizedResponseLoss",
    "SampledGroupLoss",
    "SampledLoss",
    "ShuffledLoss",
    "TruncatedPoissonLoss",
    "WithoutReplacementLoss",
    "ZCDPLoss",
    "compose",
]
