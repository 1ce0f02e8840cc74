"""The signed checkpoint of the log as it is now."""

from collections.abc import Mapping
from typing import Any

from discreet.ledger.verifier import parse_checkpoint
from discreet.service.identity.login import Role
from discreet.service.pages.page import PageCall
from discreet.service.web.handlers import books

__all__ = ["checkpoints"]


async def checkpoints(call: PageCall) -> Mapping[str, Any]:
    """Show it, and what it says; browsers check the rest."""
    found = await call.ask(books.checkpoint)
    said = parse_checkpoint(found["checkpoint"])
    return {
        **found,
        "origin": said.origin,
        "size": said.size,
        "root": said.root.hex(),
        "is_auditor": call.login is not None and call.login.is_a(Role.AUDITOR),
    }
