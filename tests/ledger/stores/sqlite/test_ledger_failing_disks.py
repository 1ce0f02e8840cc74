"""A disk that fails at any operation loses nothing and lies about nothing."""

import random
import warnings
from pathlib import Path

import apsw
import pytest
from faulty_vfs import Disk
from ledger_crashes import LOSS, WHO, after_cut, check, copied, on_disk

from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger, Witness
from discreet.mechanisms import DiscreteLaplace

pytestmark = pytest.mark.lengthy


class Script:
    """A few requests, each of which may fail, and what was said about them."""

    KEYS = ("new-0", "new-1", "new-2")

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self.touched: list[str] = []
        self.refused: list[str] = []
        self.errors: list[LedgerUnavailable] = []

    def charge(self, ledger: Ledger, key: str) -> None:
        try:
            self.acknowledged.append(ledger["people"].charge(LOSS, **WHO, key=key).bodies[0])
        except LedgerUnavailable as error:
            self.errors.append(error)
            if not error.may_be_recorded:
                self.refused.append(key)

    def answer(self, ledger: Ledger, purpose: str) -> None:
        noisy = DiscreteLaplace(sensitivity=1, scale=1000)
        try:
            with warnings.catch_warnings(record=True) as told:  # of an answer not put on record
                warnings.simplefilter("always")
                release = ledger["people"].answer(
                    noisy, lambda: self.touched.append(purpose) or 41, who="ana", purpose=purpose
                )
            self.acknowledged += release.receipt.bodies
            for said in (str(one.message) for one in told):
                unknown = "Nothing was written" not in said
                self.errors.append(LedgerUnavailable(said, may_be_recorded=unknown))
        except LedgerUnavailable as error:
            self.errors.append(error)

    def run(self, ledger: Ledger) -> None:
        self.charge(ledger, "new-0")
        self.answer(ledger, "answered")
        self.charge(ledger, "new-1")
        self.charge(ledger, "new-2")


def operations_of(prepared: Path, folder: Path, checkpoints: bool) -> int:
    disk = Disk(random.Random(1))
    script = Script()
    with on_disk(copied(prepared, folder), disk, checkpoints=checkpoints) as ledger:
        start = len(disk.operations)
        script.run(ledger)
        count = len(disk.operations) - start
    disk.close()
    assert script.errors == []
    return count


def fail_once(
    prepared: Path, folder: Path, rng: random.Random, checkpoints: bool, **fault: object
) -> bool:
    """Run the script on a disk with a fault, look at what is left, and repair it.

    Return whether the fault made itself felt.
    """
    place = copied(prepared, folder)
    disk, script = Disk(rng), Script()
    with on_disk(place, disk, checkpoints=checkpoints) as ledger:
        with disk.fail(**fault):
            script.run(ledger)
            assert disk.failures, "no operation failed: the sweep misses its mark"
            # If the power is cut now, when nothing more could be done about it:
            left = after_cut(disk, place, folder / "cut")
        said = {"touched": script.touched, "refused": script.refused}
        try:
            check(left, script.acknowledged, **said)
        except AssertionError as error:
            trace = "\n".join(f"{o.kind} {Path(o.file).name}" for o in disk.operations[-40:])
            raise AssertionError(f"{fault}: {script.errors}\n{trace}") from error
        # The disk works again: the same requests succeed, and none was charged twice.
        again = Script()
        for key in Script.KEYS:
            again.charge(ledger, key)
        assert again.errors == []
    disk.close()
    everything = script.acknowledged + again.acknowledged
    size = check(place, everything, touched=script.touched)
    with Ledger.open(place, read_only=True) as ledger:
        keys = [entry["key"] for entry in ledger.history("people")]
    assert [sum(key.endswith(f"/{one}") for key in keys) for one in Script.KEYS] == [1, 1, 1]
    assert size <= 7 + 3 + 2
    for error in script.errors:
        assert "budget.db" in str(error)
        assert ("Nothing was written" in str(error)) is not error.may_be_recorded
    return bool(script.errors)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in close()
@pytest.mark.parametrize("checkpoints", [False, True], ids=["plain", "checkpoints"])
@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR, apsw.SQLITE_FULL], ids=["broken", "full"])
def test_an_operation_that_fails_loses_nothing_and_lies_about_nothing(
    prepared, tmp_path, rng, code, checkpoints
):
    count = operations_of(prepared, tmp_path / "count", checkpoints)
    assert count > 20
    felt = [
        fail_once(
            prepared, tmp_path / f"{at}", rng, checkpoints, code=code, at=at, lasting=at % 3 == 0
        )
        for at in range(count)
    ]
    assert sum(felt) > count / 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in close()
@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR, apsw.SQLITE_FULL, apsw.SQLITE_READONLY])
def test_every_way_to_fail_at_every_operation(prepared, tmp_path, rng, code, lasting):
    for number, checkpoints in enumerate([False, True] * 4):
        count = operations_of(prepared, tmp_path / f"count-{number}", checkpoints)
        for at in range(count):
            folder = tmp_path / f"{number}-{at}"
            fail_once(prepared, folder, rng, checkpoints, code=code, at=at, lasting=lasting)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in close()
def test_an_operation_that_fails_while_a_ledger_is_founded(tmp_path, rng):
    """Founding it again succeeds, and what was not acknowledged may or may not be there."""
    for at in range(200):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        disk = Disk(rng)
        try:
            with disk.fail(apsw.SQLITE_IOERR, at=at), on_disk(folder / "budget.db", disk):
                pass
        except LedgerUnavailable:
            pass
        disk.close()
        with Ledger.open(folder / "budget.db") as ledger:
            assert ledger.verify().size == 1
        if not disk.failures:
            break
    assert 10 < at < 199


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in close()
def test_a_disk_that_cannot_be_read_is_not_taken_for_tampering(prepared, tmp_path, rng):
    place = copied(prepared, tmp_path / "site")
    with Ledger.open(place) as ledger:
        ledger.witness(Witness.create(tmp_path / "witness", name="witness.example/w1"))
    kinds = set()
    for at in range(300):
        disk = Disk(rng, reads=True)
        try:
            with disk.fail(apsw.SQLITE_IOERR, at=at), on_disk(place, disk) as ledger:
                ledger.verify()
        except Exception as error:
            kinds.add(type(error))
        disk.close()
        if not disk.failures:
            break
    assert 8 < at < 299
    assert kinds == {LedgerUnavailable}
