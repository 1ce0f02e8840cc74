"""Compose losses on a lattice with a tilted Fourier transform, and bound every error made."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np

from discreet.accounting._cells import FORGIVEN, Masses
from discreet.accounting._pairs import Floats

_UNIT = 2.0**-53
_NEGLIGIBLE = -60.0  # log of the modulus below which a frequency is bounded instead of summed
_MASS_ERROR = 4e-13  # relative error of one mass, tilt and normalisation included, per unit below


@final
class Composed:
    """The sum of independent losses, seen at losses near a point.

    ``parts`` are masses with how often each is composed, on lattices of one ``step``. The masses
    are tilted by exp(tilt * loss), which makes the region of interest probable, so that errors are
    relative to what is computed there; ``length`` is the size of the transform.
    """

    def __init__(
        self, parts: Sequence[tuple[Masses, int]], *, step: float, tilt: float, length: int
    ) -> None:
        from scipy import fft

        self.step, self.tilt, self.length = step, tilt, length
        self.times = sum(n for _, n in parts)
        self.origin = math.fsum(n * masses.origin for masses, n in parts)
        self._parts = parts
        active = np.arange(length // 2 + 1)
        log_modulus = np.zeros(active.size)
        phase = np.zeros(active.size)
        relative = np.zeros(active.size)
        logs, unsure = [], 0.0
        for masses, n in parts:
            log_total, tilted, reachable = _tilt(masses, step, tilt)
            logs.append(n * log_total)
            unsure += n * (_MASS_ERROR + 8 * _UNIT * (reachable + abs(log_total)))
            place = masses.place % length
            # The heaviest mass is transformed exactly, so that the error is that of the others.
            peak = int(np.argmax(tilted))
            turn = (active * place[peak]) % length
            spike = tilted[peak] * np.exp(-2j * np.pi * turn / length)
            others = tilted.copy()
            others[peak] = 0.0
            signal = np.bincount(place, others, length)
            transformed = fft.rfft(signal)[active] + spike
            # Higham, Accuracy and Stability, Theorem 24.2, in the 2-norm, for every coefficient.
            error = 10 * _UNIT * math.log2(length) * math.sqrt(length * float(signal @ signal))
            modulus = np.abs(transformed)
            with np.errstate(divide="ignore"):
                log_modulus = log_modulus + n * np.log(np.minimum(modulus + error, 1.0))
            phase = phase + n * np.angle(transformed)
            with np.errstate(divide="ignore"):
                relative = relative + n * (error / modulus + 16 * _UNIT)
            kept = log_modulus > _NEGLIGIBLE
            active, log_modulus = active[kept], log_modulus[kept]
            phase, relative = phase[kept], relative[kept]
        self.log_total = math.fsum(logs)
        self.unsure = unsure
        angle = 2 * np.pi * active / length
        twice = np.where((active == 0) | (2 * active == length), 1.0, 2.0) / length
        self._frequency = active
        z, w = np.exp(-tilt * step + 1j * angle), np.exp(-(tilt + 1) * step + 1j * angle)
        weight = z / (1 - z) - w / (1 - w)
        self._terms = twice * np.exp(log_modulus + 1j * phase) * weight
        every = 1 / -math.expm1(-tilt * step)
        swing = np.minimum(np.expm1(np.minimum(relative, 50.0)), 1e18)
        self._error = float(np.abs(self._terms) @ swing) + math.exp(_NEGLIGIBLE) * every

    def loss_at(self, index: int) -> float:
        """Return the loss at a lattice index."""
        return self.origin + index * self.step

    def index_of(self, loss: float) -> int:
        """Return the lattice index nearest to a loss."""
        return round((loss - self.origin) / self.step)

    def _tilted(self, index: int) -> float:
        """Return delta at this index over exp(log_total - tilt * loss), before errors."""
        turn = (self._frequency * (index % self.length)) % self.length
        return float((self._terms * np.exp(2j * np.pi * turn / self.length)).real.sum())

    def delta_above(self, index: int) -> float:
        """Return an upper bound on delta at a lattice point.

        The transform is periodic: losses a whole period away are counted as well, which can only
        raise the sum, as all its terms are positive.
        """
        scale = self.log_total - self.tilt * self.loss_at(index) + self.unsure
        value = self._tilted(index) + self._error
        return min(1.0, math.exp(min(scale, 700.0)) * max(value, 0.0))

    def delta_below(self, index: int) -> float:
        """Return a lower bound on delta at a lattice point."""
        scale = self.log_total - self.tilt * self.loss_at(index) - self.unsure
        value = self._tilted(index) - self._error - self._wrapped(index)
        return math.exp(min(scale, 700.0)) * max(value, 0.0)

    @property
    def forgiven(self) -> float:
        """How much too large the sum of losses from below may be."""
        return self.times * FORGIVEN * self.step

    def _wrapped(self, index: int) -> float:
        """Bound what losses a period away add to the sum."""
        period = self.length * self.step
        at, away = self.loss_at(index), 0.6 * period
        lower = self._tail(at - away, sign=-1)
        upper = self._tail(at + period, sign=1)
        inside = math.exp(-self.tilt * (period - away))
        return (lower + upper + inside) / -math.expm1(-self.tilt * period)

    def _tail(self, loss: float, *, sign: int) -> float:
        """Bound the tilted probability of being beyond ``loss`` by Chernoff's inequality."""
        moved, pull = self._moved[sign]
        return math.exp(min(0.0, float((moved - self.log_total - pull * loss).min())))

    @cached_property
    def _moved(self) -> dict[int, tuple[Floats, Floats]]:
        """Log-moments at some stronger and weaker tilts, for Chernoff's inequality."""
        spread = math.sqrt(sum(n * _variance(m, self.step, self.tilt) for m, n in self._parts))
        found = {}
        for sign in (-1, 1):
            pull = sign * np.array([1.0, 2.0, 4.0, 6.0, 9.0, 13.0]) / spread
            logs = [
                math.fsum(n * _tilt(m, self.step, self.tilt + s)[0] for m, n in self._parts)
                for s in pull.tolist()
            ]
            found[sign] = np.array(logs), pull
        return found


def _tilt(masses: Masses, step: float, tilt: float) -> tuple[float, Floats, float]:
    """Return log sum mass exp(tilt * loss), the normalised terms, and the largest exponent used."""
    with np.errstate(divide="ignore"):
        exponent = np.log(masses.mass) + tilt * (masses.origin + masses.place * step)
    top = float(exponent.max())
    terms = np.exp(exponent - top)
    total = float(terms.sum())
    return (
        top + math.log(total),
        terms / total,
        abs(tilt) * step * float(np.abs(masses.place).max()),
    )


def _variance(masses: Masses, step: float, tilt: float) -> float:
    _, terms, _ = _tilt(masses, step, tilt)
    loss = masses.place * step
    mean = float(terms @ loss)
    return max(float(terms @ (loss - mean) ** 2), step * step / 12)
