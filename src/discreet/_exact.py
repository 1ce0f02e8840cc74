"""Turn a user's number into an exact one, once, at the edge.

Every parameter passes through here, so NaN, infinities, booleans, strings and wrong signs get the
same clear refusal everywhere, before any randomness is drawn. A float stands for the binary
fraction it is: ``exact(0.1)`` is 0.1000000000000000055..., not one tenth.
"""

import math
from fractions import Fraction
from numbers import Rational, Real

from discreet.errors import ParameterError

__all__ = [
    "Number",
    "exact",
    "float_up",
    "nonnegative",
    "plain",
    "positive",
    "probability",
    "show",
    "whole",
]

Number = int | float | Fraction


def float_up(value: Fraction) -> float:
    """Return the smallest double that is not below ``value``.

    >>> float_up(Fraction(1, 3)) > Fraction(1, 3), float_up(Fraction(1, 2))
    (True, 0.5)
    >>> float_up(Fraction(10**400))
    inf
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else math.nextafter(-math.inf, 0)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def plain(value: object, *, name: str) -> Number:
    """Return a number as a plain int, float or Fraction of the same value, for readable reprs.

    >>> import numpy as np
    >>> plain(np.float64(0.5), name="scale"), plain(np.int8(3), name="scale")
    (0.5, 3)
    """
    if type(value) in (int, float, Fraction):
        return value  # type: ignore[return-value]
    number = exact(value, name=name)
    if number.denominator == 1 and not isinstance(value, float):
        return int(number)
    return float(number) if Fraction(float(number)) == number else number


def show(value: object) -> str:
    """Write a parameter for an error message: short, and never rounded to zero.

    >>> show(1e-7), show(Fraction(1, 3)), show("x")
    ('1e-07', '1/3', "'x'")
    """
    if isinstance(value, Fraction):
        return str(value)
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def exact(value: object, *, name: str, wanted: str = "a finite number", hint: str = "") -> Fraction:
    """Return ``value`` as the Fraction it is.

    >>> exact(0.5, name="scale")
    Fraction(1, 2)
    >>> exact(float("nan"), name="scale")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: scale must be a finite number, got nan.
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):  # an int by inheritance, a mistake by nature
        raise refusal(name, wanted, value, hint)
    if isinstance(value, Real):
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        ratio = getattr(value, "as_integer_ratio", float(value).as_integer_ratio)
        if math.isfinite(value):
            return Fraction(*ratio())  # also of a wider float than Python's, to the last bit
    raise refusal(name, wanted, value, hint)


def positive(value: object, *, name: str, hint: str = "") -> Fraction:
    """Return ``value`` exactly, or refuse it unless it is finite and above zero.

    >>> positive(2, name="epsilon")
    Fraction(2, 1)
    >>> positive(-1, name="epsilon")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: epsilon must be a finite number above 0, got -1.
    """
    wanted = "a finite number above 0"
    number = exact(value, name=name, wanted=wanted, hint=hint)
    if number <= 0:
        raise refusal(name, wanted, value, hint)
    return number


def nonnegative(value: object, *, name: str, hint: str = "") -> Fraction:
    """Return ``value`` exactly, or refuse it unless it is finite and at least zero.

    >>> nonnegative(0, name="delta")
    Fraction(0, 1)
    """
    wanted = "a finite number of at least 0"
    number = exact(value, name=name, wanted=wanted, hint=hint)
    if number < 0 or _is_minus_zero(number, value):
        raise refusal(name, wanted, value, hint)
    return number


def probability(
    value: object, *, name: str, zero: bool = False, one: bool = False, hint: str = ""
) -> Fraction:
    """Return a probability exactly; ``zero`` and ``one`` say whether the ends are allowed.

    >>> probability(0.25, name="confidence")
    Fraction(1, 4)
    >>> probability(1.5, name="delta", zero=True)
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: delta must be a number in [0, 1), got 1.5.
    """
    wanted = f"a number in {'[' if zero else '('}0, 1{']' if one else ')'}"
    number = exact(value, name=name, wanted=wanted, hint=hint)
    ends = (number == 0 and not zero) or (number == 1 and not one)
    if not 0 <= number <= 1 or ends or _is_minus_zero(number, value):
        raise refusal(name, wanted, value, hint)
    return number


def _is_minus_zero(number: Fraction, value: object) -> bool:
    """Say whether a zero came from a computation that went wrong just below it."""
    return number == 0 and isinstance(value, float) and math.copysign(1, value) < 0


def whole(value: object, *, name: str, minimum: int = 1, hint: str = "") -> int:
    """Return a whole number of at least ``minimum``.

    >>> whole(3, name="positives")
    3
    >>> whole(2.5, name="positives")
    Traceback (most recent call last):
        ...
    discreet.errors.ParameterError: positives must be a whole number of at least 1, got 2.5.
    """
    wanted = f"a whole number of at least {minimum}"
    number = exact(value, name=name, wanted=wanted, hint=hint)
    if number.denominator != 1 or number < minimum:
        raise refusal(name, wanted, value, hint)
    return int(number)


def refusal(name: str, wanted: str, value: object, hint: str = "") -> ParameterError:
    """Build the one sentence every bad parameter gets, with the way out behind it."""
    sentence = f"{name} must be {wanted}, got {show(value)}."
    return ParameterError(f"{sentence} {hint}".rstrip(), parameter=name)
