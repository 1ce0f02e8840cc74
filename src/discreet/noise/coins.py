"""Biased coins, exact for rational probabilities, for exp(-x) and for odds of factor * exp(-x)."""

import math
from functools import lru_cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, nonnegative, positive, probability
from discreet.noise.enclosure import (
    Chance,
    chance_exp,
    chance_logistic,
    chance_odds,
    chance_rational,
    is_less,
)
from discreet.noise.shapes import Size, shape_of
from discreet.noise.source import SYSTEM, Source, bits, words

__all__ = ["bernoulli", "bernoulli_exp", "bernoulli_logistic", "bernoulli_odds"]

Coins = npt.NDArray[np.bool_]


@overload
def bernoulli(p: Number, size: None = None, *, source: Source = ...) -> bool: ...
@overload
def bernoulli(p: Number, size: Size, *, source: Source = ...) -> Coins: ...
def bernoulli(p: Number, size: Size | None = None, *, source: Source = SYSTEM) -> bool | Coins:
    """Toss coins that show True with probability exactly ``p``.

    >>> from fractions import Fraction
    >>> bernoulli(1), bernoulli(0), bernoulli(Fraction(1, 3), size=4).shape
    (True, False, (4,))
    """
    return _toss(_rational(p), size, source)


@overload
def bernoulli_exp(x: Number, size: None = None, *, source: Source = ...) -> bool: ...
@overload
def bernoulli_exp(x: Number, size: Size, *, source: Source = ...) -> Coins: ...
def bernoulli_exp(x: Number, size: Size | None = None, *, source: Source = SYSTEM) -> bool | Coins:
    """Toss coins that show True with probability exactly exp(-x), for a rational ``x >= 0``.

    >>> bernoulli_exp(0), bernoulli_exp(0.5, size=(2, 2)).dtype
    (True, dtype('bool'))
    """
    return _toss(_exponential(x), size, source)


@overload
def bernoulli_logistic(x: Number, size: None = None, *, source: Source = ...) -> bool: ...
@overload
def bernoulli_logistic(x: Number, size: Size, *, source: Source = ...) -> Coins: ...
def bernoulli_logistic(
    x: Number, size: Size | None = None, *, source: Source = SYSTEM
) -> bool | Coins:
    """Toss coins that show True with probability exactly 1 / (1 + exp(x)), for a rational ``x``.

    >>> bernoulli_logistic(1, size=3).shape
    (3,)
    """
    return _toss(_logistic(x), size, source)


@overload
def bernoulli_odds(
    x: Number, size: None = None, *, factor: Number, source: Source = ...
) -> bool: ...
@overload
def bernoulli_odds(x: Number, size: Size, *, factor: Number, source: Source = ...) -> Coins: ...
def bernoulli_odds(
    x: Number, size: Size | None = None, *, factor: Number, source: Source = SYSTEM
) -> bool | Coins:
    """Toss coins that show True with odds of exactly ``factor * exp(-x)`` to 1.

    With ``factor=1`` this is :func:`bernoulli_logistic`. ``x`` may be any rational number.

    >>> bernoulli_odds(0, factor=3, size=4).shape    # three to one: probability 3/4
    (4,)
    """
    return _toss(_odds(x, factor), size, source)


@lru_cache(maxsize=64, typed=True)
def _rational(p: Number) -> Chance:
    return lru_cache(chance_rational(probability(p, name="p", zero=True, one=True)))


@lru_cache(maxsize=64, typed=True)
def _exponential(x: Number) -> Chance:
    return lru_cache(chance_exp(nonnegative(x, name="x")))


@lru_cache(maxsize=64, typed=True)
def _logistic(x: Number) -> Chance:
    return lru_cache(chance_logistic(exact(x, name="x")))


@lru_cache(maxsize=64, typed=True)
def _odds(x: Number, factor: Number) -> Chance:
    return lru_cache(chance_odds(exact(x, name="x"), positive(factor, name="factor")))


def _toss(chance: Chance, size: Size | None, source: Source) -> bool | Coins:
    """Compare 16 random bits with the probability's first 16; on a tie, read on.

    The binary expansion of a uniform real is compared with that of p from the left, which is
    decided right at the first difference. A tie has probability 2**-16.
    """
    if size is None:
        return is_less(bits(source, 64), 64, chance, source)
    shape = shape_of(size)
    threshold = chance(16)
    if threshold == 1 << 16:
        return np.ones(shape, dtype=np.bool_)
    word = words(source, math.prod(shape), "<u2")
    heads: npt.NDArray[Any] = word < np.uint16(threshold)
    for i in np.flatnonzero(word == np.uint16(threshold)):
        heads[i] = is_less(threshold, 16, chance, source)
    return heads.reshape(shape)
