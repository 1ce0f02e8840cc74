"""What charges paid for: the question, where the answer is kept, and its epsilon."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from discreet._json import read_json
from discreet.accounting import from_json
from discreet.errors import DiscreetError
from discreet.ledger import Ledger

__all__ = ["asked_by_charge"]

_LARGEST: Final = 1_000_000  # bytes of an answer that is read for its question


def asked_by_charge(
    ledger: Ledger, entries: Sequence[Mapping[str, Any]]
) -> dict[int, dict[str, Any]]:
    """Return the question, epsilon and delta of charges, by their entries.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     _ = T.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    ...     asked_by_charge(T.account.ledger, T.account.history())[2]["question"]
    'SELECT COUNT(*) AS n FROM people'
    """
    found = {
        int(entry["index"]): pure
        for entry in entries
        if entry["kind"] in ("charge", "reserve") and (pure := _pure(entry["loss"])) is not None
    }
    for entry in entries:
        if entry["kind"] == "release":
            asked = _kept(ledger, int(entry["index"]))
            if asked is not None:
                found[int(entry["charge"])] = asked
    return found


def _pure(document: object) -> dict[str, Any] | None:
    epsilon = float(from_json(json.dumps(document)).epsilon_pure)
    return {"epsilon": epsilon, "delta": 0.0} if math.isfinite(epsilon) else None


def _kept(ledger: Ledger, release: int) -> dict[str, Any] | None:
    """Return what a kept answer says of itself; one that is no table's says nothing."""
    try:
        kept = ledger.answer_of(release)
        document = read_json(kept) if len(kept) <= _LARGEST else None
    except (DiscreetError, ValueError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("question"), str):
        return None
    price = {name: document.get(name) for name in ("epsilon", "delta")}
    if not all(isinstance(one, int | float) for one in price.values()):
        return None
    return {"question": document["question"], **price}
