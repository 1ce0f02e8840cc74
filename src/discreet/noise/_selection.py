"""Pick one of many candidates at random, better scores more often, exactly.

Both samplers read every score and make the same passes over them whatever the scores are, so
their running time does not tell how the scores are spread.
"""

from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive
from discreet.noise._coins import is_less
from discreet.noise._enclosure import chance_exp, exp_bounds
from discreet.noise._integers import uniform_integers
from discreet.noise._source import SYSTEM, Source, bits, words

__all__ = ["exponential_race", "permute_and_flip"]

Scores = npt.NDArray[np.float64] | npt.NDArray[np.int64]
_BLOCK: Final = 1 << 10
_EXP_ERROR: Final = 2.0**-39  # relative; covers exponents down to -745 and numpy's exp


def exponential_race(scores: Scores, *, rate: Number, source: Source = SYSTEM) -> int:
    """Return index i with probability exactly proportional to exp(rate * scores[i]).

    It has the law of a race of exponential clocks, or of adding Gumbel noise and taking the
    largest, but needs a single random number: where it falls among the running sums of weights.
    The sums are doubles with an error bound; should the number fall within the bound of a border
    (about once in a million calls for a million scores), integer bounds settle it.

    >>> exponential_race(np.array([0.0, 1e6, 0.0]), rate=1)
    1
    """
    rate = positive(rate, name="rate")
    drawn = bits(source, 64)
    picked = _race_in_doubles(scores, float(rate), drawn)
    return _race_in_integers(scores, rate, drawn, source) if picked is None else picked


def _race_in_doubles(scores: Scores, rate: float, drawn: int) -> int | None:
    """Find the interval that ``drawn * 2**-64`` falls in, or None if doubles cannot tell."""
    weights = np.exp(-rate * _below_best(scores))
    blocks = -(-weights.size // _BLOCK)
    whole_blocks = weights[: weights.size // _BLOCK * _BLOCK].reshape(-1, _BLOCK).sum(axis=1)
    block_ends = np.zeros(blocks + 1)
    np.cumsum(whole_blocks, out=block_ends[1 : 1 + whole_blocks.size])
    if blocks > whole_blocks.size:
        block_ends[-1] = block_ends[-2] + weights[whole_blocks.size * _BLOCK :].sum()
    total = block_ends[-1]
    # Sequential sums of `blocks` and of _BLOCK terms, pairwise ones in between, twice over: for
    # the border and for the total that the drawn number is scaled by.
    slack = total * (2 * _EXP_ERROR + (blocks + 2 * _BLOCK) * 2.0**-51)
    point = drawn * 2.0**-64 * total
    block = min(int(np.searchsorted(block_ends[1:], point, side="right")), blocks - 1)
    inside = weights[block * _BLOCK : (block + 1) * _BLOCK]
    ends = block_ends[block] + np.cumsum(inside)
    place = min(int(np.searchsorted(ends, point, side="right")), inside.size - 1)
    left = ends[place - 1] if place else block_ends[block]
    starts_first = block == 0 and place == 0
    ends_last = block == blocks - 1 and place == inside.size - 1
    is_clear = (starts_first or point - left > slack) and (ends_last or ends[place] - point > slack)
    return block * _BLOCK + place if is_clear else None


def _race_in_integers(scores: Scores, rate: Fraction, drawn: int, source: Source) -> int:
    """Do the same with integer bounds, reading more bits until the interval is certain."""
    exponents = _exact_exponents(scores, rate)
    known = 64
    while True:
        precision = known + 64 + len(exponents).bit_length()
        bounds = [exp_bounds(x, precision) for x in exponents]
        low_ends = list(accumulate(low for low, _ in bounds))
        high_ends = list(accumulate(high for _, high in bounds))
        for i in range(len(exponents)):
            # The share of the weights before i is largest if those are high and the rest low.
            before, rest = (high_ends[i - 1], low_ends[-1] - low_ends[i - 1]) if i else (0, 1)
            is_after_left = drawn * (before + rest) >= before << known
            until, rest = low_ends[i], high_ends[-1] - high_ends[i]
            if is_after_left and (drawn + 1) * (until + rest) <= until << known:
                return i
        drawn = (drawn << 64) + bits(source, 64)
        known += 64


def permute_and_flip(scores: Scores, *, rate: Number, source: Source = SYSTEM) -> int:
    """Return the first success when coins exp(rate * (score - best)) are tossed in random order.

    All coins are tossed at once; given which succeed, the first of them in a random order is
    a uniform choice among them. The best candidate's coin always succeeds.

    >>> permute_and_flip(np.array([0.0, 1e6, 0.0]), rate=1)
    1
    """
    rate = positive(rate, name="rate")
    below = _below_best(scores)
    chance = np.exp(-float(rate) * below)
    word = words(source, below.size, "<u4")
    distance = word * 2.0**-32 - chance
    heads = distance < 0
    # A word stands for an interval of width 2**-32, and the chance is off by far less than that.
    for i in np.flatnonzero(np.abs(distance) < 2.0**-31):
        exponent = _exact_exponents(scores, rate, int(i))[0]
        heads[i] = is_less(int(word[i]), 32, chance_exp(exponent), source)
    winners = np.flatnonzero(heads)
    return int(winners[uniform_integers(winners.size, source=source)])


def _below_best(scores: Scores) -> npt.NDArray[np.float64]:
    """Return best - score, to a relative error of 2**-52; infinite where doubles overflow."""
    best = scores.max()
    if scores.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(best - scores, dtype=np.float64)
    # The difference of two int64 fits an unsigned word, although it may wrap on the way there.
    wrapped: npt.NDArray[Any] = np.subtract(best, scores, dtype=np.int64)
    return wrapped.view(np.uint64).astype(np.float64)


def _exact_exponents(scores: Scores, rate: Fraction, only: int | None = None) -> list[Fraction]:
    picked = scores if only is None else scores[only : only + 1]
    best = Fraction(scores.max().item())
    return [rate * (best - Fraction(score)) for score in picked.tolist()]
