"""Full disks, read-only files, files that move, locks that are not let go."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from ledger_crashes import LOSS, WHO, check, copied
from ledger_requests import make_account

from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger, Receipt
from discreet.ledger.stores.sqlite import store as sqlite_module

FULL = """
import os, resource, signal, sys
from fractions import Fraction
from pathlib import Path
from discreet.accounting import PureLoss
from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit

place, how = Path(sys.argv[1]), sys.argv[2]
ballast = place.parent / "ballast"

def fill():
    if how == "limit":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    else:
        ballast.write_bytes(bytes(100_000))

def empty():
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    else:
        ballast.unlink()

loss = PureLoss(epsilon=Fraction(1, 1000))
one = dict(who="ana", purpose="report")
with Ledger.open(place) as ledger:
    account = ledger.create("people", unit=Unit.record(), neighbours="add_remove",
                            guarantee=Guarantee(epsilon=1000))
    fill()
    done = []
    for n in range(100_000):
        try:
            done.append(account.charge(loss, **one, key=f"k-{n}").bodies[0])
        except LedgerUnavailable as error:
            assert not error.may_be_recorded or how == "limit", error
            break
    else:
        raise SystemExit("the disk never filled up")
    assert n > 3, n
    for _ in range(3):  # and still
        try:
            account.charge(loss, **one, key=f"k-{n}")
        except LedgerUnavailable:
            pass
    size = ledger.verify().size  # reading needs no room
    assert size in (len(done) + 2, len(done) + 3)
    empty()
    again = account.charge(loss, **one, key=f"k-{n}")
    assert account.charge(loss, **one, key=f"k-{n}") == again
    assert ledger.verify().size == len(done) + 3
with Ledger.open(place) as ledger:
    with ledger._session.read() as view:
        bodies = [row.body for row in view.rows(0, 10**6)]
    assert bodies[2:] == [*done, again.bodies[0]]
    ledger.verify()
"""


def run_full(place: Path, how: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(place), how], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.lengthy
def test_a_file_that_may_not_grow_is_a_clear_error(tmp_path):
    run_full(tmp_path / "budget.db", "limit")


@pytest.fixture
def small(tmp_path) -> Iterator[Path]:
    """A disk of a megabyte."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can make a small disk; the test above stands in for it")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.lengthy
def test_a_full_disk_is_a_clear_error(small):
    (small / "other").write_bytes(bytes(400_000))
    run_full(small / "budget.db", "disk")


def fill_up(folder: Path, *, but: int) -> None:
    found = os.statvfs(folder)
    (folder / "ballast").write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - but)))


@pytest.mark.lengthy
@pytest.mark.filterwarnings("ignore::discreet.errors.PrivacyWarning")  # no room for an anchor
@pytest.mark.parametrize("left", [0, 4096, 16384, 24576, 36864, 49152, 86016])
def test_wherever_a_disk_fills_up_that_is_what_is_said(small, left):
    """Also where a file beside the database cannot be made, grown or mapped."""
    place, told = small / "budget.db", []

    def charge_many() -> None:
        with Ledger.open(place) as ledger:
            if "people" not in ledger:
                make_account(ledger, "people", epsilon=1000)
            for n in range(1000):
                ledger["people"].charge(LOSS, **WHO, key=f"{n}")

    fill_up(small, but=left)
    for _ in range(2):  # a new one, and one that is there
        with pytest.raises(LedgerUnavailable) as error:
            charge_many()
        told.append(error.value)
        (small / "ballast").unlink()
        with Ledger.open(place) as ledger:  # there is room again
            account = (
                ledger["people"]
                if "people" in ledger
                else make_account(ledger, "people", epsilon=1000)
            )
            account.charge(LOSS, **WHO)
            ledger.verify()
        fill_up(small, but=left)
    for error in told:
        assert "ree some space" in str(error), error
        assert ("Nothing was written" in str(error)) is not error.may_be_recorded


@contextmanager
def nobody(folder: Path) -> Iterator[None]:
    """Be somebody to whom permissions mean something."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("file_mode", "folder_mode"), [(0o444, 0o755), (0o444, 0o555), (0o644, 0o555)]
)
def test_a_read_only_file_or_folder_is_a_clear_error(prepared, file_mode, folder_mode):
    # Not in pytest's folders, which nobody else may enter.
    folder = Path(tempfile.mkdtemp()) / "site"
    folder.parent.chmod(0o755)
    try:
        place = copied(prepared, folder)
        before = place.read_bytes()
        with nobody(folder):
            place.chmod(file_mode)
            folder.chmod(folder_mode)
            with pytest.raises(LedgerUnavailable) as error:
                charge_once(place)
            assert not error.value.may_be_recorded
            assert str(place) in str(error.value)
            assert place.read_bytes() == before
            if folder_mode == 0o755:
                with Ledger.open(place, read_only=True) as ledger:
                    ledger.verify()
            place.chmod(0o644)
            folder.chmod(0o755)
            receipt = charge_once(place)
            assert charge_once(place) == receipt
        check(place, [*receipt.bodies])
    finally:
        shutil.rmtree(folder.parent)


def charge_once(place: Path) -> Receipt:
    with Ledger.open(place) as ledger:
        return ledger["people"].charge(LOSS, **WHO, key="once")


def test_a_file_that_was_moved_or_replaced_is_not_charged(prepared, tmp_path):
    place = copied(prepared, tmp_path / "site")
    with Ledger.open(place) as ledger:
        account = ledger["people"]
        account.charge(LOSS, **WHO, key="first")
        ledger.backup(tmp_path / "backup.db")
        place.rename(tmp_path / "moved.db")
        for _ in range(2):
            with pytest.raises(LedgerUnavailable) as error:
                account.charge(LOSS, **WHO, key="second")
            assert not error.value.may_be_recorded
            shutil.copyfile(tmp_path / "backup.db", place)  # and then another one in its place
        with pytest.raises(LedgerUnavailable):
            ledger.verify()
    check(place, [])


def test_a_lock_that_is_not_let_go_is_a_clear_error(prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_module, "PATIENCE", 0.2)
    place = copied(prepared, tmp_path / "site")
    with Ledger.open(place) as ledger:
        with closing(sqlite3.connect(place, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable) as error:
                ledger["people"].charge(LOSS, **WHO, key="once")
            assert not error.value.may_be_recorded
            ledger.verify()
        receipt = ledger["people"].charge(LOSS, **WHO, key="once")
    check(place, [*receipt.bodies])
