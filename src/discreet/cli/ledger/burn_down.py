"""Bars and burn-down plots made of text, for any terminal, with and without Unicode."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from discreet.ledger import Point

HEIGHT: Final = 8
_WIDEST: Final = 72
_EIGHTHS: Final = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"  # lower blocks
_ASIDE: Final = " \u258f\u258e\u258d\u258c\u258b\u258a\u2589\u2588"  # left blocks


def colour(used: float) -> str:
    """Return the colour that a share used is shown in.

    >>> colour(0.2), colour(0.6), colour(0.95)
    ('green', 'yellow', 'red')
    """
    return "green" if used < 0.5 else "yellow" if used < 0.8 else "red"


def bar(used: float, *, width: int = 10, is_plain: bool = False) -> str:
    """Draw a share as a bar; neither a little nor all but a little is rounded away.

    >>> bar(0.25, width=8, is_plain=True), bar(0.001, width=8, is_plain=True)
    ('##......', '#.......')
    >>> bar(0.9999, width=8, is_plain=True)
    '#######.'
    """
    if is_plain:
        full = _within(used, width)
        return "#" * full + "." * (width - full)
    full, part = divmod(_within(used, 8 * width), 8)
    return ("\u2588" * full + (_ASIDE[part] if part else "")).ljust(width, "\u2591")


def burn_down_lines(points: "Sequence[Point]", *, width: int, is_plain: bool) -> list[str]:
    """Draw what is left after each entry, the oldest at the left.

    >>> from discreet.ledger import Point
    >>> used = [Point(n, "2026-11-15T08:00:00.000000Z", n / 3) for n in range(4)]
    >>> for line in burn_down_lines(used, width=30, is_plain=True)[::4]:
    ...     print(line)
    100% |######
         |############
      0% +------------------------
    """
    columns = max(8, min(_WIDEST, width - 6))
    heights = [_within(1 - used, 8 * HEIGHT) for used in _spread(points, columns)]
    lines = []
    for row in reversed(range(HEIGHT)):
        cells = [min(8, max(0, height - 8 * row)) for height in heights]
        drawn = "".join(_plain(cell) if is_plain else _EIGHTHS[cell] for cell in cells)
        label = "100%" if row == HEIGHT - 1 else ""
        lines.append(f"{label:>4} {'|' if is_plain else chr(0x2502)}{drawn}".rstrip())
    corner, edge = ("+", "-") if is_plain else ("\u2514", "\u2500")
    lines.append(f"  0% {corner}{edge * columns}")
    return [*lines, _axis(points, columns)]


def print_burn_down(console: Console, points: "Sequence[Point]", *, of: str = "the total") -> None:
    """Print what is left of a budget, entry by entry.

    >>> from discreet.ledger import Point
    >>> print_burn_down(Console(width=40), [Point(1, "2026-11-15T08:00:00.000000Z", 0.0)])
    Nothing was used yet.
    """
    if all(point.used == 0 for point in points):
        console.print(Text("Nothing was used yet."))
        return
    console.print(Text(f"What was left of {of}, entry by entry", style="bold"))
    ink = colour(points[-1].used)
    is_plain = console.options.ascii_only
    for line in burn_down_lines(points, width=console.width, is_plain=is_plain):
        text = Text(line)
        text.stylize(ink, 6, len(line) if line[5:6] in ("|", "\u2502") else 6)
        console.print(text, no_wrap=True, overflow="crop")


def _within(share: float, steps: int) -> int:
    """Return how many of the steps a share fills: none and all only where it is none and all."""
    if share <= 0 or share >= 1:
        return 0 if share <= 0 else steps
    return min(steps - 1, max(1, round(share * steps)))


def _plain(eighths: int) -> str:
    return "#" if eighths >= 4 else " "


def _spread(points: "Sequence[Point]", columns: int) -> list[float]:
    """Return the share used in each column: that of the last point up to its middle."""
    first, count = points[0].entry, points[-1].entry - points[0].entry + 1
    shares, at = [], 0
    for column in range(columns):
        middle = first + (2 * column + 1) * count // (2 * columns)
        while at + 1 < len(points) and points[at + 1].entry <= middle:
            at += 1
        shares.append(points[at].used)
    return [*shares[:-1], points[-1].used]


def _axis(points: "Sequence[Point]", columns: int) -> str:
    ends = [f"{point.entry} ({point.time[:10]})" for point in (points[0], points[-1])]
    if len(ends[0]) + len(ends[1]) + 7 > columns:
        ends = [str(points[0].entry), str(points[-1].entry)]
    gap = columns - len(ends[0]) - len(ends[1])
    middle = "entry".center(gap) if gap >= 7 else " " * max(1, gap)
    return f"      {ends[0]}{middle}{ends[1]}"
