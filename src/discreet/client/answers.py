"""Answers and receipts that came over the wire, rebuilt and held against the ledger's digests."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from discreet.errors import DiscreetError, TamperingFound
from discreet.ledger import Receipt
from discreet.ledger.verifier import CHARGES, NotProven, Verified, check_receipt
from discreet.tables import Result

__all__ = ["answered_release", "read_answer", "read_proof"]

_MALFORMED: Final = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError,
)  # fmt: skip


def read_answer(document: Mapping[str, Any], *, is_view: bool = False) -> Result:
    """Rebuild an answer exactly, and make sure that it is what the ledger committed to.

    ``is_view`` says that the ledger committed to more than this: to what several questions of a
    workload have in common.

    >>> read_answer({"columns": ["n"]})
    Traceback (most recent call last):
        ...
    discreet.errors.DiscreetError: the gateway sent something that is no answer.
    """
    try:
        receipt = Receipt(bodies=tuple(document["receipt"]))
        _ = receipt.index  # it shows an entry at least
        left = document["left"]
        result = Result.from_json(
            document["document"],
            receipt=receipt,
            left=math.nan if left is None else float(left),
            is_recalled=document["is_recalled"] is True,
        )
        result = replace(result, share=_number(document["share"]), more=_number(document["more"]))
        release, kinds = answered_release(receipt), [one["kind"] for one in receipt.entries]
        digest = sha256(document["document"].encode()).hexdigest()
    except _MALFORMED:
        raise DiscreetError("the gateway sent something that is no answer.") from None
    if is_view:
        return result
    if release is None and set(kinds) <= set(CHARGES) and kinds:
        warnings.warn(
            "The answer could not be put on record. It is paid for and given all the same: keep "
            "it, since asking again is charged again.",
            RuntimeWarning,
            stacklevel=4,
        )
        return result
    if release is None or release["answer"] != digest:
        raise TamperingFound(
            "this answer is not the one that the ledger committed to: its digest is another one. "
            "Whoever runs the gateway, or somebody on the way, has altered it.",
            entry=None if release is None else int(release["index"]),
        )
    return result


def answered_release(receipt: Receipt) -> dict[str, Any] | None:
    """Return the entry of a receipt that commits to an answer which another one has paid for.

    >>> charge = '{"account":"people","index":7,"kind":"charge"}'
    >>> release = '{"account":"people","answer":"00","charge":7,"index":8,"kind":"release"}'
    >>> answered_release(Receipt(bodies=(charge, release)))["index"]
    8
    """
    paid: dict[int, str] = {}
    for entry in receipt.entries:
        if entry["kind"] in CHARGES:
            paid[int(entry["index"])] = str(entry["account"])
        elif entry["kind"] == "release" and paid.get(entry["charge"]) == entry["account"]:
            return dict(entry)
    return None


def read_proof(
    document: Mapping[str, Any], *, vkey: str, result: Result | None
) -> tuple[Receipt, Verified]:
    """Rebuild a proven receipt, and check the proof as anybody would.

    Where ``result`` is as it was released, what it is is proven too.

    >>> read_proof({}, vkey="", result=None)
    Traceback (most recent call last):
        ...
    discreet.errors.DiscreetError: the gateway sent something that is no receipt.
    """
    try:
        bodies = tuple(str(one["body"]) for one in document["entries"])
        receipt = Receipt(bodies=bodies, proof=dict(document))
        proof = receipt.to_json()
        answer = None
        if result is not None:
            # What was said with the answer, since a proof may be silent about it.
            release = answered_release(result.receipt)
            if release is not None and release["answer"] == sha256(result.to_json()).hexdigest():
                answer = result.to_json()
    except _MALFORMED:
        raise DiscreetError("the gateway sent something that is no receipt.") from None
    if result is not None and not set(bodies) <= set(result.receipt.bodies):
        raise TamperingFound(
            "the entries that the gateway proves are not those that it gave with the answer."
        )
    try:
        return receipt, check_receipt(proof, vkey, answer=answer)
    except NotProven as refusal:
        raise TamperingFound(f"the receipt does not prove what it says: {refusal}.") from None


def _number(value: Any) -> float | None:
    if value is None or (type(value) in (int, float) and math.isfinite(value)):
        return value  # type: ignore[no-any-return]
    raise TypeError
