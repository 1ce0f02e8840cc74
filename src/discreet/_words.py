"""Words for people: shares of a budget, written one way wherever told, in lines that fit."""

import math
import textwrap
import unicodedata
from decimal import Decimal
from fractions import Fraction

__all__ = ["WIDTH", "fit", "more_words", "of_100", "percent"]

WIDTH = 80  # columns of a terminal
_NOISE = 1e-9  # of a last digit: what the arithmetic of doubles leaves behind
_MANY = 1_000_000


def of_100(share: float | Fraction, *, up: bool) -> str:
    """Write a share as a number out of 100, rounded in the stated direction, never prettified.

    >>> of_100(0.7310585, up=True), of_100(0.2689414, up=False), of_100(0.5, up=True)
    ('73.2', '26.8', '50')
    >>> of_100(0.9999546, up=True), of_100(0.0000453, up=False), of_100(Fraction(29, 100), up=False)
    ('99.996', '0.004', '29')
    """
    value = 100 * Fraction(share)
    edge = min(value, 100 - value)  # keep digits where the value comes near an end
    places = 1 if edge >= 1 else 2 if edge >= Fraction(1, 10) else 3
    steps = value * 10**places
    rounded = Decimal(math.ceil(steps) if up else math.floor(steps)).scaleb(-places)
    return f"{rounded.normalize():f}"


def percent(share: float, *, up: bool) -> str:
    """Write a share of a budget: what is used or asked for rounded up, what is left rounded down.

    So the two add up to 100%, and what is nearly used up is not called so before it is. Noise of
    floating point is no reason to round up.

    >>> percent(0.1, up=True), percent(0.8333333, up=True), percent(0.1666667, up=False)
    ('10%', '83.4%', '16.6%')
    >>> percent(1.63, up=True), percent(1e-15, up=True), percent(float("nan"), up=False)
    ('163%', '0.001%', 'unknown')
    """
    if math.isnan(share):
        return "unknown"
    if math.isinf(share):
        return "more than 100%"
    if share > 1:
        return f"{max(100 * share, 100.1):.4g}%"
    near = round(share, 12) or share
    return f"{of_100(Fraction(str(near)) if abs(near - share) < _NOISE else share, up=up)}%"


def more_words(more: float) -> str:
    """Say how many more releases of one price fit.

    >>> more_words(24), more_words(1), more_words(0), more_words(1234)
    ('about 24 more like it fit', 'one more like it fits', 'no more like it fits', 'about 1,230 more
    like it fit')
    """
    if more < 1:
        return "no more like it fits"
    if more < 2:
        return "one more like it fits"
    if more > _MANY:
        return "over a million more like it fit"
    return f"about {int(float(f'{more:.3g}')):,} more like it fit"


def fit(text: str, *, width: int = WIDTH, indent: str = "") -> str:
    """Break lines between words, and begin what goes on with ``indent``.

    A word that is wider than a line, such as a path or a key, is left whole: it can be copied.

    >>> print(fit("one two three", width=9, indent="  "))
    one two
      three
    """
    # A filler after each letter that is two columns wide makes it count as two.
    wide = "".join(f"{c}\0" if unicodedata.east_asian_width(c) in "WF" else c for c in text)
    lines = (
        textwrap.fill(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        )
        if len(line) > width
        else line
        for line in wide.split("\n")
    )
    return "\n".join(lines).replace("\0", "")
