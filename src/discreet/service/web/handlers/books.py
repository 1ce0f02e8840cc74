"""What the books say: budgets, entries, receipts, checkpoints and proofs."""

from base64 import b64encode
from functools import partial
from typing import Any

from discreet.accounting import PureLoss
from discreet.errors import AccountNotFound, LedgerError
from discreet.ledger import Account, Receipt
from discreet.service.desk.shelf import Shelf
from discreet.service.identity.login import Login, Role
from discreet.service.web.handlers.answers import entry_document, receipt_document
from discreet.service.web.route import WebCall, WebReply

__all__ = ["budgets", "checkpoint", "consistency", "entries", "proven_receipt", "receipt"]

_SEES_ALL = (Role.CUSTODIAN, Role.AUDITOR)


async def budgets(call: WebCall) -> WebReply:
    """Say what is left, in all budgets or in those that the login draws on."""
    account = call.gateway.desk.served(call.who, call.dataset).tables.account
    return WebReply(
        document=await call.gateway.desk.free(partial(_budgets, account, call.who), call.who)
    )


def _budgets(account: Account, login: Login) -> dict[str, Any]:
    if login.is_a(*_SEES_ALL):
        listed = [
            {
                "name": one.name,
                "epsilon": float(one.guarantee.epsilon),
                "delta": float(one.guarantee.delta),
                "used": one.used,
                "held": one.held,
            }
            for one in account.budgets()
        ]
    else:  # the lines that a charge of nothing would draw on
        drawn = account.quote(PureLoss(epsilon=0), who=login.who).budgets
        listed = [{"name": one.name, "used": one.used} for one in drawn]
    guarantee = account.guarantee
    return {
        "account": account.name,
        "guarantee": {"epsilon": float(guarantee.epsilon), "delta": float(guarantee.delta)},
        "policy": account.policy,
        "remaining": account.remaining,
        "budgets": listed,
    }


async def entries(call: WebCall) -> WebReply:
    """List what was released: the login's own, or all for those who check the books."""
    account = call.gateway.desk.served(call.who, call.dataset).tables.account

    def listed() -> list[dict[str, Any]]:
        found = account.history(last=call.query["last"])
        if not call.who.is_a(*_SEES_ALL):
            found = _own(found, call.who)
        return [entry_document(one) for one in found]

    return WebReply(document={"entries": await call.gateway.desk.free(listed, call.who)})


def _own(found: list[dict[str, Any]], login: Login) -> list[dict[str, Any]]:
    """Keep what somebody asked, and the releases that it paid for."""
    mine = {one["index"] for one in found if one.get("who") == login.who}
    return [one for one in found if one["index"] in mine or one.get("charge") in mine]


async def receipt(call: WebCall) -> WebReply:
    """Prove an entry: its own asker's, or any to those who check the books."""
    return WebReply(document=receipt_document(await proven_receipt(call)))


async def proven_receipt(call: WebCall) -> Receipt:
    """Return the receipt of an entry with its proof, if the login may see it."""
    number = call.path["entry"]
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise AccountNotFound("there is no such entry that this login may see.")
    shelf, login = call.gateway.shelf, call.who

    def proven() -> Receipt:
        try:
            found = shelf.ledger.prove(int(number))
        except LedgerError:
            found = None
        if found is None or not _may_see(found, login, shelf):
            raise AccountNotFound("there is no such entry that this login may see.")
        return found

    return await call.gateway.desk.free(proven, login)


def _may_see(found: Receipt, login: Login, shelf: Shelf) -> bool:
    """Say whether an entry is a login's own, or that of an answer which it was given."""
    accounts = {str(one["account"]) for one in found.entries if one.get("account")}
    # Logins are for datasets, whose accounts may have other names.
    seen = {one.tables.account.name for one in shelf if login.sees(one.tables.name)}
    if login.datasets is not None and not accounts <= seen:
        return False
    if login.is_a(*_SEES_ALL):
        return login.datasets is None or bool(accounts)
    asked_for = found.entries[-1]
    if asked_for["kind"] == "reask":  # of whoever was given an answer that others had paid for
        return bool(asked_for["who"] == login.who)
    if found.entries[0].get("who") == login.who:
        return True
    return any(login.who in shelf.ledger[one].askers(found) for one in accounts)


async def checkpoint(call: WebCall) -> WebReply:
    """Give anybody the signed checkpoint of the log."""
    ledger = call.gateway.shelf.ledger
    document = await call.gateway.beside(
        lambda: {"checkpoint": ledger.checkpoint(), "vkey": ledger.vkey}
    )
    return WebReply(document=document)


async def consistency(call: WebCall) -> WebReply:
    """Prove to anybody that the log of an earlier checkpoint was only added to."""
    ledger, old, new = call.gateway.shelf.ledger, call.query["old"], call.query["new"]

    def proven() -> dict[str, Any]:
        # Entries may come in between; a proof for now is for the checkpoint of the same moment, so
        # it is tried again.
        for _ in range(100):
            note, hashes = ledger.checkpoint(), ledger.consistency(old, new or None)
            if new or ledger.checkpoint() == note:
                proof = [b64encode(one).decode() for one in hashes]
                return {"old": old, "new": new or None, "checkpoint": note, "proof": proof}
        raise LedgerError("the log grows too fast for a proof just now. Ask again.")

    return WebReply(document=await call.gateway.beside(proven))
