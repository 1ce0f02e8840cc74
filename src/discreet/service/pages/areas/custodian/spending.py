"""Who spent what on which purpose: one table, and one small chart for each purpose."""

import time
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
    return {
        "name": call.dataset,
        "looked_at": _LOOKED_AT,
        "spent": [_row(one) for one in found],
        "used": sum(one.used for one in found),
        "charts": _charts(found),
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


def _charts(found: Sequence[Spending]) -> list[dict[str, Any]]:
    """Return small charts of one size and one scale, so that they can be compared."""
    by_purpose: defaultdict[str, list[Spending]] = defaultdict(list)
    for one in found:
        by_purpose[one.purpose].append(one)
    times = [_seconds(point.time) for one in found for point in one.points]
    ends = (min(times, default=0.0) - 1, time.time())
    most = 105 * max((one.used for one in found), default=1.0)
    return [
        {"purpose": purpose, "chart": _chart(shown, ends=ends, most=most)}
        for purpose, shown in list(by_purpose.items())[:_MOST]
    ]


def _chart(found: Sequence[Spending], *, ends: tuple[float, float], most: float) -> dict[str, Any]:
    """Return curves over one time axis: each keeps its height until it moves again."""
    shown = found[:_CURVES]
    moments = {_seconds(point.time) for one in shown for point in one.points}
    x = sorted({*ends, *moments})
    return {
        "x": x,
        "series": [{"label": one.who, "y": _heights(one, x), "steps": True} for one in shown],
        "time": True,
        "y_range": [0, most],
        "y_label": "used, %",
        "height": 200,
    }


def _heights(one: Spending, x: Sequence[float]) -> list[float]:
    known = {_seconds(point.time): 100 * point.used for point in one.points}
    height = 0.0
    return [height := known.get(at, height) for at in x]


def _seconds(told: str) -> float:
    return datetime.fromisoformat(told).timestamp()
