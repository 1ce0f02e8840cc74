"""A window of outputs around a number's position: the finite law of Piecewise and square wave."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from discreet._exact import Number
from discreet.local.laws.drawing import draw
from discreet.local.laws.preference import Preference
from discreet.noise import Source, uniform_integers

__all__ = ["Window"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Give an output near a position with a certain chance, otherwise one far from it.

    A position g owns the outputs g, g + 1, ..., g + preferred - 1 of the law, so that there are
    ``positions`` = outputs - preferred + 1 of them.

    >>> window = Window.calibrated(epsilon=1, outputs=8, preferred=3)
    >>> window.positions, [round(float(window.chance(j, position=1)), 3) for j in range(4)]
    (6, [0.076, 0.207, 0.207, 0.207])
    """

    law: Preference

    @classmethod
    def calibrated(cls, *, epsilon: Number, outputs: int, preferred: int) -> Self:
        """Return the window of the strongest law whose loss is at most ``epsilon``.

        >>> window = Window.calibrated(epsilon=2, outputs=8, preferred=3)
        >>> window.positions, window.law.epsilon
        (6, 2.0)
        """
        law = Preference.calibrated(epsilon=epsilon, outputs=outputs, preferred=preferred)
        return cls(law=law)

    @property
    def positions(self) -> int:
        """How many positions a value can have."""
        return self.law.outputs - self.law.preferred + 1

    def draw(self, positions: npt.NDArray[np.int64], *, source: Source) -> npt.NDArray[np.int64]:
        """Return an output for each position.

        >>> from discreet.noise import SYSTEM
        >>> window = Window.calibrated(epsilon=2, outputs=8, preferred=3)
        >>> outputs = window.draw(np.full(10_000, 4), source=SYSTEM)
        >>> error = float(window.variance(4) / 10_000) ** 0.5
        >>> bool(abs(outputs.mean() - float(window.mean(4))) < 8 * error)
        True
        """
        size, rest = self.law.preferred, self.law.outputs - self.law.preferred

        def own(part: npt.NDArray[Any], source: Source) -> npt.NDArray[Any]:
            return np.asarray(part + uniform_integers(size, part.size, source=source))

        def other(part: npt.NDArray[Any], source: Source) -> npt.NDArray[Any]:
            outside = uniform_integers(rest, part.size, source=source)
            return np.asarray(outside + size * (outside >= part))

        return draw(self.law, positions, own=own, other=other, dtype=np.int64, source=source)

    def chance(self, output: int, *, position: int) -> Fraction:
        """Return the chance of one output.

        >>> window = Window(law=Preference(outputs=4, preferred=2, keep=3 << 62))
        >>> [str(window.chance(output, position=1)) for output in range(4)]
        ['1/8', '3/8', '3/8', '1/8']
        """
        return self.inside if 0 <= output - position < self.law.preferred else self.outside

    @property
    def inside(self) -> Fraction:
        """The chance of each output within the window."""
        return self.law.keep_chance / self.law.preferred

    @property
    def outside(self) -> Fraction:
        """The chance of each output outside of it."""
        return (1 - self.law.keep_chance) / (self.law.outputs - self.law.preferred)

    def mean(self, position: int) -> Fraction:
        """Return the expected output; it grows by ``slope`` with each position.

        >>> window = Window(law=Preference(outputs=4, preferred=2, keep=3 << 62))
        >>> window.slope, [str(window.mean(position)) for position in range(3)]
        (Fraction(1, 2), ['1', '3/2', '2'])
        """
        return self._moment(_sum, position)

    def variance(self, position: int) -> Fraction:
        """Return the variance of the output.

        It is largest at the first and at the last position, as its second difference is that of
        slope (1 - slope) position**2, and the slope is below 1.

        >>> window = Window(law=Preference(outputs=4, preferred=2, keep=3 << 62))
        >>> [str(window.variance(position)) for position in range(3)]
        ['1', '3/4', '1']
        """
        return self._moment(_sum_of_squares, position) - self.mean(position) ** 2

    @property
    def slope(self) -> Fraction:
        """How much the expected output grows with each position."""
        return (self.inside - self.outside) * self.law.preferred

    def _moment(self, total: Callable[[int], int], position: int) -> Fraction:
        window = total(position + self.law.preferred) - total(position)
        return self.outside * total(self.law.outputs) + (self.inside - self.outside) * window


def _sum(end: int) -> int:
    """Return 0 + 1 + ... + (end - 1)."""
    return end * (end - 1) // 2


def _sum_of_squares(end: int) -> int:
    return (end - 1) * end * (2 * end - 1) // 6
