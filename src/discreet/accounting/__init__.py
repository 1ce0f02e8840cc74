"""Losses, what they cost, and the noise a budget buys.

A loss is plain frozen data: it describes one private operation and knows neither data nor
randomness. :func:`epsilon` and :func:`delta` turn a loss into a certified guarantee, and
:func:`calibrate` turns a guarantee into the smallest parameter that meets it.

Side doors: ``accounting.comparison`` has other accountants by name, ``accounting.renyi`` and
``accounting.shuffling`` have formulas that take numbers instead of losses, and
``accounting.filters`` has what a ledger shares with a filter.

>>> loss = GaussianLoss(noise_multiplier=4)
>>> round(epsilon(loss, delta=1e-5), 4)
0.9263
"""

from discreet.accounting import losses
from discreet.accounting.calibration import calibrate, classic_gaussian_sigma
from discreet.accounting.comparison import MethodResult, compare
from discreet.accounting.curves import plot_profile, plot_tradeoff, profile, tradeoff
from discreet.accounting.filters import Filter, FilterQuote, FilterRules
from discreet.accounting.guarantees import bracket, delta, epsilon
from discreet.accounting.losses import *  # noqa: F403  # a new loss is listed once, there
from discreet.accounting.losses.certified import Bracket
from discreet.accounting.steps import most_steps
from discreet.accounting.wire import from_json, to_json

__all__ = [
    "Bracket",
    "Filter",
    "FilterQuote",
    "FilterRules",
    "MethodResult",
    "bracket",
    "calibrate",
    "classic_gaussian_sigma",
    "compare",
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
__all__ += losses.__all__
