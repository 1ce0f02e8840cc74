"""Numbers as people type and read them."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
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


def of_100(share: float, *, up: bool) -> str:
    """Write a share as a number out of 100, rounded in the stated direction, never prettified.

    >>> of_100(0.7310585, up=True), of_100(0.2689414, up=False), of_100(0.5, up=True)
    ('73.2', '26.8', '50')
    >>> of_100(0.9999546, up=True), of_100(0.0000453, up=False)
    ('99.996', '0.004')
    """
    value = 100 * Decimal(share)
    edge = min(value, 100 - value)  # keep digits where the value comes near an end
    places = 1 if edge >= 1 else 2 if edge >= Decimal("0.1") else 3
    step = Decimal(1).scaleb(-places)
    rounded = value.quantize(step, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{rounded.normalize():f}"


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
