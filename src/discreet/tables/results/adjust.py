"""Free changes of a released result: looking at it again costs nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from discreet._exact import Number, positive
from discreet._words import percent
from discreet.errors import ParameterError
from discreet.tables.model.aggregates import SPECS, AggregateSpec
from discreet.tables.results.columns import Array, Floats, column, python, whole

if TYPE_CHECKING:
    from discreet.tables.model.query import KeyValue
    from discreet.tables.results.result import Result

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
    counts = [name for name, spec, _ in _shown_as_is(result) if spec.counts]
    chosen = _chosen(result, columns, counts, "rounded")
    return _changed(result, chosen, _whole, "values were rounded to whole numbers")


def _whole(
    values: Array, errors: Floats, lows: Floats, highs: Floats
) -> tuple[Array, Floats, Floats, Floats]:
    return whole(values), np.sqrt(errors**2 + 1 / 12), np.floor(lows), np.ceil(highs)


def withheld(result: "Result", columns: Sequence[str], *, beyond: Number) -> "Result":
    """Leave out values whose intervals are wide."""
    share = float(positive(beyond, name="beyond"))
    usual = [name for name in result.measures if result.values[name].dtype.kind in "if"]
    chosen = _chosen(result, columns, usual, "withheld")

    def change(
        values: Array, errors: Floats, lows: Floats, highs: Floats
    ) -> tuple[Array, Floats, Floats, Floats]:
        half = np.maximum(values - lows, highs - values)
        kept = half <= share * np.abs(values)  # not where either is unknown
        left_out = [np.where(kept, part, np.nan) for part in (values, errors, lows, highs)]
        return left_out[0], left_out[1], left_out[2], left_out[3]

    told = percent(share, up=True)
    note = f"values whose interval reaches farther than {told} of them were left out"
    return _changed(result, chosen, change, note)


def with_key(
    result: "Result", name: str, *, of: str, mapping: "Mapping[Any, KeyValue]"
) -> "Result":
    """Add a key that another one determines."""
    if of not in result.keys or name in result.columns:
        raise ParameterError(
            f"of must be one of the keys ({', '.join(result.keys) or 'there are none'}), and name "
            "none of the columns.",
            parameter="of" if of not in result.keys else "name",
        )
    found = python(result.values[of])
    missing = sum(item not in mapping for item in found)
    if missing:
        raise ParameterError(
            f"mapping must have each value of {of!r}, and {missing} rows have one that it lacks.",
            parameter="mapping",
        )

    def before(names: Sequence[str]) -> tuple[str, ...]:
        at = names.index(of)
        return (*names[:at], name, *names[at:])

    return replace(
        result,
        columns=before(result.columns),
        keys=before(result.keys),
        values={**result.values, name: column([mapping[item] for item in found], name=name)},
        notes=(*result.notes, f"{name}: added as what {of} determines {FREE}."),
    )


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


def _shown_as_is(result: "Result") -> Iterator[tuple[str, AggregateSpec, Any]]:
    """Yield the columns that show an aggregate as it is, with the bounds of its values."""
    for facts in result.facts.get("aggregates", ()):
        spec = SPECS.get(facts.get("kind"))
        if spec is not None and facts.get("column") in result.measures:
            yield facts["column"], spec, facts.get("bounds")


def _never_negative(result: "Result") -> list[str]:
    shown = list(_shown_as_is(result))
    always = [name for name, spec, _ in shown if spec.sign == "never_negative"]
    placed = [(name, ends) for name, spec, ends in shown if spec.sign == "as_values"]
    return always + [name for name, ends in placed if ends and ends[0] >= 0]


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
