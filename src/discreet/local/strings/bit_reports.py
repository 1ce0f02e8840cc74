"""Reports of a group's number and a row of bits, each of which a coin may turn round."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, float_up, positive, whole
from discreet.errors import DataError
from discreet.local.laws.drawing import CHUNK
from discreet.local.laws.preference import Preference
from discreet.noise import Source, bernoulli

__all__ = ["BitReports"]

Ints = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitReports:
    """Turn each of ``bits`` bits round with a chance, and pack them behind a group's number.

    A report is a row of bytes: the group, big-endian, in as few bytes as hold every group, and
    then the bits, the first one lowest in the first byte; bits beyond the last are 0.

    Claim: if two values' rows differ in at most ``changes`` bits and the group does not depend on
    the value, a report is epsilon-DP when the value is replaced, for the property ``epsilon``.

    Why: bits are turned round independently, so the ratio of two probabilities is at most the
    law's ratio to the power of the number of bits that differ.

    >>> reports = BitReports.calibrated(epsilon=2, groups=4, bits=8, changes=2)
    >>> reports.bytes_per_report, reports.epsilon <= 2
    (2, True)
    """

    groups: int
    bits: int
    changes: int
    law: Preference

    @classmethod
    def calibrated(cls, *, epsilon: Number, groups: int, bits: int, changes: int) -> Self:
        """Return the reports with the largest chance to keep a bit that ``epsilon`` allows."""
        share = positive(epsilon, name="epsilon") / whole(changes, name="changes")
        law = Preference.calibrated(epsilon=share, outputs=2, preferred=1)
        return cls(groups=groups, bits=bits, changes=changes, law=law)

    @property
    def epsilon(self) -> float:
        """The loss of one report, rounded up."""
        return float_up(self.changes * Fraction(self.law.epsilon))

    @property
    def bytes_per_report(self) -> int:
        """How long a row is."""
        return self._head + (self.bits + 7) // 8

    @property
    def _head(self) -> int:
        return ((self.groups - 1).bit_length() + 7) // 8

    def release(self, groups: Ints, owned: Ints, *, source: Source) -> Octets:
        """Return a row a device: its group, and its bits, 1 in the columns that it owns."""
        reports = np.empty((groups.size, self.bytes_per_report), dtype=np.uint8)
        chunk = max(1, CHUNK * 16 // self.bits)
        for start in range(0, groups.size, chunk):
            part = slice(start, start + chunk)
            rows = len(groups[part])
            ones = bernoulli(1 - self.law.keep_chance, (rows, self.bits), source=source)
            mine = np.zeros_like(ones)
            mine[np.arange(rows)[:, None], owned[part]] = True
            reports[part, self._head :] = np.packbits(ones ^ mine, axis=1, bitorder="little")
        for place in range(self._head):
            reports[:, place] = groups >> (8 * (self._head - 1 - place))
        return reports

    def count(self, reports: npt.ArrayLike) -> tuple[Ints, Ints]:
        """Return how many reports each group has, and how often each of its bits is 1."""
        rows = self._checked(reports)
        devices = np.zeros(self.groups, dtype=np.int64)
        ones = np.zeros((self.groups, self.bits), dtype=np.int64)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            group = self._group(part)
            order = np.argsort(group, kind="stable")
            present, first, size = np.unique(group[order], return_index=True, return_counts=True)
            bits = np.unpackbits(part[order, self._head :], axis=1, bitorder="little")
            devices[present] += size
            ones[present] += np.add.reduceat(bits[:, : self.bits], first, axis=0, dtype=np.int64)
        return devices, ones

    def _checked(self, reports: npt.ArrayLike) -> Octets:
        rows = np.asarray(reports)
        if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != self.bytes_per_report:
            raise DataError(
                f"reports must be rows of {self.bytes_per_report} bytes, as release gives them, "
                "but are not. Drop those that another collection made."
            )
        beyond = rows[:, -1] >> self.bits % 8 if self.bits % 8 else np.zeros(1, dtype=np.uint8)
        if len(rows) and (beyond.any() or (self._group(rows) >= self.groups).any()):
            raise DataError(
                f"reports must name one of {self.groups} groups and hold {self.bits} bits, but "
                "some do not. Drop those that another collection, or nobody, made."
            )
        return rows

    def _group(self, rows: Octets) -> Ints:
        group = np.zeros(len(rows), dtype=np.int64)
        for place in range(self._head):
            group = (group << 8) + rows[:, place]
        return group
