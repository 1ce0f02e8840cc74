"""Numbers between public bounds, placed on a grid by an exact coin."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number, exact, refusal, whole
from discreet.errors import DataError
from discreet.noise.enclosure import chance_rational, is_less
from discreet.noise.source import Source, words

__all__ = ["Ruler", "as_double", "as_numbers"]

Floats = npt.NDArray[np.float64]

_SURE: Final = 2.0**-20  # doubles must place a number this closely, else fractions do it
_LARGEST: Final = Fraction(1 << 1000)  # so that doubles neither overflow nor lose digits


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """Hold ``steps`` + 1 points from ``low`` to ``high``, equally far from each other.

    Numbers outside are moved to the nearer end and NaN to the middle, so that no device's value
    can stop the release for all of them.

    >>> from discreet.noise import SYSTEM
    >>> ruler = Ruler(low=0, high=10, steps=5)
    >>> ruler.place(np.array([-3.0, 4.0, 10.0]), source=SYSTEM)
    array([0, 2, 5])
    """

    low: Number
    high: Number
    steps: int

    def __post_init__(self) -> None:
        whole(self.steps, name="steps")
        low, high = exact(self.low, name="low"), exact(self.high, name="high")
        if not low < high:
            raise refusal("low", f"below high, which is {self.high}", self.low)
        if max(-low, high) > _LARGEST or high - low < 1 / _LARGEST:
            wanted = "such that both ends are below 2**1000, and 2**-1000 apart"
            raise refusal("high", wanted, self.high)

    @property
    def width(self) -> Fraction:
        """How far the ends are apart."""
        return Fraction(self.high) - Fraction(self.low)

    @property
    def middle(self) -> Fraction:
        """The number halfway between the ends."""
        return (Fraction(self.low) + Fraction(self.high)) / 2

    @property
    def step(self) -> Fraction:
        """How far two neighbouring points are apart."""
        return self.width / self.steps

    def position(self, value: float) -> Fraction:
        """Return where a number lies, in steps from the low end, exactly.

        >>> Ruler(low=0, high=1, steps=4).position(0.625)
        Fraction(5, 2)
        """
        if math.isnan(value):
            return Fraction(self.steps, 2)
        if math.isinf(value):
            return Fraction(self.steps if value > 0 else 0)
        place = (Fraction(value) - Fraction(self.low)) / self.step
        return min(max(place, Fraction(0)), Fraction(self.steps))

    def place(self, values: npt.ArrayLike, *, source: Source) -> npt.NDArray[np.int64]:
        """Return for each number one of the two points around it, such that the mean is right.

        Claim: the expected point is exactly the number's position, for every double.

        Why: for a uniform U in [0, 1), the ceiling of position - U is the position's floor, plus
        one with a chance of its fraction. Doubles find the ceiling for both ends of what they
        cannot tell apart; where these differ, it is found with fractions and as many bits of U as
        it takes. More than 64 bits are needed with chance 2**-64.
        """
        numbers = as_numbers(values)
        bits = words(source, numbers.size, "<u8")
        slack = self._slack
        if slack >= _SURE:
            unsure = np.arange(numbers.size)
            points = np.empty(numbers.size, dtype=np.int64)
        else:
            low, high = float(self.low), float(self.high)
            inside = np.clip(np.where(np.isnan(numbers), float(self.middle), numbers), low, high)
            rough = (inside - low) * (self.steps / float(self.width)) - bits * 2.0**-64
            points = np.ceil(rough - slack).astype(np.int64)
            unsure = np.flatnonzero((points != np.ceil(rough + slack)) | (points < 0))
        for i in unsure:
            place = self.position(float(numbers[i]))
            floor = math.floor(place)
            points[i] = floor
            if place > floor:  # else nothing is left to be decided
                points[i] += is_less(int(bits[i]), 64, chance_rational(place - floor), source)
        return points

    @property
    def _slack(self) -> float:
        """A bound on how far doubles are off, in steps: a few roundings of the largest number."""
        largest = max(abs(Fraction(self.low)), abs(Fraction(self.high))) / self.width + 1
        return float(min(largest * (self.steps + 1) / (1 << 48), Fraction(1)))


def as_numbers(values: object) -> Floats:
    """Return devices' numbers as doubles; a missing one becomes NaN.

    >>> as_numbers([1, None, 2.5])
    array([1. , nan, 2.5])
    >>> as_numbers(["1"])
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: values must be an array of numbers, one a device, but they are text.
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biufO":
        found = "are text" if array.dtype.kind in "US" else f"have {array.ndim} dimensions"
        if array.ndim == 1 and array.dtype.kind not in "US":
            found = f"are {array.dtype}"
        raise DataError(f"values must be an array of numbers, one a device, but they {found}.")
    if array.dtype.kind == "O":
        return np.fromiter(map(as_double, array), np.float64, array.size)
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def as_double(value: Any) -> float:
    """Return a number as a double, or NaN for what is none.

    >>> as_double(10**400), as_double(None)
    (inf, nan)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan
