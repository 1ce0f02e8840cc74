"""An old copy in the place of the ledger is refused by every host that has seen a newer one."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from base64 import b64decode
from contextlib import closing, suppress
from pathlib import Path

import pytest
from ledger_requests import ASKED, LONG, make_account

from discreet.accounting import PureLoss
from discreet.errors import (
    LedgerError,
    LedgerUnavailable,
    ParameterError,
    PrivacyWarning,
    TamperingFound,
)
from discreet.ledger import Export, Ledger

LOSS = PureLoss(epsilon=0.01)
CUSTODIAN = {"who": "chris", "reason": "the disk died"}


def anchor_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.anchor")


def spend(path, times=1, **options) -> None:
    with Ledger.open(path, **options) as ledger:
        for _ in range(times):
            ledger["a"].charge(LOSS, **ASKED)


def put_back(copy: Path, path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(copy, path)


@pytest.fixture
def rolled_back(path, tmp_path):
    """An older copy in the place of the ledger."""
    with Ledger.open(path) as ledger:
        make_account(ledger)
        ledger["a"].charge(LOSS, **ASKED)
        ledger.backup(tmp_path / "copy.db")
        for _ in range(3):
            ledger["a"].charge(LOSS, **ASKED)
    put_back(tmp_path / "copy.db", path)
    return path


def test_what_failed_for_others_is_not_remembered(path, monkeypatch):
    """A leader also carries out what other processes wait for, and that may fail."""
    posted = []

    def full(transaction, requests, work):
        work(transaction, requests)
        raise LedgerUnavailable("the disk is full.")

    with Ledger.open(path) as ledger:
        account, store = make_account(ledger), type(ledger._session.store)
        commit = store.commit_together

        def catch(_, batch, work):
            posted.extend(batch)
            raise LedgerUnavailable("not now.")

        def serve(self, batch, work):
            answers = commit(self, batch, work)
            with suppress(LedgerUnavailable):
                commit(self, posted, lambda *given: full(*given, work))
            return answers

        monkeypatch.setattr(store, "commit_together", catch)
        with pytest.raises(LedgerUnavailable):
            account.charge(LOSS, **ASKED)
        monkeypatch.setattr(store, "commit_together", serve)
        account.charge(LOSS, **ASKED)
        monkeypatch.undo()
    spend(path)


def test_a_copy_from_earlier_is_refused(rolled_back):
    before = rolled_back.read_bytes()
    with pytest.raises(TamperingFound) as error:
        Ledger.open(rolled_back)
    assert error.value.entry == 3
    for told in ("had at least 6", "Nothing was written", "discreet ledger rollback"):
        assert told in str(error.value)
    assert rolled_back.read_bytes() == before
    with Ledger.open(rolled_back, read_only=True) as ledger:  # to look what it is
        assert ledger.verify().size == 3


def test_a_custodian_goes_on_with_it_on_record(rolled_back, tmp_path):
    receipt = Ledger.accept_rollback(rolled_back, **CUSTODIAN)
    (entry,) = receipt.entries
    assert (entry["kind"], entry["size"], entry["who"]) == ("rollback", 6, "chris")
    assert entry["reason"] == "the disk died"
    spend(rolled_back)
    with Ledger.open(rolled_back) as ledger:
        assert ledger.verify().size == ledger.size == 5
        assert ledger.prove(receipt).is_proven
        ledger.export(tmp_path / "log.ndjson")
    assert Export(tmp_path / "log.ndjson").verify().size == 5
    with pytest.raises(ParameterError):  # nothing is wrong any more
        Ledger.accept_rollback(rolled_back, **CUSTODIAN)
    with Ledger.open(rolled_back) as ledger:
        assert ledger.size == 5


@pytest.mark.parametrize("more", [1, 3, 7])
def test_a_fork_is_refused_whatever_its_length(rolled_back, more):
    """A copy that another host, with an anchor of its own, has gone on with."""
    mine = anchor_of(rolled_back).read_bytes()
    anchor_of(rolled_back).unlink()
    spend(rolled_back, more)
    anchor_of(rolled_back).write_bytes(mine)
    with pytest.raises(TamperingFound):
        Ledger.open(rolled_back)
    Ledger.accept_rollback(rolled_back, **CUSTODIAN)
    spend(rolled_back)


def test_hashes_that_were_made_to_fit_do_not_help_a_fork(rolled_back):
    """The log must lead from one root to the other, not only have a node that looks right."""
    mine = anchor_of(rolled_back).read_bytes()
    anchor_of(rolled_back).unlink()
    spend(rolled_back, 7)
    lines = mine.decode().split("\n")
    with closing(sqlite3.connect(rolled_back)) as db, db:
        # The anchor is of 4 entries now, whose root lies in the last of them.
        (hashes,) = db.execute("SELECT hashes FROM entries WHERE idx = 3").fetchone()
        forged = hashes[:64] + b64decode(lines[2])
        assert len(forged) == len(hashes) == 96
        db.execute("UPDATE entries SET hashes = ? WHERE idx = 3", (forged,))
    anchor_of(rolled_back).write_text("\n".join([lines[0], "4", *lines[2:]]))
    with pytest.raises(TamperingFound, match="anchor"):
        Ledger.open(rolled_back)


def test_another_host_without_an_anchor_takes_it_as_it_is(rolled_back):
    anchor_of(rolled_back).unlink()
    spend(rolled_back)
    assert int(anchor_of(rolled_back).read_text().splitlines()[1]) == 4


def test_a_ledger_that_is_open_is_looked_at_with_every_change(path, tmp_path):
    """Whoever is in the middle of it when it goes back notices, too."""
    with Ledger.open(path) as mine, Ledger.open(path) as other:
        account = make_account(mine)
        account.charge(LOSS, **ASKED)
        note = anchor_of(path).read_text()
        for _ in range(2):
            account.charge(LOSS, **ASKED)
        other["a"].charge(LOSS, **ASKED)
        lines = anchor_of(path).read_text().split("\n")
        assert int(lines[1]) == mine.size > int(note.split("\n")[1])
        ahead = "\n".join([lines[0], str(mine.size + 1), *lines[2:]])
        anchor_of(path).write_text(ahead)
        with pytest.raises(TamperingFound):
            account.charge(LOSS, **ASKED)  # since another one wrote, it looks anew


KILLED = """
import os, sys
from discreet.accounting import PureLoss
from discreet.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
for _ in range(5):
    ledger["a"].charge(PureLoss(epsilon=0.01), who="ana", purpose="report")
print(ledger.size, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_write_ahead_log_that_is_gone_after_a_crash_is_noticed(path, tmp_path):
    with Ledger.open(path) as ledger:
        make_account(ledger)
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], capture_output=True, text=True, timeout=LONG
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    log = path.with_name("budget.db-wal")
    kept = log.read_bytes()
    assert kept
    log.unlink()
    path.with_name("budget.db-shm").unlink()
    with pytest.raises(TamperingFound):
        Ledger.open(path)
    path.with_name("budget.db-shm").unlink(missing_ok=True)
    log.write_bytes(kept)  # found again
    with Ledger.open(path) as ledger:
        assert ledger.size == int(ran.stdout)
        ledger["a"].charge(LOSS, **ASKED)


MANY = """
import sys
from discreet.accounting import PureLoss
from discreet.ledger import Ledger
for _ in range(3):
    with Ledger.open(sys.argv[1]) as ledger:
        for _ in range(10):
            ledger["a"].charge(PureLoss(epsilon=0.0001), who="ana", purpose="report")
"""


@pytest.mark.lengthy
def test_processes_that_share_an_anchor_do_not_accuse_each_other(path):
    with Ledger.open(path) as ledger:
        make_account(ledger)
    processes = [
        subprocess.Popen([sys.executable, "-c", MANY, str(path)], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    told = [process.communicate(timeout=10 * LONG)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, told
    with Ledger.open(path) as ledger:
        assert ledger.size == 2 + 4 * 30
    assert int(anchor_of(path).read_text().splitlines()[1]) == 2 + 4 * 30
    assert anchor_of(path).stat().st_mode & 0o777 == 0o600


def test_where_it_cannot_be_written_that_is_said_and_charges_go_on(path, tmp_path, monkeypatch):
    """As where keys come on a medium that is read only."""
    monkeypatch.setenv("DISCREET_LEDGER_ANCHORS", str(tmp_path / "none" / "there"))
    with pytest.warns(PrivacyWarning, match="would not notice an old copy"):
        ledger = Ledger.open(path)
    with ledger, warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        make_account(ledger)
        ledger["a"].charge(LOSS, **ASKED)
        assert ledger.verify().size == 3


def test_anchors_can_be_kept_in_a_folder_of_their_own(path, tmp_path, monkeypatch):
    """Where the ledger and its key are restored together, say."""
    folder = tmp_path / "anchors"
    folder.mkdir()
    monkeypatch.setenv("DISCREET_LEDGER_ANCHORS", str(folder))
    with Ledger.open(path) as ledger:
        make_account(ledger)
        ledger.backup(tmp_path / "copy.db")
        ledger["a"].charge(LOSS, **ASKED)
    assert len(list(folder.iterdir())) == 1
    assert not anchor_of(path).exists()
    put_back(tmp_path / "copy.db", path)
    with pytest.raises(TamperingFound):
        Ledger.open(path)


def test_a_shorter_checkpoint_over_a_longer_one_is_read(path):
    """As when whoever commits the ninth entry writes after who commits the tenth."""
    with Ledger.open(path) as mine, Ledger.open(path) as other:
        make_account(mine)
        notes = []
        while mine.size < 10:
            mine["a"].charge(LOSS, **ASKED)
            notes.append(mine.checkpoint())
        assert len(notes[-2]) < len(notes[-1])
        mine._session.anchor.write(notes[-2])
        other._session.anchor.write(notes[-1])
        mine._session.anchor.write(notes[-2])
        assert len(anchor_of(path).read_text()) == len(notes[-1])
    with Ledger.open(path) as ledger:
        assert ledger.size == 10


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"no checkpoint"])
def test_an_anchor_that_cannot_be_read_is_not_taken_for_none(path, content):
    with Ledger.open(path) as ledger:
        make_account(ledger)
    anchor_of(path).write_bytes(content)
    with pytest.raises(LedgerError, match="anchor"):
        Ledger.open(path)
    assert Ledger.accept_rollback(path, **CUSTODIAN).entries[0]["size"] == 0
    spend(path)


def test_a_rotated_key_keeps_its_anchor(path, tmp_path):
    with Ledger.open(path) as ledger:
        make_account(ledger)
        ledger.backup(tmp_path / "copy.db")
        ledger.rotate()
        ledger["a"].charge(LOSS, **ASKED)
    spend(path)
    put_back(tmp_path / "copy.db", path)
    with pytest.raises(LedgerError):
        Ledger.open(path)


@pytest.mark.needs("postgres")
def test_a_server_that_went_back_is_refused_by_who_has_seen_more(server, tmp_path):
    """After a failover to a standby that lagged behind, say. Each host has its own anchor."""
    url, key = server.new_database(), tmp_path / "here" / "key"
    key.parent.mkdir()
    with Ledger.open(url, key=key) as ledger:
        make_account(ledger)
        ledger.export(tmp_path / "log.ndjson")
        ledger["a"].charge(LOSS, **ASKED)
    elsewhere = server.new_database()
    there = tmp_path / "there"
    there.mkdir()
    shutil.copy2(key, there / "key")
    Ledger.imported(tmp_path / "log.ndjson", elsewhere, key=there / "key").close()
    with pytest.raises(TamperingFound):
        Ledger.open(elsewhere, key=key)
    spend(elsewhere, key=there / "key")  # a host that has seen no more
    with pytest.raises(TamperingFound):  # as long as the one before, and another
        Ledger.open(elsewhere, key=key)
    Ledger.accept_rollback(elsewhere, key=key, **CUSTODIAN)
    for known in (key, there / "key"):
        spend(elsewhere, key=known)


def test_writing_it_waits_for_no_disk(path, monkeypatch):
    """It may be behind after a power cut, which does no harm: what is asked of it is speed."""
    with Ledger.open(path) as ledger:
        account = make_account(ledger)
        synced = []
        monkeypatch.setattr(os, "fsync", synced.append)
        before = anchor_of(path).stat().st_ino
        account.charge(LOSS, **ASKED)
        assert synced == []
        assert anchor_of(path).stat().st_ino == before
        assert anchor_of(path).read_text() == ledger.checkpoint()
