"""From a loss to an entry that pays for it, or to a refusal that says what would still fit."""

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.accounting import Loss
from discreet.accounting.filters import PRICING
from discreet.errors import BudgetExceeded, ParameterError
from discreet.ledger.accounts.periods import Periods, labels
from discreet.ledger.receipts import Receipt
from discreet.ledger.rules.entry import Entry
from discreet.ledger.writing import request as requests
from discreet.noise import Source

if TYPE_CHECKING:
    from discreet.ledger.accounts.account import Account

__all__ = ["encodable", "fingerprint", "pay", "payment"]


def fingerprint(account: "Account", query: str, *, version: str | None, periods: Periods) -> str:
    """Return what a question about some data is known by again, and nothing else of it."""
    encodable(query, "query")
    if version is not None:
        encodable(version, "version")
    touched = labels(account._definition(), periods)
    asked = json.dumps([account.name, query, version, touched])
    return account._session.fingerprint(asked, domain="query")


def payment(kind: str, *, who: str, purpose: str, source: Source) -> Entry:
    """Begin an entry that pays."""
    return {
        "kind": kind,
        "who": requests.text(who, name="who"),
        "purpose": requests.text(purpose, name="purpose"),
        "noise": requests.noise_of(source),
        "pricing": PRICING,
    }


def pay(
    account: "Account", entry: Entry, loss: Loss, *, periods: Periods, key: str | None
) -> Receipt:
    """Have it written, or raise :class:`BudgetExceeded`."""
    definition = account._definition()
    definition.total.price(loss)  # refuses what is no loss
    entry["loss"] = requests.loss_document(loss)
    touched = labels(definition, periods)
    if touched:
        entry["periods"] = touched
    if key is not None:
        # Apart from the keys that the ledger makes itself, whatever an account is called.
        entry["key"] = f"key/{account.name}/{requests.text(key, name='key')}"
        entry["call"] = os.urandom(16).hex()  # which of all calls with this key has paid
    try:
        receipt = account._append(entry, loss=loss)
        # A key of the ledger's own is this call's alone. What was written before was written for
        # it: the first answer was lost on its way, and the ledger asked again.
        return receipt if key is not None else replace(receipt, is_repeated=False)
    except BudgetExceeded as refusal:
        if definition.policy == "degrade":
            asked = {"who": entry["who"], "purpose": entry["purpose"], "periods": periods}
            refusal.offer = account.quote(loss, **asked).offer
        raise


def encodable(value: object, name: str) -> str:
    """Return a text that can be encoded, before anything is charged for it."""
    if not isinstance(value, str) or (not value and name == "query"):
        raise ParameterError(f"{name} must be a text.", parameter=name)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{name} has characters that are none.", parameter=name) from None
    return value
