"""Pictures of results, error bars included."""

import sys
from datetime import date
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from discreet.errors import MissingExtra, ParameterError
from discreet.tables.results.columns import Array, kind
from discreet.tables.results.format import clean, key, short

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

_MOST_BARS: Final = 40


def plot(result: "Result", column: str | None, *, axes: Any = None) -> Any:
    """Draw one column of a result."""
    name = _chosen(result, column)
    axes = _axes() if axes is None else axes
    values = result.values[name].astype(np.float64)
    low, high = result.lows[name], result.highs[name]
    if not result.keys:
        _points(axes, values, low, high, [clean(name)])
    elif len(result.keys) == 1 and _is_ordered(result.values[result.keys[0]]):
        _line(axes, result.values[result.keys[0]], values, low, high)
    else:
        _bars(axes, result, name, values)
    _title(axes, result, name)
    return axes


def _chosen(result: "Result", column: str | None) -> str:
    numeric = [name for name in result.measures if result.values[name].dtype.kind in "if"]
    if column is None and numeric:
        return numeric[0]
    if column not in numeric:
        raise ParameterError(
            f"column must be one of the columns of numbers: {', '.join(numeric) or 'none'}.",
            parameter="column",
        )
    return str(column)


def _axes() -> Any:
    try:
        # Who has pyplot loaded, in a notebook say, expects to see the figure.
        if "matplotlib.pyplot" in sys.modules:
            return sys.modules["matplotlib.pyplot"].subplots(layout="constrained")[1]
        figure = import_module("matplotlib.figure").Figure(figsize=(7, 4), layout="constrained")
    except ImportError:
        raise MissingExtra(room="discreet.tables", needs="matplotlib", extra="plot") from None
    return figure.add_subplot()


def _is_ordered(values: Array) -> bool:
    if values.dtype.kind in "if":
        return len(values) > 1
    items = values.tolist()
    return len(items) > 1 and all(isinstance(item, date) for item in items)


def _arms(values: Array, low: Array, high: Array) -> Array:
    """Return how far the interval reaches down and up; nowhere where it is unknown."""
    arms = np.array([values - low, high - values])
    return np.where(np.isfinite(arms), np.maximum(arms, 0), 0)


def _points(axes: Any, values: Array, low: Array, high: Array, names: list[str]) -> None:
    places = range(len(values))
    axes.errorbar(places, values, yerr=_arms(values, low, high), fmt="o", capsize=4)
    axes.set_xticks(places, names * len(values), parse_math=False)


def _line(axes: Any, at: Array, values: Array, low: Array, high: Array) -> None:
    known = np.array([item == item and item is not None for item in at.tolist()], dtype=bool)
    order = np.argsort(at[known], kind="stable")
    places = at[known][order]
    axes.plot(places, values[known][order], marker=".")
    if at.dtype.kind == "O":  # dates
        dates = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.fill_between(places, low[known][order], high[known][order], alpha=0.25, linewidth=0)


def _bars(axes: Any, result: "Result", name: str, values: Array) -> None:
    shown = slice(0, _MOST_BARS)
    kept = values[shown]
    arms = _arms(values, result.lows[name], result.highs[name])[:, shown]
    colours = ["C0" if good else "0.75" for good in result.reliable[name][shown]]
    axes.bar(range(len(kept)), kept, yerr=arms, capsize=3, color=colours)
    columns = [[key(item) for item in result.values[k][shown].tolist()] for k in result.keys]
    names = [short(", ".join(parts), 24) for parts in zip(*columns, strict=True)]
    turn = {} if sum(map(len, names)) < 60 else {"rotation": 60, "ha": "right"}
    # A key is a key, also with dollar signs in it, which would begin a formula.
    axes.set_xticks(range(len(kept)), names, parse_math=False, **turn)
    if turn:
        for label in axes.get_xticklabels():
            label.set_rotation_mode("anchor")
    if len(values) > _MOST_BARS:
        axes.text(0.99, 0.98, f"the first {_MOST_BARS} of {len(values):,} groups", ha="right",
                  va="top", transform=axes.transAxes, fontsize="small")  # fmt: skip


def _title(axes: Any, result: "Result", name: str) -> None:
    if len(result.keys) == 1 and kind(result.values[result.keys[0]]) != "mixed":
        axes.set_xlabel(clean(result.keys[0]), parse_math=False)
    axes.set_ylabel(clean(name), parse_math=False)
    axes.set_title(
        f"intervals of {100 * result.confidence:.6g}% for the noise, epsilon={result.epsilon:.4g}",
        fontsize="small",
    )
    axes.grid(visible=True, axis="y", alpha=0.3)
    axes.set_axisbelow(True)
