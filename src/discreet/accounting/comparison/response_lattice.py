"""The total loss of different randomized responses, on a lattice, never understated."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt

from discreet._rounding import above

__all__ = ["Lattice"]

Floats = npt.NDArray[np.float64]

_SPARSE = 500  # up to this many atoms, adding shifted copies is faster
_UNIT = 1.2e-16  # a sum or product of doubles is off by less than this share of its result


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lattice:
    """Masses at the losses step * (first + i), and the mass that lies above them all.

    The true masses are at most (1 + relative) times these. Mass below the lattice was lifted to its
    first cell, which can only raise a delta.
    """

    step: Fraction
    low: int
    high: int
    dust: float
    first: int
    masses: Floats
    above_all: float
    relative: float

    @classmethod
    def of(cls, parts: list[tuple[Fraction, int]], *, cells: int, spare: float) -> "Lattice":
        """Add up the losses of ``parts`` (epsilon, count), for deltas not far from ``spare``."""
        spread = math.sqrt(math.fsum(n * float(e) ** 2 for e, n in parts))
        mean = math.fsum(n * float(e) * math.tanh(float(e) / 2) for e, n in parts)
        # Hoeffding: the loss is beyond mean + reach with a chance below 1e-9 of spare. That only
        # picks the range: what in fact falls outside is measured and paid for.
        reach = spread * math.sqrt(2 * (21 - math.log(max(spare, 1e-320))))
        total = float(sum(e * n for e, n in parts))
        width = min(mean + reach, total) + min(reach, total)
        step = _best_step(parts, width / cells)
        low = -math.ceil(Fraction(min(reach, 2 * total)) / step)
        high = math.ceil(Fraction(min(mean + reach, 2 * total)) / step)
        law = cls(
            step=step,
            low=low,
            high=high,
            dust=1e-18 * spare,
            first=0,
            masses=np.ones(1),
            above_all=0.0,
            relative=0.0,
        )
        for epsilon, count in sorted(parts, reverse=True):
            law = law._plus(law._response(epsilon)._power(count))
        return law

    def _response(self, epsilon: Fraction) -> "Lattice":
        """Return a law that dominates one randomized response.

        It is the response at the multiple of the step below, or at the one above, as a visible coin
        falls. With the same chance of an untrue answer on average it has a larger delta at every
        epsilon, for that delta is convex in this chance (docs/proofs/composition_theorems.md).
        """
        lower = math.floor(epsilon / self.step)
        upper = math.ceil(epsilon / self.step)
        masses = np.zeros(2 * upper + 1)
        for size, other in {(lower, upper), (upper, lower)}:
            weight = _weight(size * self.step, other * self.step, epsilon)
            masses[upper + size] += weight / (1 + math.exp(-float(size * self.step)))
            masses[upper - size] += weight / (1 + math.exp(min(700.0, float(size * self.step))))
        return self._clipped(masses, -upper, above_all=0.0, relative=1e-14)

    def _power(self, count: int) -> "Lattice":
        """Return the law of ``count`` independent copies."""
        result, square = None, self
        while True:
            if count & 1:
                result = square if result is None else result._plus(square)
            count >>= 1
            if not count:
                assert result is not None
                return result
            square = square._plus(square)

    def _plus(self, other: "Lattice") -> "Lattice":
        """Return the law of the sum of two independent losses."""
        wide, terms = _convolve(self.masses, other.masses)
        return self._clipped(
            wide,
            self.first + other.first,
            above_all=self.above_all + other.above_all,
            relative=self.relative + other.relative + (terms + 2) * _UNIT,
        )

    def _clipped(self, wide: Floats, first: int, *, above_all: float, relative: float) -> "Lattice":
        """Lift what is below ``low`` and set aside what is above ``high``; dust counts as either.

        Without the dust no product falls below the normal floats, where it would be slow.
        """
        below, beyond = np.cumsum(wide), np.cumsum(wide[::-1])
        end = min(self.high - first + 1, len(wide) - int(np.searchsorted(beyond, self.dust)))
        end = max(1, end)
        lift = max(self.low - first, int(np.searchsorted(below, self.dust)))
        lift = max(0, min(lift, end - 1))
        masses = wide[lift:end].copy()
        masses[0] += wide[:lift].sum()
        return replace(
            self,
            first=first + lift,
            masses=masses,
            above_all=above_all + float(wide[end:].sum()),
            relative=relative + len(wide) * _UNIT,
        )

    def delta_upper(self, epsilon: float) -> float:
        """Return the mean of (1 - exp(epsilon - loss))+, rounded up."""
        cells = np.arange(self.first, self.first + len(self.masses))
        losses = cells * float(self.step)
        gap = losses - epsilon + 6e-16 * (np.abs(losses) + epsilon)
        value = float(np.sum(self.masses * -np.expm1(-np.maximum(gap, 0.0)))) + self.above_all
        # The constant is far more than what products below the normal floats can lose.
        return above(value + 1e-290, relative=1e-12 + 2 * self.relative)


def _convolve(one: Floats, two: Floats) -> tuple[Floats, int]:
    """Return the convolution and the number of terms in its longest sum.

    Directly, not by Fourier transform: sums of positive numbers keep their relative accuracy in the
    farthest tail, which is where deltas live. Both arrays begin with an atom.
    """
    few, many = sorted((one, two), key=np.count_nonzero)
    places = np.flatnonzero(few)
    wide = np.zeros(len(one) + len(two) - 1)
    if len(places) <= _SPARSE:
        for place in places:
            wide[place : place + len(many)] += few[place] * many
        return wide, len(places)
    # Equal parts have all their atoms on a coarser lattice.
    stride = int(np.gcd(np.gcd.reduce(places), np.gcd.reduce(np.flatnonzero(many))))
    few, many = few[::stride], many[::stride]
    wide[: stride * (len(few) + len(many) - 1) : stride] = np.convolve(few, many)
    return wide, min(len(few), len(many))


def _best_step(parts: list[tuple[Fraction, int]], step: float) -> Fraction:
    """Return a step between 0.4 ``step`` and ``step`` on whose lattice the parts nearly lie.

    A part between two multiples adds (above - epsilon)(epsilon - below) to the variance of the
    loss; the step that adds least is looked for among fractions of the weightiest parts.
    """
    epsilons = np.array([float(e) for e, _ in parts])
    counts = np.array([float(n) for _, n in parts])
    weightiest = np.argsort(-counts * epsilons**2)[:8]
    choices = [Fraction(step)]
    for i in weightiest:
        least = math.ceil(parts[i][0] / Fraction(step))
        most = min(math.floor(parts[i][0] / Fraction(0.4 * step)), least + 24)
        choices += [parts[i][0] / j for j in range(max(1, least), most + 1)]

    def added(choice: Fraction) -> float:
        inside = np.remainder(epsilons, float(choice))
        return float(np.sum(counts * inside * (float(choice) - inside)))

    return min(choices, key=added)


def _weight(size: Fraction, other: Fraction, epsilon: Fraction) -> float:
    """Return the chance of the response at ``size`` in the mix with ``other`` that makes epsilon.

    From 1/(1 + exp(x)) = (1 - tanh(x/2))/2 and the addition theorem of tanh, without cancellation.
    """
    if size == other:
        return 1.0
    s, e = float(size), float(epsilon)
    # sinh(|epsilon - other|/2) cosh(size/2) / (sinh(|size - other|/2) cosh(epsilon/2)), with the
    # exponentials taken out before they can overflow
    near = math.expm1(-float(abs(epsilon - other))) / math.expm1(-float(abs(size - other)))
    fade = math.exp(min(0.0, float(size - epsilon)))
    return fade * near * (1 + math.exp(-s)) / (1 + math.exp(-e))
