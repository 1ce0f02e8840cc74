"""Rules of entries of custodians: ledgers, keys, witnesses, accounts, sources, limits, policies."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from discreet._json import read_json
from discreet.errors import LedgerError, ParameterError
from discreet.ledger.rules.definition import TOTAL, Definition, Line, rules_of
from discreet.ledger.rules.effects import Cost, Effects
from discreet.ledger.rules.entry import Entry, encode, fold
from discreet.ledger.rules.state import State, Value
from discreet.ledger.rules.withdrawal import check_unused
from discreet.ledger.verifier import LOG, parse_checkpoint, parse_vkey, rotation_text

__all__ = [
    "account",
    "act",
    "budget",
    "clock",
    "grant",
    "ledger",
    "policy",
    "rollback",
    "rotate",
    "source",
    "witness",
]


def ledger(entry: Entry, state: State, cost: Cost) -> Effects:
    """Found the ledger."""
    if entry["index"] != 0 or parse_vkey(entry["vkey"])[:2] != (entry["origin"], LOG):
        raise LedgerError("a ledger is founded by its first entry, under the name of its key.")
    known = {"origin": entry["origin"], "testing": entry["testing"], "vkeys": [entry["vkey"]]}
    return Effects({"ledger": encode(known)})


def rotate(entry: Entry, state: State, cost: Cost) -> Effects:
    """Go on with another key."""
    known = read_json(state.text("ledger") or "{}")
    if parse_vkey(entry["vkey"])[:2] != (known["origin"], LOG):
        raise LedgerError("a new key has the name of the ledger.")
    said = rotation_text(known["origin"], entry["index"], entry["vkey"])
    for vkey, by in ((known["vkeys"][-1], "by_old"), (entry["vkey"], "by_new")):
        if not parse_vkey(vkey).has_signed(said, b64decode(entry[by])):
            raise LedgerError("a rotation must be signed by the old and the new key for its place.")
    before = read_json(state.text("rotations") or "[]")
    return Effects(
        {
            "ledger": encode({**known, "vkeys": [*known["vkeys"], entry["vkey"]]}),
            "rotations": json.dumps([*before, entry["index"]]),
        }
    )


def witness(entry: Entry, state: State, cost: Cost) -> Effects:
    """Put on record what a witness signed."""
    if not 0 < parse_checkpoint(entry["note"]).size <= entry["index"]:
        raise LedgerError("a witness signs entries that are there.")
    before = read_json(state.text("witnessed") or "[]")
    return Effects({"witnessed": json.dumps([*before, entry["index"]])})


def account(entry: Entry, state: State, cost: Cost) -> Effects:
    """Open an account."""
    name = entry["name"]
    check_unused(str(name), state)
    for known in _alike(name, state) if "names" in entry else (name,):
        if state.get(f"account/{known}") is not None:
            raise ParameterError(
                f"this ledger already has an account {known!r}. Use ledger[{known!r}]: the same "
                "population never gets a second budget.",
                parameter="name",
            )
    members = ("name", "unit", "neighbours", "policy", "names")
    given = {key: entry[key] for key in members if key in entry}
    text = encode({**given, "lines": {TOTAL: entry["filter"]}})
    definition = Definition.read(text)
    if definition.total.neighbours is not definition.neighbours:
        raise LedgerError("an account and its budget must have the same neighbours.")
    _check_waiting(definition)
    facts: dict[str, Value] = {f"account/{name}": text}
    if definition.is_folded:
        facts[f"spelling/{fold(name)}"] = name
    sources = entry.get("sources") or ()
    for source in sources:
        facts |= _registered(state, str(name), source, entry)
    facts |= _contents(state, str(name), sources)
    return Effects({**facts, **_kept_apart(state, str(name), entry)})


def _check_waiting(definition: Definition) -> None:
    if definition.policy == "wait" and definition.unit.period is None:
        raise LedgerError("only an account whose unit has a period can wait for the next one.")


def _alike(name: str, state: State) -> tuple[str, ...]:
    """Return the names that an account must not have if this one is to be new."""
    alike = fold(name)
    return (name, alike, state.text(f"spelling/{alike}") or name)


def source(entry: Entry, state: State, cost: Cost) -> Effects:
    """Register a source of data."""
    definition = state.definition(entry["account"])
    facts = _registered(state, definition.name, entry["source"], entry)
    facts |= _contents(state, definition.name, [entry["source"]])
    return Effects({**facts, **_kept_apart(state, definition.name, entry)})


def _registered(
    state: State, account: str, source: Mapping[str, Any], entry: Entry
) -> dict[str, Value]:
    facts: dict[str, Value] = {}
    for identity in source["identities"]:
        owners = read_json(state.text(f"source/{identity}") or "[]")
        if owners and account not in owners and not entry.get("override"):
            raise LedgerError(
                f"this source, or one that it was made from, belongs to account {owners[0]!r}. "
                "Data about the same people shares one budget: ask that account. A custodian who "
                "knows that they are other people may register it with override='the reason', "
                "which stays on record."
            )
        facts[f"source/{identity}"] = json.dumps(sorted({*owners, account}))
    known = {"index": entry["index"], "version": source["version"]}
    facts[f"registered/{account}/{source['name']}"] = encode(known)
    if "types" in source:
        place = f"types/{account}/{source['name']}"
        facts[place] = encode({**read_json(state.text(place) or "{}"), **source["types"]})
    return facts


def _contents(state: State, account: str, sources: Sequence[Mapping[str, Any]]) -> dict[str, Value]:
    """Keep what the sketches of sources must hash to, and a list of them that nobody can cut."""
    said = {str(one["name"]): str(one["content"]) for one in sources if "content" in one}
    known = [tuple(one) for one in read_json(state.text("contents") or "[]")]
    now = sorted({*known, *((account, name) for name in said)})
    facts: dict[str, Value] = {f"content/{account}/{name}": one for name, one in said.items()}
    return facts if now == known else {**facts, "contents": json.dumps(now)}


def _kept_apart(state: State, account: str, entry: Entry) -> dict[str, Value]:
    """Remember accounts that this one was told apart from, though their data looks the same."""
    alike = entry.get("matches") or ()
    if alike and not entry.get("override"):
        raise LedgerError(
            f"this data is that of account {alike[0]!r}, or most of it is, by its content. Data "
            "about the same people shares one budget: ask that account, or protect this as a part "
            f"of it with account={alike[0]!r} (--account). A custodian who knows that they are "
            "other people may say so with override='the reason' (--override), which stays on "
            "record."
        )
    facts: dict[str, Value] = {}
    for one, others in ((account, alike), *((other, (account,)) for other in alike)):
        known = read_json(state.text(f"apart/{one}") or "[]")
        facts |= {f"apart/{one}": json.dumps(sorted({*known, *others}))} if others else {}
    return facts


def budget(entry: Entry, state: State, cost: Cost) -> Effects:
    """Limit an analyst, a purpose or a period."""
    definition = state.definition(entry["account"])
    line = str(entry["line"])
    if line in definition.lines:
        raise ParameterError(
            f"account {definition.name!r} already has the limit {line!r}. Widen it with grant.",
            parameter="guarantee",
        )
    if definition.is_folded and Line.read(line).folded.name != line:
        raise LedgerError("an account that folds names has limits for folded names.")
    if Line.read(line).every is not None and definition.unit.period is not None:
        raise ParameterError(
            "an account whose unit has a period keeps every budget for each period of the data "
            "already. Leave every= out.",
            parameter="every",
        )
    rules = rules_of(encode(entry["filter"]))
    if rules.neighbours is not definition.neighbours:
        raise LedgerError("an account and its budget must have the same neighbours.")
    return Effects({f"account/{definition.name}": definition.with_line(line, rules).text()})


def grant(entry: Entry, state: State, cost: Cost) -> Effects:
    """Widen a limit."""
    definition = state.definition(entry["account"])
    line = str(entry["line"])
    if line not in definition.lines:
        raise ParameterError(
            f"account {definition.name!r} has no limit {line!r}; it has "
            f"{', '.join(definition.lines)}.",
            parameter="line",
        )
    old, new = definition.lines[line], rules_of(encode(entry["filter"]))
    same = (old.kind, old.order, old.neighbours) == (new.kind, new.order, new.neighbours)
    units = all(a.exponent == b.exponent for a, b in zip(old.units, new.units, strict=True))
    if not (same and units):
        raise LedgerError("a grant must keep the kind and the units of what was counted.")
    old.widened(new.guarantee)  # refuses to take something back
    return Effects({f"account/{definition.name}": definition.with_line(line, new).text()})


def policy(entry: Entry, state: State, cost: Cost) -> Effects:
    """Change what happens at exhaustion, and remember what it was: declarations may state that."""
    before = state.definition(entry["account"])
    after = before.with_policy(entry["policy"])
    _check_waiting(after)
    place = f"policies/{before.name}"
    known = {*read_json(state.text(place) or "[]"), before.policy}
    return Effects({f"account/{before.name}": after.text(), place: json.dumps(sorted(known))})


def act(entry: Entry, state: State, cost: Cost) -> Effects:
    """Put on record what a custodian did that changes no budget, perhaps about an account."""
    if "account" in entry:
        state.definition(entry["account"])  # refuses one that is not there
    return Effects()


def clock(entry: Entry, state: State, cost: Cost) -> Effects:
    """Confirm that much time has passed since the last entry."""
    return Effects()


def rollback(entry: Entry, state: State, cost: Cost) -> Effects:
    """Put on record that the log goes on from an older copy of itself."""
    return Effects()
