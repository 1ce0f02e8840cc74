"""Draw the pictures of docs/benchmarks from the tables of its pages: `make reference`.

The tables are the figures: a picture has no number that its page does not tell. `drawn.json` says
of which tables the pictures are, so that a test can tell when they are old.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from discreet import plotting

FOLDER = Path(__file__).parent / "benchmarks"
DRAWN = FOLDER / "drawn.json"
MARKS = "osD^vP"


class Chart(NamedTuple):
    """What to draw of a page: columns of one of its tables, as points over their rows."""

    table: int
    columns: Mapping[str, int]  # what they are called, and where they stand
    title: str
    under: str
    across: str
    names: int = 1  # how many columns name a row
    even: float | None = 1.0  # where nobody is better
    is_log: bool = True
    has_ends: bool = False  # in brackets stands how far the interval reaches


CHARTS = {
    "noise": Chart(
        table=0,
        columns={"numpy, not secure": 3, "OpenDP": 4, "diffprivlib": 5, "python-dp": 6},
        title="Exact noise, and how many times as long the peers take",
        under="a vector of a million; right of the line discreet is faster",
        across="time over discreet's",
        names=2,
    ),
    "accounting": Chart(
        table=0,
        columns={"dp-accounting": 4, "prv-accountant": 6},
        title="Epsilon of long runs, and how many times as long the peers take",
        under="right of the line discreet is faster",
        across="time over discreet's",
    ),
    "ledger": Chart(
        table=0,
        columns={"charges a second": 1},
        title="Durable, signed charges",
        under="beside what the database does by itself: raw inserts, not signed",
        across="a second",
        even=None,
        is_log=False,
    ),
    "tables": Chart(
        table=1,
        columns={"limits declared": 2, "limits found privately": 3},
        title="Errors at equal privacy, over those of the best peer",
        under="left is more accurate; lines reach to the end of the 95% interval",
        across="mean absolute error over the best peer's",
        has_ends=True,
    ),
    "learn": Chart(
        table=0,
        columns={"discreet": 1, "Opacus hooks": 4, "Opacus ghost": 5, "functorch": 6, "vmap": 8},
        title="A private training step over an ordinary one",
        under="one H200; left is faster, and at the line privacy costs no time",
        across="time over that of the step without privacy",
    ),
}  # fmt: skip


def tables(page: str) -> list[list[list[str]]]:
    """Return the tables of a page: rows of cells, without heads."""
    found = re.findall(r"(?m)^\|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page)
    return [[[cell.strip() for cell in row.strip("|\n").split("|")]
             for row in table.splitlines()] for table in found]  # fmt: skip


def digest(name: str) -> str:
    """Return a digest of what a picture is drawn from."""
    rows = tables((FOLDER / f"{name}.md").read_text(encoding="utf-8"))[CHARTS[name].table]
    told = json.dumps([rows, list(CHARTS[name])])
    return hashlib.sha256(told.encode()).hexdigest()


def draw(name: str, path: Path) -> None:
    """Draw one page's picture."""
    chart = CHARTS[name]
    rows = tables((FOLDER / f"{name}.md").read_text(encoding="utf-8"))[chart.table]
    size = (8.5, 1.7 + 0.38 * len(rows))
    figure, (axes,) = plotting.panels(room="docs/make_benchmarks.py", size=size)
    colours = plotting.look().colours
    for place, (label, column) in enumerate(chart.columns.items()):
        told = [_numbers(row[column]) for row in rows]
        for at, numbers in enumerate(told if chart.has_ends else ()):
            axes.plot(numbers[:2], [at] * len(numbers[:2]), color=colours[place])
        known = [(numbers[0], at) for at, numbers in enumerate(told) if numbers]
        axes.plot(*zip(*known, strict=True), MARKS[place], color=colours[place], label=label)
    if chart.even is not None:
        axes.axvline(chart.even, color=plotting.look().ink, linewidth=1)
    axes.set_yticks(range(len(rows)), [_name(row, chart.names) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    if chart.is_log:
        axes.set_xscale("log")
        if axes.get_xlim()[1] < 10:
            axes.set_xticks([1, 2, 3, 4, 5, 6])
        axes.xaxis.set_minor_formatter("")
    else:
        axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.grid(visible=True, axis="x", color=plotting.look().grid)
    axes.set_xlabel(chart.across)
    if len(chart.columns) > 1:
        plotting.legend(axes, loc="upper left", bbox_to_anchor=(1, 1))
    plotting.titled(axes, chart.title, under=chart.under)
    plotting.save(figure, path)


def _numbers(cell: str) -> list[float]:
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*\.?\d*|\.\d+", cell)]


def _name(row: list[str], names: int) -> str:
    return ", ".join(re.sub(r" \(.*off\)", "", cell) for cell in row[:names])


def main() -> None:
    """Draw all of them anew whose tables changed."""
    before = json.loads(DRAWN.read_text()) if DRAWN.exists() else {}
    now = {name: digest(name) for name in CHARTS}
    for name in CHARTS:
        if now[name] != before.get(name) or not (FOLDER / f"{name}-dark.png").exists():
            draw(name, FOLDER / f"{name}.png")
            with plotting.dark():
                draw(name, FOLDER / f"{name}-dark.png")
    DRAWN.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
