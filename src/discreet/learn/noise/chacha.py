"""ChaCha20's block function: a keyed random function from counters to 64 uniform bytes.

Counter-based, so that every lane of a GPU computes its own block and any block can be computed
again alone. State words 12 and 13 are a 64-bit counter, 14 and 15 the nonce: Bernstein's original
layout. RFC 8439 calls word 13 part of the nonce; the function is the same.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

__all__ = ["KEY_BYTES", "block", "blocks", "key_words"]

KEY_BYTES: Final = 32
_CONSTANTS: Final = np.frombuffer(b"expand 32-byte k", dtype="<u4")
_COLUMNS: Final = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS: Final = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
_ZEROS: Final = bytes(64)

Words = npt.NDArray[np.uint32]


def key_words(key: bytes) -> list[int]:
    """Return a key's eight little-endian words.

    >>> key_words(bytes(range(32)))[0] == 0x03020100
    True
    """
    if len(key) != KEY_BYTES:
        raise AssertionError("a ChaCha20 key has 32 bytes")
    return [int.from_bytes(key[i : i + 4], "little") for i in range(0, KEY_BYTES, 4)]


def block(key: bytes, counter: int, nonce: tuple[int, int]) -> bytes:
    """Return one block, by the C library.

    >>> block(bytes(32), 0, (0, 0))[:4].hex()
    '76b8e0ad'
    """
    start = counter.to_bytes(8, "little") + b"".join(word.to_bytes(4, "little") for word in nonce)
    cipher = Cipher(algorithms.ChaCha20(key, start), mode=None)
    return cipher.encryptor().update(_ZEROS)


def blocks(key: bytes, counters: npt.NDArray[np.uint64], nonce: tuple[int, int]) -> Words:
    """Return the blocks of many counters, 16 words each: what the GPU kernel does, in NumPy.

    >>> blocks(bytes(32), np.arange(2, dtype=np.uint64), (0, 0)).shape
    (2, 16)
    """
    start = np.empty((16, counters.size), dtype=np.uint32)
    start[:4] = _CONSTANTS[:, None]
    start[4:12] = np.array(key_words(key), dtype=np.uint32)[:, None]
    start[12] = counters & np.uint64(0xFFFFFFFF)
    start[13] = counters >> np.uint64(32)
    start[14:] = np.array(nonce, dtype=np.uint32)[:, None]
    state = start.copy()
    for _ in range(10):
        for places in _COLUMNS + _DIAGONALS:
            _quarter_round(state, *places)
    return np.ascontiguousarray((state + start).T)


def _quarter_round(state: Words, a: int, b: int, c: int, d: int) -> None:
    for i, j, k, distance in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[i] += state[j]
        word = state[k] ^ state[i]
        state[k] = (word << np.uint32(distance)) | (word >> np.uint32(32 - distance))
