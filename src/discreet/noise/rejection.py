"""Draw exactly from exp(-phi): throw a uniform point under a staircase, keep it if under the curve.

The picture (the argument in full is in ``docs/proofs/rejection_sampling.md``)::

    height
      C |      ___
        |    _|#|#|_        #  slots wholly under the curve: accept at once
        |  _|?|#|#|?|_      ?  slots that the curve cuts: compare exactly
        |_|?|#|#|#|#|?|_
        +-----------------> bucket of 2**shift neighbouring integers

Sixteen random bits name one of 65,536 equal slots. Most slots lie below the curve over their whole
bucket, so one table look-up and a few low-order bits make a sample. A slot that the curve cuts
is decided by comparing a random height with C * exp(-phi(k)): first in doubles, and where these
cannot tell, with integer bounds of growing precision. One slot stands for both tails.
"""

import math
from fractions import Fraction
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from discreet.noise.enclosure import exp_bounds
from discreet.noise.source import SYSTEM, Source, bits, in_parts, process_identity, words

__all__ = ["Shape", "RejectionSampler"]

Integers = npt.NDArray[np.int64]
Shape = Literal["laplace", "gaussian"]

_SLOTS: Final = 1 << 16
_FEW: Final = 1 << 10  # samples; so few are drawn again one round after the other
_POOL: Final = 1 << 10
_UNDECIDED: Final = np.iinfo(np.int64).min
_LARGEST: Final = np.iinfo(np.int64).max
_WIDEST_SHIFT: Final = 45  # beyond this, samples may not fit 64 bits
_SHORT = 1 << 29  # one digit of Python's, and so are its sums with what is half as large
_TABLE_SLACK: Final = 2.0**-30
_NARROW: Final = 28  # a cell is at most 2**-28 of a bucket wide where the shift is that


@final
class RejectionSampler:
    """An exact sampler of integers, for one curve.

    ``smooth=False`` gives integers k with probability proportional to exp(-phi(k)).
    ``smooth=True`` gives a real number with density proportional to exp(-phi), rounded to the
    nearest integer. phi(x) is |x| / scale for ``"laplace"`` and x**2 / (2 scale**2) for
    ``"gaussian"``; ``one_sided`` keeps k >= 0 only. ``margin`` is how close to the curve a double
    may decide; infinity sends every undecided slot through integer arithmetic.

    >>> sampler = RejectionSampler("gaussian", Fraction(10))
    >>> sampler.draw(4, source=SYSTEM).dtype
    dtype('int64')
    """

    def __init__(
        self,
        shape: Shape,
        scale: Fraction,
        *,
        one_sided: bool = False,
        smooth: bool = False,
        margin: float = 2.0**-38,
    ) -> None:
        self._shape, self._scale = shape, scale
        self._one_sided, self._smooth, self._margin = one_sided, smooth, margin
        self._shift = max(0, (scale // 32).bit_length() - 1)
        bucket = 1 << self._shift
        # In bucket widths: at least 32 unless the scale itself is smaller. The floor keeps a
        # scale that no double can hold from dividing by zero; the curve is a single spike there.
        self._ratio = max(float(scale / bucket), 1e-150)
        self._piece = max(0, math.ceil(scale / bucket) - 1).bit_length()
        self._build_table()
        # Added to a sample it makes a positive integer of always the same number of digits, but
        # for a chance below exp(-1000).
        self.offset: Final = 1 << (63 if self._shift <= _WIDEST_SHIFT else self._shift + 20)
        self._back: Final = self.offset + _SHORT
        self._pool: list[int] = []
        self._pool_identity: tuple[int, int] | None = None

    # The table ----------------------------------------------------------------------------------

    def _build_table(self) -> None:
        steepness = 14.0  # phi at the table's end; leaves the tails well under their one slot
        reach = steepness if self._shape == "laplace" else math.sqrt(2 * steepness)
        # By how much a narrow cell's curve differs from that at its middle, and rounding.
        self._doubt = max(self._margin, 2.0**-self._shift if self._smooth else 0.0)
        self._buckets = math.ceil(reach * self._ratio) + 1
        first = 0 if self._one_sided else -self._buckets
        bucket = np.arange(first, self._buckets, dtype=np.int64)
        near, far = self._extent(bucket)
        tallest, lowest = np.exp(-self._phi(near)), np.exp(-self._phi(far))
        room = _SLOTS - 1 - 2 * bucket.size
        self._top = int(room / (tallest.sum() * (1 + 2 * _TABLE_SLACK)))
        # Rounded outwards: a slot too many is only rejected more often, a slot wrongly called
        # certain would bend the distribution.
        slots = np.ceil(self._top * tallest * (1 + _TABLE_SLACK) + _TABLE_SLACK).astype(np.int64)
        certain = np.floor(self._top * lowest * (1 - _TABLE_SLACK) - _TABLE_SLACK)
        ends = np.cumsum(slots)
        self._first_bucket = first
        self._starts = ends - slots
        self._tail_slot = int(ends[-1])
        tail_height = 2.0 ** -(self._piece + (1 if self._one_sided else 2))
        inner_end = np.array([self._buckets - 1.0])
        is_covered = self._top * np.exp(-self._phi(inner_end))[0] < tail_height
        if (
            self._tail_slot >= _SLOTS or not is_covered
        ):  # proved impossible; better loud than biased
            raise AssertionError(f"no sampler for {self._shape} of scale {self._scale}")

        self._table = np.full(_SLOTS, _UNDECIDED)
        owner = np.repeat(np.arange(bucket.size, dtype=np.int16), slots)
        step = np.arange(self._tail_slot) - self._starts[owner]
        is_certain = step < certain[owner]
        self._bucket = np.zeros(_SLOTS, dtype=np.int16)
        self._bucket[: self._tail_slot] = bucket[owner]
        # Slots that stand for nothing are higher than any curve, and so rejected.
        self._height = np.full(_SLOTS, _SLOTS - 1, dtype=np.uint16)
        self._height[: self._tail_slot] = step
        values = bucket << min(self._shift, _WIDEST_SHIFT)
        self._table[: self._tail_slot][is_certain] = values[owner[is_certain]]
        # Slots that are not under the curve, and a little more so that it mostly suffices.
        under = self._top * np.exp(-self._phi((near + far) / 2)).sum()
        self._spare = 1.1 * (_SLOTS / under - 1) + 0.005

    def _extent(self, bucket: Integers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the nearest and farthest distance from zero within each bucket, in buckets."""
        half_cell = 0.5 if self._smooth else 0.0
        width = 2.0**-self._shift
        low = bucket - half_cell * width
        high = bucket + 1.0 - (1.0 - half_cell) * width
        near = np.maximum(np.maximum(low, -high), 0.0)
        return near, np.maximum(np.abs(low), np.abs(high))

    def _phi(self, distance: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return phi of distances given in buckets, to about 2**-50 of its value."""
        relative: npt.NDArray[Any] = np.abs(distance) / self._ratio
        return relative if self._shape == "laplace" else relative * relative / 2

    def _phi_exact(self, x: Fraction) -> Fraction:
        relative = abs(x) / self._scale
        return relative if self._shape == "laplace" else relative * relative / 2

    # Drawing ------------------------------------------------------------------------------------

    def draw(self, count: int, *, source: Source) -> npt.NDArray[Any]:
        """Return ``count`` samples: int64, or Python integers where 64 bits could not hold them.

        >>> RejectionSampler("laplace", Fraction(2**80)).draw(2, source=SYSTEM).dtype
        dtype('O')
        """
        if self._shift > _WIDEST_SHIFT:
            samples = np.empty(count, dtype=object)
            samples[:] = [self._draw_exactly(source) for _ in range(count)]
            return samples
        out = np.empty(count, dtype=np.int64)
        in_parts(lambda part: self._fill(out[part], source), count, source=source)
        return out

    def _fill(self, out: Integers, source: Source) -> None:
        """Draw for every place of ``out``.

        Some more are drawn than there are places, and rejected ones replaced from there. That
        depends on how many were rejected and not on what the others gave, so it bends nothing.
        """
        size = out.size
        spare = int(size * self._spare) if size > _FEW else 0
        slot = words(source, size + spare, "<u2")
        tries = np.take(self._table, slot, mode="clip")
        undecided = np.flatnonzero(tries == _UNDECIDED)
        low: Integers = np.zeros(undecided.size, dtype=np.int64)
        if self._shift:
            lows = self._low_bits(tries.size, source)
            tries += lows
            low = lows[undecided].astype(np.int64)
        accepted, value = self._settle(slot[undecided], low, source)
        tries[undecided] = value
        out[:] = tries[:size]
        rejected = undecided[~accepted]
        places = rejected[: np.searchsorted(rejected, size)]
        is_good = np.ones(spare, dtype=np.bool_)
        is_good[rejected[places.size :] - size] = False
        good = np.flatnonzero(is_good)[: places.size] + size
        out[places[: good.size]] = tries[good]
        if good.size < places.size:
            again = np.empty(places.size - good.size, dtype=np.int64)
            self._fill(again, source)
            out[places[good.size :]] = again

    def around(self, centre: int, *, source: Source) -> int:
        """Return ``centre`` plus one sample; samples for the secure source are made in batches.

        The batch is dropped in a forked child. It also hides how long any one sample took.

        Claim: while ``abs(centre) < 2**60``, the integers on the way have the same number of digits
        whatever centre and sample are, so Python's additions do the same work; only the last one
        depends on the numbers, and on nothing but their sum.

        >>> RejectionSampler("laplace", Fraction(1, 999)).around(7, source=SYSTEM)
        7
        """
        if source is not SYSTEM:
            raised = int(self.draw(1, source=source)[0]) + self.offset
            return raised + centre - self.offset
        while True:
            if self._pool_identity != process_identity():
                self._pool = []
                self._pool_identity = process_identity()
            try:
                raised = self._pool.pop()  # atomic, so no two threads get the same sample
            except IndexError:
                self._pool = self._raised(_POOL, source)
            else:
                # Python adds what is negative, zero or long by other ways than short positive
                # numbers, and which way it went shows in nanoseconds.
                return raised + (centre + _SHORT) - self._back

    def _raised(self, count: int, source: Source) -> list[int]:
        samples = self.draw(count, source=source)
        if samples.dtype == object:
            return [sample + self.offset for sample in samples.tolist()]
        raised: list[int] = (samples.view(np.uint64) ^ np.uint64(self.offset)).tolist()
        return raised

    def _low_bits(self, count: int, source: Source) -> npt.NDArray[Any]:
        size = next(width for width in (8, 16, 32, 64) if width >= self._shift)
        low = words(source, count, f"<u{size // 8}")
        if size > self._shift:
            low = low & low.dtype.type((1 << self._shift) - 1)
        # Adding unsigned 64-bit words to int64 would silently go through doubles and lose bits.
        return low.view(np.int64) if size == 64 else low

    # Settling what the table left open ----------------------------------------------------------

    def _settle(
        self, slot: npt.NDArray[np.uint16], low: Integers, source: Source
    ) -> tuple[npt.NDArray[np.bool_], Integers]:
        """Return which of the open slots' points lie under the curve, and their values.

        Of the height 32 bits are drawn, and of the place within a cell none where cells are
        narrow; the rest is drawn where these leave it open.
        """
        bucket = self._bucket[slot].astype(np.int64)
        value = (bucket << self._shift) + low
        y = words(source, slot.size, "<u4") * 2.0**-32
        y += self._height[slot]
        distance = low * 2.0**-self._shift
        distance += bucket
        offset = None
        if self._smooth and self._shift < _NARROW:
            offset = words(source, slot.size, "<u8")
            distance += (offset * 2.0**-64 - 0.5) * 2.0**-self._shift
        curve = self._curve(distance)
        gap = y + curve
        gap *= self._doubt if offset is None else self._margin
        gap += 2.0**-31
        curve -= y
        accepted = curve > gap
        for i in np.flatnonzero(np.abs(curve) <= gap):
            height, rest = divmod(float(y[i]), 1.0)
            fraction = (int(rest * 2.0**32) << 32) + bits(source, 32)
            accepted[i] = self._is_below(
                int(value[i]),
                (int(height) << 64) + fraction,
                int(offset[i]) if offset is not None else self._offset(source),
                0,
                source,
            )
        for i in np.flatnonzero(slot == self._tail_slot):
            sample = self._tail(source)
            accepted[i] = sample is not None
            value[i] = max(-_LARGEST, min(_LARGEST, sample or 0))
        return accepted, value

    def _curve(self, distance: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return top * exp(-phi) of distances in buckets, to a relative 2**-40."""
        curve = self._phi(distance)
        np.negative(curve, out=curve)
        np.exp(curve, out=curve)
        curve *= self._top
        return curve

    def _offset(self, source: Source) -> int:
        return bits(source, 64) if self._smooth else 0

    def _draw_exactly(self, source: Source) -> int:
        """Return one sample by integer arithmetic alone."""
        while True:
            slot = bits(source, 16)
            if slot == self._tail_slot:
                sample = self._tail(source)
                if sample is not None:
                    return sample
            elif slot < self._tail_slot:
                bucket, height = int(self._bucket[slot]), int(self._height[slot])
                value = (bucket << self._shift) + bits(source, self._shift)
                offset = self._offset(source)
                y = (height << 64) + bits(source, 64)
                is_certain = self._table[slot] != _UNDECIDED
                if is_certain or self._is_below(value, y, offset, 0, source):
                    return value

    def _tail(self, source: Source) -> int | None:
        """Try for a sample beyond the table: piece t, of width ``2**piece`` buckets, with 2**-t."""
        piece = 1
        while bits(source, 1):
            piece += 1
        width = self._piece + self._shift
        distance = ((piece - 1) << width) + bits(source, width) + (self._buckets << self._shift)
        lower = piece + self._piece
        if not self._one_sided:
            lower += 1
            if bits(source, 1):
                distance = -1 - distance
        offset, y = self._offset(source), bits(source, 64)
        at = distance / (1 << self._shift)  # also where no double holds either
        if self._smooth:
            at += math.ldexp(offset * 2.0**-64 - 0.5, -self._shift)
        curve = float(self._curve(np.array([at]))[0]) * 2.0**lower
        height = y * 2.0**-64
        if abs(curve - height) > self._margin * (curve + height) + 2.0**-60:
            return distance if height < curve else None
        return distance if self._is_below(distance, y, offset, lower, source) else None

    def _is_below(self, k: int, y: int, offset: int, lower: int, source: Source) -> bool:
        """Decide (y + rest) * 2**-(64 + lower) < top * exp(-phi), reading more bits as needed.

        ``rest`` in [0, 1) is the part of the random height not drawn yet. Where the sampler is
        smooth, the point is k - 1/2 + (offset + rest) * 2**-64.
        """
        known = 64
        while True:
            near = far = Fraction(abs(k))
            if self._smooth:
                left = k - Fraction(1, 2) + Fraction(offset, 1 << known)
                right = left + Fraction(1, 1 << known)
                far = max(abs(left), abs(right))
                near = max(left, -right, Fraction(0))
            surely = exp_bounds(self._phi_exact(far), known + 64)[0]
            at_most = exp_bounds(self._phi_exact(near), known + 64)[1]
            if (y + 1) << 64 <= (self._top * surely) << lower:
                return True
            if y << 64 >= (self._top * at_most) << lower:
                return False
            y = (y << 64) + bits(source, 64)
            offset = (offset << 64) + bits(source, 64) if self._smooth else 0
            known += 64
