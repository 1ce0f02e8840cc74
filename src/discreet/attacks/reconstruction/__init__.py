"""Reconstruction: secret columns from noisy counts of subsets, and people from published tables.

:func:`run` asks for counts of random subsets and solves for everybody's secret. It takes any
callable that answers; :func:`through` makes one of a protected table. :func:`rebuild` finds the
records behind tables of a block of people, as was done to the census.
"""

from discreet.attacks.reconstruction.decoding import decode
from discreet.attacks.reconstruction.door import run
from discreet.attacks.reconstruction.interfaces import CountSubsets, count_subsets
from discreet.attacks.reconstruction.protected_counts import ProtectedCounts, through
from discreet.attacks.reconstruction.rebuilding import Rebuilt, rebuild
from discreet.attacks.reconstruction.statistics import Statistic, publish

__all__ = [
    "CountSubsets",
    "ProtectedCounts",
    "Rebuilt",
    "Statistic",
    "count_subsets",
    "decode",
    "publish",
    "rebuild",
    "run",
    "through",
]
