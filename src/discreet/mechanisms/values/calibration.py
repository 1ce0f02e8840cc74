"""The smallest epsilon that reaches an error somebody wants."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Protocol, TypeVar

from discreet._exact import Number, positive, refusal
from discreet.errors import ParameterError

__all__ = ["hoeffding_width", "least_epsilon", "log_of", "search_epsilon", "smallest_epsilon"]

_SMALLEST: Final = 2.0**-800
_LARGEST: Final = 2.0**800


class _HasError(Protocol):
    @property
    def error(self) -> Callable[..., float]: ...


M = TypeVar("M", bound=_HasError)


def log_of(value: Fraction) -> float:
    """Return the logarithm of a positive number, however far it lies outside the doubles.

    >>> round(log_of(Fraction(10**400)) / math.log(10))
    400
    """
    return math.log(value.numerator) - math.log(value.denominator)


def hoeffding_width(miss: Fraction, count: int) -> float:
    """Return a t so that a share of ``count`` independent coins is off by t with chance ``miss``.

    Why: [Hoe63, Theorem 2], both sides: t = sqrt(log(2 / miss) / (2 count)).

    >>> round(hoeffding_width(Fraction(1, 20), 10_000), 4)
    0.0136
    """
    return math.sqrt(Fraction(log_of(2 / miss)) / (2 * count))


def least_epsilon(make: Callable[..., M], *, error: Number, **measured: Any) -> M:
    """Return ``make(epsilon=...)`` for the smallest epsilon that reaches ``error``.

    For mechanisms whose error is almost inverse to epsilon; ``measured`` goes to their ``error``.
    """
    epsilon = smallest_epsilon(lambda e: make(epsilon=e).error(**measured), error=error)
    return make(epsilon=epsilon)


def smallest_epsilon(error_at: Callable[[float], float], *, error: Number) -> float:
    """Return an epsilon that reaches ``error``, for errors that are almost inverse to epsilon.

    >>> smallest_epsilon(lambda e: 30 / e, error=10)
    3.0
    """
    wanted = positive(error, name="error")
    at_one = error_at(1.0)
    if at_one == 0:
        raise ParameterError(
            "confidence must be higher for a calibration: at this one every epsilon reaches the "
            "error. Choose an epsilon by what it protects.",
            parameter="confidence",
        )
    if not _SMALLEST < at_one < _LARGEST or not _SMALLEST < Fraction(at_one) / wanted < _LARGEST:
        hint = "Rescale scores and sensitivity to ordinary magnitudes."
        raise refusal("error", "of a magnitude that some double epsilon reaches", error, hint)
    epsilon = float(Fraction(at_one) / wanted)
    excess = 2.0**-52
    while error_at(epsilon) > wanted:
        epsilon *= 1 + excess
        excess *= 2
    return epsilon


def search_epsilon(
    is_reached: Callable[[float], bool],
    *,
    error: Number,
    start: float = 1.0,
    lowest: float = _SMALLEST,
    highest: float = _LARGEST,
) -> float:
    """Return the smallest epsilon, to 12 digits, at which a growing condition holds.

    >>> round(search_epsilon(lambda e: e * e >= 2, error=0), 9) == round(math.sqrt(2), 9)
    True
    """
    low = high = start
    while is_reached(low):
        if low == lowest:
            return low
        low, high = max(lowest, low / 2), low
    while not is_reached(high):
        if high == highest:
            raise refusal("error", "larger: no epsilon reaches it", error)
        low, high = high, min(highest, 2 * high)
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_reached(middle) else (middle, high)
    return high
