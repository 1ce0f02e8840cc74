"""Answer a question once: charge, compute, add noise, put the answer on record, recall it."""

import warnings
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from discreet._json import read_json
from discreet._version import __version__
from discreet.accounting.filters import PRICING
from discreet.errors import LedgerUnavailable, ParameterError
from discreet.ledger.accounts.payments import encodable, fingerprint
from discreet.ledger.accounts.releases import (
    Mechanism,
    Release,
    read_answer_document,
    write_answer_document,
)
from discreet.ledger.checking.verify import check_answer
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.entry import decode
from discreet.ledger.writing.request import text
from discreet.noise import Source
from discreet.privacy import Sensitive, quietly

if TYPE_CHECKING:
    from discreet.ledger.accounts.account import Account

__all__ = ["answer", "askers", "recall", "record", "release", "reread"]


def answer(
    account: "Account",
    mechanism: Mechanism,
    compute: Callable[[], Any],
    *,
    query: str | None,
    confidence: float,
    source: Source,
    asked: dict[str, Any],
    debug: bool,
) -> Release[Any]:
    """See :meth:`Account.answer`; ``asked`` says who, what for, and of which data."""
    data = {"version": asked["version"], "periods": asked["periods"]}
    question = None if query is None else fingerprint(account, query, **data)
    error = float(mechanism.error(confidence=confidence))
    if question is not None:
        whose = {"who": asked["who"], "purpose": asked["purpose"]}
        known = recall(account, question, **whose, within=(error, confidence))
        if known is not None:
            return known
    plan = f"{type(mechanism).__name__}: {query or ''}"
    receipt = account.charge(mechanism.loss, query=query, source=source, **asked)
    stands = "The charge stands, since the data was read."
    exact = quietly(  # in a box, for tracebacks that show locals
        lambda: Sensitive(compute()),
        what="the function that computes this answer",
        outcome=stands,
        debug=debug,
    )
    value = quietly(
        lambda: mechanism.release(exact.reveal_without_noise(), source=source),
        what="the mechanism that releases this answer",
        outcome=stands,
        tells_refusals=True,  # mechanisms never show a value; what they refuse helps
        debug=debug,
    )
    kept = write_answer_document(value=value, error=error, confidence=confidence)
    receipt = record(account, receipt, kept, plan=plan)
    return Release(value=value, error=error, confidence=confidence, receipt=receipt, document=kept)


def release(account: "Account", receipt: Receipt, answer: bytes, *, plan: str) -> Receipt:
    """See :meth:`Account.release`."""
    if not isinstance(receipt, Receipt):
        raise ParameterError("release what a receipt has paid for.", parameter="receipt")
    if not isinstance(answer, bytes):
        raise ParameterError("answer must be bytes, such as JSON encoded.", parameter="answer")
    index = receipt.index
    entry = {
        "kind": "release",
        "charge": index,
        "answer": sha256(answer).hexdigest(),
        # With the salt, like the question: a plan has literals in it that can be guessed.
        "plan": account._session.fingerprint(encodable(plan, "plan"), domain="plan"),
        "code": f"discreet {__version__}",
        "key": f"release/{index}",
    }
    written = account._append(entry, answer=answer, paid=receipt.bodies[0])
    return receipt.extended(written.bodies[0])


def record(account: "Account", receipt: Receipt, answer: bytes, *, plan: str) -> Receipt:
    """See :meth:`Account.record`."""
    try:
        return release(account, receipt, answer, plan=plan)
    except LedgerUnavailable as error:
        warnings.warn(
            f"{error} The answer could not be put on record. It is paid for and given all the "
            "same: keep it, since asking again is charged again.",
            RuntimeWarning,
            stacklevel=4,
        )
        return receipt


def recall(
    account: "Account",
    question: str,
    *,
    who: str,
    purpose: str,
    within: tuple[float, float] | None,
) -> Release[Any] | None:
    """See :meth:`Account.recall`."""

    def is_good(kept: bytes) -> bool:
        document = read_answer_document(kept)
        if document is None:
            return False
        # Error bars can be compared only where they promise the same.
        is_comparable = within is None or document["confidence"] == within[1]
        return is_comparable and (within is None or document["error"] <= within[0])

    found = reread(account, question, who=who, purpose=purpose, accept=is_good)
    if found is None:
        return None
    receipt, kept = found
    document = read_answer_document(kept) or {}
    return Release(
        value=document["value"],
        error=document["error"],
        confidence=document["confidence"],
        receipt=receipt,
        document=kept,
        is_recalled=True,
    )


def reread(
    account: "Account",
    question: str,
    *,
    who: str,
    purpose: str,
    accept: Callable[[bytes], bool],
) -> tuple[Receipt, bytes] | None:
    """Return what was kept for a question and its receipt; pay only for what is acceptable."""
    who, purpose = text(who, name="who"), text(purpose, name="purpose")
    name = f"ask/{account.name}/{question}"
    with account._session.read() as snapshot:
        ask = read_json(account._session.facts(snapshot, [name]).get(name, "null"))
        if ask is None:
            return None
        kept = snapshot.answer(ask["release"])
        rows = (snapshot.row(ask["charge"]), snapshot.row(ask["release"]))
        bodies = tuple(row.body for row in rows if row is not None)
        has_seen = who in ask["who"]
        if kept is None or len(bodies) != 2:
            return None
        check_answer(decode(bodies[1]), ask["release"], kept)
    if not accept(kept):
        return None
    receipt = Receipt(bodies=bodies)
    if not has_seen:
        entry = {
            "kind": "reask",
            "pricing": PRICING,
            "query": question,
            "release": ask["release"],
            "who": who,
            "purpose": purpose,
        }
        receipt = receipt.extended(account._append(entry).bodies[0])
    return receipt, kept


def askers(account: "Account", receipt: Receipt) -> frozenset[str]:
    """See :meth:`Account.askers`."""
    charge = receipt.entries[0]
    found = {str(charge["who"])} if "who" in charge else set()
    if "query" in charge:
        name = f"ask/{account.name}/{charge['query']}"
        with account._session.read() as snapshot:
            ask = read_json(account._session.facts(snapshot, [name]).get(name, "null"))
        if ask is not None and ask["charge"] == charge["index"]:
            found.update(map(str, ask["who"]))
    return frozenset(found)
