"""What was asked of a dataset: the login's own charges, or all for those who check the books."""

from collections.abc import Mapping
from typing import Any, Final

from discreet.service.pages.page import PageCall
from discreet.service.web.handlers import books
from discreet.tables import asked_by_charge

__all__ = ["history"]

_LAST: Final = 200
_PAID: Final = ("charge", "reask", "reserve")


async def history(call: PageCall) -> Mapping[str, Any]:
    """List charges, newest first, with the answers that they paid for.

    The words of a question are for whoever asked it; the others see what it cost.
    """
    found = await call.ask(books.entries, query={"last": _LAST})
    entries, ledger = found["entries"], call.gateway.shelf.ledger
    own = {one["index"] for one in entries if one.get("who") == call.who.who}
    mine = [one for one in entries if one["index"] in own or one.get("charge") in own]
    asked = await call.gateway.desk.free(lambda: asked_by_charge(ledger, mine), call.who)
    released = {one["charge"]: one["index"] for one in entries if one["kind"] == "release"}
    return {
        "dataset": call.dataset,
        "entries": [
            {
                "entry": one["index"],
                "kind": one["kind"],
                "time": one["time"],
                "who": one["who"],
                "purpose": one["purpose"],
                "release": released.get(one["index"]),
                "is_own": one["index"] in own,
                "question": None,
                "epsilon": None,
                "delta": None,
                **asked.get(one["index"], {}),
            }
            for one in reversed(entries)
            if one["kind"] in _PAID
        ],
    }
