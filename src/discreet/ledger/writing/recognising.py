"""Whether data that comes to an account is known from another one, decided under the store's lock.

Only what is new to an account is compared: whoever protects data is a custodian, and is told. New
versions of a source that the account has are never refused, since an analyst's question may be
what notices them; their sketch takes the place of the one before.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from discreet._json import read_json
from discreet.errors import LedgerError
from discreet.ledger.recognition.likeness import are_alike
from discreet.ledger.recognition.sketch import TableSketch, read_sketch
from discreet.ledger.rules.entry import Entry
from discreet.ledger.rules.state import State, Value

__all__ = ["kept", "matches", "sketches_of"]

Read = Callable[[Sequence[str]], Mapping[str, str]]


def sketches_of(proposal: Mapping[str, Any]) -> dict[str, str]:
    """Return the sketches that a request brings, by their sources, once they are what it says."""
    sketches = proposal.get("sketches") or {}
    entry = proposal["entry"]
    said = {one["name"]: one["content"] for one in _sources(entry) if "content" in one}
    if {name: _digest(text) for name, text in sketches.items()} != said:
        raise LedgerError("these are not the sketches that the entry commits to.")
    return dict(sketches)


def matches(entry: Entry, sketches: Mapping[str, str], state: State, read: Read) -> list[str]:
    """Return the accounts whose data is like what this entry brings to its own.

    ``read`` fetches sketches, which the state need not remember.
    """
    account = _account(entry)
    new = [
        read_sketch(sketches[one["name"]])
        for one in _sources(entry)
        if one["name"] in sketches and not _is_known(one, account, state)
    ]
    if not any(one.samples or one.whole for one in new):
        return []
    apart = {account, *read_json(state.text(f"apart/{account}") or "[]")}
    found = {
        other
        for other, sketch in _others(apart, entry, state, read)
        if sketch is None or any(are_alike(one, sketch) for one in new)
    }
    return sorted(found)


def kept(entry: Entry, sketches: Mapping[str, str]) -> dict[str, Value]:
    """Return the facts that hold the sketches. The log does not lead to them."""
    return {f"sketch/{_account(entry)}/{name}": text for name, text in sketches.items()}


def _sources(entry: Entry) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = entry.get("sources") or []
    return [*found, *([entry["source"]] if "source" in entry else [])]


def _is_known(source: Mapping[str, Any], account: str, state: State) -> bool:
    """Say whether this is a new version of what the account has: the same name and place."""
    if state.text(f"registered/{account}/{source['name']}") is None:
        return False
    owners = (read_json(state.text(f"source/{one}") or "[]") for one in source["identities"])
    return any(account in one for one in owners)


def _account(entry: Entry) -> str:
    return str(entry["name"] if entry["kind"] == "account" else entry.get("account"))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _others(
    apart: set[str], entry: Entry, state: State, read: Read
) -> Iterator[tuple[str, TableSketch | None]]:
    """Go through the sources of other accounts, also those of requests in the same transaction.

    None stands for a sketch that is not here, which a custodian's word has to replace.
    """
    pending = state.pending()
    for account, source in read_json(state.text("contents") or "[]"):
        if account in apart:
            continue
        name = f"sketch/{account}/{source}"
        text = pending.get(name) or read([name]).get(name)
        if text is None and not entry.get("override"):
            raise LedgerError(
                f"this ledger lacks the sketch of the data of account {account!r}, which exports "
                "do not carry. Open those tables once, so that a copy of them would be noticed, "
                "and then protect others; or say with override='the reason' that they are other "
                "people, which stays on record."
            )
        yield account, None if text is None else read_sketch(text)
