"""The accountants by name, side by side, for teaching and for comparing with papers.

Each takes a loss and a delta. :func:`discreet.accounting.epsilon` already gives the best of them.
``comparison.theorems`` has composition theorems for numbers.

>>> from discreet.accounting import GaussianLoss, comparison
>>> steps = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
>>> comparison.renyi(steps, delta=1e-5).epsilon > comparison.pld(steps, delta=1e-5).epsilon
True
"""

from discreet.accounting.comparison import theorems
from discreet.accounting.comparison.divergences import moments, renyi, zcdp
from discreet.accounting.comparison.methods import best_method, central_limit, compare, pld
from discreet.accounting.comparison.result import MethodResult
from discreet.accounting.comparison.stepwise import advanced, basic, optimal

__all__ = [
    "MethodResult",
    "advanced",
    "basic",
    "best_method",
    "central_limit",
    "compare",
    "moments",
    "optimal",
    "pld",
    "renyi",
    "theorems",
    "zcdp",
]
