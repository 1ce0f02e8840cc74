"""Repeatable randomness for tests. It protects nobody."""

import hashlib
from typing import final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["SeededSource"]


@final
class SeededSource:
    """Give the same bytes for the same seed: INSECURE, for tests only.

    Anybody who knows or guesses the seed can subtract the noise. ``is_secure`` is False, which
    ends up in every receipt, and a ledger refuses it unless it was opened for testing.

    >>> SeededSource(7).read(4) == SeededSource(7).read(4)
    True
    >>> SeededSource(7)
    SeededSource(7, INSECURE: for tests only)
    """

    __slots__ = ("_cipher", "_seed")

    def __init__(self, seed: int, /) -> None:
        self._seed = seed
        key = hashlib.sha256(f"discreet insecure test seed {seed}".encode()).digest()
        self._cipher = Cipher(algorithms.AES(key[:16]), modes.CTR(key[16:])).encryptor()

    @property
    def is_secure(self) -> bool:
        """False, always."""
        return False

    def read(self, n: int, /) -> bytes:
        """Return the next ``n`` bytes of the sequence that the seed names.

        >>> len(SeededSource(1).read(3))
        3
        """
        return self._cipher.update(bytes(n))

    def __repr__(self) -> str:
        return f"SeededSource({self._seed}, INSECURE: for tests only)"
