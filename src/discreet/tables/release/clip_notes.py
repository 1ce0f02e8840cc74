"""What inferred bounds and limits cut, in words and as facts."""

import math
from datetime import date, timedelta
from typing import Any

from discreet.tables.algorithms.limit_choice import ChosenBounds, ChosenLimit
from discreet.tables.model.catalog import Catalog
from discreet.tables.model.steepness import steep_values
from discreet.tables.pricing.people import people_needed
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.release.execution.run import Released

__all__ = ["clip_facts", "clip_notes"]

_WHAT = {"rows": "row", "norm": "row", "groups": "group"}


def clip_notes(prepared: Prepared, released: Released, catalog: Catalog) -> list[str]:
    """Say what was chosen privately, and how many were cut by it."""
    notes = []
    for name, cut in released.cuts.items():
        if cut is not None:
            most = float(released.limits[name])
            over = " (as a norm over groups)" if name == "norm" else ""
            limit = f"{most:,g} {_WHAT.get(name, 'value')}{'s' * (most != 1)}{over}"
            if name.startswith("total_"):
                value = int(name.removeprefix("total_"))
                text, total = prepared.query.values[value].text, released.totals[value]
                over = " (as a norm over groups)" if prepared.price.order == 2 else ""
                limit = f"a sum of {text} of {float(total):,.6g}{over}"
            notes.append(
                f"a person counts with at most {limit}, chosen privately: {_cut_rows(cut)}."
            )
    for value, clamp in released.clamps.items():
        if clamp is not None:
            of = prepared.query.values[value]
            is_time = of.text in _times(prepared, catalog)
            notes.append(
                f"{of.text} was clamped to {_ends(clamp, is_time=is_time)}, chosen privately: "
                f"{_cut_people(clamp)}."
            )
    notes += [
        f"a few rows can make {prepared.query.values[value].text} as large as they like, and noise "
        "hides them: what was cut is unknown. Of a quotient ask SUM(a) / SUM(b), or write the "
        "range that counts, CLAMP(a / b, low, high)."
        for value in steep_values(prepared.query)
        if released.clamps.get(value) is not None and value in _added(prepared)
    ]
    if None in released.cuts.values() or None in released.clamps.values():
        needed = people_needed(prepared, catalog)
        assert needed is not None
        notes.append(
            f"NULL: too few people were found to choose the {needed} at this epsilon; it takes "
            f"about {needed.number:,} of similar size. Declare them, or pay more."
        )
    return notes


def clip_facts(released: Released, values: tuple[int, ...]) -> dict[str, Any]:
    """Return the shares of people that inferred bounds cut: as seen, and at most, about."""
    found = [clamp for v in values if (clamp := released.clamps.get(v)) is not None]
    if not found:
        return {}
    return {"cut": [max(_seen(one) for one in found), max(_most(one) for one in found)]}


def _added(prepared: Prepared) -> set[int]:
    """Return the values that are added up: of a quantile only its neighbours matter."""
    added = [one for one in prepared.query.aggregates if one.spec.draws is None]
    return {value for one in added for value in one.values}


def _seen(clamp: ChosenBounds) -> float:
    return min(1.0, (clamp.below.seen + clamp.above.seen) / max(clamp.units, 1.0))


def _most(clamp: ChosenBounds) -> float:
    return min(1.0, (clamp.below.units + clamp.above.units) / max(clamp.units, 1.0))


def _cut_people(clamp: ChosenBounds) -> str:
    if not (clamp.below.is_known and clamp.above.is_known):
        return "too few people, or values that fall off too slowly, to tell what it cut"
    return f"{_about(_seen(clamp), _most(clamp))} of people were cut"


def _cut_rows(cut: ChosenLimit) -> str:
    if not math.isfinite(cut.share):
        return "too few people, or numbers that fall off too slowly, to tell what it cut"
    most = cut.share / (1 + cut.share)
    return f"{_about(0.0, most)} was cut"


def _about(seen: float, most: float) -> str:
    """Write a share: as seen, where that is more than noise."""
    if seen > most / 2:
        return f"about {seen:.2g}" if seen < 1e-4 else f"about {seen:.1%}"
    return "fewer than 0.1%" if most < 0.001 else f"at most about {most:.1%}"


def _ends(clamp: ChosenBounds, *, is_time: bool) -> str:
    written = _day if is_time else _number
    return f"{written(float(clamp.low))}..{written(float(clamp.high))}"


def _number(end: float) -> str:
    return f"{end:,.6g}"


def _day(seconds: float) -> str:
    """Write seconds since 1970 as a day, where the calendar reaches so far."""
    try:
        return (date(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return f"{_number(seconds)} seconds after 1970"


def _times(prepared: Prepared, catalog: Catalog) -> set[str]:
    """Return the names of columns that hold dates or times."""
    tables = [table for table in catalog.tables if table.name in prepared.query.tables]
    return {column.name for table in tables for column in table.columns if column.kind == "time"}
