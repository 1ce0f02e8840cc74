"""Pictures of results, error bars included: one panel for each column of numbers."""

from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import discreet.plotting as plotting
from discreet.errors import ParameterError
from discreet.tables.results.columns import Array, kind
from discreet.tables.results.format import clean, key, short

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

_MOST_BARS: Final = 40
_MOST_LETTERS: Final = 70  # of numbers that are written on bars


def plot(result: "Result", column: str | None, *, axes: Any = None) -> Any:
    """Draw one column of a result and return its axes, or all and return those of each."""
    names = _chosen(result, column)
    if axes is not None:
        _panel(result, names[0], axes)
        return axes
    _, drawn = plotting.panels(
        len(names),
        room="discreet.tables",
        size=(7.0, 1.2 + 3.0 * len(names)),
        in_notebook=True,
    )
    for place, (name, one) in enumerate(zip(names, drawn, strict=True)):
        _panel(result, name, one)
        if one is not drawn[-1]:  # all panels have the same groups, and the last one names them
            one.tick_params(labelbottom=False)
            one.set_xlabel("")
        plotting.titled(one, _title(result, name), under="" if place else _under(result))
    return drawn[0] if len(drawn) == 1 else tuple(drawn)


def _chosen(result: "Result", column: str | None) -> list[str]:
    numeric = [name for name in result.measures if result.values[name].dtype.kind in "if"]
    if column is None and numeric:
        return numeric
    if column not in numeric:
        raise ParameterError(
            f"column must be one of the columns of numbers: {', '.join(numeric) or 'none'}.",
            parameter="column",
        )
    return [str(column)]


def _panel(result: "Result", name: str, axes: Any) -> None:
    values = result.values[name].astype(np.float64)
    low, high = result.lows[name], result.highs[name]
    if not result.keys:
        _points(axes, values, low, high, [clean(name)])
    elif len(result.keys) == 1 and _is_ordered(result.values[result.keys[0]]):
        _line(axes, result.values[result.keys[0]], values, low, high)
    else:
        _bars(axes, result, name, values)
    if len(result.keys) == 1 and kind(result.values[result.keys[0]]) != "mixed":
        axes.set_xlabel(clean(result.keys[0]), parse_math=False)
    axes.set_ylabel(clean(name), parse_math=False)
    axes.yaxis.set_major_formatter("{x:,.10g}")


def _title(result: "Result", name: str) -> str:
    keys = " and ".join(clean(one) for one in result.keys)
    return f"{clean(name)} by {keys}" if keys else clean(name)


def _under(result: "Result") -> str:
    return (
        f"noisy answers; intervals hold the exact ones with {100 * result.confidence:.6g}%; "
        f"epsilon={result.epsilon:.4g}"
    )


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
    places, arms = range(len(values)), _arms(values, low, high)
    plotting.interval(axes, places, values, arms, fmt="o", markersize=8)
    axes.set_xticks(places, names * len(values), parse_math=False)
    axes.set_xlim(-0.5, len(values) - 0.5)
    _written(axes, values, values, arms, beside=True)


def _line(axes: Any, at: Array, values: Array, low: Array, high: Array) -> None:
    known = np.array([item == item and item is not None for item in at.tolist()], dtype=bool)
    order = np.argsort(at[known], kind="stable")
    places, colour = at[known][order], plotting.look().colours[0]
    axes.plot(places, values[known][order], marker="o", markersize=4, color=colour)
    if at.dtype.kind == "O":
        plotting.dated(axes)
    axes.fill_between(
        places, low[known][order], high[known][order], alpha=0.35, linewidth=0, color=colour
    )


def _bars(axes: Any, result: "Result", name: str, values: Array) -> None:
    shown, look = slice(0, _MOST_BARS), plotting.look()
    kept = values[shown]
    arms = _arms(values, result.lows[name], result.highs[name])[:, shown]
    reliable = result.reliable[name][shown]
    colours = [look.colours[0] if good else look.quiet for good in reliable]
    axes.bar(range(len(kept)), kept, width=0.7, color=colours, alpha=0.8)
    plotting.interval(axes, range(len(kept)), kept, arms)
    columns = [[key(item) for item in result.values[k][shown].tolist()] for k in result.keys]
    names = [short(", ".join(parts), 24) for parts in zip(*columns, strict=True)]
    turn = {} if sum(map(len, names)) < 60 else {"rotation": 45, "ha": "right"}
    # A key is a key, also with dollar signs in it, which would begin a formula.
    axes.set_xticks(range(len(kept)), names, parse_math=False, **turn)
    if turn:
        for label in axes.get_xticklabels():
            label.set_rotation_mode("anchor")
    notes = []
    if len(values) > _MOST_BARS:
        notes.append(f"the first {_MOST_BARS} of {len(values):,} groups")
    if not all(reliable):
        notes.append("grey: mostly noise")
    if notes:
        axes.text(0.99, 0.98, "; ".join(notes), ha="right", va="top", color=look.quiet,
                  transform=axes.transAxes, fontsize="small")  # fmt: skip
    _written(axes, np.maximum(kept + arms[1], 0), kept, arms)


def _written(axes: Any, at: Array, values: Array, arms: Array, *, beside: bool = False) -> None:
    """Write the numbers where there is room: a small interval on a tall bar is hard to see."""
    told = [_told(*one) for one in zip(values.tolist(), arms.max(axis=0).tolist(), strict=True)]
    if sum(map(len, told)) > _MOST_LETTERS:
        return
    for place, (height, words) in enumerate(zip(at.tolist(), told, strict=True)):
        axes.annotate(
            words,
            (place, height),
            xytext=(12, -3) if beside else (0, 4),
            textcoords="offset points",
            ha="left" if beside else "center",
            fontsize=9,
            color=plotting.look().ink,
        )
    axes.margins(y=0.12)


def _told(value: float, reach: float) -> str:
    if not np.isfinite(value):
        return ""
    digits = 0 if reach >= 10 or value == round(value) else 2
    return f"{value:,.{digits}f}" + (f" ± {reach:,.{digits}f}" if reach else "")
