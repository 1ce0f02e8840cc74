"""Rows of bits: drawn from chained coins, and packed into bytes."""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from discreet.errors import DataError
from discreet.local.laws.numbers import as_rows
from discreet.noise import Source, bernoulli

__all__ = ["bit_sums", "by_rows", "drawn_bits", "flipped", "pack", "unpack", "width"]

Bits = npt.NDArray[np.bool_]
Packed = npt.NDArray[np.uint8]

_AT_ONCE: Final = 1 << 22  # bits; keeps what is made on the way small


def width(bits: int) -> int:
    """Return how many bytes hold this many bits."""
    return (bits + 7) // 8


def pack(bits: Bits) -> Packed:
    """Put eight bits into a byte, the first into its lowest.

    >>> pack(np.array([[True, False, True, False, False, False, False, False, True]]))
    array([[5, 1]], dtype=uint8)
    """
    return np.packbits(bits, axis=1, bitorder="little")


def unpack(reports: npt.ArrayLike, *, bits: int) -> Bits:
    """Return the bits of each report; those that fill its last byte must be 0."""
    rows = as_rows(reports, width=width(bits), below=256).astype(np.uint8)
    if bits % 8 and rows.size and rows[:, -1].max() >> (bits % 8):
        raise DataError("reports must hold zeros behind their last bit, but some do not.")
    return np.unpackbits(rows, axis=1, count=bits, bitorder="little").astype(np.bool_)


def bit_sums(reports: npt.ArrayLike, *, bits: int) -> npt.NDArray[np.int64]:
    """Count the reports in which each bit is set."""
    rows = np.asarray(reports)
    sums = np.zeros(bits, dtype=np.int64)
    step = max(1, _AT_ONCE // bits)
    for start in range(0, max(1, len(rows)), step):
        sums += unpack(rows[start : start + step], bits=bits).sum(axis=0)
    return sums


def by_rows(work: Callable[[slice], Packed], rows: int, *, bits: int) -> Packed:
    """Put together what ``work`` returns for a part of the rows at a time."""
    step = max(1, _AT_ONCE // bits)
    parts = [work(slice(start, start + step)) for start in range(0, max(1, rows), step)]
    return np.concatenate(parts)


def drawn_bits(is_set: Bits, *, own: Fraction, other: Fraction, source: Source) -> Bits:
    """Draw bits that are 1 with one chance where set, with another where not; both are drawn."""
    ones = bernoulli(own, is_set.shape, source=source)
    return np.where(is_set, ones, bernoulli(other, is_set.shape, source=source))


def flipped(bits: Bits, *, keep: Fraction, source: Source) -> Bits:
    """Turn each bit round unless its coin keeps it."""
    return np.asarray(bits ^ bernoulli(1 - keep, bits.shape, source=source), dtype=np.bool_)
