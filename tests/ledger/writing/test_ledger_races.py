"""Many processes and threads want the last of a budget: together they get exactly what there is.

Each charge costs one K-th of the budget, exactly, in fractions. So K are accepted, whoever comes
first, and all others are refused and leave no trace. What was accepted is in the verified log.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.accounting import PureLoss
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.ledger.writing import scribe
from discreet.privacy import Guarantee, Unit

pytestmark = pytest.mark.lengthy

EACH = Fraction(1, 7)  # no float is a seventh
LOSS = PureLoss(epsilon=EACH)

# Imports once and forks; the processes begin together when a pipe is closed. Each tells what
# became of its charges: a line with the entry for one that was accepted, a bare line otherwise.
RACERS = """
import os, sys, threading, traceback
from fractions import Fraction
from discreet.accounting import PureLoss
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger

location, key, processes, threads, charges, shared = sys.argv[1:]
loss = PureLoss(epsilon=Fraction(1, 7))
told = threading.Lock()

def race(account, who, out):
    for n in range(int(charges)):
        # Shared keys are the same in all processes; others are of one request only.
        one = f"{n}" if shared == "shared" else f"{who}-{n}"
        # The analyst must be the same for a request to be the same.
        analyst = "ana" if shared == "shared" else who
        try:
            said = account.charge(loss, who=analyst, purpose="race", key=one).bodies[0]
        except BudgetExceeded:
            said = ""
        with told:
            out.append(said)

def run(number, barrier, pipe):
    out = []
    with Ledger.open(location, key=key, create=False) as ledger:
        account = ledger["people"]
        runners = [
            threading.Thread(target=race, args=(account, f"{number}-{t}", out))
            for t in range(int(threads))
        ]
        os.read(barrier, 1)
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()
    with os.fdopen(pipe, "w") as file:
        file.writelines(line + "\\n" for line in out)

barrier, go = os.pipe()
children = []
for number in range(int(processes)):
    mine, its = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(go)
        try:
            run(number, barrier, its)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(its)
    children.append((pid, mine))
os.close(go)
failed = False
for pid, mine in children:
    with os.fdopen(mine) as file:
        sys.stdout.write(file.read())
    failed |= os.waitpid(pid, 0)[1] != 0
sys.exit(failed)
"""


def raced(
    location: object,
    key: Path,
    *,
    processes: int,
    threads: int = 1,
    charges: int,
    shared: bool = False,
) -> list[str]:
    """Let processes race; return what each charge was told: its entry, or nothing."""
    numbers = map(str, (processes, threads, charges))
    ran = subprocess.run(
        [sys.executable, "-c", RACERS, str(location), str(key), *numbers, "shared" * shared],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()
    assert len(told) == processes * threads * charges
    return told


def found(location: object, key: Path, *, fitting: int) -> None:
    """Make a ledger with an account into which so many charges fit."""
    with Ledger.open(str(location), key=key) as ledger:
        ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=fitting * EACH),
        )


def check(location: object, key: Path, told: list[str], *, fitting: int) -> None:
    """Compare what the racers were told with the verified log."""
    accepted = [body for body in told if body]
    with Ledger.open(str(location), key=key, create=False) as ledger:
        verified = ledger.verify()
        with ledger._session.read() as view:
            log = [row.body for row in view.rows(2, verified.size)]
        assert log == sorted(set(accepted), key=lambda body: json.loads(body)["index"])
        assert len(log) == fitting
        account = ledger["people"]
        assert account.used == 1.0
        with pytest.raises(BudgetExceeded):
            account.charge(PureLoss(epsilon=Fraction(1, 10**30)), who="late", purpose="crumb")
        assert ledger.size == verified.size


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def place(request, tmp_path) -> tuple[object, Path]:
    if request.param == "sqlite":
        return tmp_path / "budget.db", tmp_path / "budget.db.key"
    server = request.getfixturevalue("server")
    return server.new_database(), tmp_path / "ledger.key"


def test_processes_at_the_edge_get_exactly_what_there_is(place):
    found(*place, fitting=200)
    told = raced(*place, processes=8, charges=60)
    assert sum(map(bool, told)) == 200
    check(*place, told, fitting=200)


def test_threads_of_processes_at_the_edge_get_exactly_what_there_is(place):
    found(*place, fitting=150)
    told = raced(*place, processes=3, threads=8, charges=12)
    assert sum(map(bool, told)) == 150
    check(*place, told, fitting=150)


@pytest.mark.slow
@pytest.mark.parametrize("fitting", [1, 100, 5_000])
def test_more_processes_at_the_edge_get_exactly_what_there_is(place, fitting):
    found(*place, fitting=fitting)
    told = raced(*place, processes=16, threads=4, charges=120)
    assert sum(map(bool, told)) == fitting
    check(*place, told, fitting=fitting)


def test_the_same_request_of_several_processes_is_charged_once(place):
    found(*place, fitting=40)
    told = raced(*place, processes=4, threads=2, charges=40, shared=True)
    # Everybody was told of the same forty entries, and the budget is just spent.
    assert Counter(told) == dict.fromkeys(set(told), 8)
    check(*place, told, fitting=40)


def test_the_same_request_at_the_edge_is_accepted_for_all_or_for_none(place):
    found(*place, fitting=25)
    told = raced(*place, processes=4, charges=40, shared=True)
    entries = Counter(body for body in told if body)
    assert set(entries.values()) == {4}
    check(*place, told, fitting=25)


def test_threads_that_share_a_ledger_get_exactly_what_there_is(place):
    found(*place, fitting=100)
    told: list[str] = []
    barrier = threading.Barrier(8)

    def race(who: str) -> None:
        barrier.wait()
        for n in range(20):
            try:
                charge = account.charge(
                    PureLoss(epsilon=EACH), who=who, purpose="race", key=f"{who}{n}"
                )
                told.append(charge.bodies[0])
            except BudgetExceeded:
                told.append("")

    location, key = place
    with Ledger.open(str(location), key=key) as ledger:
        account = ledger["people"]
        threads = [threading.Thread(target=race, args=(f"t{t}",)) for t in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(told) == 160
    check(*place, told, fitting=100)


def test_a_sub_budget_is_not_overdrawn_either(place):
    """Analysts race in one ledger: each stops at the own limit, and all at the total."""
    location, key = place
    found(location, key, fitting=30)
    with Ledger.open(str(location), key=key) as ledger:
        ledger["people"].limit(Guarantee(epsilon=12 * EACH), analyst="*")
    told = raced(*place, processes=4, charges=20)
    accepted = [json.loads(body) for body in told if body]
    with Ledger.open(str(location), key=key) as ledger:
        assert ledger.verify().size == 3 + len(accepted)
        budgets = {budget.name: budget.used for budget in ledger["people"].budgets()}
    by_analyst = Counter(entry["who"] for entry in accepted)
    assert sum(by_analyst.values()) == 30
    assert max(by_analyst.values()) <= 12
    assert budgets.pop("total") == 1.0
    assert max(budgets.values()) <= 1.0


def test_two_ledgers_that_do_not_read_each_other_would_overspend(tmp_path, monkeypatch):
    """A test of the tests: were balances remembered beyond a transaction, it would show."""
    place = tmp_path / "budget.db", tmp_path / "budget.db.key"
    found(*place, fitting=10)
    told = []

    def stale(self, transaction, head):
        self._transaction = transaction
        if self._state is None:
            self._at = None
            return fresh(self, transaction, head)
        return self._state

    fresh = scribe.Scribe._fresh_state
    monkeypatch.setattr(scribe.Scribe, "_fresh_state", stale)
    with Ledger.open(place[0]) as one, Ledger.open(place[0]) as other:
        for n in range(20):
            try:
                account = (one, other)[n % 2]["people"]
                charge = account.charge(LOSS, who="ana", purpose="race")
                told.append(charge.bodies[0])
            except BudgetExceeded:
                told.append("")
    assert sum(map(bool, told)) > 10
