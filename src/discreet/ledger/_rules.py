"""What each kind of entry does to the state: one pure function each.

The same functions decide whether a new entry is accepted and replay old ones when the log is
verified. They read a :class:`View`, raise if the entry must not be, and return the facts that
change and the balances after it. Nothing here reads a clock, a key or a database.
"""

import json
import math
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from discreet.accounting import ComposedLoss, FilterRules
from discreet.accounting.filter_rules import Sums
from discreet.errors import BudgetExceeded, LedgerError, ParameterError
from discreet.ledger._balances import Balance, add
from discreet.ledger._definitions import TOTAL, Definition, Line, rules_of
from discreet.ledger._entries import Entry, encode, following
from discreet.ledger._holds import Hold
from discreet.ledger._view import Value, View, loss_of
from discreet.ledger.verifier import parse_vkey, rotation_text

__all__ = ["RULES", "Changes", "Cost", "check_periods"]

Cost = Callable[[Entry, str, FilterRules], Sums]
"""What an entry's loss costs by a line's rules. Whoever asks may know it already."""


@final
@dataclass(slots=True)
class Changes:
    """Facts to set, balances that the entry records, and fields that the rules add to it."""

    facts: dict[str, Value] = field(default_factory=dict)
    after: dict[str, Balance] = field(default_factory=dict)
    fields: dict[str, object] = field(default_factory=dict)


Rule = Callable[[Entry, View, Cost], Changes]


def _ledger(entry: Entry, view: View, cost: Cost) -> Changes:
    if entry["index"] != 0:
        raise LedgerError("only the first entry can found a ledger.")
    known = {"origin": entry["origin"], "testing": entry["testing"], "vkeys": [entry["vkey"]]}
    return Changes({"ledger": encode(known)})


def _rotate(entry: Entry, view: View, cost: Cost) -> Changes:
    known = json.loads(view.text("ledger") or "{}")
    said = rotation_text(known["origin"], entry["index"], entry["vkey"])
    for vkey, by in ((known["vkeys"][-1], "by_old"), (entry["vkey"], "by_new")):
        if not parse_vkey(vkey).has_signed(said, b64decode(entry[by])):
            raise LedgerError("a rotation must be signed by the old and the new key for its place.")
    before = json.loads(view.text("rotations") or "[]")
    return Changes(
        {
            "ledger": encode({**known, "vkeys": [*known["vkeys"], entry["vkey"]]}),
            "rotations": json.dumps([*before, entry["index"]]),
        }
    )


def _witness(entry: Entry, view: View, cost: Cost) -> Changes:
    before = json.loads(view.text("witnessed") or "[]")
    return Changes({"witnessed": json.dumps([*before, entry["index"]])})


def _account(entry: Entry, view: View, cost: Cost) -> Changes:
    name = entry["name"]
    if view.get(f"account/{name}") is not None:
        raise ParameterError(
            f"this ledger already has an account {name!r}. Use ledger[{name!r}]: the same "
            "population never gets a second budget.",
            parameter="name",
        )
    terms = {key: entry[key] for key in ("name", "unit", "neighbours", "policy")}
    text = encode({**terms, "lines": {TOTAL: entry["filter"]}})
    Definition.read(text)
    facts: dict[str, Value] = {f"account/{name}": text}
    for source in entry.get("sources") or ():
        facts |= _registered(view, str(name), source, entry)
    return Changes(facts)


def _source(entry: Entry, view: View, cost: Cost) -> Changes:
    definition = view.definition(entry["account"])
    return Changes(_registered(view, definition.name, entry["source"], entry))


def _registered(
    view: View, account: str, source: Mapping[str, Any], entry: Entry
) -> dict[str, Value]:
    facts: dict[str, Value] = {}
    for identity in source["identities"]:
        owners = json.loads(view.text(f"source/{identity}") or "[]")
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
    return facts


def _budget(entry: Entry, view: View, cost: Cost) -> Changes:
    definition = view.definition(entry["account"])
    line = str(entry["line"])
    if line in definition.lines:
        raise ParameterError(
            f"account {definition.name!r} already has the limit {line!r}. Widen it with grant.",
            parameter="guarantee",
        )
    if Line.read(line).every is not None and definition.unit.period is not None:
        raise ParameterError(
            "an account whose unit has a period keeps every budget for each period of the data "
            "already. Leave every= out.",
            parameter="every",
        )
    lines = {**definition.lines, line: rules_of(encode(entry["filter"]))}
    return Changes({f"account/{definition.name}": definition.text(lines)})


def _grant(entry: Entry, view: View, cost: Cost) -> Changes:
    definition = view.definition(entry["account"])
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
    lines = {**definition.lines, line: new}
    return Changes({f"account/{definition.name}": definition.text(lines)})


def _charge(entry: Entry, view: View, cost: Cost) -> Changes:
    definition = view.definition(entry["account"])
    _check_noise(entry, view)
    after = {}
    for budget, line, rules in _drawn(definition, entry):
        balance = view.balance(f"budget/{definition.name}/{budget}", rules)
        after[budget] = _fitting(definition, budget, rules, balance, cost(entry, line, rules))
    return Changes(_budget_facts(definition, after), after)


def _reserve(entry: Entry, view: View, cost: Cost) -> Changes:
    definition = view.definition(entry["account"])
    _check_noise(entry, view)
    loss = loss_of(entry["loss"])
    parts = loss.parts if isinstance(loss, ComposedLoss) else ((loss, 1),)
    after, holds = {}, {}
    recorded = entry.get("holds")
    for budget, line, rules in _drawn(definition, entry):
        balance = view.balance(f"budget/{definition.name}/{budget}", rules)
        whole = cost(entry, line, rules)
        hold = Hold.of(rules, whole, parts, by_steps=entry["by_steps"])
        if recorded is not None:
            hold = Hold.read(recorded[budget]).checked(hold)
        _fitting(definition, budget, rules, balance, add(hold.held(hold.times), hold.dead))
        after[budget] = balance.moved(to_held=hold.held(hold.times), to_spent=hold.dead)
        holds[budget] = hold.document
    job = {
        "account": definition.name,
        "left": [times for _, times in parts],
        "started": False,
        "holds": holds,
    }
    facts = _budget_facts(definition, after)
    facts[f"job/{entry['index']}"] = encode(job)
    return Changes(facts, after, {"holds": holds})


def _spend(entry: Entry, view: View, cost: Cost) -> Changes:
    definition, job = _job(entry, view)
    left, steps = list(job["left"]), entry["steps"]
    if len(steps) != len(left) or not any(steps) or min(steps) < 0:
        raise ParameterError("a job spends at least one of its steps.", parameter="loss")
    if any(n > have for n, have in zip(steps, left, strict=True)):
        raise ParameterError(
            "this job has fewer steps of this kind left. Nothing was spent. Reserve more steps "
            "with another reservation.",
            parameter="loss",
        )
    after = {}
    for budget, document in job["holds"].items():
        hold = Hold.read(document)
        spent = hold.spent(steps, first=not job["started"])
        name = f"budget/{definition.name}/{budget}"
        balance = Balance.read(view.text(name) or "")
        after[budget] = balance.moved(to_held=_negative(spent), to_spent=spent)
    job["left"] = [have - n for n, have in zip(steps, left, strict=True)]
    job["started"] = True
    facts = _budget_facts(definition, after)
    facts[f"job/{entry['job']}"] = encode(job)
    return Changes(facts, after)


def _settle(entry: Entry, view: View, cost: Cost) -> Changes:
    definition, job = _job(entry, view)
    after = {}
    for budget, document in job["holds"].items():
        hold = Hold.read(document)
        returned = hold.unspent(job["left"], started=job["started"])
        balance = Balance.read(view.text(f"budget/{definition.name}/{budget}") or "")
        nothing = (0,) * len(returned)
        after[budget] = balance.moved(to_held=_negative(returned), to_spent=nothing)
    facts = _budget_facts(definition, after)
    facts[f"job/{entry['job']}"] = None
    return Changes(facts, after)


def _release(entry: Entry, view: View, cost: Cost) -> Changes:
    paid = _earlier(entry, view, entry["charge"], ("charge", "reserve"))
    if entry.get("key") != f"release/{entry['charge']}":
        raise LedgerError("a charge pays for one release only.")
    if "query" not in paid:
        return Changes()
    ask = {
        "charge": entry["charge"],
        "release": entry["index"],
        "who": [paid["who"]],
        "paid": sorted(paid["after"]),
    }
    return Changes({f"ask/{entry['account']}/{paid['query']}": encode(ask)})


def _reask(entry: Entry, view: View, cost: Cost) -> Changes:
    definition = view.definition(entry["account"])
    name = f"ask/{definition.name}/{entry['query']}"
    ask = json.loads(view.text(name) or "null")
    if ask is None or ask["release"] != entry["release"]:
        raise LedgerError("nothing was released for this question, so it cannot be asked again.")
    paid = _earlier(entry, view, ask["charge"], ("charge",))
    after = {}
    for budget, line, rules in _drawn(definition, {**entry, "periods": paid.get("periods")}):
        # Whoever has paid for this release never pays again; the total has, for everybody.
        if budget not in ask["paid"]:
            balance = view.balance(f"budget/{definition.name}/{budget}", rules)
            priced = cost({**entry, "loss": paid["loss"]}, line, rules)
            after[budget] = _fitting(definition, budget, rules, balance, priced)
    ask["who"] = sorted({*ask["who"], str(entry["who"])})
    ask["paid"] = sorted({*ask["paid"], *after})
    facts = _budget_facts(definition, after)
    facts[name] = encode(ask)
    return Changes(facts, after)


RULES: Final[Mapping[str, Rule]] = {
    "account": _account,
    "budget": _budget,
    "charge": _charge,
    "grant": _grant,
    "ledger": _ledger,
    "reask": _reask,
    "release": _release,
    "reserve": _reserve,
    "rotate": _rotate,
    "settle": _settle,
    "source": _source,
    "spend": _spend,
    "witness": _witness,
}


def check_periods(definition: Definition, are_named: bool) -> None:
    """Refuse a request that names periods of the data where it must not, or the other way round."""
    period = definition.unit.period
    if period is not None and not are_named:
        raise ParameterError(
            f"account {definition.name!r} protects each {period} by itself: say which periods of "
            "the data this touches, with periods=[...].",
            parameter="periods",
        )
    if period is None and are_named:
        raise ParameterError(
            f"account {definition.name!r} protects people for all time: leave periods= out.",
            parameter="periods",
        )


def _drawn(definition: Definition, entry: Entry) -> list[tuple[str, str, FilterRules]]:
    periods = entry.get("periods") or ()
    check_periods(definition, bool(periods))
    return definition.budgets(
        who=entry["who"], purpose=entry["purpose"], periods=periods, time=entry["time"]
    )


def _fitting(
    definition: Definition, budget: str, rules: FilterRules, balance: Balance, cost: Sums
) -> Balance:
    after = balance.after_charge(cost)
    total = after.total
    if rules.fits(total):
        return after
    whose = f"the budget {budget!r} of account {definition.name!r}"
    way_out = f"The custodian may grant more with: discreet ledger grant {definition.name}"
    if definition.policy == "wait" and definition.unit.period is not None:
        period = budget.rpartition(":")[2].rpartition(",")[2]
        after_it = following(period, definition.unit.period)
        way_out = f"Data of {after_it} has a budget of its own: wait for it."
    raise BudgetExceeded(
        used=rules.share(balance.total),
        would_be=max(rules.share(total), math.nextafter(1, 2)),
        budget=whose,
        account=definition.name,
        way_out=way_out,
    )


def _budget_facts(definition: Definition, after: Mapping[str, Balance]) -> dict[str, Value]:
    return {f"budget/{definition.name}/{budget}": balance for budget, balance in after.items()}


def _job(entry: Entry, view: View) -> tuple[Definition, dict[str, Any]]:
    definition = view.definition(entry["account"])
    job = json.loads(view.text(f"job/{entry['job']}") or "null")
    if job is None or job["account"] != definition.name:
        raise LedgerError("this job is over, or was never begun in this account.")
    return definition, job


def _earlier(entry: Entry, view: View, index: object, kinds: Sequence[str]) -> Entry:
    if not isinstance(index, int) or not 0 <= index < entry["index"]:
        raise LedgerError("an entry refers to one that does not exist.")
    found = view.entry(index)
    if found.get("kind") not in kinds or found.get("account") != entry["account"]:
        raise LedgerError("an entry refers to one of another kind or account.")
    return found


def _check_noise(entry: Entry, view: View) -> None:
    if entry["noise"] != "secure" and not json.loads(view.text("ledger") or "{}").get("testing"):
        raise LedgerError(
            "this noise comes from a seeded source, which anybody who knows the seed can take "
            "away. Only a ledger opened for testing takes such charges: "
            "Ledger.open(path, testing=True)."
        )


def _negative(sums: Sums) -> Sums:
    return tuple(-amount for amount in sums)
