"""Whoever may read the files of a ledger reads its answers: they are for their owner alone."""

import os
import sys
from contextlib import closing

import pytest
from ledger_requests import ASKED, make_account

from discreet.accounting import PureLoss
from discreet.ledger import Ledger

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")

FILES = {"budget.db", "budget.db-wal", "budget.db-shm", "budget.db-lock", "budget.db-mailbox"}


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder):
    return {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}


def spend(ledger):
    ledger["a"].charge(PureLoss(epsilon=0.1), **ASKED)


def test_whatever_the_umask_they_are_their_owners(tmp_path, umask):
    with closing(Ledger.open(tmp_path / "budget.db")) as ledger:
        make_account(ledger)
        spend(ledger)
        ledger.export(tmp_path / "log.ndjson")
        ledger.backup(tmp_path / "copy.db")
        found = modes(tmp_path)
    assert found.keys() >= {*FILES, "log.ndjson", "copy.db"}
    assert set(found.values()) == {0o600}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660, 0o644], ids=oct)
def test_the_files_beside_it_follow_the_database(tmp_path, umask, mode):
    path = tmp_path / "budget.db"
    path.touch()
    path.chmod(0o664)
    with closing(Ledger.open(path)) as ledger:
        make_account(ledger)
    # As left by a crash, and by earlier versions.
    left = [path.with_name(name) for name in ("budget.db-lock", "budget.db-mailbox")]
    for each in left:
        each.touch()
        each.chmod(0o664)
    path.chmod(mode)
    with closing(Ledger.open(path)) as ledger:
        spend(ledger)
        found = modes(tmp_path)
        assert {found[name] for name in FILES} == {mode}
        ledger.verify()
