"""The ledger: how large it is, how it grows, whether all of it verifies, and all of it to keep."""

import tempfile
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from discreet._json import read_json
from discreet.errors import NotAllowed, ParameterError
from discreet.ledger.verifier import parse_checkpoint
from discreet.service.desk.gateway import Gateway
from discreet.service.pages.page import PageCall, PageFile, Redirect

__all__ = ["begin_check", "ledger", "ledger_file"]

_LOOKED_AT: Final = 2000  # entries, of which the growth is drawn
_LARGEST: Final = 100_000  # entries that are given as one file
_POINTS: Final = 300


async def ledger(call: PageCall) -> Mapping[str, Any]:
    """Show the state of the ledger, and the latest check."""
    gateway = call.gateway
    found = await gateway.beside(lambda: _looked(gateway))
    check = await gateway.checks.latest()
    return {
        **found,
        "check": None
        if check is None
        else {
            "state": str(check.state),
            "who": check.who,
            "begun": check.created,
            "outcome": None if check.outcome is None else read_json(check.outcome),
        },
        "may_export": call.who.datasets is None and found["size"] <= _LARGEST,
        "largest": _LARGEST,
    }


async def begin_check(call: PageCall) -> Redirect:
    """Verify everything, in the background; the page tells how far it is."""
    await call.gateway.checks.begin(call.who)
    return Redirect(to="/custody/ledger")


async def ledger_file(call: PageCall) -> PageFile:
    """Return the whole log, which verifies on its own: discreet verify reads it."""
    if call.who.datasets is not None:
        raise NotAllowed("the ledger is about all datasets, and this login is for some.")
    log = call.gateway.shelf.ledger

    def written() -> bytes:
        if log.size > _LARGEST:
            raise ParameterError(
                f"the ledger has more than {_LARGEST:,} entries. Export it beside the gateway, "
                "with: discreet ledger export",
                parameter="ledger",
            )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.ndjson"
            log.export(path)
            return path.read_bytes()

    content = await call.gateway.desk.free(written, call.who)
    return PageFile(name="ledger.ndjson", media_type="application/x-ndjson", content=content)


def _looked(gateway: Gateway) -> dict[str, Any]:
    log = gateway.shelf.ledger
    note = log.checkpoint()
    entries = log.history(last=_LOOKED_AT)
    return {
        "origin": log.origin,
        "vkey": log.vkey,
        "is_testing": log.is_testing,
        "checkpoint": note,
        "size": parse_checkpoint(note).size,
        "root": parse_checkpoint(note).root.hex(),
        "accounts": sum(1 for _ in log),
        "witnessed": len(log.witnessed()),
        "bytes": _bytes(gateway),
        "latest": entries[-1]["time"],
        "kinds": dict(Counter(str(one["kind"]) for one in entries).most_common()),
        "looked_at": len(entries),
        "growth": _growth(entries),
    }


def _bytes(gateway: Gateway) -> int | None:
    """Return how large the file is; a server knows that of its own."""
    where = gateway.settings.ledger
    try:
        return None if "://" in where else Path(where).stat().st_size
    except OSError:
        return None


def _growth(entries: list[dict[str, Any]]) -> dict[str, Any]:
    every = max(1, len(entries) // _POINTS)
    shown = [*entries[:-1:every], entries[-1]]
    return {
        "x": [datetime.fromisoformat(str(one["time"])).timestamp() for one in shown],
        "series": [
            {"label": "entries", "y": [int(one["index"]) + 1 for one in shown], "steps": True}
        ],
        "time": True,
        "y_label": "entries",
        "height": 220,
    }
