"""How pages write numbers: few digits, thousands apart, and shares that never flatter."""

import math
from functools import partial
from typing import Final

from discreet._words import more_words, of_100, percent

__all__ = ["FILTERS", "amount", "decimals", "short"]

_MINUS: Final = "\N{MINUS SIGN}"


def short(number: float | None, digits: int = 3) -> str:
    """Write a number with some significant digits, without an exponent where it can be read.

    >>> short(1234567), short(0.0512), short(1e-7), short(-2.5), short(None)
    ('1,230,000', '0.0512', '1e-07', '\N{MINUS SIGN}2.5', '-')
    """
    if number is None or not math.isfinite(number):
        return "-"
    if number == 0:
        return "0"
    sign, size = (_MINUS if number < 0 else ""), abs(number)
    if size < 1e-4 or size >= 1e15:
        return f"{sign}{size:.{digits}g}"
    places = digits - 1 - math.floor(math.log10(size))
    text = f"{round(size, places):,.{max(0, places)}f}"
    return sign + (text.rstrip("0").rstrip(".") if "." in text else text)


def amount(value: object) -> str:
    """Write a value of an answer: numbers as people read them, all else as it is.

    >>> amount(12345.678), amount(3.14159), amount(12), amount("north"), amount(None)
    ('12,345.7', '3.142', '12', 'north', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if float(value).is_integer():
        return f"{value:,.0f}".replace("-", _MINUS)
    if abs(value) >= 100:
        return f"{value:,.1f}".replace("-", _MINUS)
    return short(value, 4)


def decimals(value: object, places: int | None) -> str:
    """Write a number with so many decimals; None is as many as people read.

    >>> decimals(1234.567, 0), decimals(4.6371, 2), decimals("north", 1), decimals(2.5, None)
    ('1,235', '4.64', 'north', '2.5')
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if places is None or not is_number or not math.isfinite(float(value)):  # type: ignore[arg-type]
        return amount(value)
    text = f"{value:,.{min(places, 12)}f}".replace("-", _MINUS)
    return text.lstrip(_MINUS) if set(text) <= set(f"{_MINUS}0.") else text


FILTERS: Final = {
    "decimals": decimals,
    "short": short,
    "amount": amount,
    "percent_up": partial(percent, up=True),
    "percent_down": partial(percent, up=False),
    "of_100_up": partial(of_100, up=True),
    "of_100_down": partial(of_100, up=False),
    "more": more_words,
}
