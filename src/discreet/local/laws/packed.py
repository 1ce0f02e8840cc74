"""Many coins of one chance, packed eight to a byte."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.noise import Source
from discreet.noise.source import words

__all__ = ["packed_coins"]

Bytes = npt.NDArray[np.uint8]

_AT_ONCE: Final = 6  # digits; then one coin in 64 still goes on
_BLOCK: Final = 1 << 16  # bytes; keeps what is made on the way in the processor's cache


def packed_coins(chance: int, count: int, *, source: Source) -> Bytes:
    """Toss 8 ``count`` coins that show 1 with probability exactly ``chance / 2**64``.

    Why: a coin shows the binary digit of its probability at a random place, the j-th with
    probability 2**-j: the place of the first 1 in a row of random bits. The sum of digit(j) 2**-j
    is the probability. Whole words of coins walk through the digits together, and soon few are
    left.

    >>> from discreet.noise import SYSTEM
    >>> bool(abs(np.bitwise_count(packed_coins(1 << 62, 1000, source=SYSTEM)).sum() - 2000) < 400)
    True
    """
    digits = [int(digit) for digit in f"{chance:064b}".rstrip("0")]
    coins = np.empty(count, dtype=np.uint8)
    for start in range(0, count, _BLOCK):
        block = coins[start : start + _BLOCK]
        block[:] = _walk(np.full(block.size, 255, dtype=np.uint8), digits, source)
    return coins


def _walk(walking: Bytes, digits: list[int], source: Source) -> Bytes:
    """Return which of the walking coins stop at a digit 1."""
    heads = np.zeros_like(walking)
    first, later = digits[:_AT_ONCE], digits[_AT_ONCE:]
    steps = words(source, len(first) * walking.size, "u1").reshape(len(first), -1)
    for digit, step in zip(first, steps, strict=True):
        before = walking.copy() if digit else walking
        walking &= step
        if digit:
            heads |= before ^ walking
    left = np.flatnonzero(walking != 0)
    if left.size and later:
        heads[left] |= _walk(walking[left], later, source)
    return heads
