"""Binomial laws in whole numbers that are never above the truth."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

__all__ = ["BITS", "floored_binomial"]

BITS: Final = 128  # masses are whole numbers over 2**BITS
_GUARD: Final = 64  # further bits on the way
_DEPTH: Final = 100  # what is below 2**-_DEPTH of the largest mass is left out


def floored_binomial(trials: int, chance: Fraction) -> tuple[int, list[int]]:
    """Return a first value, and lower bounds on 2**BITS Pr[X = value] from there on.

    Claim: each bound is at most the truth, and what they leave out is below 2**-80 in all.

    Why: from the most likely value the others follow by exact ratios, once rounded down and once
    up. The sum of the upper ones, and of a geometric series beyond the last on each side, where
    ratios only fall, is at least the whole; lower ones are divided by it.

    >>> first, masses = floored_binomial(2, Fraction(1, 2))
    >>> first, [mass / 2**BITS for mass in masses]
    (0, [0.25, 0.5, 0.25])
    """
    heads, tails = chance.numerator, chance.denominator - chance.numerator
    mode = min(trials, (trials + 1) * heads // chance.denominator)
    upwards = ((trials - k) * heads for k in range(mode, trials))
    below = ((k + 1) * tails for k in range(mode, trials))
    downwards = (k * tails for k in range(mode, 0, -1))
    above = ((trials - k + 1) * heads for k in range(mode, 0, -1))
    one = 1 << (BITS + _GUARD)
    right, right_most = _side(one, zip(upwards, below, strict=True))
    left, left_most = _side(one, zip(downwards, above, strict=True))
    whole = one + right_most + left_most
    lows = [*reversed(left), one, *right]
    return mode - len(left), [(low << BITS) // whole for low in lows]


def _side(one: int, ratios: Iterator[tuple[int, int]]) -> tuple[list[int], int]:
    """Return lower bounds on the masses to one side, and an upper bound on their sum."""
    lows: list[int] = []
    low = high = one
    total = 0
    for over, under in ratios:
        low, high = low * over // under, -(-high * over // under)
        if high < one >> _DEPTH and over < under:
            return lows, total + high * under // (under - over) + 1
        lows.append(low)
        total += high
    return lows, total
