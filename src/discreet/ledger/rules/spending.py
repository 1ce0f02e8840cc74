"""Rules of entries that spend: charges, reservations, the steps of a job and its end."""

import math
from collections.abc import Mapping
from typing import Any

from discreet._json import read_json
from discreet.accounting import FilterRules
from discreet.accounting.filters import FilterSums
from discreet.errors import BudgetExceeded, LedgerError, ParameterError
from discreet.ledger.rules.balance import Balance, add
from discreet.ledger.rules.definition import Definition, Line
from discreet.ledger.rules.effects import Cost, Effects
from discreet.ledger.rules.entry import Entry, encode, first_day, following, period_label
from discreet.ledger.rules.hold import Hold
from discreet.ledger.rules.state import State, Value, loss_of
from discreet.privacy import Period

__all__ = [
    "budget_facts",
    "charge",
    "check_periods",
    "drawn",
    "fitting",
    "renewal",
    "reserve",
    "settle",
    "spend",
]


def charge(entry: Entry, state: State, cost: Cost) -> Effects:
    """Spend a loss."""
    definition = state.definition(entry["account"])
    _check_noise(entry, state)
    after = {}
    for budget, line, rules in drawn(definition, entry):
        balance = state.balance(f"budget/{definition.name}/{budget}", rules)
        after[budget] = fitting(definition, budget, rules, balance, cost(entry, line, rules))
    return Effects(budget_facts(definition, after), after)


def reserve(entry: Entry, state: State, cost: Cost) -> Effects:
    """Set aside a loss for a job."""
    definition = state.definition(entry["account"])
    _check_noise(entry, state)
    loss = loss_of(entry["loss"])
    parts = loss.parts
    after, holds = {}, {}
    recorded = entry.get("holds")
    for budget, line, rules in drawn(definition, entry):
        balance = state.balance(f"budget/{definition.name}/{budget}", rules)
        whole = cost(entry, line, rules)
        hold = Hold.of(rules, whole, parts, by_steps=entry["by_steps"])
        if recorded is not None:
            hold = Hold.read(recorded[budget]).checked(hold, pricing=entry["pricing"])
        fitting(definition, budget, rules, balance, add(hold.held(hold.times), hold.dead))
        after[budget] = balance.moved(to_held=hold.held(hold.times), to_spent=hold.dead)
        holds[budget] = hold.document
    job = {
        "account": definition.name,
        "left": [times for _, times in parts],
        "started": False,
        "holds": holds,
    }
    facts = budget_facts(definition, after)
    facts[f"job/{entry['index']}"] = encode(job)
    return Effects(facts, after, {"holds": holds})


def spend(entry: Entry, state: State, cost: Cost) -> Effects:
    """Begin steps of a job."""
    definition, job = _job(entry, state)
    left, steps = list(job["left"]), entry["steps"]
    if len(steps) != len(left):
        raise ParameterError("these are not the steps of this job.", parameter="loss")
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
        balance = Balance.read(state.text(name) or "")
        after[budget] = balance.moved(to_held=_negative(spent), to_spent=spent)
    job["left"] = [have - n for n, have in zip(steps, left, strict=True)]
    job["started"] = True
    facts = budget_facts(definition, after)
    facts[f"job/{entry['job']}"] = encode(job)
    return Effects(facts, after)


def settle(entry: Entry, state: State, cost: Cost) -> Effects:
    """End a job."""
    definition, job = _job(entry, state)
    after = {}
    for budget, document in job["holds"].items():
        hold = Hold.read(document)
        returned = hold.unspent(job["left"], started=job["started"])
        balance = Balance.read(state.text(f"budget/{definition.name}/{budget}") or "")
        nothing = (0,) * len(returned)
        after[budget] = balance.moved(to_held=_negative(returned), to_spent=nothing)
    facts = budget_facts(definition, after)
    # That it began is remembered: only then can something have been released by it.
    over = encode({"account": definition.name, "over": True}) if job["started"] else None
    facts[f"job/{entry['job']}"] = over
    return Effects(facts, after)


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


def drawn(definition: Definition, entry: Entry) -> list[tuple[str, str, FilterRules]]:
    """Return the budgets that an entry draws on: their names, lines and rules."""
    periods = entry.get("periods") or ()
    check_periods(definition, bool(periods))
    unit = definition.unit
    if unit.period and any(period_label(one, unit.period) != one for one in periods):
        raise ParameterError("a period has one name only.", parameter="periods")
    return definition.budgets(
        who=entry["who"], purpose=entry["purpose"], periods=periods, time=entry["time"]
    )


def fitting(
    definition: Definition, budget: str, rules: FilterRules, balance: Balance, cost: FilterSums
) -> Balance:
    """Return the balance after a cost, or refuse it."""
    after = balance.after_charge(cost)
    total = after.total
    if rules.fits(total):
        return after
    whose = f"the budget {budget!r} of account {definition.name!r}"
    way_out = f"The custodian may grant more with: discreet ledger grant {definition.name}"
    if definition.policy == "wait" and definition.unit.period is not None:
        after_it = following(_period_of(budget), definition.unit.period)
        way_out = f"Data of {after_it} has a budget of its own: wait for it."
    every = Line.read(budget.partition(":")[0]).every
    if every is not None:
        way_out = f"This allowance begins anew on {renewal(budget, every)}. {way_out}"
    raise BudgetExceeded(
        used=rules.share(balance.total),
        would_be=max(rules.share(total), math.nextafter(1, 2)),
        budget=whose,
        account=definition.name,
        way_out=f"{rules.way_out(total)} {way_out}".lstrip(),
    )


def renewal(budget: str, every: Period) -> str:
    """Return the day on which an allowance begins anew, of the budget of one of its periods.

    >>> renewal("analyst=ana,every=month:2026-12", Period.month)
    '2027-01-01'
    """
    return first_day(following(_period_of(budget), every), every).isoformat()


def _period_of(budget: str) -> str:
    return budget.rpartition(":")[2].rpartition(",")[2]


def budget_facts(definition: Definition, after: Mapping[str, Balance]) -> dict[str, Value]:
    """Return balances under the names of their facts."""
    return {f"budget/{definition.name}/{budget}": balance for budget, balance in after.items()}


def _job(entry: Entry, state: State) -> tuple[Definition, dict[str, Any]]:
    definition = state.definition(entry["account"])
    job = read_json(state.text(f"job/{entry['job']}") or "null")
    if job is None or job["account"] != definition.name or job.get("over"):
        raise LedgerError("this job is over, or was never begun in this account.")
    return definition, job


def _check_noise(entry: Entry, state: State) -> None:
    if entry["noise"] != "secure" and not read_json(state.text("ledger") or "{}").get("testing"):
        raise LedgerError(
            "this noise comes from a seeded source, which anybody who knows the seed can take "
            "away. Only a ledger opened for testing takes such charges: "
            "Ledger.open(path, testing=True)."
        )


def _negative(sums: FilterSums) -> FilterSums:
    return tuple(-amount for amount in sums)
