"""How pages write numbers: few digits, thousands apart, and shares that never flatter."""

import math
from typing import Final

__all__ = ["FILTERS", "amount", "percent_down", "percent_up", "short", "times"]

_MINUS: Final = "\N{MINUS SIGN}"


def short(number: float | None, digits: int = 3) -> str:
    """Write a number with some significant digits, without an exponent where it can be read.

    >>> short(1234567), short(0.0512), short(1e-7), short(-2.5), short(None)
    ('1,230,000', '0.0512', '1e-07', '−2.5', '-')
    """
    if number is None or not math.isfinite(number):
        return "-"
    if number == 0:
        return "0"
    sign, size = (_MINUS if number < 0 else ""), abs(number)
    if size < 1e-4 or size >= 1e15:
        return f"{sign}{size:.{digits}g}"
    places = digits - 1 - math.floor(math.log10(size))
    rounded = round(size, places)
    text = f"{rounded:,.{max(0, places)}f}"
    return sign + (text.rstrip("0").rstrip(".") if "." in text else text)


def amount(number: object) -> str:
    """Write a value of an answer: numbers with as many digits as people read, the rest as it is.

    >>> amount(12345.678), amount(12), amount("north"), amount(None)
    ('12,345.7', '12', 'north', '-')
    """
    if number is None:
        return "-"
    if isinstance(number, bool) or not isinstance(number, int | float):
        return str(number)
    if not math.isfinite(number):
        return str(number)
    if float(number).is_integer():
        return f"{number:,.0f}".replace("-", _MINUS)
    return short(number, max(3, 2 + math.floor(math.log10(abs(number)) + 1) - 1))


def percent_down(share: float) -> str:
    """Write what is left: never more than there is.

    >>> percent_down(0.9999), percent_down(0.004), percent_down(0)
    ('99%', '0.4%', '0%')
    """
    return _percent(share, up=False)


def percent_up(share: float) -> str:
    """Write what is used or risked: never less than it is.

    >>> percent_up(0.601), percent_up(0.0001), percent_up(1)
    ('61%', '0.01%', '100%')
    """
    return _percent(share, up=True)


def _percent(share: float, *, up: bool) -> str:
    hundred = 100 * share
    towards = math.ceil if up else math.floor
    if hundred <= 0:
        return "0%"
    if hundred >= 1:
        return f"{towards(round(hundred, 9)):d}%"
    scale = 10.0 ** math.ceil(-math.log10(hundred))
    return f"{towards(round(hundred * scale, 9)) / scale:g}%"


def times(more: float | None) -> str:
    """Say how many more like it fit.

    >>> times(24.0), times(1), times(0), times(None)
    ('about 24 more like this', 'about 1 more like this', 'none more like this', '')
    """
    if more is None:
        return ""
    return f"about {math.floor(more):,} more like this" if more >= 1 else "none more like this"


FILTERS: Final = {
    "short": short,
    "amount": amount,
    "percent_up": percent_up,
    "percent_down": percent_down,
    "times": times,
}
