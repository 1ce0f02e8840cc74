"""Everything that was released, as one table to hand on: who, when, and how privately."""

import json
from collections.abc import Mapping
from typing import Any, Final

from discreet.service.pages.areas.custodian.tables_of_text import as_csv
from discreet.service.pages.page import PageCall, PageFile
from discreet.service.web.handlers import books
from discreet.service.web.handlers.answers import entry_document
from discreet.tables import asked_by_charge

__all__ = ["entries_csv", "entries_json", "registry_csv", "registry_json"]

_MOST: Final = 1000  # entries of one dataset, as /v1 has it
_COLUMNS: Final = (
    "dataset", "account", "unit", "neighbours", "entry", "time", "who", "purpose", "question",
    "epsilon", "delta", "answer",
)  # fmt: skip
_OF_ENTRY: Final = ("index", "time", "kind", "who", "purpose", "charge", "reason", "line", "answer")


async def registry_csv(call: PageCall) -> PageFile:
    """Return all releases of all datasets that the login sees, as a table."""
    return as_csv("registry.csv", _COLUMNS, await _releases(call))


async def registry_json(call: PageCall) -> PageFile:
    """Return the same as JSON."""
    return _json("registry.json", {"releases": await _releases(call)})


async def entries_csv(call: PageCall) -> PageFile:
    """Return the entries of one dataset's account as a table."""
    found = await call.ask(books.entries, query={"last": _MOST})
    return as_csv(f"{call.dataset}-entries.csv", _OF_ENTRY, found["entries"])


async def entries_json(call: PageCall) -> PageFile:
    """Return the entries of one dataset's account as they are."""
    found = await call.ask(books.entries, query={"last": _MOST})
    return _json(f"{call.dataset}-entries.json", found)


def _json(name: str, document: Mapping[str, Any]) -> PageFile:
    content = json.dumps(document, indent=1).encode()
    return PageFile(name=name, media_type="application/json", content=content)


async def _releases(call: PageCall) -> list[dict[str, Any]]:
    desk = call.gateway.desk
    names = desk.visible(call.who)

    def listed() -> list[dict[str, Any]]:
        return [row for name in names for row in _of_dataset(call, name)]

    return await desk.free(listed, call.who)


def _of_dataset(call: PageCall, name: str) -> list[dict[str, Any]]:
    """List the releases of a dataset's account, each with the charge that paid for it."""
    account = call.gateway.desk.served(call.who, name).tables.account
    entries = [entry_document(one) for one in account.history(last=_MOST)]
    charges = {one["index"]: one for one in entries if "loss" in one}
    asked = asked_by_charge(account.ledger, entries)
    about = {
        "dataset": name,
        "account": account.name,
        "unit": str(account.unit),
        "neighbours": str(account.neighbours),
    }
    return [
        {
            **about,
            "entry": one["index"],
            "time": one["time"],
            **{key: charges.get(one["charge"], {}).get(key) for key in ("who", "purpose")},
            **{
                key: asked.get(one["charge"], {}).get(key)
                for key in ("question", "epsilon", "delta")
            },
            "answer": one["answer"],
        }
        for one in entries
        if one["kind"] == "release"
    ]
