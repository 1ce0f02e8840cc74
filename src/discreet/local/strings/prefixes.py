"""Prefixes of strings of a fixed length, a step longer at a time."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import refusal, whole
from discreet.local.strings.hashing import digests

__all__ = ["Prefixes"]

Octets = npt.NDArray[np.uint8]

_LONGEST: Final = 255
_WIDEST_STEP: Final = 16  # bits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Divide strings of ``length`` bytes into ``steps`` prefixes, the last being the whole.

    Prefixes are rows of ``length`` bytes with zeros behind their last bit.

    >>> prefixes = Prefixes(length=2, steps=3)
    >>> [prefixes.bits(step) for step in range(3)]
    [6, 11, 16]
    >>> prefixes.cut(np.array([[255, 255]], dtype=np.uint8), np.array([1]))
    array([[255, 224]], dtype=uint8)
    """

    length: int
    steps: int

    def __post_init__(self) -> None:
        if whole(self.length, name="length") > _LONGEST:
            raise refusal("length", f"at most {_LONGEST} bytes", self.length)
        steps = whole(self.steps, name="steps")
        if not self.length * 8 / _WIDEST_STEP <= steps <= self.length * 8:
            wanted = f"from {-(-self.length // 2)} to {self.length * 8}, for 16 bits to 1 a step"
            raise refusal("steps", wanted, self.steps)

    def bits(self, step: int) -> int:
        """How many bits the prefixes of a step have; steps count from 0."""
        return -(-(step + 1) * self.length * 8 // self.steps)

    @property
    def longest_step(self) -> int:
        """How many bits the longest step adds."""
        return -(-self.length * 8 // self.steps)

    def cut(self, strings: Octets, steps: npt.NDArray[np.int64]) -> Octets:
        """Return each string's prefix at the step beside it."""
        masks = np.zeros((self.steps, self.length), dtype=np.uint8)
        for step in range(self.steps):
            ones = np.arange(self.length * 8) < self.bits(step)
            masks[step] = np.packbits(ones)
        return np.asarray(strings & masks[steps])

    def extend(self, prefixes: Octets, step: int) -> Octets:
        """Return all prefixes of a step that continue the given ones of the step before."""
        start = self.bits(step - 1) if step else 0
        added = self.bits(step) - start
        codes = np.arange(1 << added, dtype=np.uint32)
        tails = np.zeros((codes.size, self.length * 8), dtype=np.uint8)
        tails[:, start : start + added] = codes[:, None] >> np.arange(added - 1, -1, -1) & 1
        both = prefixes[:, None, :] | np.packbits(tails, axis=1)[None, :, :]
        return both.reshape(-1, self.length)

    def digests(self, prefixes: Octets, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Return each prefix's digest: of its number of bits in two bytes, and its own bytes."""
        bits = np.array([self.bits(step) for step in range(self.steps)], dtype=">u2")
        heads = bits[steps].view(np.uint8).reshape(-1, 2)
        joined = np.concatenate([heads, prefixes], axis=1).tobytes()
        width = self.length + 2
        return digests([joined[i : i + width] for i in range(0, len(joined), width)])

    def texts(self, prefixes: Octets) -> tuple[bytes, ...]:
        """Return prefixes as bytes without the zeros at their end."""
        return tuple(row.tobytes().rstrip(b"\0") for row in prefixes)
