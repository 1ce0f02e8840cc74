"""Numbers as people type and read them."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction

from discreet._exact import Number


def parse(text: str) -> Number:
    """Read a number as typed; text that is none is handed on, for the checks to refuse by name.

    >>> parse("3"), parse("1/3"), parse("1e-6"), parse("lots")
    (3, Fraction(1, 3), 1e-06, 'lots')
    """
    for kind in (int, Fraction if "/" in text else float):
        try:
            return kind(text)
        except (ValueError, ZeroDivisionError):
            continue
    return text  # type: ignore[return-value]  # deliberately: see the docstring


def parse_exactly(text: str) -> Number:
    """Read a decimal number as the fraction it says, not as the double nearest to it.

    >>> parse_exactly("0.29"), parse_exactly("1/3"), parse_exactly("some")
    (Fraction(29, 100), Fraction(1, 3), 'some')
    """
    number = parse(text)
    if not isinstance(number, float) or not math.isfinite(number):
        return number
    try:
        decimal = Decimal(text)
    except InvalidOperation:  # a spelling that only float knows
        return number
    # An exponent of a billion would fill the memory with zeros.
    is_modest = decimal.is_zero() or abs(decimal.adjusted()) < 400
    return Fraction(decimal) if is_modest else number


def for_json(number: Number) -> int | float | str:
    """Return a number that JSON can hold; one beyond every float becomes text.

    >>> for_json(Fraction(1, 4)), for_json(10**400 + Fraction(1, 2))[:4]
    (0.25, '2000')
    """
    if isinstance(number, int | float):
        return number
    try:
        return float(number)
    except OverflowError:
        return str(number)


def digits(value: float, *, up: bool, places: int = 6) -> str:
    """Write a number with some significant digits, rounded in the stated direction.

    A number that is written exactly but for its 13th digit is: 0.1 * 100 is 10, not 10.0001.

    >>> digits(0.94688298, up=True), digits(0.94688298, up=False), digits(1.234567e-7, up=True)
    ('0.946883', '0.946882', '1.23457e-07')
    >>> digits(10.000000000000002, up=True)
    '10'
    """
    decimal = Decimal(value)
    if not decimal or not decimal.is_finite():
        return f"{value:g}"
    nearest = float(f"{value:.{places}g}")
    if abs(nearest - value) <= 1e-13 * abs(value):
        return f"{nearest:.{places}g}"
    step = Decimal(1).scaleb(decimal.adjusted() - places + 1)
    rounded = decimal.quantize(step, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(rounded):.{places}g}"


def shown(value: Number) -> str:
    """Write a number as it was typed, never rounded to zero.

    >>> shown(1e-7), shown(0)
    ('1e-07', '0')
    """
    return f"{value:g}" if isinstance(value, float) else str(value)
