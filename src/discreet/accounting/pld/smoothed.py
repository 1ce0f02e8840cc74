"""Compose losses wherever they lie, and smooth once, at the end, by trigonometric polynomials.

No lattice is needed, so that parts of any size compose without being rounded to each other's, and
only as many frequencies as one smoothing asks for. ``docs/proofs/privacy_loss_distributions.md``
has the argument.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.accounting.pairs.pairs import Floats
from discreet.accounting.pld.discretise import Atoms
from discreet.accounting.pld.spectrum import NEGLIGIBLE, UNIT, Spectrum

__all__ = ["Smoothed", "polynomials"]

MASS_ERROR = 4e-13  # relative error of one mass, tilt and normalisation included
_GROUP = 8  # losses
_WORTH = 64  # times, losses and frequencies for which looking at groups first pays
_WORK = 1 << 28  # losses times frequencies, from half of which on the smoothing becomes coarser
_LEAST = 63
_ALONE = (1 << 16) - 1  # products of numbers that OpenBLAS does in one thread
_WORTH_ADDING = 8  # numbers in a row, for which a part's sum pays for being added
_PULLS = np.array([0.03, 0.1, 0.3, 1.0, 2.0, 4.0, 6.0, 9.0, 13.0])


@final
class Smoothed:
    """The sum of independent losses, seen at losses near a point.

    As in :class:`~discreet.accounting.pld.convolve.Composed` the masses are tilted, and the sum is
    seen modulo ``period``. ``order`` is that of the smoothing: the more, the closer the bounds.
    """

    def __init__(
        self, parts: Sequence[tuple[Atoms, int]], *, tilt: float, period: float, order: int
    ) -> None:
        self.tilt, self.period = tilt, period
        self._tilted = [(_tilt(atoms, tilt), n) for atoms, n in parts]
        self.log_total = math.fsum(n * part.log_total for part, n in self._tilted)
        self.unsure = math.fsum(n * part.unsure for part, n in self._tilted)
        self.centre = math.fsum(n * part.centre for part, n in self._tilted)
        frequency = 2 * math.pi / period
        spectrum = Spectrum.of(np.arange(2 * order - 1))
        # The widest first: after it fewer frequencies are left for the others.
        ordered = sorted(self._tilted, key=lambda item: -item[1] * item[0].variance)
        rest, work = sum(part.weight.size for part, _ in ordered), 0
        for part, n in ordered:
            spectrum = _without_negligible(spectrum, part, n, frequency)
            while _is_too_much(rest, spectrum, work) and order > _LEAST:
                # Coarser, but as certain: the frequencies left are those of the lower order.
                order //= 2
                spectrum = spectrum.where(spectrum.active < 2 * order - 1)
            found, error = _characteristic(part, frequency, spectrum.active)
            work += part.weight.size * _count(spectrum)
            rest -= part.weight.size
            spectrum = spectrum.times(found, error, n)
        at = spectrum.active
        self._frequency = frequency * at
        curves, spike, self._slack = polynomials(at, tilt=tilt, period=period, order=order)
        twice = np.where(at == 0, 1.0, 2.0)
        value = twice * spectrum.values
        # The last term covers the polynomials, the turns and the final sum.
        swing = twice * spectrum.swing + np.abs(value) * UNIT * (200 + 40 * at)
        every = 1 / tilt + 2 / (period * tilt**2) + period  # more than the sum of the coefficients
        missing = math.exp(NEGLIGIBLE) * every
        rounding = 16 * UNIT / period * (np.abs(value) / (tilt**2 + self._frequency**2)).sum()
        self._error = float(np.abs(curves) @ swing + rounding) + missing
        self._spike_error = float(np.abs(spike) @ swing) + missing
        self._terms, self._spikes = curves * value, spike * value

    def _mean(self, terms: npt.NDArray[Any], loss: float) -> float:
        return float((terms * np.exp(-1j * self._frequency * (loss - self.centre))).real.sum())

    def above(self, loss: float) -> float:
        """Return an upper bound on delta at a loss.

        Losses a whole period away are counted as well, which can only raise the sum. Further away
        the largest value of what is averaged is a bound, which is Chernoff's.
        """
        scale = self.log_total - self.tilt * loss + self.unsure
        value = (1 + 1e-12) / (1 + self.tilt)
        if abs(loss - self.centre) <= self.period:
            value = min(value, self._mean(self._terms, loss) + self._slack + self._error)
        return min(1.0, math.exp(min(scale, 700.0)) * max(value, 0.0))

    def below(self, loss: float) -> float:
        """Return a lower bound on delta at a loss."""
        if abs(loss - self.centre) > self.period:
            return 0.0
        scale = self.log_total - self.tilt * loss - self.unsure
        value = self._mean(self._terms, loss) - self._mean(self._spikes, loss)
        value -= self._slack + self._error + self._spike_error + self._wrapped(loss)
        return math.exp(min(scale, 700.0)) * max(value, 0.0)

    def blur(self, loss: float) -> float:
        """Return roughly by which share smoothing moves the lower bound, the upper one by less."""
        moved = self._slack + self._mean(self._spikes, loss)
        return moved / max(self._mean(self._terms, loss), 1e-300)

    def _wrapped(self, loss: float) -> float:
        """Bound what losses a period away add to the sum."""
        away = 0.6 * self.period
        lower = self._tail(loss - away, sign=-1)
        upper = self._tail(loss + self.period, sign=1)
        inside = math.exp(-self.tilt * (self.period - away))
        return (lower + upper + inside) / -math.expm1(-self.tilt * self.period)

    def _tail(self, loss: float, *, sign: int) -> float:
        """Bound the tilted probability of being beyond ``loss`` by Chernoff's inequality."""
        moved, pull = self._moved[sign]
        return math.exp(min(0.0, float((moved - pull * (loss - self.centre)).min())))

    @cached_property
    def _moved(self) -> dict[int, tuple[Floats, Floats]]:
        """Log-moments about the centre at some pulls, for Chernoff's inequality."""
        spread = math.sqrt(math.fsum(n * part.variance for part, n in self._tilted)) or 1.0
        found = {}
        for sign in (-1, 1):
            pull = sign * _PULLS / spread
            logs = np.zeros(pull.size)
            for part, n in self._tilted:
                exponent = pull[:, None] * part.offset + part.log_weight
                top = exponent.max(axis=1)
                log = top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))
                logs += n * (log + pull * pull * part.spread / 2 + MASS_ERROR)
            found[sign] = logs, pull
        return found


class _Tilted(NamedTuple):
    """Masses after tilting, that sum to one, at offsets from their mean."""

    offset: Floats
    weight: Floats
    log_weight: Floats
    spread: float
    centre: float
    variance: float
    distance: float
    log_total: float
    unsure: float


def _tilt(atoms: Atoms, tilt: float) -> _Tilted:
    used = atoms.mass > 0
    loss = atoms.loss[used]
    exponent = np.log(atoms.mass[used]) + tilt * loss
    top = float(exponent.max())
    log_total = top + math.log(float(np.exp(exponent - top).sum()))
    log_weight = exponent - log_total
    weight = np.exp(log_weight)
    centre = float(weight @ loss)
    offset = loss - centre
    # Tilting a normal law moves its mean, and nothing else.
    log_total += tilt * tilt * atoms.spread / 2
    moved = centre + tilt * atoms.spread
    reachable = abs(tilt) * max(float(np.abs(loss).max()), abs(moved))
    return _Tilted(
        offset,
        weight,
        log_weight,
        atoms.spread,
        moved,
        float(weight @ (offset * offset)) + atoms.spread,
        float(weight @ np.abs(offset)),
        log_total,
        MASS_ERROR + 8 * UNIT * (reachable + abs(log_total)),
    )


def _count(spectrum: Spectrum) -> int:
    """Return how many frequencies there are up to the highest."""
    return int(spectrum.active[-1]) + 1 if spectrum.active.size else 1


def _is_too_much(rest: int, spectrum: Spectrum, work: int) -> bool:
    """Return whether what is left is too much, even if an eighth of the frequencies will matter."""
    return work > _WORK // 2 and rest * _count(spectrum) > 8 * (_WORK - work)


def _without_negligible(spectrum: Spectrum, part: _Tilted, n: int, frequency: float) -> Spectrum:
    """Leave out frequencies of which a look at groups of losses shows that they are negligible.

    Moving the losses of a group to their mean moves the transform by at most half the variance
    inside the group times the square of the frequency.
    """
    if n < _WORTH or part.weight.size < _WORTH or spectrum.active.size < _WORTH:
        return spectrum
    starts = np.arange(0, part.weight.size, _GROUP)
    weight = np.add.reduceat(part.weight, starts)
    mean = np.add.reduceat(part.weight * part.offset, starts) / np.maximum(weight, 1e-300)
    inside = float(part.weight @ (part.offset - np.repeat(mean, _GROUP)[: part.weight.size]) ** 2)
    rough = part._replace(offset=mean, weight=weight)
    found, error = _characteristic(rough, frequency, spectrum.active)
    most = (
        np.abs(found) + 2 * error + 0.5 * inside * (1 + 1e-9) * (frequency * spectrum.active) ** 2
    )
    return spectrum.where(spectrum.most + n * np.log(most) > NEGLIGIBLE)


def _characteristic(
    part: _Tilted, frequency: float, at: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], Floats]:
    """Return the means of exp(i k frequency offset) for k in ``at``, and bounds on their errors.

    Each power is a product of two, so that few exponentials are taken. One is taken away from all,
    so that the errors are relative to how far they turn.
    """
    count = int(at[-1]) + 1 if at.size else 1
    side = math.isqrt(count - 1) + 1
    half = 0.5 * frequency * part.offset
    sine = np.sin(half)
    turn = np.empty(half.size, dtype=np.complex128)  # 2i sin(half) exp(i half)
    turn.real, turn.imag = -2 * sine * sine, 2 * sine * np.cos(half)
    low = _powers(turn, side)
    high = _powers(_product(low[-1], turn), -(-count // side))
    weighted = high * part.weight
    found = _multiplied(weighted, low.T)
    found += weighted.sum(axis=1)[:, None] + (low * part.weight).sum(axis=1)
    # Each product and sum of turns errs by some units of how far they go, as does the mean.
    units = 6 * part.weight.size + 16 * math.log2(count) + 200
    error = UNIT * units * part.distance * frequency * at
    if not part.spread:
        return 1 + found.ravel()[at], error
    fade = part.spread / 2 * (frequency * at) ** 2
    error += UNIT * (16 + 8 * fade)
    return (1 + found.ravel()[at]) * np.exp(-fade), error * np.exp(-fade) + 1e-300


def _multiplied(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the product of two matrices, by parts where they are small.

    OpenBLAS shares larger products among threads that go on spinning afterwards: on a busy machine
    that takes ten times as long as the work itself.
    """
    step = _ALONE // (one.shape[0] * other.shape[1])
    if step < _WORTH_ADDING:
        whole: npt.NDArray[Any] = one @ other
        return whole
    out = np.zeros((one.shape[0], other.shape[1]), dtype=np.complex128)
    part = np.empty_like(out)
    for start in range(0, one.shape[1], step):
        end = start + step
        out += np.matmul(one[:, start:end], other[start:end], out=part)
    return out


def _product(
    one: npt.NDArray[Any], other: npt.NDArray[Any], out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Return (1 + one) (1 + other) - 1."""
    found: npt.NDArray[Any] = np.multiply(one, other, out=out)
    found += one
    found += other
    return found


def _powers(turn: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return the powers of 1 + each number, less 1, from the zeroth on."""
    out = np.empty((count, turn.size), dtype=np.complex128)
    out[0] = 0.0
    filled, last = 1, turn
    while filled < count:
        more = min(filled, count - filled)
        _product(out[:more], last, out[filled : filled + more])
        filled += more
        last = _product(last, last)
    return out


def polynomials(
    at: npt.NDArray[np.int64], *, tilt: float, period: float, order: int
) -> tuple[npt.NDArray[Any], Floats, float]:
    """Return Fourier coefficients of a curve and of a spike, and a slack.

    With g(x) = exp(-tilt x) (1 - exp(-x)) for x > 0 and 0 elsewhere, continued periodically,
    curve + slack is nowhere below g, and curve - spike - slack nowhere above.
    """
    base = 2 * math.pi / period
    t = base * at
    line = tilt + 1j * t
    curve = 1 / (period * line * (line + 1))
    variance = 6 / (2 * order**2 + 1) / base**2
    with np.errstate(divide="ignore", invalid="ignore"):
        rounded = _fall(at, order) / (period * t * t)
    curve += np.where(at == 0, variance / (2 * period), rounded)
    last = 2 * order - 2
    # The coefficients beyond the last one, in absolute value, and what the variance is more.
    beyond = (2 * tilt + 1) / (base**3 * last**2) + 2 * tilt * (tilt + 1) / (3 * base**4 * last**3)
    more = 1.4675 * 9 / (4 * order**3 + 2 * order) / (2 * base**2)
    size = 2 * order - 1
    spike = 2 / (order * size) * (1 - at / size) * np.cos(at * (math.pi / (2 * size))) / base
    return curve, spike, (beyond + more) / period * (1 + 1e-12)


def _fall(at: npt.NDArray[np.int64], order: int) -> Floats:
    """Return 1 less the Fourier coefficients of (sin(order x / 2) / sin(x / 2))^4, scaled to 1."""
    k, m = at.astype(float), float(order)
    whole, rest = 4 * m**3 + 2 * m, 2 * m - k
    early = (6 * m * k**2 - 3 * k**3 + 3 * k) / whole
    fall: Floats = np.where(at <= order, early, 1 - (rest**3 - rest) / whole)
    return fall
