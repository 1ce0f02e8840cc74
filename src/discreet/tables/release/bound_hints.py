"""What earlier answers tell about later ones: bounds that cut much, tables that are small."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from discreet.tables.model.relation import UNIT, Rows, Scan, Select
from discreet.tables.model.scalar import Call
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.results.result import Result

__all__ = ["tight_bounds", "told_counts", "told_quantiles"]

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
            at = float(result[facts["column"]][0])
            if math.isfinite(at):
                found[column, one.quantile] = at
    return found


def told_counts(prepared: Prepared, result: Result) -> dict[str, int]:
    """Return how many rows a whole table has at most, where an answer tells that."""
    query = prepared.query
    if query.keys or not _is_whole(query.rows) or len(result) != 1:
        return {}
    for one, facts in zip(query.aggregates, result.facts["aggregates"], strict=True):
        if one.kind == "count" and "column" in facts:
            most = float(result.highs[facts["column"]][0])
            return {query.tables[0]: max(0, math.ceil(most))} if math.isfinite(most) else {}
    return {}


def _is_whole(rows: Rows) -> bool:
    """Say whether these are all rows of a table that belong to somebody."""
    if not isinstance(rows, Select):
        return False
    if isinstance(rows.source, Scan):
        owners = [node for name, node in rows.columns if name == UNIT]
        has_owner = [Call("not", (Call("is_null", (node,)),)) for node in owners]
        return all(one in has_owner for one in rows.where)
    return not rows.where and len(rows.source) == 1 and _is_whole(rows.source[0].rows)


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
