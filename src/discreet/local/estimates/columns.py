"""How many rows of packed bits have each bit set."""

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["column_sums"]

Bytes = npt.NDArray[np.uint8]

_WIDTH: Final = 1 << 11  # bytes of a row
_BLOCK: Final = 1 << 19  # bytes; stays in the processor's cache


def column_sums(rows: Bytes) -> npt.NDArray[np.int64]:
    """Add up the rows' bits, the lowest bit of the first byte first.

    Why: three rows of equal weight are, bit by bit, one row of that weight and one of twice the
    weight. So rows are added as bits until a handful is left, which alone is unpacked.

    >>> column_sums(np.array([[1], [3], [130]], dtype=np.uint8))
    array([2, 2, 0, 0, 0, 0, 0, 1])
    """
    sums = np.zeros((rows.shape[1], 8), dtype=np.int64)
    for first in range(0, rows.shape[1], _WIDTH):
        part = sums[first : first + _WIDTH]
        step = _BLOCK // len(part)
        for start in range(0, rows.shape[0], step):
            _add(rows[start : start + step, first : first + _WIDTH], part)
    return sums.ravel()


def _add(pile: Bytes, sums: npt.NDArray[np.int64]) -> None:
    weight = 1
    while pile.shape[0]:
        carries = [pile[:0]]
        while (third := pile.shape[0] // 3) > 0:
            a, b, c = (pile[i * third : (i + 1) * third] for i in range(3))
            half = a ^ b
            carries.append((a & b) | (half & c))
            pile = np.concatenate([half ^ c, pile[3 * third :]])
        bits = np.unpackbits(pile, axis=1, bitorder="little").reshape(-1, *sums.shape)
        sums += weight * bits.sum(axis=0, dtype=np.int64)
        pile = np.concatenate(carries)
        weight *= 2
