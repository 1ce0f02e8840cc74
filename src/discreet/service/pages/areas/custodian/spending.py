"""Who spent what on which purpose: one table, and one small chart for each purpose."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from discreet.ledger import Spending, spending
from discreet.service.pages.areas.custodian.tables_of_text import as_csv
from discreet.service.pages.page import PageCall, PageFile

__all__ = ["spent", "spent_file"]

_MOST: Final = 12  # charts
_CURVES: Final = 5  # in each: as many as there are colours
_LOOKED_AT: Final = 20_000


async def spent(call: PageCall) -> Mapping[str, Any]:
    """Show who spent what."""
    found = await _found(call)
    by_purpose: defaultdict[str, list[Spending]] = defaultdict(list)
    for one in found:
        by_purpose[one.purpose].append(one)
    return {
        "name": call.dataset,
        "looked_at": _LOOKED_AT,
        "spent": [_row(one) for one in found],
        "used": sum(one.used for one in found),
        "charts": [
            {"purpose": purpose, "chart": _chart(found)}
            for purpose, found in list(by_purpose.items())[:_MOST]
        ],
    }


async def spent_file(call: PageCall) -> PageFile:
    """Give the same as a table for other programs."""
    rows = [_row(one) for one in await _found(call)]
    return as_csv(
        f"{call.dataset}-spending.csv", ("who", "purpose", "used", "charges", "latest"), rows
    )


async def _found(call: PageCall) -> list[Spending]:
    account = call.gateway.desk.served(call.who, call.dataset).tables.account
    return await call.gateway.desk.free(partial(spending, account, last=_LOOKED_AT), call.who)


def _row(one: Spending) -> dict[str, Any]:
    return {
        "who": one.who,
        "purpose": one.purpose,
        "used": one.used,
        "charges": one.charges,
        "latest": one.latest,
    }


def _chart(found: Sequence[Spending]) -> dict[str, Any]:
    """Return curves over one time axis: each keeps its height until it moves again."""
    shown = found[:_CURVES]
    x = sorted({_seconds(point.time) for one in shown for point in one.points})
    return {
        "x": x,
        "series": [{"label": one.who, "y": _steps(one, x), "steps": True} for one in shown],
        "time": True,
        "y_label": "used, %",
        "height": 200,
    }


def _steps(one: Spending, x: Sequence[float]) -> list[float | None]:
    heights = {_seconds(point.time): 100 * point.used for point in one.points}
    height: float | None = None
    steps = []
    for at in x:
        height = heights.get(at, height)
        steps.append(height)
    return steps


def _seconds(told: str) -> float:
    return datetime.fromisoformat(told).timestamp()
