"""Real values on a declared power-of-two grid, so that no float ever meets a float sample.

A value is rounded to the nearest multiple of the spacing, halves upwards. Rounding halves to even,
the processor's habit, would take 0.5 to 0 and 1.5 to 2 and so double a sensitivity of one step;
rounding upwards moves two values that differ by d steps at most ceil(d) steps apart.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, positive, show
from discreet.errors import ParameterError

__all__ = ["Grid"]

_LIMB = 40  # bits of the low limb in which wide sums are held
_MASK = (1 << _LIMB) - 1
_FARTHEST = 2.0**100  # steps; a value beyond is clamped, which adds no sensitivity
_TO_HIGH, _TO_WHOLE = 1.5 * 2.0**102, 1.5 * 2.0**52
_FLOAT_BASE = int(_TO_HIGH) + int(_TO_WHOLE)
# Ones and zeros by turns, and not a power of two: around that all digits change between -1 and 0,
# and whatever is compared later on stops at another one.
_INTEGER_BASE, _MANY_DIGITS = (1 << 106) // 3, 1 << 90
_SHORT = 1 << 29  # one digit of Python's, and so are its sums with what is half as large
_CHUNK = 1 << 15  # entries; keeps the intermediate arrays in the processor's cache


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """All multiples of ``2**exponent``.

    >>> Grid.of(0.25), Grid.below(Fraction(3), bits=1)
    (Grid(exponent=-2), Grid(exponent=0))
    """

    exponent: int

    @classmethod
    def of(cls, spacing: Number) -> Self:
        """Return the grid with this spacing, which must be a power of two.

        >>> Grid.of(0.1)
        Traceback (most recent call last):
            ...
        discreet.errors.ParameterError: grid must be a power of two such as 2**-20, got 0.1.
        """
        number = positive(spacing, name="grid")
        top, bottom = number.numerator, number.denominator
        if top & (top - 1) or bottom & (bottom - 1):
            raise ParameterError(
                f"grid must be a power of two such as 2**-20, got {show(spacing)}.",
                parameter="grid",
            )
        return cls(top.bit_length() - bottom.bit_length())._checked()

    @classmethod
    def below(cls, scale: Fraction, *, bits: int) -> Self:
        """Return the coarsest grid at least ``2**bits`` times finer than ``scale``."""
        ratio = scale / (1 << bits)
        exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        if Fraction(2) ** exponent > ratio:
            exponent -= 1
        return cls(exponent)._checked()

    def _checked(self) -> Self:
        if not -900 <= self.exponent <= 900:
            raise ParameterError(
                "grid must lie between 2**-900 and 2**900: doubles end near there. "
                "Rescale the values and the noise to ordinary magnitudes.",
                parameter="grid",
            )
        return self

    @property
    def spacing(self) -> Fraction:
        """The distance between neighbouring points."""
        return Fraction(2) ** self.exponent

    def steps(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the nearest multiples as integers, saturating at 2**62 steps.

        >>> Grid(0).steps(np.array([0.5, 1.5, -0.5, 0.49999999999999994]))
        array([1, 2, 0, 0])
        """
        flat = np.ascontiguousarray(values).reshape(-1)
        out = np.empty(flat.size, dtype=np.int64)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            out[start : start + _CHUNK] = (
                self._integer_steps(part) if part.dtype == np.int64 else self._float_steps(part)
            )
        return out.reshape(values.shape)

    def _float_steps(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        with np.errstate(over="ignore"):
            x = values * 2.0**-self.exponent
        return _half_up(np.clip(x, -(2.0**62), 2.0**62))

    def _integer_steps(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        high, low = self._integer_limbs(values)
        steps = (high << _LIMB) + low
        # High limbs beyond these ends have wrapped: both limbs stop at the end together.
        steps = np.where(high >= 1 << 22, 1 << 62, steps)
        return np.where(high < -(1 << 22), -(1 << 62), steps)

    def add(
        self, values: npt.NDArray[Any], noise: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Return round(values) + noise steps as doubles: one conversion, after the exact sum.

        Values may be doubles or int64.

        Why: rounded values are whole doubles, and so is noise up to 2**53, so adding them rounds
        the exact sum once, as IEEE 754 has it. Wider noise, and integers, are added in two limbs,
        high * 2**40 + low with 0 <= low < 2**40. That form is unique, so whatever is computed
        from it depends on the exact sum alone.

        >>> Grid(-3).add(np.array([1.0, 2.0**60]), np.array([1, -1]))
        array([1.1250000e+00, 1.1529215e+18])
        """
        if values.dtype == np.int64 or noise.size == 0 or not _is_narrow(noise):
            return self._add_in_limbs(values, noise)
        total = _half_up(self._scaled(values))
        total += noise.astype(np.float64)
        total *= 2.0**self.exponent
        return total

    def _scaled(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return values in steps; those too far out are clamped, which adds no sensitivity."""
        with np.errstate(over="ignore"):
            x = values * 2.0**-self.exponent
        return np.clip(x, -_FARTHEST, _FARTHEST, out=x)

    def _add_in_limbs(
        self, values: npt.NDArray[Any], noise: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        total, low = self._limbs(values)
        low += noise & _MASK
        total += noise >> _LIMB
        total += low >> _LIMB
        low &= _MASK
        return (total.astype(np.float64) * 2.0**_LIMB + low) * 2.0**self.exponent

    def _limbs(
        self, values: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the nearest multiples, halves up, as high * 2**40 + low, 0 <= low <= 2**40.

        Integers too far out are clamped, too.
        """
        if values.dtype == np.int64:
            return self._integer_limbs(values)
        x = self._scaled(values)
        high = np.floor(x * 2.0**-_LIMB)
        low = _half_up(x - high * 2.0**_LIMB)
        return high.astype(np.int64), low.astype(np.int64)

    def _integer_limbs(
        self, values: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Do the same for integers by shifting: doubles would round them beyond 2**53."""
        if self.exponent > 63:  # every int64 is less than half a step, or just that: rounded up
            return np.zeros_like(values), np.zeros_like(values)
        if self.exponent > 0:  # a step is worth several units: round halves up
            coarse = self.exponent
            whole = (values >> coarse) + ((values >> (coarse - 1)) & 1)
            return whole >> _LIMB, whole & _MASK
        fine = -self.exponent
        if fine <= _LIMB:
            return values >> (_LIMB - fine), (values << fine) & _MASK
        farthest = 1 << max(0, 62 - (fine - _LIMB))
        return np.clip(values, -farthest, farthest) << min(fine - _LIMB, 62), np.zeros_like(values)

    def raised(self, value: float) -> tuple[int, int]:
        """Return the nearest multiple of one int or float, raised, and by how much it was raised.

        Claim: for floats, and for integers up to 2**90 in size, the integers on the way have the
        same number of digits whatever the value is, so the same work is done.

        Why: a large constant is added before anything else. An integer then keeps its width when
        it is shifted. A float, clamped to 2**100 steps, is split without error into a multiple of
        2**50 steps and a rest of at most 2**49, since adding 1.5 * 2**102 steps rounds to such
        multiples (all doubles between 2**102 and 2**103 steps are), and likewise the rest into
        whole steps and at most half a one. The constants are still on them when they are made
        integers.

        >>> steps, base = Grid(-1).raised(0.25)
        >>> steps - base, (steps - base).bit_length() < steps.bit_length() == 103
        (1, True)
        """
        if isinstance(value, int):
            return self._raised_integer(value)
        step = 2.0**self.exponent
        per_unit = 1.0 / step
        far, to_high, to_whole = _FARTHEST * step, _TO_HIGH * step, _TO_WHOLE * step
        x = value if -far <= value <= far else math.copysign(far, value)
        high = x + to_high
        low = x - (high - to_high)
        whole = low + to_whole
        # Doubles round halves to even: one that was rounded down goes up instead.
        is_half = low - (whole - to_whole) >= 0.5 * step
        # Some doubles take longer than others: in divisions, in int() of 2**63 or more, and those
        # below 2**-1022 in products. So there is none of these.
        high *= 2.0**-50 * per_unit
        return (int(high) << 50) + int(whole * per_unit) + is_half, _FLOAT_BASE

    def _raised_integer(self, value: int) -> tuple[int, int]:
        fine, coarse = (-self.exponent, 0) if self.exponent <= 0 else (0, self.exponent)
        if -_MANY_DIGITS < value < _MANY_DIGITS:
            # Python adds what is negative, zero or long by other ways than short positive numbers.
            positive = value + _SHORT
            halves = (positive + ((_INTEGER_BASE << coarse) - _SHORT)) << fine + 1 >> coarse
            return halves + 1 >> 1, _INTEGER_BASE << fine
        # Beyond 2**90 its digits show. Clamped to leave room for noise in the doubles.
        farthest = 1 << (1000 - coarse)
        steps = (value << fine + 1 >> coarse) + 1 >> 1
        return max(-farthest, min(farthest, steps)), 0

    def lowered(self, steps: int, base: int) -> float:
        """Return the double nearest to ``steps - base`` multiples of the spacing.

        >>> Grid(-1).lowered(*Grid(-1).raised(0.5))
        0.5
        """
        return math.ldexp(steps - base, self.exponent)


def _is_narrow(noise: npt.NDArray[np.int64]) -> bool:
    return int(noise.min()) >= -(1 << 53) and int(noise.max()) <= 1 << 53


def _half_up(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round to whole numbers, halves up. Adding 0.5 first would itself round beyond 2**52."""
    whole = np.floor(x)
    whole += x - whole >= 0.5  # not twice the rest, rounded down: just below 0 it is rounded to 1
    return whole
