"""Free changes of a released result: looking at it again costs nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from discreet.errors import ParameterError
from discreet.tables.results.columns import Array, Floats, whole

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

_COUNTS: Final = ("count", "count_values", "count_units", "count_distinct")
_PLACES: Final = ("sum", "mean", "quantile", "minimum", "maximum")

FREE: Final = "(free post-processing)"
"""What a note about such a change ends with."""

Change = Callable[[Array, Floats, Floats, Floats], tuple[Array, Floats, Floats, Floats]]


def nonnegative(result: "Result", columns: Sequence[str]) -> "Result":
    """Raise negative values to zero."""
    chosen = _chosen(result, columns, _never_negative(result), "nonnegative")
    return _changed(result, chosen, _raised, "negative values were raised to zero")


def _raised(
    values: Array, errors: Floats, lows: Floats, highs: Floats
) -> tuple[Array, Floats, Floats, Floats]:
    # The exact value is not negative, so moving up to zero never moves away from it.
    return np.maximum(values, 0), errors, np.maximum(lows, 0), np.maximum(highs, 0)


def rounded(result: "Result", columns: Sequence[str]) -> "Result":
    """Round to whole numbers."""
    chosen = _chosen(result, columns, _of_kind(result, _COUNTS), "rounded")
    return _changed(result, chosen, _whole, "values were rounded to whole numbers")


def _whole(
    values: Array, errors: Floats, lows: Floats, highs: Floats
) -> tuple[Array, Floats, Floats, Floats]:
    return whole(values), np.sqrt(errors**2 + 1 / 12), np.floor(lows), np.ceil(highs)


def _changed(result: "Result", chosen: Sequence[str], change: Change, note: str) -> "Result":
    """Replace some columns; say so in the notes."""
    values, errors = dict(result.values), dict(result.errors)
    lows, highs = dict(result.lows), dict(result.highs)
    for name in chosen:
        before = (values[name], errors[name], lows[name], highs[name])
        values[name], errors[name], lows[name], highs[name] = change(*before)
    told = f"{', '.join(chosen)}: {note} {FREE}."
    notes = (*result.notes, told)
    return replace(result, values=values, errors=errors, lows=lows, highs=highs, notes=notes)


def _of_kind(result: "Result", kinds: Sequence[str]) -> list[str]:
    shown = [a for a in result.facts.get("aggregates", ()) if a.get("kind") in kinds]
    return [a["column"] for a in shown if a.get("column") in result.measures]


def _never_negative(result: "Result") -> list[str]:
    names = _of_kind(result, (*_COUNTS, "variance", "deviation"))
    for aggregate in result.facts.get("aggregates", ()):
        bounds, name = aggregate.get("bounds"), aggregate.get("column")
        is_placed = aggregate.get("kind") in _PLACES and name in result.measures
        if is_placed and bounds and bounds[0] >= 0:
            names.append(name)
    return names


def _chosen(result: "Result", asked: Sequence[str], usual: Sequence[str], verb: str) -> list[str]:
    chosen = list(dict.fromkeys(asked or usual))
    numeric = [name for name in result.measures if result.values[name].dtype.kind in "if"]
    wrong = [name for name in chosen if name not in numeric]
    if wrong or not chosen:
        told = f"no column {wrong[0]!r} of numbers" if wrong else "no column that it is usual for"
        raise ParameterError(
            f"there is {told}; {verb} can be used on: {', '.join(numeric) or 'none'}.",
            parameter="columns",
        )
    return chosen
