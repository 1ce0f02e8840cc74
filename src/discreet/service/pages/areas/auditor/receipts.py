"""A receipt to be verified in the browser: one that somebody has, or one of this gateway."""

import json
from collections.abc import Mapping
from typing import Any

from discreet.errors import DiscreetError
from discreet.service.pages.page import PageCall
from discreet.service.web.handlers import books
from discreet.service.web.problems import problem_of

__all__ = ["check_receipt"]


async def check_receipt(call: PageCall) -> Mapping[str, Any]:
    """Offer the key that this gateway says is its own, and a receipt if its entry is named."""
    entry = call.query.get("entry", "")
    shown: dict[str, Any] = {"entry": entry, "receipt": "", "problem": None}
    if entry and call.login is not None:
        asked = PageCall(
            gateway=call.gateway, login=call.login, visitor=call.visitor, path={"entry": entry}
        )
        try:
            shown["receipt"] = json.dumps(await asked.ask(books.receipt), indent=1, sort_keys=True)
        except DiscreetError as error:
            shown["problem"] = problem_of(error).document
    return {**shown, "vkey": (await call.ask(books.checkpoint))["vkey"]}
