"""A family of public hash functions that any language can compute from one key."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import refusal, whole
from discreet.errors import ParameterError

__all__ = ["StringHashes", "digests"]

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_WORDS: Final = 3  # of 32 bits, from a string's digest
_WIDEST: Final = 1 << 16
_MOST_CELLS: Final = 1 << 26  # what a server holds of them in memory at a time


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StringHashes:
    """Map strings to whole numbers below ``width``, by any of so many ``functions``.

    A string x stands for x1, x2, x3: the first three 32-bit words of its SHA-256. Function j has
    four 64-bit words a0 to a3, the SHA-256 of the key followed by j in four bytes; all words are
    big-endian. The hash is the top log2(width) bits of a0 + a1 x1 + a2 x2 + a3 x3, modulo 2**64.

    Claim: if the words a are uniform, the hashes of two strings with different x are uniform and
    independent, exactly. So are those of three strings, but for a share of less than 2**-80 of
    triples.

    Why: let u be the difference of two x. It is not 0 and has a word with at most 31 factors of 2,
    so the sum of the a u is uniform on multiples of a power 2**e with e <= 31, and is independent
    of the first string's sum, which a0 makes uniform. To add a uniform multiple of 2**48 makes the
    top 16 bits uniform, whatever they were; and multiples of 2**e contain these. For three, the
    same holds for pairs of sums when a 2 x 2 minor of the differences has at most 48 factors
    of 2. Two words are the case of [LK14].

    >>> family = StringHashes(functions=2, width=16, key=b"2026")
    >>> family.table(digests([b"one", b"two", b"three"]))
    array([[...], [...]])
    """

    functions: int
    width: int
    key: bytes

    def __post_init__(self) -> None:
        width, functions = whole(self.width, name="width"), whole(self.functions, name="functions")
        if width & (width - 1) or not 2 <= width <= _WIDEST:
            raise refusal("width", f"a power of two from 2 to {_WIDEST}", self.width)
        if functions * width > _MOST_CELLS:
            raise refusal("functions", f"at most {_MOST_CELLS // width} here", self.functions)
        if not isinstance(self.key, bytes):
            raise ParameterError(
                "key must be bytes. It is public: devices and server share it. Draw a new one for "
                "each collection with secrets.token_bytes(16).",
                parameter="key",
            )

    @property
    def coefficients(self) -> Words:
        """The four words of each function."""
        return _coefficients(self.key, self.functions)

    def hashes(self, digests: Words, functions: Ints) -> Ints:
        """Return the hash of each digest by the function named beside it."""
        return self._top(self.coefficients[functions], digests)

    def table(self, digests: Words) -> Ints:
        """Return the hashes of all digests by all functions, one row a function."""
        return self._top(self.coefficients[:, None, :], digests)

    def _top(self, words: Words, digests: Words) -> Ints:
        total = words[..., 0].copy()
        if words.ndim > digests.ndim:
            total = np.repeat(total, len(digests), axis=1)
        for i in range(_WORDS):
            total += words[..., i + 1] * digests[:, i]
        return (total >> np.uint64(64 - (self.width.bit_length() - 1))).astype(np.int64)


def digests(strings: Sequence[bytes]) -> Words:
    """Return the first three words of each string's SHA-256, as numbers.

    >>> digests([b"abc"])   # ba7816bf 8f01cfea 414140de ...
    array([[3128432319, 2399260650, 1094795486]], dtype=uint64)
    """
    joined = b"".join(hashlib.sha256(string).digest()[: 4 * _WORDS] for string in strings)
    return np.frombuffer(joined, dtype=">u4").astype(np.uint64).reshape(-1, _WORDS)


@lru_cache(maxsize=8)
def _coefficients(key: bytes, functions: int) -> npt.NDArray[Any]:
    made = (hashlib.sha256(key + j.to_bytes(4, "big")).digest() for j in range(functions))
    words = np.frombuffer(b"".join(made), dtype=">u8").astype(np.uint64).reshape(-1, _WORDS + 1)
    words.flags.writeable = False
    return words
