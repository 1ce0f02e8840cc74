"""Losses, what they cost, and the noise a budget buys.

A loss is plain frozen data: it describes one private operation and knows neither data nor
randomness. :func:`epsilon` and :func:`delta` turn a loss into a certified guarantee, and
:func:`calibrate` turns a guarantee into the smallest parameter that meets it.

>>> loss = GaussianLoss(noise_multiplier=4)
>>> round(epsilon(loss, delta=1e-5), 4)
0.9263
"""

from discreet.accounting.bounded_range import BoundedRangeLoss
from discreet.accounting.calibration import (
    calibrate,
    classic_gaussian_sigma,
)
from discreet.accounting.composition import ComposedLoss, compose
from discreet.accounting.curves import plot_profile, plot_tradeoff, profile, tradeoff
from discreet.accounting.discrete_gaussian import DiscreteGaussianLoss
from discreet.accounting.discrete_laplace import DiscreteLaplaceLoss
from discreet.accounting.filter_rules import FilterRules
from discreet.accounting.filters import Filter, Quote
from discreet.accounting.finite import FinitePairLoss
from discreet.accounting.gaussian import GaussianLoss
from discreet.accounting.guarantees import bracket, delta, epsilon
from discreet.accounting.laplace import LaplaceLoss
from discreet.accounting.loss import Loss
from discreet.accounting.methods import MethodResult, compare
from discreet.accounting.numerical import Bracket
from discreet.accounting.pure import ApproximateLoss, PureLoss
from discreet.accounting.randomized_response import RandomizedResponseLoss
from discreet.accounting.sampling import SampledLoss, TruncatedPoissonLoss, WithoutReplacementLoss
from discreet.accounting.shuffled import ShuffledLoss
from discreet.accounting.steps import most_steps
from discreet.accounting.wire import from_json, to_json
from discreet.accounting.zcdp import ZCDPLoss

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
