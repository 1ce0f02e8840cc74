"""What happened in a session so far, read from its ledger: answers, prices, what is left."""

import itertools
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

from discreet.ledger import Receipt, burn_down
from discreet.service.pages.areas.explorer.truth import exact_rows
from discreet.service.pages.areas.explorer.visits import Visit
from discreet.tables import Result

__all__ = ["answers_of", "burned", "results_of"]


def results_of(visit: Visit) -> list[tuple[int, Result]]:
    """Return all answers with their entries in the ledger, oldest first."""
    account = visit.tables.account
    entries = [int(one["index"]) for one in account.history() if one["kind"] == "release"]
    return [
        (
            entry,
            Result.from_json(account.ledger.answer_of(entry), receipt=Receipt(bodies=()), left=0),
        )
        for entry in entries
    ]


def burned(visit: Visit) -> dict[str, Any]:
    """Return what is left of the budget after each answer, to be drawn."""
    left = [1 - point.used for point in burn_down(visit.tables.account)]
    kept = [left[0], *(now for before, now in itertools.pairwise(left) if now < before)]
    return {
        "x": list(range(len(kept))),
        "series": [
            {
                "label": "left of the budget, in percent",
                "y": [100 * one for one in kept],
                "steps": True,
            }
        ],
        "x_label": "answers",
        "y_label": "% left",
        "y_range": [0, 100],
        "height": 160,
    }


def answers_of(visit: Visit, results: Sequence[tuple[int, Result]]) -> list[dict[str, Any]]:
    """Return the answers, newest first; with the truth beside them where it was asked for."""
    truths: list[list[tuple[Any, ...]] | None] = [None] * len(results)
    if visit.folder.is_revealed and results:
        truths = exact_rows(visit.folder.seed, [one.question for _, one in results])
    return [
        {
            "number": number,
            "entry": entry,
            "question": result.question,
            "epsilon": result.epsilon,
            "keys": list(result.keys),
            "measures": _measures(result, truth),
            "notes": list(result.notes),
        }
        for number, ((entry, result), truth) in enumerate(
            zip(results, truths, strict=True), start=1
        )
    ][::-1]


def _measures(result: Result, truth: list[tuple[Any, ...]] | None) -> list[dict[str, Any]]:
    """Return each column of values as rows to be drawn: value, interval, and perhaps the truth."""
    keys = [result.columns.index(name) for name in result.keys]
    exact = {tuple(_plain(row[at]) for at in keys): row for row in truth or []}
    rows = result.to_dicts()
    found = []
    for name in result.measures:
        place = result.columns.index(name)
        points = []
        for row in rows:
            key = tuple(_plain(row[one]) for one in result.keys)
            point = {
                "label": ", ".join(map(str, key)) or name,
                "value": _plain(row[name]),
                "low": _plain(row[f"{name}_low"]),
                "high": _plain(row[f"{name}_high"]),
                "told": _told(row[name], row[f"{name}_low"], row[f"{name}_high"]),
                "is_reliable": bool(row[f"{name}_reliable"]),
                "half_width": _half(row, name),
            }
            if truth is not None and key in exact:
                point["mark"] = _number(exact[key][place])
            points.append(point)
        found.append({"name": name, "points": points})
    return found


def _told(*numbers: Any) -> list[Any]:
    """Return a value and the ends of its interval with as many digits as the interval leaves."""
    value, low, high = map(_plain, numbers)
    if low is None or high is None or not high > low:
        return [value, low, high]
    places = 1 - math.floor(math.log10((high - low) / 2))
    return [round(one, places) if isinstance(one, float) else one for one in (value, low, high)]


def _half(row: Mapping[str, Any], name: str) -> float | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    half = (high - low) / 2
    return half if math.isfinite(half) else None


def _number(value: Any) -> Any:
    """Return a number of plain SQL as JSON has it."""
    try:
        return _plain(float(value)) if value is not None else None
    except (TypeError, ValueError):
        return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return value
