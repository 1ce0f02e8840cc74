"""How the log grew: the entries of the datasets that an auditor may see, and who cosigned."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from discreet.ledger.verifier import parse_checkpoint
from discreet.service.pages.page import PageCall
from discreet.service.web.handlers.answers import entry_document

__all__ = ["growth"]

_MOST: Final = 500
_SHOWN: Final = 20


async def growth(call: PageCall) -> Mapping[str, Any]:
    """Show the size of the log over time, the newest entries, and the witnesses' checkpoints."""
    desk, ledger = call.gateway.desk, call.gateway.shelf.ledger
    names = desk.visible(call.who)

    def looked() -> dict[str, Any]:
        accounts = {desk.served(call.who, name).tables.account.name for name in names}
        found = [one for name in sorted(accounts) for one in ledger.history(name, last=_MOST)]
        found = sorted(found, key=lambda one: int(one["index"]))[-_MOST:]
        cosigned = [parse_checkpoint(note) for note, _ in ledger.witnessed()]
        return {
            "size": ledger.size,
            "points": [
                {"time": _seconds(str(one["time"])), "size": int(one["index"]) + 1} for one in found
            ],
            "kinds": dict(Counter(str(one["kind"]) for one in found).most_common()),
            "newest": [_line(entry_document(one)) for one in reversed(found[-_SHOWN:])],
            "witnessed": [{"size": one.size, "root": one.root.hex()} for one in cosigned[-_SHOWN:]],
        }

    found: dict[str, Any] = await desk.free(looked, call.who)
    return found


def _seconds(time: str) -> float:
    """Return a time of the log as a Unix clock has it.

    >>> _seconds("1970-01-01T00:01:00Z")
    60.0
    """
    return datetime.fromisoformat(time).timestamp()


def _line(entry: dict[str, Any]) -> dict[str, Any]:
    names = ("index", "kind", "time", "account", "who", "purpose")
    # An account is opened by an entry that has its name.
    return {name: entry.get(name) for name in names} | {
        "account": entry.get("account", entry.get("name"))
    }
