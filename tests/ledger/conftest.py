"""A ledger in a file, an account in it, and a server that no test harms."""

import random
import secrets
import sys
from pathlib import Path

import pytest
from ledger_requests import ASKED, copied, make_account

from discreet.accounting import PureLoss
from discreet.ledger import Ledger
from discreet.privacy import Unit
from discreet.testing import PostgresServer


@pytest.fixture(scope="session")
def server():
    """A server that no test stops or kills; each takes a database of its own."""
    with PostgresServer(settings={"max_connections": "60"}) as running:
        yield running


@pytest.fixture
def rng() -> random.Random:
    seed = secrets.randbits(64)
    sys.stdout.write(f"seed {seed}\n")  # shown with a failure only
    return random.Random(seed)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "budget.db"


@pytest.fixture
def ledger(path):
    with Ledger.open(path, name="example.com/ledger") as made:
        yield made


@pytest.fixture
def account(ledger):
    return make_account(ledger)


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Path:
    """A ledger with three accounts, an open job of which nothing began, and a charge."""
    path = tmp_path_factory.mktemp("template") / "budget.db"
    with Ledger.open(path, name="example.com/ledger") as ledger:
        account = make_account(ledger)
        make_account(ledger, "days", unit=Unit.column("u").per("day"))
        job = account.reserve(PureLoss(epsilon=0.1) * 2, **ASKED)
        receipt = account.charge(PureLoss(epsilon=0.1), **ASKED)
        make_account(ledger, "years", unit=Unit.column("u").per("year"), policy="wait")
        assert (job.index, receipt.index, ledger.size) == (3, 4, 6)
    return path


@pytest.fixture
def furnished(template, path):
    """A copy of that ledger."""
    with Ledger.open(copied(template, path)) as ledger:
        yield ledger
