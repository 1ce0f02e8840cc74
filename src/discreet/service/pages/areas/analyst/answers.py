"""An answer that was paid for, as the ledger keeps it: shown, drawn, and to be taken along."""

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from discreet.errors import AccountNotFound
from discreet.ledger import Receipt
from discreet.privacy import Guarantee
from discreet.service.pages.areas.analyst.meaning import meaning, read_prior
from discreet.service.pages.page import PageCall, PageFile
from discreet.service.web.handlers.answers import answer_document, receipt_document
from discreet.service.web.handlers.books import proven_receipt
from discreet.tables import Result

__all__ = ["answer", "answer_csv", "receipt", "receipt_file"]


async def answer(call: PageCall) -> Mapping[str, Any]:
    """Show an answer of the login's own: values with their intervals, as table and as charts."""
    result, account = await _kept(call)
    told = partial(
        meaning,
        Guarantee(epsilon=result.epsilon, delta=result.delta),
        loss=result.loss,
        neighbours=str(result.facts.get("neighbours", "add_remove")),
        prior=read_prior(call),
    )
    return {
        "entry": int(call.path["entry"]),
        "dataset": _dataset_of(call, account),
        "answer": answer_document(result, is_recalled=True),
        "measures": [_measure(result, name) for name in result.measures],
        "unit": result.facts.get("unit"),
        "meaning": await call.gateway.desk.free(told, call.who),
    }


async def answer_csv(call: PageCall) -> PageFile:
    """Return the values with their error bars."""
    result, _ = await _kept(call)
    text = await call.gateway.desk.free(lambda: str(result.to_csv()), call.who)
    name = f"answer-{call.path['entry']}.csv"
    return PageFile(name=name, media_type="text/csv; charset=utf-8", content=text.encode())


async def receipt(call: PageCall) -> Mapping[str, Any]:
    """Show a receipt with its proof, as whoever verifies it reads it."""
    return receipt_document(await proven_receipt(call.web()))


async def receipt_file(call: PageCall) -> PageFile:
    """Return the receipt as the file that ``discreet verify`` reads."""
    found = json.dumps(await receipt(call), indent=1)
    name = f"receipt-{call.path['entry']}.json"
    return PageFile(name=name, media_type="application/json", content=found.encode())


async def _kept(call: PageCall) -> tuple[Result, str]:
    """Return an answer and its account, if the login asked for it. Nobody else sees answers."""
    found, ledger, who = await proven_receipt(call.web()), call.gateway.shelf.ledger, call.who.who

    def read() -> Result | None:
        entry = found.entries[-1]
        if entry["kind"] != "release" or not _is_own(found, who, call):
            return None
        return Result.from_json(ledger.answer_of(int(entry["index"])), receipt=found, left=math.nan)

    result = await call.gateway.desk.free(read, call.who)
    if result is None:
        raise AccountNotFound("there is no such answer that this login was given.")
    return result, str(found.entries[-1]["account"])


def _is_own(found: Receipt, who: str, call: PageCall) -> bool:
    account = call.gateway.shelf.ledger[str(found.entries[-1]["account"])]
    return found.entries[0].get("who") == who or who in account.askers(found)


def _dataset_of(call: PageCall, account: str) -> str | None:
    names = (one.tables.name for one in call.gateway.shelf if one.tables.account.name == account)
    return next((name for name in names if call.who.sees(name)), None)


def _measure(result: Result, name: str) -> dict[str, Any]:
    """Return one column as the points of a chart, and how many decimals its noise leaves."""
    lows, highs = (list(map(_number, part[name])) for part in (result.lows, result.highs))
    labels = [
        ", ".join(str(result[key][row]) for key in result.keys) or name
        for row in range(len(result))
    ]
    points = [
        {"label": label, "value": _number(value), "low": low, "high": high, "is_reliable": bool(ok)}
        for label, value, low, high, ok in zip(
            labels, result[name], lows, highs, result.reliable[name], strict=True
        )
    ]
    return {"name": name, "points": points, "decimals": _decimals(lows, highs)}


def _decimals(lows: list[float | None], highs: list[float | None]) -> int | None:
    """Keep two digits of the shortest interval's half: what follows is noise."""
    ends = zip(lows, highs, strict=True)
    widths = [high - low for low, high in ends if low is not None and high is not None]
    known = [width / 2 for width in widths if width > 0]
    return max(0, 1 - math.floor(math.log10(min(known)))) if known else None


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None
