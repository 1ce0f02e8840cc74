"""Results, quotes and entries as the documents that go over the wire."""

import math
from datetime import date, datetime, time
from typing import Any

from discreet._json import read_json
from discreet.ledger import Receipt
from discreet.tables import Quote, Result, Workload, write_quote

__all__ = ["answer_document", "entry_document", "plan_document", "quote_document"]

_HIDDEN = ("previous", "key", "after", "holds", "pricing")  # of use to whoever verifies the log


def answer_document(result: Result, *, is_recalled: bool | None = None) -> dict[str, Any]:
    """Return an answer for people and programs; ``document`` rebuilds it to the last bit."""
    return {
        "columns": list(result.columns),
        "keys": list(result.keys),
        "rows": [{name: _plain(value) for name, value in row.items()} for row in result],
        "question": result.question,
        "epsilon": result.epsilon,
        "delta": result.delta,
        "confidence": result.confidence,
        "share": _finite(result.share),
        "left": _finite(result.left),
        "more": _finite(result.more),
        "is_recalled": result.is_recalled if is_recalled is None else is_recalled,
        "notes": list(result.notes),
        "entry": result.receipt.index,
        "receipt": list(result.receipt.bodies),
        "document": result.to_json().decode(),
    }


def quote_document(quote: Quote) -> dict[str, Any]:
    """Return a quote as data, and as the text that people read."""
    return {"text": str(quote), **write_quote(quote)}


def plan_document(workload: Workload, answers: list[Result] | None) -> dict[str, Any]:
    """Return what a workload would cost, and what was answered if it was released."""
    return {
        "text": str(workload),
        "epsilon": workload.epsilon,
        "delta": workload.delta,
        "fits": workload.quote.fits or answers is not None,
        "releases": len(workload.parts),
        "expected": [
            [
                {"text": one.text, "half_width": _finite(one.half_width), "words": one.words}
                for one in each
            ]
            for each in workload.expected
        ],
        "answers": None if answers is None else [answer_document(one) for one in answers],
    }


def entry_document(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of the ledger without what only its verification needs."""
    return {name: value for name, value in entry.items() if name not in _HIDDEN}


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """Return a proven receipt as data."""
    found: dict[str, Any] = read_json(receipt.to_json())
    return found


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _plain(value: Any) -> Any:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
