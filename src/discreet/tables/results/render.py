"""Results for people: aligned text, rich tables and HTML."""

import html
import unicodedata
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from discreet._words import WIDTH, fit, more_words, percent
from discreet.tables.results.format import cell, clean, is_inferred, key, price, short

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

_HEAD: Final = 12
_TAIL: Final = 4


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
        clipping = "and allows for clipping" if is_inferred(result) else "not what clipping moved"
        lines.append(
            f"± covers the noise with a confidence of {100 * result.confidence:.6g}%, {clipping}."
        )
    if not all(flags.all() for flags in result.reliable.values()):
        much = " or where much may be cut" if is_inferred(result) else ""
        lines.append(f"~ marks values with little left under the noise{much}.")
    for note in result.notes:
        lines += fit(f"Note: {clean(note)}", indent="  ").split("\n")
    again = "Answered before, at no new cost. " if result.is_recalled else ""
    cost = "" if result.share is None else f", {percent(result.share, up=True)} of the budget"
    more = "" if result.more is None else f"; {more_words(result.more)}"
    return [
        *lines,
        f"{again}Price: {price(result)}{cost}.",
        f"Left of the budget: {percent(result.left, up=False)}{more}.",
        f"Entry {result.receipt.index} of account {clean(result.receipt.account)!r}.",
    ]


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
    columns = _columns(result, rows)
    told = []
    for block in _blocks(result, columns):
        shown = [columns[i] for i in block]
        lefts = [_is_left(result, result.columns[i]) for i in block]
        widths = [max(map(_width, column)) for column in shown]

        def line(cells: Sequence[str], widths: Sequence[int], lefts: Sequence[bool]) -> str:
            parts = zip(cells, widths, lefts, strict=True)
            return "  ".join(_pad(c, w, left=is_left) for c, w, is_left in parts).rstrip()

        lines = [line(cells, widths, lefts) for cells in zip(*shown, strict=True)]
        lines.insert(1, "  ".join("-" * width for width in widths))
        if gap is not None:
            lines.insert(2 + gap, f"... {_left_out(result):,} more of {len(result):,} rows ...")
        if not rows:
            lines.append("(no rows)")
        told.append("\n".join(lines))
    return "\n\n".join([*told, fit("\n".join(footer(result)), indent="  ")])


def _columns(result: "Result", rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return names and cells column by column; words are cut, visibly, where they are wide."""
    names = [clean(name) for name in result.columns]
    words = sum(_is_left(result, name) for name in result.columns)
    most = min(48, max(12, (WIDTH - 24) // max(1, words)))
    return [[short(cell, most) for cell in column] for column in zip(names, *rows, strict=True)]


def _blocks(result: "Result", columns: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return which columns stand side by side; each block begins with the keys, if they fit."""
    widths = [2 + max(map(_width, column)) for column in columns]
    keys = [i for i, name in enumerate(result.columns) if name in result.keys]
    if sum(widths) - 2 <= WIDTH:
        return [list(range(len(columns)))]
    repeated = keys if sum(widths[i] for i in keys) <= WIDTH // 2 else []
    blocks = [list(repeated)]
    for i in range(len(columns)):
        if i in repeated:
            continue
        if sum(widths[j] for j in (*blocks[-1], i)) - 2 > WIDTH and blocks[-1] != repeated:
            blocks.append(list(repeated))
        blocks[-1].append(i)
    return blocks


def _left_out(result: "Result") -> int:
    return len(result) - _HEAD - _TAIL


def as_rich(result: "Result") -> Any:
    """Build a rich table; cells are plain text, so that no key is read as markup."""
    text = import_module("rich.text").Text
    if len(_blocks(result, _columns(result, _shown(result)[0]))) > 1:
        return text(as_text(result))
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
