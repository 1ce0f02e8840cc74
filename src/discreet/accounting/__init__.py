"""Losses, what they cost, and the noise a budget buys.

A loss is plain frozen data: it describes one private operation and knows neither data nor
randomness. :func:`epsilon` and :func:`delta` turn a loss into a certified guarantee, and
:func:`calibrate` turns a guarantee into the smallest parameter that meets it.

>>> loss = GaussianLoss(noise_multiplier=4)
>>> round(epsilon(loss, delta=1e-5), 4)
0.9263
"""

from discreet.accounting.calibration import (
    calibrate,
    classic_gaussian_sigma,
)
from discreet.accounting.comparison.methods import MethodResult, compare
from discreet.accounting.curves import plot_profile, plot_tradeoff, profile, tradeoff
from discreet.accounting.filters.filter import Filter, Quote
from discreet.accounting.filters.rules import FilterRules
from discreet.accounting.guarantees import bracket, delta, epsilon
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
from discreet.accounting.losses.shuffled import ShuffledLoss
from discreet.accounting.losses.zcdp import ZCDPLoss
from discreet.accounting.pld.certified import Bracket
from discreet.accounting.steps import most_steps
from discreet.accounting.wire import from_json, to_json

__all__ = [
    "ApproximateLoss",
    "BoundedRangeLoss",
    "Bracket",
    "ComposedLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "Filter",
    "FilterRules",
    "FinitePairLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "Loss",
    "MethodResult",
    "PureLoss",
    "Quote",
    "RandomizedResponseLoss",
    "SampledLoss",
    "ShuffledLoss",
    "TruncatedPoissonLoss",
    "WithoutReplacementLoss",
    "ZCDPLoss",
    "bracket",
    "calibrate",
    "classic_gaussian_sigma",
    "compare",
    "compose",
    "delta",
    "epsilon",
    "from_json",
    "most_steps",
    "plot_profile",
    "plot_tradeoff",
    "profile",
    "to_json",
    "tradeoff",
]
