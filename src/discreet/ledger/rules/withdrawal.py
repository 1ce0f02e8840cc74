"""The rule of an entry that takes an account back, while nothing was charged to it.

Claim: an account that was charged is never taken back, and whoever still has open one that was
taken back cannot charge anything to another one.

Why: the rule reads every entry of the account since the one that opened it, and refuses where one
of them paid. Charges name their account, and the name of an account that was taken back is never
opened again.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from discreet._json import read_json
from discreet.errors import LedgerError, ParameterError
from discreet.ledger.rules.effects import Cost, Effects
from discreet.ledger.rules.entry import Entry, fold
from discreet.ledger.rules.state import State, Value

__all__ = ["check_unused", "withdraw"]

SOON: Final = 10_000  # entries after which an account is no longer one that was opened by mistake
_UNPAID: Final = ("act", "budget", "grant", "policy", "source")


def withdraw(entry: Entry, state: State, cost: Cost) -> Effects:
    """Take an account back, and free its data for another one."""
    name = str(entry["account"])
    definition = state.definition(name)
    sources = _sources(entry, state)
    facts: dict[str, Value] = {
        f"account/{name}": None,
        f"apart/{name}": None,
        f"policies/{name}": None,
        f"withdrawn/{fold(name)}": str(entry["index"]),
    }
    if definition.is_folded:
        facts[f"spelling/{fold(name)}"] = None
    for source in sources:
        for kind in ("registered", "types", "content", "sketch"):
            facts[f"{kind}/{name}/{source['name']}"] = None
        for identity in source["identities"]:
            facts[f"source/{identity}"] = _without(state, f"source/{identity}", name)
    for other in read_json(state.text(f"apart/{name}") or "[]"):
        facts[f"apart/{other}"] = _without(state, f"apart/{other}", name)
    known = read_json(state.text("contents") or "[]")
    left = [one for one in known if one[0] != name]
    if left != known:
        facts["contents"] = json.dumps(left)
    return Effects(facts)


def check_unused(name: str, state: State) -> None:
    """Refuse the name of an account that was withdrawn.

    >>> check_unused("people", State(read=lambda names: {}, entry=lambda index: {}))
    """
    if state.text(f"withdrawn/{fold(name)}") is not None:
        raise ParameterError(
            f"account {name!r} was withdrawn from this ledger, and a name is never used again: a "
            f"program may still have it open. Take another one; tables keep theirs with "
            f"account='{name}-2'.",
            parameter="name",
        )


def _sources(entry: Entry, state: State) -> list[Mapping[str, Any]]:
    """Return all that was registered with an account, or refuse to take it back."""
    name, opened, index = entry["account"], entry["opened"], entry["index"]
    if not opened < index:
        raise LedgerError("an entry refers to one that does not exist.")
    first = state.entry(opened)
    if first["kind"] != "account" or first["name"] != name:
        raise LedgerError("an account is withdrawn by the entry that opened it.")
    if index - opened > SOON:
        raise LedgerError(
            f"account {name!r} is too old to be withdrawn: {SOON:,} entries have been written "
            "since it was opened."
        )
    found = list(first["sources"])
    for one in map(state.entry, range(opened + 1, index)):
        if one.get("account") != name:
            continue
        if one["kind"] == "withdraw":
            raise LedgerError("an account is withdrawn by the entry that opened it.")
        if one["kind"] not in _UNPAID:
            raise LedgerError(
                f"account {name!r} was charged, so it cannot be withdrawn: something may have been "
                "released. Nothing was changed."
            )
        found += [one["source"]] if "source" in one else []
    return found


def _without(state: State, fact: str, name: str) -> str | None:
    """Return a fact that lists accounts, without one of them; None where nothing is left."""
    left = [one for one in read_json(state.text(fact) or "[]") if one != name]
    return json.dumps(left) if left else None
