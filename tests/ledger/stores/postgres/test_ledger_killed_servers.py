"""PostgreSQL: the client dies, the server dies."""

import random
from pathlib import Path

import pytest
from ledger_crashes import LOSS, WHO, check, found, kill_rounds, killed

from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger
from discreet.testing import PostgresServer

pytestmark = pytest.mark.lengthy


@pytest.fixture(scope="module")
def mortal():
    """A server that these tests kill."""
    with PostgresServer() as running:
        yield running


@pytest.fixture
def served(mortal, tmp_path) -> tuple[str, Path]:
    location, key = mortal.new_database(), tmp_path / "ledger.key"
    found(location, key=key)
    return location, key


@pytest.mark.needs("postgres")
def test_a_killed_client_loses_nothing_that_it_acknowledged(served, rng):
    kill_rounds(*served, rng, rounds=8)


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_client_killed_200_times_loses_nothing(served, rng):
    kill_rounds(*served, rng, rounds=200)


def server_rounds(mortal, served, rng: random.Random, *, rounds: int) -> None:
    location, key = served
    with killed(location, key) as worker:
        worker.start()
        for number in range(rounds):
            worker.hear(rng.randrange(5, 60))
            if number % 2:
                mortal.stop(mode="immediate")
            else:
                mortal.kill()
            mortal.start()
            worker.hear(40)  # it comes back by itself, or asks again with the same key
        worker.kill()
        check(location, worker.acknowledged, touched=worker.touched, key=key)


@pytest.mark.needs("postgres")
def test_a_killed_server_loses_nothing_that_was_acknowledged(mortal, served, rng):
    server_rounds(mortal, served, rng, rounds=3)


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_server_killed_40_times_loses_nothing(mortal, served, rng):
    server_rounds(mortal, served, rng, rounds=40)


@pytest.mark.needs("postgres")
def test_a_lost_connection_is_a_clear_error_and_nothing_is_charged_twice(
    mortal, served, monkeypatch
):
    monkeypatch.setattr("discreet.ledger.stores.postgres.store.PATIENCE", 0.3)
    location, key = served
    with Ledger.open(location, key=key) as ledger:
        account = ledger["people"]
        account.charge(LOSS, **WHO, key="before")
        mortal.stop(mode="fast")
        try:
            for _ in range(2):
                with pytest.raises(LedgerUnavailable, match="server"):
                    account.charge(LOSS, **WHO, key="meanwhile")
            with pytest.raises(LedgerUnavailable, match="server"):
                ledger.verify()
            with pytest.raises(LedgerUnavailable, match="server"):
                Ledger.open(location, key=key)
        finally:
            mortal.start()
        first = account.charge(LOSS, **WHO, key="meanwhile")
        assert account.charge(LOSS, **WHO, key="meanwhile") == first
        assert ledger.verify().size == first.index + 1
