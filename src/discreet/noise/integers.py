"""Uniform integers below public and secret bounds, and choice by exact rational weights."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, nonnegative, whole
from discreet.errors import ParameterError
from discreet.noise.shapes import Size, shape_of
from discreet.noise.source import SYSTEM, Source, bits, words

__all__ = ["choice", "uniform_below_secret", "uniform_integers"]

Array = npt.NDArray[Any]


@overload
def uniform_integers(bound: int, size: None = None, *, source: Source = ...) -> int: ...
@overload
def uniform_integers(bound: int, size: Size, *, source: Source = ...) -> Array: ...
def uniform_integers(
    bound: int, size: Size | None = None, *, source: Source = SYSTEM
) -> int | Array:
    """Draw integers uniformly from {0, ..., bound - 1}.

    Draws that fall beyond the bound are repeated, so how many random bytes are read tells
    something about ``bound``: it must be public.

    >>> uniform_integers(1), uniform_integers(6, size=2).shape
    (0, (2,))
    >>> uniform_integers(2**100) < 2**100
    True
    """
    bound = whole(bound, name="bound")
    if size is None:
        return _one(bound, source)
    shape = shape_of(size)
    count = math.prod(shape)
    if bound <= 1 << 16:
        return _many(bound, count, source).reshape(shape)
    if bound <= 1 << 63:
        return _many_large(bound, count, source).reshape(shape)
    samples = np.empty(count, dtype=object)
    samples[:] = [_one(bound, source) for _ in range(count)]
    return samples.reshape(shape)


def _one(bound: int, source: Source) -> int:
    width = (bound - 1).bit_length()
    while True:
        drawn = bits(source, width)
        if drawn < bound:
            return drawn


def _many(bound: int, count: int, source: Source) -> Array:
    """Take the high half of word * bound; reject the low halves that some results have too many of.

    [Lem19, Section 4]: every result keeps exactly floor(2**32 / bound) of the 2**32 words.
    """
    product = words(source, count, "<u4").astype(np.uint64) * np.uint64(bound)
    out = (product >> np.uint64(32)).astype(np.int64)
    surplus = (1 << 32) % bound
    if surplus:
        again = np.flatnonzero((product & np.uint64(0xFFFFFFFF)) < np.uint64(surplus))
        if again.size:
            out[again] = _many(bound, again.size, source)
    return out


def _many_large(bound: int, count: int, source: Source) -> Array:
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    out = (words(source, count, "<u8") & mask).astype(np.int64)
    again = np.flatnonzero(out >= bound)
    if again.size:
        out[again] = _many_large(bound, again.size, source)
    return out


def uniform_below_secret(bound: int, *, source: Source = SYSTEM) -> int:
    """Draw an integer uniformly from {0, ..., bound - 1}, for a bound that comes from the data.

    Claim: the result is exactly uniform, and the number of random bytes read is 16 except with
    probability bound / 2**128, so that it tells next to nothing about ``bound``.

    Why: it is floor(bound * u) for a uniform real u, of which 128 bits are read first. They leave
    the result open only if one of the bound - 1 borders lies inside an interval of width 2**-128;
    then more bits are read. Rejection would repeat up to half of the time, depending on the bound.

    >>> uniform_below_secret(1), uniform_below_secret(10**30) < 10**30
    (0, True)
    """
    known, drawn = 128, bits(source, 128)
    while (drawn * bound) >> known != ((drawn + 1) * bound - 1) >> known:
        known, drawn = known + 128, (drawn << 128) + bits(source, 128)
    return (drawn * bound) >> known


@overload
def choice(weights: Sequence[Number], size: None = None, *, source: Source = ...) -> int: ...
@overload
def choice(weights: Sequence[Number], size: Size, *, source: Source = ...) -> Array: ...
def choice(
    weights: Sequence[Number], size: Size | None = None, *, source: Source = SYSTEM
) -> int | Array:
    """Draw indices with probability exactly proportional to rational ``weights``.

    >>> from fractions import Fraction
    >>> choice([0, Fraction(1, 3), 0])
    1
    >>> choice([0.5, 0.25, 0.25], size=5).shape
    (5,)
    """
    exact_weights = [nonnegative(weight, name="weights") for weight in weights]
    if not any(exact_weights):
        raise ParameterError(
            "weights must contain a number above 0, got none. Pass one weight per outcome.",
            parameter="weights",
        )
    common = math.lcm(*(weight.denominator for weight in exact_weights))
    ends = list(accumulate(int(weight * common) for weight in exact_weights))
    drawn = uniform_integers(ends[-1], 1 if size is None else size, source=source)
    dtype = object if drawn.dtype == object else np.int64
    picked = np.searchsorted(np.array(ends, dtype=dtype), drawn, side="right")
    return int(picked[0]) if size is None else picked
