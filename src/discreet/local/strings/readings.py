"""Unbiased estimates of strings' counts with their errors, and how surprising they are."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from discreet._rounding import log_one_over

__all__ = ["Readings"]

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """Hold ``estimates`` of counts, one a string.

    ``standard_error`` takes each estimate for the truth; ``null_error`` is that of a string that
    nobody has; one report moves an estimate by at most ``reach`` from what it does on average.

    Tails are Bernstein's [BLM13, Corollary 2.11]: they hold for few reports and far out, where the
    normal distribution's do not, if the errors are the true ones; these are estimated.
    """

    estimates: Floats
    standard_error: Floats
    null_error: Floats
    reach: Floats

    @property
    def p_values(self) -> Floats:
        """At least the chance of so high an estimate, or a higher one, where nobody has it."""
        over = np.maximum(self.estimates, 0.0)
        return np.asarray(np.exp(-(over**2) / (2 * (self.null_error**2 + self.reach * over / 3))))

    def width(self, failing: Fraction) -> Floats:
        """Return how far below, or above, the truth estimates are with at most this chance."""
        surely = log_one_over(failing)
        linear = surely * self.reach / 3
        error = np.maximum(self.standard_error, self.null_error)
        return np.asarray(linear + np.sqrt(linear**2 + 2 * surely * error**2))

    def only(self, chosen: npt.NDArray[Any]) -> Self:
        """Return the chosen ones, in this order."""
        return type(self)(
            estimates=self.estimates[chosen],
            standard_error=self.standard_error[chosen],
            null_error=self.null_error[chosen],
            reach=self.reach[chosen],
        )
