"""The ledger with everything in it, and databases that can be edited and put back."""

import shutil
from pathlib import Path

import pytest
from ledger_attacks import Original, PostgresSite, SqliteSite, fill

from discreet.ledger import Ledger


@pytest.fixture(scope="session")
def original(tmp_path_factory) -> Original:
    folder = tmp_path_factory.mktemp("original")
    with Ledger.open(folder / "budget.db", name="example.com/ledger") as ledger:
        return fill(ledger, folder)


@pytest.fixture(scope="session")
def postgres_site(original, server) -> PostgresSite:
    return PostgresSite(original, server.new_database())


@pytest.fixture
def sqlite_site(original, tmp_path) -> SqliteSite:
    folder = tmp_path / "site"
    folder.mkdir()
    return SqliteSite(original, folder)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def site(request):
    made = request.getfixturevalue(f"{request.param}_site")
    made.reset()
    yield made
    made.reset()


@pytest.fixture
def restored(original, tmp_path) -> Path:
    """An older copy of the file in its place, and the key that signs it still."""
    place = tmp_path / "budget.db"
    shutil.copyfile(original.older, place)
    shutil.copy2(original.key, f"{place}.key")
    return place
