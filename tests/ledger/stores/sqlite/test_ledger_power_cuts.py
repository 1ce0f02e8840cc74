"""The power is cut at any operation."""

import random
import shutil
from pathlib import Path

import pytest
from faulty_vfs import Disk
from ledger_crashes import LOSS, WHO, after_cut, check, copied, on_disk

from discreet.errors import LedgerError
from discreet.ledger import Ledger
from discreet.ledger.stores.sqlite import files
from discreet.mechanisms import DiscreteLaplace

pytestmark = pytest.mark.lengthy


def cuts(
    place: Path, folder: Path, rng: random.Random, *, every: int = 1, **options: object
) -> list[str]:
    """Charge, and cut the power at every operation; return what was lost or broken."""
    disk = Disk(rng)
    acknowledged: list[str] = []
    touched: list[str] = []
    broken: list[str] = []

    def before(operation):
        if operation.number % every:
            return
        left = after_cut(disk, place, folder / f"cut-{operation.number}")
        try:
            check(left, acknowledged, touched=touched)
            if operation.number % 5 == 0:
                with Ledger.open(left) as ledger:
                    for n in range(2):
                        ledger["people"].charge(LOSS, **WHO, key=f"new-{n}")
                    ledger.verify()
        except (AssertionError, LedgerError, KeyError) as error:
            broken.append(f"at {operation}: {type(error).__name__}: {error}"[:300])
        shutil.rmtree(left.parent)

    with on_disk(place, disk, **options) as ledger:
        disk.before = before
        account = ledger["people"]
        noisy = DiscreteLaplace(sensitivity=1, scale=1000)
        for n in range(8):
            acknowledged += account.charge(LOSS, **WHO, key=f"new-{n}").bodies
            if n % 4 == 0:
                release = account.answer(
                    noisy, lambda n=n: touched.append(f"a-{n}") or 41, who="bo", purpose=f"a-{n}"
                )
                acknowledged += release.receipt.bodies
    disk.before = lambda operation: None
    disk.close()
    check(place, acknowledged, touched=touched)
    return broken


@pytest.mark.parametrize("checkpoints", [False, True], ids=["plain", "checkpoints"])
def test_a_power_cut_at_any_operation_loses_nothing(prepared, tmp_path, rng, checkpoints):
    broken = cuts(copied(prepared, tmp_path / "site"), tmp_path, rng, checkpoints=checkpoints)
    assert not broken, "\n".join(broken)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoints", [False, True], ids=["plain", "checkpoints"])
def test_many_power_cuts_lose_nothing(prepared, tmp_path, rng, checkpoints):
    for number in range(20):
        place = copied(prepared, tmp_path / f"site-{number}")
        broken = cuts(place, tmp_path, rng, checkpoints=checkpoints)
        assert not broken, "\n".join(broken)


def test_a_ledger_that_does_not_wait_for_the_disk_would_lose_charges(prepared, tmp_path, rng):
    """A test of the tests above: they notice if a commit is not synced."""
    place = copied(prepared, tmp_path / "site")
    lost = cuts(place, tmp_path, rng, syncs=False)
    assert len(lost) > 5


def test_a_power_cut_while_a_ledger_is_founded(tmp_path, rng, monkeypatch):
    """What is left is no ledger yet, or a sound one; and it can be founded again."""
    place = tmp_path / "site" / "budget.db"
    place.parent.mkdir()
    disk = Disk(rng)
    is_made = False
    sync = files.sync

    def folder_synced(path):
        sync(path)
        disk.folder_synced()

    monkeypatch.setattr(files, "sync", folder_synced)

    broken = []

    def before(operation):
        left = after_cut(disk, place, tmp_path / f"cut-{operation.number}")
        if not (is_made or left.exists()):
            return
        try:
            with Ledger.open(left, create=not is_made) as ledger:
                assert ledger.verify().size == 1
        except (AssertionError, LedgerError) as error:  # SQLite would swallow it
            broken.append(f"at {operation}: {type(error).__name__}: {error}"[:300])

    disk.before = before
    with on_disk(place, disk):
        is_made = True
        left = after_cut(disk, place, tmp_path / "cut-made")
        with Ledger.open(left, create=False) as ledger:
            assert ledger.verify().size == 1
    disk.close()
    assert not broken, "\n".join(broken)
    assert len(disk.operations) > 10
