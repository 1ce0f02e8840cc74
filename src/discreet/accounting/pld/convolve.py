"""Compose losses on a lattice with a tilted Fourier transform, and bound every error made."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.accounting.pairs.pairs import Floats
from discreet.accounting.pld.discretise import FORGIVEN, Masses

_UNIT = 2.0**-53
_NEGLIGIBLE = -60.0  # log of the modulus below which a frequency is bounded instead of summed
_MOST_TERMS = 4_000_000
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
        self.step, self.tilt, self.length = step, tilt, length
        self.times = sum(n for _, n in parts)
        self.origin = math.fsum(n * masses.origin for masses, n in parts)
        self._parts = parts
        spectrum = _Spectrum.whole(length)
        logs, unsure, turns, tilted_parts = [], 0.0, 0, []
        for masses, n in parts:
            log_total, tilted, reachable = _tilt(masses, step, tilt)
            logs.append(n * log_total)
            unsure += n * (_MASS_ERROR + 8 * _UNIT * (reachable + abs(log_total)))
            peak = int(masses.place[np.argmax(tilted)])
            place = (masses.place - peak) % length
            tilted_parts.append((place, tilted, n))
            turns += n * peak
            spectrum = spectrum.times(*_transformed(place, tilted, length), n)
        terms = sum(place.size for place, _, _ in tilted_parts) * spectrum.active.size
        matters = spectrum.log.real > -20
        if terms < _MOST_TERMS and (spectrum.relative[matters] > 1e-7).any():
            # Few frequencies are left: sum them one by one, which errs far less.
            active = spectrum.active
            spectrum = _Spectrum.of(active)
            for place, tilted, n in tilted_parts:
                spectrum = spectrum.times(*_summed(place, tilted, active, length), n)
        spectrum = spectrum.turned(turns % length, length)
        active, relative = spectrum.active, spectrum.relative
        self.log_total = math.fsum(logs)
        self.unsure = unsure
        angle = 2 * np.pi * active / length
        twice = np.where((active == 0) | (2 * active == length), 1.0, 2.0) / length
        self._frequency = active
        # z / (1 - z) - w / (1 - w) for z = exp(-tilt * step + i angle) and w = exp(-step) z,
        # written so that nothing cancels.
        log_z = -tilt * step + 1j * angle
        weight = -np.exp(log_z) * math.expm1(-step) / (np.expm1(log_z) * np.expm1(log_z - step))
        self._terms = twice * np.exp(spectrum.log) * weight
        every = 1 / -math.expm1(-tilt * step)
        is_known = relative < 1.0
        # The last term covers weights, turns and the final sum.
        swing = np.where(is_known, np.expm1(np.minimum(relative, 1.0)), 1.0) + 200 * _UNIT
        self._error = float(np.abs(self._terms) @ swing) + math.exp(_NEGLIGIBLE) * every
        self._terms[~is_known] = 0.0

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
            pull = sign * np.array([0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 6.0, 9.0, 13.0]) / spread
            logs = [
                math.fsum(n * _tilt(m, self.step, self.tilt + s)[0] for m, n in self._parts)
                for s in pull.tolist()
            ]
            found[sign] = np.array(logs), pull
        return found


class _Spectrum(NamedTuple):
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

    def times(self, transformed: npt.NDArray[Any], error: float, n: int) -> Self:
        """Multiply by the n-th power of a transform whose coefficients err by at most ``error``."""
        if transformed.size > self.active.size:
            transformed = transformed[self.active]
        modulus = np.abs(transformed)
        # Roughly at first, so that logarithms are taken of few numbers.
        left = _NEGLIGIBLE - (self.log.real + self.relative)
        least = math.exp(float(left.min()) / n) if left.size else 0.0
        kept = np.flatnonzero(modulus + 2 * error > least)
        modulus = modulus[kept]
        is_known = modulus > 4 * error
        with np.errstate(divide="ignore"):
            log = self.log[kept] + n * np.log(transformed[kept])
            relative = self.relative[kept] + n * (2 * error / modulus + 16 * _UNIT)
        # Where the error rivals the value nothing is known but a bound.
        log[~is_known] = self.log[kept][~is_known] + n * math.log(6 * error)
        relative[~is_known] = math.inf
        matters = log.real + np.where(is_known, relative, 0.0) > _NEGLIGIBLE
        return type(self)(self.active[kept][matters], log[matters], relative[matters])

    def turned(self, place: int, length: int) -> Self:
        """Multiply by the transform of a unit mass at ``place``."""
        turn = (self.active * place) % length
        return self._replace(log=self.log - 2j * np.pi * turn / length)


def _transformed(place: Floats, mass: Floats, length: int) -> tuple[npt.NDArray[Any], float]:
    """Return the discrete Fourier transform and a bound on the error of its coefficients.

    The mass at place 0 is transformed exactly, so that the error is that of the others.
    """
    from scipy import fft

    signal = np.bincount(place, mass, length)
    spike, signal[0] = signal[0], 0.0
    # [Hig02, Theorem 24.2], in the 2-norm, for every single coefficient.
    norm = math.sqrt(length * float(np.square(signal[np.unique(place)]).sum()))
    error = 10 * _UNIT * math.log2(length) * norm
    return fft.rfft(signal) + spike, error + 8 * _UNIT


def _summed(
    place: Floats, mass: Floats, active: npt.NDArray[np.int64], length: int
) -> tuple[npt.NDArray[Any], float]:
    """Return the transform at some frequencies term by term; masses sum to one."""
    turn = np.outer(active, place) % length
    found = np.exp(-2j * np.pi * turn / length) @ mass
    return found, 8 * _UNIT * (8 + math.sqrt(place.size))


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
