"""Compose losses on a lattice with a tilted Fourier transform, and bound every error made."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.accounting.pairs.pairs import Floats
from discreet.accounting.pld.discretise import FORGIVEN, Masses
from discreet.accounting.pld.spectrum import NEGLIGIBLE, UNIT, Spectrum

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
        self.period = length * step
        self.times = sum(n for _, n in parts)
        self.origin = math.fsum(n * masses.origin for masses, n in parts)
        self._parts = parts
        spectrum = Spectrum.whole(length)
        logs, unsure, turns, tilted_parts = [], 0.0, 0, []
        for masses, n in parts:
            log_total, tilted, reachable = _tilt(masses, step, tilt)
            logs.append(n * log_total)
            unsure += n * (_MASS_ERROR + 8 * UNIT * (reachable + abs(log_total)))
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
            spectrum = Spectrum.of(active)
            for place, tilted, n in tilted_parts:
                spectrum = spectrum.times(*_summed(place, tilted, active, length), n)
        spectrum = spectrum.turned(turns % length, length)
        active = spectrum.active
        self.log_total = math.fsum(logs)
        self.unsure = unsure
        angle = 2 * np.pi * active / length
        twice = np.where((active == 0) | (2 * active == length), 1.0, 2.0) / length
        self._frequency = active
        # z / (1 - z) - w / (1 - w) for z = exp(-tilt * step + i angle) and w = exp(-step) z,
        # written so that nothing cancels.
        log_z = -tilt * step + 1j * angle
        weight = -np.exp(log_z) * math.expm1(-step) / (np.expm1(log_z) * np.expm1(log_z - step))
        self._terms = twice * spectrum.values * weight
        every = 1 / -math.expm1(-tilt * step)
        # The last term covers weights, turns and the final sum.
        swing = twice * spectrum.swing * np.abs(weight) + 200 * UNIT * np.abs(self._terms)
        self._error = float(swing.sum()) + math.exp(NEGLIGIBLE) * every

    def loss_at(self, index: int) -> float:
        """Return the loss at a lattice index."""
        return self.origin + index * self.step

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

    def above(self, loss: float) -> float:
        """Return an upper bound on delta at a loss."""
        return self._between(self.delta_above, loss)

    def below(self, loss: float) -> float:
        """Return a lower bound on delta at a loss."""
        # The sum of losses from below may be this much too large.
        forgiven = self.times * FORGIVEN * self.step
        return self._between(self.delta_below, loss + forgiven) * (1 - 1e-12)

    def blur(self, loss: float) -> float:
        """Return by which share smoothing moves the bounds: there is none."""
        return 0.0

    def _between(self, bound: Callable[[int], float], loss: float) -> float:
        """Return a bound between lattice points, where the profile is linear in exp(loss)."""
        index = math.floor((loss - self.origin) / self.step)
        left, right = bound(index), bound(index + 1)
        into, step = loss - self.loss_at(index), self.step
        share = math.expm1(into) / math.expm1(step) if step < 700 else math.exp(into - step)
        return left + (right - left) * min(1.0, max(0.0, share * (1 - 1e-12)))

    def _wrapped(self, index: int) -> float:
        """Bound what losses a period away add to the sum."""
        at, period, away = self.loss_at(index), self.period, 0.6 * self.period
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


def _transformed(place: Floats, mass: Floats, length: int) -> tuple[npt.NDArray[Any], float]:
    """Return the discrete Fourier transform and a bound on the error of its coefficients.

    The mass at place 0 is transformed exactly, so that the error is that of the others.
    """
    from scipy import fft

    signal = np.bincount(place, mass, length)
    spike, signal[0] = signal[0], 0.0
    # [Hig02, Theorem 24.2], in the 2-norm, for every single coefficient.
    norm = math.sqrt(length * float(np.square(signal[np.unique(place)]).sum()))
    error = 10 * UNIT * math.log2(length) * norm
    return fft.rfft(signal) + spike, error + 8 * UNIT


def _summed(
    place: Floats, mass: Floats, active: npt.NDArray[np.int64], length: int
) -> tuple[npt.NDArray[Any], float]:
    """Return the transform at some frequencies term by term; masses sum to one."""
    turn = np.outer(active, place) % length
    found = np.exp(-2j * np.pi * turn / length) @ mass
    return found, 8 * UNIT * (8 + math.sqrt(place.size))


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
