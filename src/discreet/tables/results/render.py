"""Results for people: aligned text, rich tables and HTML, with the digits that noise leaves."""

import html
import math
import textwrap
import unicodedata
from collections.abc import Sequence
from datetime import date, datetime, time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

_HEAD: Final = 12
_TAIL: Final = 4
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


def _rows(result: "Result", positions: Sequence[int]) -> list[list[str]]:
    """Write the cells of some rows."""
    columns = []
    for name in result.columns:
        values = result.values[name]
        if name in result.keys or values.dtype.kind in "bO":
            mark = [""] * len(positions)
            if name in result.reliable:
                mark = ["" if result.reliable[name][i] else "~" for i in positions]
            listed = [
                values[i].item() if values.dtype.kind != "O" else values[i] for i in positions
            ]
            columns.append([m + key(v) for m, v in zip(mark, listed, strict=True)])
            continue
        bars = (result.lows[name], result.highs[name], result.errors[name])
        written = []
        for i in positions:
            mark_one = "" if result.reliable[name][i] else "~"
            written.append(mark_one + cell(float(values[i]), *(float(bar[i]) for bar in bars)))
        columns.append(written)
    return [list(row) for row in zip(*columns, strict=True)]


def _shown(result: "Result") -> tuple[list[list[str]], int | None]:
    """Return the rows to show, and after how many of them some are left out."""
    size = len(result)
    if size <= _HEAD + _TAIL + 4:
        return _rows(result, range(size)), None
    return _rows(result, [*range(_HEAD), *range(size - _TAIL, size)]), _HEAD


def _is_left(result: "Result", name: str) -> bool:
    """Whether a column is written from the left, as words are."""
    return result.values[name].dtype.kind in "bO"


def footer(result: "Result") -> list[str]:
    """Say what the signs mean, what it cost, what is left and where it is written down."""
    lines = []
    if any((bar == bar).any() for bar in (*result.lows.values(), *result.highs.values())):
        lines.append(
            f"± covers the noise with a confidence of {100 * result.confidence:.6g}%, "
            "not what clipping moved."
        )
    if not all(flags.all() for flags in result.reliable.values()):
        lines.append("~ marks values with little left under the noise.")
    for note in result.notes:
        lines += textwrap.wrap(f"Note: {clean(note)}", width=100, subsequent_indent="  ")
    again = "Answered before, at no new cost. " if result.is_recalled else ""
    lines.append(
        f"{again}Price: {price(result)}. Left of the budget: {share(result.left)}. "
        f"Entry {result.receipt.index} of account {clean(result.receipt.account)!r}."
    )
    return lines


def price(result: "Result") -> str:
    """Write the guarantee of a release."""
    delta = f", delta={result.delta:.3g}" if result.delta else ""
    return f"epsilon={result.epsilon:.4g}{delta}"


def share(part: float) -> str:
    """Write a share of the budget, rounded down: nobody has more left than this.

    >>> share(0.8399), share(0.00042), share(0.0), share(1.0)
    ('83%', '0.04%', '0%', '100%')
    """
    percent = 100 * max(0.0, min(1.0, part))
    places = 0 if percent >= 1 or percent == 0 else 2
    steps = math.floor(percent * 10**places)
    return f"{steps / 10**places:.{places}f}%"


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    marks = sum(unicodedata.combining(char) > 0 for char in text)
    return len(text) + wide - marks


def _pad(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def as_text(result: "Result") -> str:
    """Write a result as an aligned table with a footer."""
    rows, gap = _shown(result)
    names = [short(clean(name)) for name in result.columns]
    lefts = [_is_left(result, name) for name in result.columns]
    widths = [max(map(_width, column)) for column in zip(names, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        parts = zip(cells, widths, lefts, strict=True)
        return "  ".join(_pad(c, w, left=is_left) for c, w, is_left in parts).rstrip()

    lines = [line(names), "  ".join("-" * width for width in widths), *map(line, rows)]
    if gap is not None:
        lines.insert(2 + gap, f"... {_left_out(result):,} more of {len(result):,} rows ...")
    if not rows:
        lines.append("(no rows)")
    return "\n".join([*lines, "", *footer(result)])


def _left_out(result: "Result") -> int:
    return len(result) - _HEAD - _TAIL


def as_rich(result: "Result") -> Any:
    """Build a rich table; cells are plain text, so that no key is read as markup."""
    text = import_module("rich.text").Text
    group = import_module("rich.console").Group
    table = import_module("rich.table").Table(box=import_module("rich.box").SIMPLE_HEAD)
    for name in result.columns:
        justify = "left" if _is_left(result, name) else "right"
        style = "bold" if name in result.keys else ""
        table.add_column(text(short(clean(name))), justify=justify, style=style)
    rows, gap = _shown(result)
    for position, row in enumerate(rows):
        if position == gap:
            table.add_row(text("..."), *[text("")] * (len(row) - 1))
        table.add_row(*[text(c, style="dim" if c.startswith("~") else "") for c in row])
    told = footer(result)
    if gap is not None:
        told.insert(0, f"{_left_out(result):,} more of {len(result):,} rows are not shown.")
    return group(table, *[text(line, style="dim") for line in told])


def as_html(result: "Result") -> str:
    """Write an HTML table; every name, key and note is escaped."""
    rows, gap = _shown(result)

    def line(tag: str, cells: Sequence[str]) -> str:
        made = []
        for name, told in zip(result.columns, cells, strict=True):
            align = "left" if _is_left(result, name) else "right"
            made.append(f'<{tag} style="text-align:{align}">{html.escape(told)}</{tag}>')
        return f"<tr>{''.join(made)}</tr>"

    body = [line("td", row) for row in rows]
    if gap is not None:
        told = f"{_left_out(result):,} more of {len(result):,} rows"
        body.insert(gap, f'<tr><td colspan="{len(result.columns)}">... {told} ...</td></tr>')
    head = line("th", [short(clean(name)) for name in result.columns])
    notes = "<br>".join(html.escape(text) for text in footer(result))
    return (
        f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
        f'<p style="font-size:smaller">{notes}</p>'
    )
