"""Pick one of many candidates at random, better scores more often, exactly.

Both samplers read every score and make the same passes over them whatever the scores are, and draw
an amount of randomness that depends on their number alone. The one exception is a draw that
doubles cannot decide, which is settled by slow exact arithmetic. How rare that is depends on the
scores. For :func:`exponential_race` it has a chance of about 1e-11 times the number of candidates
that have a fair share of the weight: 1e-5 among a million equal scores, 1e-11 if one score stands
out. For :func:`permute_and_flip` it is at most 1e-9 for each candidate, whatever its score, and
concerns that one coin. Somebody who sees such a pause learns that much about the scores, and no
more.
"""

from fractions import Fraction
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive
from discreet.errors import DataError, ParameterError
from discreet.noise.enclosure import chance_exp, exp_bounds, is_less
from discreet.noise.integers import uniform_below_secret
from discreet.noise.source import SYSTEM, Source, bits, words

__all__ = ["exponential_race", "permute_and_flip"]

Scores = npt.NDArray[np.float64] | npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
_BLOCK: Final = 1 << 10
_EXP_ERROR: Final = 2.0**-39  # relative; covers exponents down to -700 and numpy's exp
_SMALLEST_RATE: Final = Fraction(1, 2**1000)


def exponential_race(
    scores: npt.ArrayLike,
    *,
    rate: Number,
    multiplicity: Counts | None = None,
    source: Source = SYSTEM,
) -> int:
    """Return index i with probability exactly proportional to exp(rate * scores[i]).

    Scores are integers or floats in one dimension, and are taken as the exact numbers they are.
    With ``multiplicity``, entry i stands for that many candidates of one score and is weighted by
    it; zero is allowed, as long as one entry is above zero.

    It has the law of a race of exponential clocks, or of adding Gumbel noise and taking the
    largest, but needs a single random number: where it falls among the running sums of weights.
    The sums are doubles with an error bound; should the number fall within the bound of a border
    (about once in 100,000 calls for a million equal scores), integer bounds settle it.

    >>> exponential_race(np.array([0.0, 1e6, 0.0]), rate=1)
    1
    >>> exponential_race(np.array([0, 5, 5]), rate=1, multiplicity=np.array([2**40, 0, 0]))
    0
    """
    rate, exact = positive(rate, name="rate"), _checked(scores)
    if multiplicity is not None:
        _check_multiplicity(multiplicity, exact.shape)
    drawn = bits(source, 64)
    picked = _race_in_doubles(exact, rate, drawn, multiplicity) if _is_tame(rate) else None
    if picked is None:
        return _race_in_integers(exact, rate, drawn, source, multiplicity)
    return picked


def _checked(scores: npt.ArrayLike) -> Scores:
    """Return the scores as int64 or float64 without changing any, or refuse them."""
    try:
        array = np.empty(0, dtype=object) if np.ma.isMaskedArray(scores) else np.asarray(scores)
    except (ValueError, TypeError, OverflowError):
        array = np.empty(0, dtype=object)
    fits = array.dtype.kind == "i" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8)
    if array.dtype.kind == "u":
        fits = array.dtype.itemsize < 8 or not (array >> np.uint64(63)).any()
    if not fits or array.ndim != 1 or array.size == 0:
        raise DataError(
            "scores must be a non-empty one-dimensional array of integers within int64 or of "
            f"floats up to 64 bits, got {type(scores).__name__} of shape {np.shape(array)} holding "
            f"{array.dtype}. Pass one score per candidate."
        )
    if array.dtype.kind != "f":
        return array.astype(np.int64, copy=False)
    if not np.isfinite(array).all():
        raise DataError(
            "scores must be finite, but some are NaN or infinite. A candidate that must not be "
            "chosen is better left out."
        )
    return array.astype(np.float64, copy=False)


def _check_multiplicity(multiplicity: Any, shape: tuple[int, ...]) -> None:
    is_plain = isinstance(multiplicity, np.ndarray) and not np.ma.isMaskedArray(multiplicity)
    is_count = is_plain and multiplicity.dtype == np.int64 and multiplicity.shape == shape
    if not is_count or multiplicity.min() < 0 or multiplicity.max() == 0:
        raise ParameterError(
            "multiplicity must be an int64 array of the shape of the scores, with no entry below "
            "0 and one above.",
            parameter="multiplicity",
        )


def _is_tame(rate: Fraction) -> bool:
    """Tell whether rate * difference behaves in doubles: never 0 * infinity, never a lost digit."""
    return _SMALLEST_RATE <= rate <= 1 / _SMALLEST_RATE


def _race_in_doubles(
    scores: Scores, rate: Fraction, drawn: int, multiplicity: Counts | None = None
) -> int | None:
    """Find the interval that ``drawn * 2**-64`` falls in, or None if doubles cannot tell."""
    weights = _weights(scores, rate, multiplicity)
    if multiplicity is not None:
        weights *= multiplicity
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


def _race_in_integers(
    scores: Scores, rate: Fraction, drawn: int, source: Source, multiplicity: Counts | None = None
) -> int:
    """Do the same with integer bounds, reading more bits until the interval is certain."""
    exponents = _exact_exponents(scores, rate, multiplicity=multiplicity)
    counts = [1] * scores.size if multiplicity is None else multiplicity.tolist()
    known = 64
    while True:
        precision = known + 64 + sum(counts).bit_length()
        bounds = [
            (low * count, high * count)
            for count, (low, high) in zip(
                counts, (exp_bounds(x, precision) for x in exponents), strict=True
            )
        ]
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


def permute_and_flip(scores: npt.ArrayLike, *, rate: Number, source: Source = SYSTEM) -> int:
    """Return the first success when coins exp(rate * (score - best)) are tossed in random order.

    Scores are integers or floats in one dimension, and are taken as the exact numbers they are.
    All coins are tossed at once; given which succeed, the first of them in a random order is
    a uniform choice among them. The best candidate's coin always succeeds.

    >>> permute_and_flip(np.array([0.0, 1e6, 0.0]), rate=1)
    1
    """
    rate, exact = positive(rate, name="rate"), _checked(scores)
    word = words(source, exact.size, "<u4")
    if _is_tame(rate):
        distance = word * 2.0**-32 - _weights(exact, rate)
    else:
        distance = np.zeros(exact.size)  # leave every coin to the integers
    heads = distance < 0
    # A word stands for an interval of width 2**-32, and the chance is off by far less than that.
    for i in np.flatnonzero(np.abs(distance) < 2.0**-31):
        exponent = _exact_exponents(exact, rate, int(i))[0]
        heads[i] = is_less(int(word[i]), 32, chance_exp(exponent), source)
    # How many won is a secret, so the time to choose among them must not tell: they are counted,
    # not gathered, and the search among the counts depends on what it finds alone.
    won = np.cumsum(heads)
    return int(np.searchsorted(won, uniform_below_secret(int(won[-1]), source=source), "right"))


def _weights(
    scores: Scores, rate: Fraction, multiplicity: Counts | None = None
) -> npt.NDArray[np.float64]:
    """Return exp(-rate * (best - score)), but exp(-700) where it is less than that.

    Numbers below about exp(-708) are slow, on some processors by far, and so is vanishing. The
    difference is drowned by the errors that are allowed for.
    """
    exponents = _below_best(scores, multiplicity)
    with np.errstate(over="ignore"):
        exponents *= -float(rate)
    np.maximum(exponents, -700.0, out=exponents)
    np.exp(exponents, out=exponents)
    return exponents


def _below_best(scores: Scores, multiplicity: Counts | None = None) -> npt.NDArray[np.float64]:
    """Return best - score, to a relative error of 2**-52; infinite where doubles overflow."""
    best = _best(scores, multiplicity)
    if scores.dtype.kind == "f":
        with np.errstate(over="ignore"):
            below = np.subtract(best, scores, dtype=np.float64)
    else:
        # The difference of two int64 fits an unsigned word, although it may wrap on the way there.
        wrapped: npt.NDArray[Any] = np.subtract(best, scores, dtype=np.int64)
        below = wrapped.view(np.uint64).astype(np.float64)
    # An absent candidate may lie above the best one; its weight is zero whatever stands here.
    return below if multiplicity is None else np.where(multiplicity > 0, below, 0.0)


def _best(scores: Scores, multiplicity: Counts | None) -> Any:
    if multiplicity is None:
        return scores.max()
    lowest = -np.inf if scores.dtype.kind == "f" else np.iinfo(np.int64).min
    return np.max(scores, where=multiplicity > 0, initial=lowest)


def _exact_exponents(
    scores: Scores, rate: Fraction, only: int | None = None, multiplicity: Counts | None = None
) -> list[Fraction]:
    picked = scores if only is None else scores[only : only + 1]
    best = Fraction(_best(scores, multiplicity).item())
    return [max(Fraction(0), rate * (best - Fraction(score))) for score in picked.tolist()]
