"""Amplification by shuffling, and by sampling without replacement, from local epsilons.

>>> from discreet.accounting import shuffling
>>> round(shuffling.shuffle_2023(epsilon0=1, n=10_000, delta=1e-6), 4)
0.0432
"""

from discreet.accounting.shuffling.amplification import (
    ShufflePair,
    shuffle_2021,
    shuffle_2023,
    shuffle_delta,
    shuffle_pair,
    without_replacement_pure,
)

__all__ = [
    "ShufflePair",
    "shuffle_2021",
    "shuffle_2023",
    "shuffle_delta",
    "shuffle_pair",
    "without_replacement_pure",
]
