"""Ledgers for the commands: a new one, and one that was used for everything."""

import shutil

import pytest
from command_line import SECRET_QUERY, SECRET_VALUE, did

from discreet.accounting import GaussianLoss, LaplaceLoss
from discreet.ledger import Ledger
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Let no variable of the machine, and no earlier state, play a part."""
    for name in ("DISCREET_LEDGER", "DISCREET_LEDGER_KEY", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def book():
    did("ledger", "init", "--name", "example.com/budget")
    return "budget.db"


@pytest.fixture(scope="session")
def used_ledger(tmp_path_factory):
    """A ledger with one account, used for everything that an account is used for; made once."""
    folder = tmp_path_factory.mktemp("used")
    with Ledger.open(folder / "budget.db", name="example.com/budget") as ledger:
        (folder / "budget.db.pub").write_text(f"{ledger.vkey}\n")
        guarantee = Guarantee(epsilon=5, delta=1e-6)
        account = ledger.create(
            "salaries", unit=Unit.record(), neighbours="add_remove", guarantee=guarantee
        )
        account.limit(Guarantee(epsilon=1, delta=1e-6), analyst="bö")
        account.register("payroll", version="2026-11", identities=["s3://payroll"])
        account.charge(LaplaceLoss(noise_multiplier=2), who="ana", purpose="report")
        account.answer(
            DiscreteLaplace(sensitivity=1, scale=8),
            lambda: SECRET_VALUE,
            who="bö",
            purpose="report",
            query=SECRET_QUERY,
        )
        step = GaussianLoss(noise_multiplier=100)
        job = account.reserve(step * 100, who="trainer", purpose="model")
        job.spend(step * 2)
    return folder


@pytest.fixture
def spent(used_ledger, tmp_path):
    for name in ("budget.db", "budget.db.key", "budget.db.pub"):
        shutil.copy(used_ledger / name, tmp_path)
    return "budget.db"
