"""Release cards: what was released, about whom and how privately, and never a value of it."""

import json
import math
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from discreet.errors import AccountNotFound, DataError
from discreet.ledger import Ledger, Receipt
from discreet.service.pages.page import PageCall, PageFile
from discreet.service.web.handlers import books
from discreet.service.web.handlers.books import proven_receipt
from discreet.tables import Result, asked_by_charge, registry_entry, write_card

__all__ = ["card", "card_file", "cards", "registry_draft"]

_LOOKED_AT: Final = 1000  # entries
_NOWHERE: Final = "there is no release with a card at this entry that this login may see."
_SAID: Final = (
    "name",
    "data_curators",
    "description",
    "intended_use",
    "data_product_region",
    "registry_authors",
    "data_domain",
    "actors",
    "justification",
)


async def cards(call: PageCall) -> Mapping[str, Any]:
    """List the releases of a dataset that have cards, the newest first."""
    entries = (await call.ask(books.entries, query={"last": _LOOKED_AT}))["entries"]
    ledger = call.gateway.shelf.ledger
    asked = await call.gateway.desk.free(partial(asked_by_charge, ledger, entries), call.who)
    charges = {one["index"]: one for one in entries}
    return {
        "name": call.dataset,
        "looked_at": _LOOKED_AT,
        "cards": [
            {
                "entry": one["index"],
                "time": one["time"],
                "who": charges.get(one["charge"], {}).get("who"),
                "purpose": charges.get(one["charge"], {}).get("purpose"),
                **asked[one["charge"]],
            }
            for one in reversed(entries)
            if one["kind"] == "release" and "question" in asked.get(one["charge"], {})
        ],
    }


async def card(call: PageCall) -> Mapping[str, Any]:
    """Show one card; the form there makes a draft for the public registry of it."""
    return {"name": call.dataset, "entry": int(call.path["entry"]), "card": await _card(call)}


async def card_file(call: PageCall) -> PageFile:
    """Return a card as Markdown, for people."""
    made = await _card(call)

    def written() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            return write_card(made, Path(folder) / "card.md").read_bytes()

    name = f"card-{call.path['entry']}.md"
    content = await call.gateway.desk.free(written, call.who)
    return PageFile(name=name, media_type="text/markdown; charset=utf-8", content=content)


async def registry_draft(call: PageCall) -> PageFile:
    """Return a card as a draft for the public registry of deployments; JSON is YAML, too."""
    said: dict[str, Any] = {name: call.query.get(name, "").strip() or None for name in _SAID}
    for name in ("name", "description", "intended_use", "data_product_region"):
        said[name] = said[name] or ""
    for name in ("data_curators", "registry_authors"):
        said[name] = [one.strip() for one in (said[name] or "").split(",") if one.strip()]
    made = registry_entry(
        await _card(call),
        **said,
        data_source_type=call.query.get("data_source_type") or None,  # type: ignore[arg-type]
    )
    content = (json.dumps(made, indent=2, ensure_ascii=False) + "\n").encode()
    name = f"registry-{call.path['entry']}.yaml"
    return PageFile(name=name, media_type="application/yaml", content=content)


async def _card(call: PageCall) -> dict[str, Any]:
    account = call.gateway.desk.served(call.who, call.dataset).tables.account.name
    found = await proven_receipt(call.web())
    read = partial(_read, call.gateway.shelf.ledger, found, account)
    return await call.gateway.desk.free(read, call.who)


def _read(ledger: Ledger, found: Receipt, account: str) -> dict[str, Any]:
    entry = found.entries[-1]
    if entry["kind"] != "release" or entry["account"] != account:
        raise AccountNotFound(_NOWHERE)
    try:
        kept = ledger.answer_of(int(entry["index"]))
        made: dict[str, Any] = Result.from_json(kept, receipt=found, left=math.nan).card()
    except DataError:  # of something that is no table: a model
        raise AccountNotFound(_NOWHERE) from None
    return made
