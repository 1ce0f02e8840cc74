"""Whole numbers to add up, so that sums are exact however many there are."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

__all__ = ["FixedPoint"]

# A limit is counted in at least so many units, about 2^111. The factors make decimals of up to
# twelve digits, thirds, sevenths, weeks and dozens whole numbers of units, so that ten tenths fill
# a limit of one to the last unit; whatever is not whole is rounded up.
_FINENESS = 2**64 * 3**4 * 5**12 * 7**2 * 11 * 13
_LONGEST = 4096  # binary digits of a number of units that is worth writing down


@final
@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Count an amount in units of 2^exponent / _FINENESS, up to a limit.

    >>> tenths = FixedPoint.up_to(Fraction(1))
    >>> 10 * tenths.of(Fraction(1, 10)) == tenths.limit
    True
    >>> tenths.of(Fraction(1, 10**99))  # nothing small is lost
    1
    """

    exponent: int
    limit: int

    @classmethod
    def up_to(cls, limit: Fraction) -> "FixedPoint":
        """Choose units fine enough for ``limit``, and round it down to them."""
        if limit == 0:
            return cls(0, 0)
        exponent = limit.numerator.bit_length() - limit.denominator.bit_length()
        return cls(exponent, 0).widened(limit)

    @property
    def amount(self) -> Fraction:
        """The limit itself."""
        top, bottom = _ratio(self.exponent)
        return Fraction(self.limit * bottom, top)

    def of(self, amount: Fraction | float) -> int | float:
        """Return ``amount`` in units, rounded up; infinity stays infinity."""
        if isinstance(amount, float) and amount == math.inf:
            return math.inf
        numerator, denominator = amount.as_integer_ratio()
        top, bottom = _ratio(self.exponent)
        units = -(-numerator * top // (denominator * bottom))
        return units if units.bit_length() <= _LONGEST else math.inf  # as good as

    def widened(self, limit: Fraction) -> "FixedPoint":
        """Return the same units up to another limit, rounded down."""
        top, bottom = _ratio(self.exponent)
        return FixedPoint(self.exponent, limit.numerator * top // (limit.denominator * bottom))

    def share(self, units: int | float) -> float:
        """Return which share of the limit this is; infinity where that is beyond the floats."""
        if not units:
            return 0.0
        try:
            return units / self.limit
        except (OverflowError, ZeroDivisionError):
            return math.inf


def _ratio(exponent: int) -> tuple[int, int]:
    """Return how many units make 1, as a numerator and a denominator."""
    return (_FINENESS << -exponent, 1) if exponent < 0 else (_FINENESS, 1 << exponent)
