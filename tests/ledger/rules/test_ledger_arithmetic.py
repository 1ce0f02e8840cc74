"""The balances in the log are those that a filter of its own comes to, charge by charge."""

import json
import random
import threading
from fractions import Fraction

import pytest

from discreet.accounting import (
    ApproximateLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Filter,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    ZCDPLoss,
    from_json,
)
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.ledger.rules.balance import Balance, add, read_sums, write_sums
from discreet.privacy import Guarantee, Unit

CHARGES = 10_000
THREADS = 16
PROMISE = Guarantee(epsilon=20, delta=1e-5)
KINDS = ("basic", "zcdp", "renyi", "combined")


def random_loss():
    size = random.choice([1, 3, 30, 300])
    x = size * random.uniform(5, 50)
    return random.choice(
        [
            lambda: LaplaceLoss(noise_multiplier=x),
            lambda: GaussianLoss(noise_multiplier=x),
            lambda: PureLoss(epsilon=Fraction(1, int(x) + 1)),
            lambda: PureLoss(epsilon=10.0 ** -random.randint(1, 200)),
            lambda: ApproximateLoss(epsilon=1 / x, delta=1e-12),
            lambda: DiscreteLaplaceLoss(noise_multiplier=Fraction(int(x) + 1), sensitivity=1),
            lambda: DiscreteGaussianLoss(sigma=x, sensitivity=1),
            lambda: ZCDPLoss(rho=1 / (x * x)),
            lambda: LaplaceLoss(noise_multiplier=x) + GaussianLoss(noise_multiplier=2 * x) * 3,
        ]
    )()


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """Charge at random from many threads, past exhaustion, and return the ledger."""
    ledger = Ledger.open(tmp_path_factory.mktemp("busy") / "budget.db")
    for kind in KINDS:
        account = ledger.create(
            kind, unit=Unit.record(), neighbours="add_remove", guarantee=PROMISE, kind=kind
        )
        account.limit(Guarantee(epsilon=5, delta=1e-6), analyst="analyst 1")
    losses = [random_loss() for _ in range(500)]  # some of them many times, like real ones

    def charge(share):
        for _ in range(share):
            loss = random.choice(losses) if random.random() < 0.5 else random_loss()
            try:
                ledger[random.choice(KINDS)].charge(
                    loss, who=f"analyst {random.randint(0, 3)}", purpose="test"
                )
            except BudgetExceeded:
                continue

    threads = [threading.Thread(target=charge, args=(CHARGES // THREADS,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield ledger
    ledger.close()


@pytest.mark.lengthy
def test_every_balance_is_that_of_a_filter_charged_from_scratch(busy):
    filters = {}
    for kind in KINDS:
        filters[kind, "total"] = Filter(PROMISE, kind=kind, neighbours="add_remove")
        filters[kind, "analyst=analyst 1"] = Filter(
            Guarantee(epsilon=5, delta=1e-6), neighbours="add_remove"
        )
    charges = [entry for entry in busy.history() if entry["kind"] == "charge"]
    assert len(charges) > CHARGES / 3
    for entry in charges:
        loss = from_json(json.dumps(entry["loss"]))
        expected = {"total"} | ({"analyst=analyst 1"} if entry["who"] == "analyst 1" else set())
        assert entry["after"].keys() == expected
        for budget, text in entry["after"].items():
            mine = filters[entry["account"], budget]
            mine.charge(loss)  # raises where the ledger accepted too much
            sums = Balance.read(text).spent
            # A filter stops counting just above a limit, where a ledger goes on.
            limits = [units.limit + 1 for units in mine.rules.units]
            assert tuple(map(min, sums, limits)) == mine.state[:-1]
    for kind in KINDS:
        assert busy[kind].used == filters[kind, "total"].used


@pytest.mark.lengthy
def test_the_sums_are_those_of_exact_fractions(busy):
    rules = {kind: Filter(PROMISE, kind=kind).rules for kind in KINDS}
    sums = dict.fromkeys(KINDS)
    for entry in busy.history():
        if entry["kind"] == "charge":
            kind = entry["account"]
            price = rules[kind].price(from_json(json.dumps(entry["loss"])))
            sums[kind] = price if sums[kind] is None else add(sums[kind], price)
    for kind in KINDS:
        last = busy[kind].history()[-1]
        assert last["after"]["total"] == write_sums(sums[kind])


@pytest.mark.lengthy
def test_verification_agrees(busy):
    assert busy.verify().size == busy.size


def test_sums_survive_being_written_down():
    for sums in [(0, 0), (10**40, float("inf")), (7, 10**400)]:
        assert read_sums(write_sums(sums)) == sums
    assert add((10**400, 1), (float("inf"), 2)) == (float("inf"), 3)
