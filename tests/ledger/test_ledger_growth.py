"""A small answer costs as much in a long log as in a short one; work is counted, not timed."""

import itertools
from collections import Counter

import pytest
from ledger_requests import ASKED, charge_of, make_account

from discreet.accounting import FilterRules, PureLoss
from discreet.ledger import Ledger
from discreet.ledger.rules.definition import Line
from discreet.ledger.stores.sqlite import store as sqlite_module
from discreet.ledger.writing.request import request
from discreet.privacy import Guarantee

STEP = 20  # instructions of the database's machine between two looks at them
SHORT, LONG_LOG = 200, 3200

ANSWERS = {
    "history of all": lambda ledger: ledger.history(last=10),
    "history of one": lambda ledger: ledger["a"].history(last=10),
    "history of another": lambda ledger: ledger["b"].history(last=10),
    "budgets": lambda ledger: ledger["a"].budgets(),
    "used": lambda ledger: ledger["a"].used,
    "quote": lambda ledger: ledger["a"].quote(PureLoss(epsilon=0.1), **ASKED),
    "size": lambda ledger: ledger.size,
    "checkpoint": lambda ledger: ledger.checkpoint(),
    "contains": lambda ledger: "a" in ledger,
    "proof": lambda ledger: ledger.prove(5),
    "consistency": lambda ledger: ledger.consistency(77),
    "charge": lambda ledger: ledger["a"].charge(PureLoss(epsilon=0.0001), **ASKED),
    "repeat": lambda ledger: ledger["a"].charge(PureLoss(epsilon=0.0001), **ASKED, key="one"),
}


@pytest.fixture
def steps(monkeypatch):
    """How much the database's machine has done."""
    done = Counter()
    connect = sqlite_module.connect_sqlite

    def counting(uri):
        connection = connect(uri)
        connection.set_progress_handler(lambda: done.update(["steps"]), STEP)
        return connection

    monkeypatch.setattr(sqlite_module, "connect_sqlite", counting)
    return done


def grow(ledger, size: int) -> None:
    """Write charges in a few large transactions."""
    session = ledger._session
    key = session.keyring().key(ledger.vkey)
    while ledger.size < size:
        count = min(1000, size - ledger.size)
        charges = [charge_of(epsilon=0.0001) for _ in range(count)]
        session._carry_out([key.seal(request(charge)) for charge in charges])


@pytest.mark.lengthy
def test_a_small_answer_costs_the_same_in_a_long_log(path, steps):
    with Ledger.open(path) as ledger:
        make_account(ledger, "b", epsilon=1)
        make_account(ledger, epsilon=10)
        for _ in range(20):
            ledger["b"].charge(PureLoss(epsilon=0.0001), **ASKED)
    costs: dict[str, list[int]] = {name: [] for name in ANSWERS}
    for size in (SHORT, LONG_LOG):
        with Ledger.open(path) as ledger:
            grow(ledger, size)
        for name, ask in ANSWERS.items():
            before = steps["steps"]
            with Ledger.open(path) as ledger:  # which looks at the anchor as well
                ask(ledger)
            costs[name].append(steps["steps"] - before)
    # A proof reads a row for each doubling, and everything else nothing more.
    far = {name: cost for name, cost in costs.items() if cost[1] > 1.5 * cost[0] + 40}
    assert not far, costs
    assert all(cost > 0 for cost, _ in costs.values())
    before = steps["steps"]
    with Ledger.open(path) as ledger:
        ledger.history()
    assert steps["steps"] - before > 5 * costs["history of all"][1], "the steps count nothing"


def test_limits_are_written_and_verified_one_by_one(ledger, account, monkeypatch):
    """Not all of them again with each new one."""
    work: Counter = Counter()

    def watch(kind: type, name: str, what: str) -> None:
        real = getattr(kind, name)
        if isinstance(real, property):
            counted = property(lambda self: work.update([what]) or real.fget(self))
        else:
            counted = classmethod(lambda cls, *args: work.update([what]) or real(*args))
        monkeypatch.setattr(kind, name, counted)

    watch(FilterRules, "settings", "written")
    watch(FilterRules, "from_settings", "read")
    watch(Line, "read", "lines")
    count = 60
    numbers = itertools.count(1)
    for number in range(count):
        account.limit(Guarantee(epsilon=0.5 + next(numbers) / 1000), analyst=f"analyst {number}")
    ledger.verify()
    account.charge(PureLoss(epsilon=0.01), who="analyst 7", purpose="x")
    assert max(work.values()) <= 12 * count, work
    assert min(work["written"], work["lines"]) >= count
    assert {one.name for one in account.budgets()} == {"total", "analyst=analyst 7"}
