"""Exact draws of units: by a coin for each, or so many of them."""

from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from discreet.noise import Source, bernoulli, uniform_integers
from discreet.noise.source import words

__all__ = ["Indices", "subset", "tossed"]

Indices = npt.NDArray[np.int64]

_BLOCK: Final = 1 << 20  # coins tossed at a time, so that they stay in the cache


def tossed(n: int, rate: Fraction, source: Source) -> Indices:
    """Return those of ``n`` units whose coin, exactly of chance ``rate``, shows heads."""
    blocks = [_heads(min(_BLOCK, n - start), rate, source) + start for start in range(0, n, _BLOCK)]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)


def _heads(n: int, rate: Fraction, source: Source) -> Indices:
    """Compare a random byte with the first eight bits of the rate; decide ties by the rest of it.

    Pr[byte < t] + Pr[byte = t] * (256 rate - t) = rate for t = floor(256 rate), exactly. One byte
    a unit is read instead of two, and one tie in 256 needs more.
    """
    threshold = int(rate * 256)
    if threshold == 256:
        return np.arange(n, dtype=np.int64)
    drawn = words(source, n, "u1")
    heads = drawn < threshold
    ties = np.flatnonzero(drawn == threshold)
    heads[ties] = bernoulli(rate * 256 - threshold, ties.size, source=source)
    return np.flatnonzero(heads).astype(np.int64, copy=False)


def subset(n: int, size: int, source: Source) -> Indices:
    """Return a uniformly random set of ``size`` of the numbers below ``n``, ascending.

    The different values of a uniform sequence, in order of appearance, begin a uniformly random
    permutation, by symmetry. Past one half it is quicker to draw those that stay out.
    """
    if 2 * size > n:
        out = np.ones(n, dtype=np.bool_)
        out[subset(n, n - size, source)] = False
        return np.flatnonzero(out).astype(np.int64, copy=False)
    drawn = np.empty(0, dtype=np.int64)
    while True:
        values, first = np.unique(drawn, return_index=True)
        if values.size >= size:
            kept = values[np.argsort(first)[:size]]
            return np.sort(kept)
        more = (size - values.size) * 5 // 4 + 16
        drawn = np.concatenate([drawn, uniform_integers(n, more, source=source)])
