"""The smallest epsilon that reaches an error somebody wants, and numbers pleasant to read."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Protocol, TypeVar

from discreet._exact import Number, float_up, positive, refusal
from discreet.errors import ParameterError

__all__ = ["least_epsilon", "readable_up", "search_epsilon", "smallest_epsilon"]

_SMALLEST: Final = 2.0**-800
_LARGEST: Final = 2.0**800


class _HasError(Protocol):
    @property
    def error(self) -> Callable[..., float]: ...


M = TypeVar("M", bound=_HasError)


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

    >>> round(search_epsilon(lambda e: e * e >= 2, error=0), 9) == round(2**0.5, 9)
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


def readable_up(value: Fraction) -> Number:
    """Return ``value`` as an int or short Fraction if it is one, else as a double above it.

    >>> readable_up(Fraction(10)), readable_up(Fraction(1, 3)), readable_up(1 / Fraction(0.3))
    (10, Fraction(1, 3), 3.3333333333333335)
    """
    if value.denominator == 1:
        return int(value)
    return value if value.denominator <= 10**6 else float_up(value)
