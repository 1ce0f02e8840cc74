"""Results as bytes: kept in a ledger, and rebuilt from there to the last bit."""

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from discreet._json import read_json
from discreet.accounting import from_json, to_json
from discreet.errors import DataError
from discreet.tables.results import columns

if TYPE_CHECKING:
    from discreet.tables.results.result import Result

__all__ = ["read_result", "write_result"]

FORMAT: Final = 1
_BARS: Final = ("errors", "lows", "highs")


def write_result(result: "Result") -> bytes:
    """Write a result; equal results give equal bytes."""
    document = {
        "format": FORMAT,
        "columns": [_column(result, name) for name in result.columns],
        "confidence": result.confidence,
        "delta": result.delta,
        "epsilon": result.epsilon,
        "facts": dict(result.facts),
        "loss": to_json(result.loss),
        "nonce": result.nonce,
        "notes": list(result.notes),
        "question": result.question,
    }
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        raise DataError("the facts of a result must be such that JSON can hold them.") from None
    return text.encode("ascii")


def _column(result: "Result", name: str) -> dict[str, Any]:
    is_key = name in result.keys
    made = {"name": name, "is_key": is_key, **columns.to_json(result.values[name])}
    if not is_key:
        bars = zip(_BARS, (result.errors, result.lows, result.highs), strict=True)
        made |= {part: columns.to_json(of[name])["values"] for part, of in bars}
        made["reliable"] = result.reliable[name].tolist()
    return made


def read_result(data: bytes | str) -> dict[str, Any]:
    """Read the fields of a result; refuse bytes that are not one."""
    try:
        document = read_json(data, strict=True)
        if document["format"] != FORMAT:
            raise KeyError("format")
        return _fields(document)
    except (KeyError, TypeError, ValueError):
        raise DataError(f"this is no result in format {FORMAT}.") from None


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    made = document["columns"]
    measures = [column for column in made if not column["is_key"]]
    plain = ("confidence", "delta", "epsilon", "facts", "nonce", "question")
    return {
        **{name: document[name] for name in plain},
        **{
            part: {c["name"]: columns.numbers_from_json(c[part]) for c in measures}
            for part in _BARS
        },
        "columns": tuple(column["name"] for column in made),
        "keys": tuple(column["name"] for column in made if column["is_key"]),
        "values": {c["name"]: columns.from_json(c["type"], c["values"]) for c in made},
        "reliable": {c["name"]: np.array(c["reliable"], dtype=bool) for c in measures},
        "loss": from_json(document["loss"]),
        "notes": tuple(document["notes"]),
    }
