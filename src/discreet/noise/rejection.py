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
from discreet.noise.source import SYSTEM, Source, bits, process_identity, words

__all__ = ["Shape", "RejectionSampler"]

Integers = npt.NDArray[np.int64]
Shape = Literal["laplace", "gaussian"]

_SLOTS: Final = 1 << 16
_CHUNK: Final = 1 << 15  # samples; keeps every intermediate array in the processor's cache
_POOL: Final = 1 << 10
_UNDECIDED: Final = np.iinfo(np.int64).min
_LARGEST: Final = np.iinfo(np.int64).max
_WIDEST_SHIFT: Final = 45  # beyond this, samples may not fit 64 bits
_TABLE_SLACK: Final = 2.0**-30
_TINY: Final = 2.0**-60


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
        self._pool: list[int] = []
        self._pool_identity: tuple[int, int] | None = None

    # The table ----------------------------------------------------------------------------------

    def _build_table(self) -> None:
        steepness = 14.0  # phi at the table's end; leaves the tails well under their one slot
        reach = steepness if self._shape == "laplace" else math.sqrt(2 * steepness)
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
        self._owner = np.zeros(_SLOTS, dtype=np.int16)
        self._owner[: self._tail_slot] = owner
        step = np.arange(self._tail_slot) - self._starts[owner]
        is_certain = step < certain[owner]
        values = bucket << min(self._shift, _WIDEST_SHIFT)
        self._table[: self._tail_slot][is_certain] = values[owner[is_certain]]

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
        rejected = self._fill(out, source)
        while rejected.size:
            again = np.empty(rejected.size, dtype=np.int64)
            still = self._fill(again, source)
            out[rejected] = again
            rejected = rejected[still]
        return out

    def _fill(self, out: Integers, source: Source) -> Integers:
        """Draw once for every place of ``out``; return the places whose point was rejected."""
        places, slots, lows = [], [], []
        for start in range(0, out.size, _CHUNK):
            part = out[start : start + _CHUNK]
            slot = words(source, part.size, "<u2")
            np.take(self._table, slot, out=part, mode="clip")
            undecided = np.flatnonzero(part == _UNDECIDED)
            places.append(undecided + start)
            slots.append(slot[undecided])
            if self._shift:
                low = self._low_bits(part.size, source)
                part += low
                lows.append(low[undecided])
        if not places:
            return np.zeros(0, dtype=np.int64)
        place = np.concatenate(places)
        low = np.concatenate(lows).astype(np.int64) if lows else np.zeros(place.size, np.int64)
        accepted, value = self._settle(np.concatenate(slots), low, source)
        out[place[accepted]] = value[accepted]
        return place[~accepted]

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
                return raised + centre - self.offset

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
        """Return which of the open slots' points lie under the curve, and their values."""
        owner = self._owner[slot]
        bucket = owner + np.int64(self._first_bucket)
        value = (bucket << self._shift) + low
        height = slot - self._starts[owner]
        fraction = words(source, slot.size, "<u8")
        offset = words(source, slot.size, "<u8") if self._smooth else np.zeros(1, np.uint64)
        distance = bucket + low * 2.0**-self._shift
        if self._smooth:
            distance += (offset * 2.0**-64 - 0.5) * 2.0**-self._shift
        y = height + fraction * 2.0**-64
        curve = self._top * np.exp(-self._phi(distance))
        gap = self._margin * (y + curve) + _TINY
        in_table = slot < self._tail_slot
        accepted = in_table & (y < curve - gap)
        unclear = in_table & ~accepted & ~(y > curve + gap)
        for i in np.flatnonzero(unclear):
            offset_i = int(offset[i]) if self._smooth else 0
            accepted[i] = self._is_below(
                int(value[i]), (int(height[i]) << 64) + int(fraction[i]), offset_i, 0, source
            )
        for i in np.flatnonzero(slot == self._tail_slot):
            sample = self._tail(source)
            if sample is not None:
                accepted[i] = True
                value[i] = max(-_LARGEST, min(_LARGEST, sample))
        return accepted, value

    def _draw_exactly(self, source: Source) -> int:
        """Return one sample by integer arithmetic alone."""
        while True:
            slot = bits(source, 16)
            if slot == self._tail_slot:
                sample = self._tail(source)
                if sample is not None:
                    return sample
            elif slot < self._tail_slot:
                owner = int(self._owner[slot])
                bucket = owner + self._first_bucket
                value = (bucket << self._shift) + bits(source, self._shift)
                height = slot - int(self._starts[owner])
                offset = bits(source, 64) if self._smooth else 0
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
        offset = bits(source, 64) if self._smooth else 0
        is_below = self._is_below(distance, bits(source, 64), offset, lower, source)
        return distance if is_below else None

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
