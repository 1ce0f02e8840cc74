"""Rules of entries about answers: releases, and the same question asked again."""

from typing import Final

from discreet._json import read_json
from discreet.errors import LedgerError, TamperingFound
from discreet.ledger.rules.effects import Cost, Effects
from discreet.ledger.rules.entry import Entry, encode
from discreet.ledger.rules.spending import budget_facts, drawn, fitting
from discreet.ledger.rules.state import State, Value

__all__ = ["reask", "release"]

_TOGETHER: Final = 256  # charges whose marks are one fact


def release(entry: Entry, state: State, cost: Cost) -> Effects:
    """Commit to the answer that a charge paid for."""
    index = entry["charge"]
    paid = _payment(entry, state)
    if entry["key"] != f"release/{index}":
        raise LedgerError("a charge pays for one release only.")
    if paid["kind"] == "reserve":
        job = read_json(state.text(f"job/{index}") or "null")
        if job is None or not (job.get("over") or job.get("started")):
            raise LedgerError(
                "no step of this job was begun, so nothing can have come out of it. Spend a step "
                "before it touches data."
            )
    facts = _marked(index, state) if "once" in entry else {}
    if "query" not in paid:
        return Effects(facts)
    ask = {
        "charge": index,
        "loss": paid["loss"],
        "paid": sorted(paid["after"]),
        "periods": paid.get("periods"),
        "release": entry["index"],
        "who": [paid["who"]],
    }
    facts[f"ask/{entry['account']}/{paid['query']}"] = encode(ask)
    return Effects(facts)


def reask(entry: Entry, state: State, cost: Cost) -> Effects:
    """Let another analyst read an answer that was released before."""
    definition = state.definition(entry["account"])
    name = f"ask/{definition.name}/{entry['query']}"
    ask = read_json(state.text(name) or "null")
    if ask is None or ask["release"] != entry["release"]:
        raise LedgerError("nothing was released for this question, so it cannot be asked again.")
    after = {}
    asked = {**entry, "loss": ask["loss"], "periods": ask["periods"]}
    for budget, line, rules in drawn(definition, asked):
        # Whoever has paid for this release never pays again; the total has, for everybody.
        if budget not in ask["paid"]:
            balance = state.balance(f"budget/{definition.name}/{budget}", rules)
            priced = cost(asked, line, rules)
            after[budget] = fitting(definition, budget, rules, balance, priced)
    ask["who"] = sorted({*ask["who"], entry["who"]})
    ask["paid"] = sorted({*ask["paid"], *after})
    facts = budget_facts(definition, after)
    facts[name] = encode(ask)
    return Effects(facts, after)


def _marked(index: int, state: State) -> dict[str, Value]:
    """Mark a charge as used up; its neighbours share the fact, so that there are few."""
    name = f"released/{index // _TOGETHER}"
    marks, mark = int(state.text(name) or "0", 16), 1 << index % _TOGETHER
    if marks & mark:
        raise TamperingFound(
            f"entry {index} has paid for a release before, and a charge pays for one only; the "
            "entry of that release is gone, or another was put beside it. Nothing was written. "
            "Find out what was altered with: discreet ledger verify"
        )
    return {name: f"{marks | mark:x}"}


def _payment(entry: Entry, state: State) -> Entry:
    """Return the entry that paid for a release."""
    if entry["charge"] >= entry["index"]:
        raise LedgerError("an entry refers to one that does not exist.")
    found = state.entry(entry["charge"])
    if found["kind"] not in ("charge", "reserve") or found["account"] != entry["account"]:
        raise LedgerError("an entry refers to one of another kind or account.")
    return found
