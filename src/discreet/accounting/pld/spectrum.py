"""The transform of a sum of independent losses, kept where it is not negligible."""

import math
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from discreet.accounting.pairs.pairs import Floats

__all__ = ["NEGLIGIBLE", "UNIT", "Spectrum"]

UNIT = 2.0**-53
NEGLIGIBLE = -60.0  # log of the modulus below which a frequency is bounded instead of summed


class Spectrum(NamedTuple):
    """A product of transforms at the frequencies where it is not negligible."""

    active: npt.NDArray[np.int64]
    log: npt.NDArray[np.complex128]
    relative: Floats  # bound on the error of the logarithm

    @classmethod
    def of(cls, active: npt.NDArray[np.int64]) -> Self:
        return cls(active, np.zeros(active.size, dtype=np.complex128), np.zeros(active.size))

    @classmethod
    def whole(cls, length: int) -> Self:
        return cls.of(np.arange(length // 2 + 1))

    def times(self, transformed: npt.NDArray[Any], error: float | Floats, n: int) -> Self:
        """Multiply by the n-th power of a transform whose coefficients err by at most ``error``."""
        if transformed.size > self.active.size:
            transformed = transformed[self.active]
        errors = np.broadcast_to(error, transformed.shape)
        modulus = np.abs(transformed)
        # Roughly at first, so that logarithms are taken of few numbers.
        left = NEGLIGIBLE - self.most
        least = math.exp(float(left.min()) / n) if left.size else 0.0
        kept = np.flatnonzero(modulus + 2 * errors > least)
        modulus, errors = modulus[kept], errors[kept]
        # Where the error rivals the value nothing is known but a bound.
        is_known = modulus > 4 * errors
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(is_known, n * (2 * errors / modulus + 16 * UNIT), 0.0)
            log = self.log[kept] + n * np.log(np.where(is_known, transformed[kept], 6 * errors))
        relative = np.where(is_known, self.relative[kept] + grown, math.inf)
        log += np.where(relative < math.inf, 0.0, grown)
        found = type(self)(self.active[kept], log, relative)
        return found.where(found.most > NEGLIGIBLE)

    @property
    def most(self) -> Floats:
        """Bounds on the logarithms of the moduli."""
        return np.minimum(self.log.real + np.where(self.is_bounded, 0.0, self.relative), 0.0)

    @property
    def is_bounded(self) -> npt.NDArray[np.bool_]:
        """Where nothing is known of a coefficient but a bound."""
        return np.isinf(self.relative)

    @property
    def swing(self) -> Floats:
        """Bounds on the errors of the coefficients; those that err by a lot are called 0."""
        is_known = self.relative < 1
        off = np.expm1(np.where(is_known, self.relative, 0.0))
        return np.where(is_known, np.exp(self.log.real) * off, np.exp(self.most))

    @property
    def values(self) -> npt.NDArray[np.complex128]:
        """The coefficients, 0 where they err by as much as they are."""
        return np.where(self.relative < 1, np.exp(self.log), 0.0)

    def where(self, matters: npt.NDArray[np.bool_]) -> Self:
        """Keep only some frequencies."""
        return type(self)(self.active[matters], self.log[matters], self.relative[matters])

    def turned(self, place: int, length: int) -> Self:
        """Multiply by the transform of a unit mass at ``place``."""
        turn = (self.active * place) % length
        return self._replace(log=self.log - 2j * np.pi * turn / length)
