"""How an attack looks: without protection and with it, in words, bars, a picture or JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.text import Text

from discreet._json import read_json
from discreet.cli.ledger.burn_down import bar
from discreet.cli.options import FILE
from discreet.cli.output import echo_json, fitted, is_plain, readable, say, tell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.attacks import AttackReport

_WIDE = 40  # columns of a bar

PlotOption = Annotated[Path | None, FILE(help="Draw both as bars: a .png, .svg or .pdf.")]


def show_pair(
    console: Console,
    before: "AttackReport",
    after: "AttackReport | None",
    *,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print an attack without protection, and with it where that was tried.

    >>> from discreet.attacks import AttackReport
    >>> facts = {"attack": "linkage", "measure": "people found", "baseline": 0.01,
    ...          "confidence": 0.95, "trials": 100}
    >>> before = AttackReport(success=0.9, interval=(0.82, 0.95), summary="Most found.", **facts)
    >>> after = AttackReport(success=0.02, interval=(0, 0.07), summary="Hardly any is.", **facts)
    >>> show_pair(Console(width=80, color_system=None), before, after, plot=None, as_json=False)
    ... # doctest: +ELLIPSIS
    Without protection
    linkage: Most found.
    ...
    """
    reports = {"before": before} if after is None else {"before": before, "after": after}
    if plot is not None:
        _drawn(plot, lambda: before.plot(plot, beside=after))
    if as_json:
        echo_json({name: read_json(report.to_json()) for name, report in reports.items()})
        return
    titles = ["Without protection", "With protection"]
    for title, report in zip(titles, reports.values(), strict=False):
        say(console, title, bold=True)
        lines = str(report).split("\n")
        text = "\n".join(readable(line, console) for line in lines)
        console.print(Text(fitted(text, console)), soft_wrap=True)
        console.print()
    _print_bars(console, titles, list(reports.values()))
    if plot is not None:
        tell(f"Wrote {plot}.", console=console)


def _print_bars(console: Console, titles: list[str], reports: list["AttackReport"]) -> None:
    """Print each success as a bar, so that the two can be compared at a glance."""
    names = [title.lower() for title in titles[: len(reports)]]
    wide = max(map(len, names))
    say(console, reports[0].measure)
    for name, report in zip(names, reports, strict=True):
        drawn = bar(min(1.0, report.success), width=_WIDE, is_plain=is_plain(console))
        console.print(Text(f"  {name:<{wide}}  {drawn}  {100 * report.success:.3g}%"))


def _drawn(plot: Path, draw: Callable[[], object]) -> None:
    """Draw, and name the option where the file cannot be written."""
    try:
        draw()
    except OSError as error:
        raise ParameterError(
            f"--plot: {plot} cannot be written ({error.strerror or 'no such place'}). "
            "Name another file.",
            parameter="plot",
        ) from None
