"""Numbers and keys as people read them: with the digits that noise leaves, and harmless."""

import math
import unicodedata
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

__all__ = ["cell", "clean", "is_inferred", "key", "number", "price", "short"]

_WIDEST: Final = 48
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: object) -> str:
    r"""Make text harmless to a terminal: what cannot be seen is written as an escape.

    Keys of groups are data. Somebody may have put colours, a cursor movement or a reversal of the
    direction of writing into them.

    >>> clean("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSEEN else char
        for char in str(text)
    )


def short(text: str, width: int = _WIDEST) -> str:
    """Cut a long text.

    >>> short("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def number(value: float, error: float = math.nan) -> str:
    """Write a number with as many digits as its error leaves.

    >>> number(12340.2, 57), number(0.43119, 0.0021), number(123456.7, 5432), number(3)
    ('12,340', '0.4312', '123,500', '3')
    """
    if value != value:
        return "-"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if not 0 < error < math.inf:
        return _plain_number(value)
    return _to_place(value, _last_place(error))


def _plain_number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    text = f"{value:.6g}"
    return text if "e" in text else f"{float(text):,}"


def _last_place(error: float) -> int:
    """Return the decimal place of the second digit of an error: 0 for units, -1 for tenths."""
    return int(f"{error:.1e}".split("e")[1]) - 1


def _to_place(value: float, place: int) -> str:
    if place > 12 or place < -9 or abs(value) >= 1e15:
        digits = max(0, math.floor(math.log10(abs(value))) - place) if value else 0
        return f"{value:.{min(digits, 15)}e}"
    if place > 0:
        return f"{round(int(value), -place):,}"
    text = f"{value:,.{-place}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text


def cell(value: float, low: float, high: float, error: float) -> str:
    """Write a value with its interval: half its width, or both ends where they are not even.

    >>> cell(12340.2, 12283.2, 12397.2, 29.0), cell(0.5, 0.0, 4.0, math.nan)
    ('12,340 ± 57', '0.5 (0.0 to 4.0)')
    >>> cell(50.0, 49.0, 58.0, math.nan), cell(0.5, math.nan, math.nan, math.nan)
    ('50 (49 to 58)', '0.5')
    """
    if value != value:
        return "-"
    if math.isfinite(low) and math.isfinite(high):
        half = high / 2 - low / 2
        if half == 0:
            return number(value)
        uneven = abs(high / 2 + low / 2 - value)
        if value.is_integer() and low.is_integer() and high.is_integer():
            return _whole_cell(value, low, high, is_even=uneven <= max(0.5, 0.05 * half))
        if uneven <= 0.05 * half:
            return f"{number(value, half)} ± {number(half, half)}"
        return f"{number(value, half)} ({number(low, half)} to {number(high, half)})"
    if low == low or high == high:
        return f"{number(value)} ({number(low)} to {number(high)})"
    # Without an interval the sign ± would promise more than a standard error does.
    return number(value, error)


def _whole_cell(value: float, low: float, high: float, *, is_even: bool) -> str:
    """Write a whole number with whole ends, of which tenths would say nothing."""
    arm = max(high - value, value - low)
    digits = max(arm, 10.0)
    if is_even:
        return f"{number(value, digits)} ± {number(arm, digits)}"
    return f"{number(value, digits)} ({number(low, digits)} to {number(high, digits)})"


def key(value: object) -> str:
    """Write the key of a group.

    >>> key(None), key(2024), key("north"), key("2024")
    ('NULL', '2024', 'north', '2024')
    """
    if value is None or value != value:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return f"{value:.10g}"
    return short(clean(value))


def is_inferred(result: "Result") -> bool:
    """Say whether bounds or limits were chosen privately, so that bars allow for what they cut."""
    made = [result.facts.get("bounding") or {}, *result.facts.get("aggregates", ())]
    return any(one.get("origin") == "inferred" for one in made)


def price(result: "Result") -> str:
    """Write the guarantee of a release."""
    delta = f", delta={result.delta:.3g}" if result.delta else ""
    return f"epsilon={result.epsilon:.4g}{delta}"
