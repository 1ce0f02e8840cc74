"""Bounds that cut much, as far as quantiles that were released before tell."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from discreet.tables.pricing.prepared import Prepared
from discreet.tables.results.result import Result

__all__ = ["tight_bounds", "told_quantiles"]

_NEAR: Final = Fraction(1, 50)  # of the range: a quantile so close to a bound was probably cut

Told = Mapping[tuple[str, Fraction], float]


def told_quantiles(prepared: Prepared, result: Result) -> dict[tuple[str, Fraction], float]:
    """Return the quantiles of a whole column that an answer tells, by column and share."""
    query = prepared.query
    if query.keys or len(result) != 1:
        return {}
    found = {}
    for one, facts in zip(query.aggregates, result.facts["aggregates"], strict=True):
        column = query.values[one.values[0]].column if one.values else None
        if column and one.quantile and "column" in facts:
            found[column, one.quantile] = float(result[facts["column"]][0])
    return found


def tight_bounds(prepared: Prepared, told: Told) -> list[str]:
    """Warn where a released quantile lies at a bound: what is cut there is in no error bar.

    A lower bound of 0 is left alone, since most columns simply end there.
    """
    notes = []
    for value in prepared.query.values:
        for (column, share), at in told.items():
            if column != value.column or value.bounds is None:
                continue
            low, high = (float(end) for end in value.bounds)
            margin = float(_NEAR) * (high - low)
            is_cut_above = share >= Fraction(1, 2) and at >= high - margin
            is_cut_below = share <= Fraction(1, 2) and low != 0 and at <= low + margin
            if is_cut_above or is_cut_below:
                notes.append(
                    f"the bounds of {column} look tight: its {float(share):.0%} quantile was "
                    f"released as {at:,.6g}, near one of them. What is cut there is in no error bar"
                )
    return notes
