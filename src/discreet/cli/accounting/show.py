"""How costs and trade-offs look: the table of methods, the curve in text, and numbers for JSON."""

import math
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.table import Table

from discreet._exact import Number
from discreet.cli.numbers import digits, shown
from discreet.cli.output import say

if TYPE_CHECKING:
    from discreet.accounting import Bracket, MethodResult

HEIGHT: Final = 20  # lines of a curve


def print_bracket(console: Console, found: "Bracket", *, delta: Number, how: str) -> None:
    """Print both bounds on a run's epsilon.

    >>> from discreet.accounting import PureLoss, bracket
    >>> cost = bracket(PureLoss(epsilon=1), delta=0)
    >>> print_bracket(Console(width=80), cost, delta=0, how="one step of pure")
    epsilon is at most 1 at delta = 0
    and at least 1, for one step of pure.
    """
    if math.isinf(found.upper):
        say(console, f"epsilon is infinite at delta = {shown(delta)}.", bold=True)
        say(console, "No epsilon is proved at this delta. Noise that is not pure needs more.")
        return
    upper, lower = digits(found.upper, up=True), digits(found.lower, up=False)
    say(console, f"epsilon is at most {upper} at delta = {shown(delta)}", bold=True)
    say(console, f"and at least {lower}, for {how}.")


def method_table(results: "tuple[MethodResult, ...]") -> Table:
    """Lay out methods side by side.

    >>> method_table(()).row_count
    0
    """
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("note")
    for result in results:
        if result.epsilon is None:
            number = "-"
        else:
            number = (
                digits(result.epsilon, up=True) if result.is_bound else f"~{result.epsilon:.4g}"
            )
        table.add_row(result.name, number, f"{1000 * result.seconds:.3g}", result.note)
    return table


def method_facts(result: "MethodResult") -> dict[str, object]:
    return {
        "name": result.name,
        "epsilon": result.epsilon,
        "seconds": result.seconds,
        "is_bound": result.is_bound,
        "note": result.note,
    }


def drawing(misses: list[float]) -> list[str]:
    """Draw a trade-off curve in text, a dot for guessing beside it.

    >>> drawing([1.0, 0.5, 0.0])[0]
    ' misses'
    """
    last = len(misses) - 1
    rows = [[" "] * len(misses) for _ in range(HEIGHT)]
    for x, missed in enumerate(misses):
        rows[round((1 - (1 - x / last)) * (HEIGHT - 1))][x] = "."
        rows[round((1 - missed) * (HEIGHT - 1))][x] = "*"
    axis = ["1 |", *["  |"] * (HEIGHT - 2), "0 |"]
    body = [label + "".join(row).rstrip() for label, row in zip(axis, rows, strict=True)]
    legend = "   0" + "false alarms (. guessing)".center(len(misses) - 2) + "1"
    return [" misses", *body, "  +" + "-" * len(misses), legend]


def finite(value: float) -> float | None:
    """JSON has no infinity; null says that there is no number."""
    return value if math.isfinite(value) else None
