"""Processes that are killed, disks that fail or fill up, power that is cut, servers that vanish.

Whatever happens, and whenever: an acknowledged charge is in the log, an answer was computed only
after its charge was durable, the log verifies, an error says the truth about what was written, and
asking again with the same key never charges twice. Moments are chosen at random and unseeded,
since every one must pass; a failure prints the seed.
"""

import os
import random
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import apsw
import pytest
from faulty_vfs import Disk

from discreet.accounting import PureLoss
from discreet.errors import LedgerError, LedgerUnavailable
from discreet.ledger import Ledger, Receipt, Witness
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.stores.sqlite import store as sqlite_module
from discreet.ledger.stores.sqlite.store import SqliteStore
from discreet.ledger.writing import opening
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit

LOSS = PureLoss(epsilon=Fraction(1, 1000))
WHO = {"who": "ana", "purpose": "report"}


@pytest.fixture
def rng() -> random.Random:
    seed = secrets.randbits(64)
    sys.stdout.write(f"seed {seed}\n")  # shown with a failure only
    return random.Random(seed)


def found(location: object, **options: object) -> None:
    """Make a ledger with one large account."""
    with Ledger.open(str(location), **options) as ledger:
        ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1_000),
        )


def check(
    location: object,
    acknowledged: list[str],
    *,
    touched: list[str] = (),
    key: Path | None = None,
    refused: list[str] = (),
) -> int:
    """Verify the ledger and look for what must be in it, and must not; return its size.

    ``acknowledged`` are entries as they were returned, ``touched`` purposes for which data was
    read, and ``refused`` are keys of requests of which it was said that nothing was written.
    """
    with Ledger.open(str(location), key=key, create=False) as ledger:
        verified = ledger.verify()
        with ledger._session.read() as view:
            bodies = {row.body: row.key for row in view.rows(0, verified.size)}
        charges = [entry for entry in ledger.history("people") if entry["kind"] == "charge"]
        # Everything here costs a thousandth: nothing was charged that is not there, or twice.
        used = Fraction(len(charges), 1_000 * 1_000)
        assert ledger["people"].used == pytest.approx(float(used), rel=1e-9, abs=0)
    assert [body for body in acknowledged if body not in bodies] == []
    assert set(touched) <= {entry["purpose"] for entry in charges}
    assert set(refused).isdisjoint(key.rpartition("/")[2] for key in bodies.values())
    return verified.size


# --- kill -9 ---

# Charges in four threads for ever, and says so after the fact. Writes of so few bytes into a pipe
# are never torn. The process that imports everything is there once, and forks for each round.
WORKER = """
import os, sys, threading, time
from fractions import Fraction
from discreet.accounting import PureLoss
from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger
from discreet.mechanisms import DiscreteLaplace

location, key = sys.argv[1], sys.argv[2]
say = lambda *words: os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def until_it_works(act):
    while True:
        try:
            return act()
        except LedgerUnavailable as error:
            say("unavailable", error.may_be_recorded)
            time.sleep(0.02)

def work(ledger, name):
    account = ledger["people"]
    loss = PureLoss(epsilon=Fraction(1, 1000))
    noisy = DiscreteLaplace(sensitivity=1, scale=1000)
    for n in range(1_000_000):
        if n % 4 == 3:
            purpose = f"{name}-{n}"
            compute = lambda: say("touched", purpose) or 41
            try:
                release = account.answer(noisy, compute, who="ana", purpose=purpose)
            except LedgerUnavailable:
                continue
            for body in release.receipt.bodies:
                say("done", body)
        else:
            one = dict(who="ana", purpose="report", key=f"{name}-{n}")
            say("done", until_it_works(lambda: account.charge(loss, **one)).bodies[0])

def child(round):
    ledger = until_it_works(lambda: Ledger.open(location, key=key, create=False))
    for thread in range(4):
        threading.Thread(target=work, args=(ledger, f"{round}-{thread}")).start()

for line in sys.stdin:
    pid = os.fork()
    if not pid:
        child(line.strip())
        threading.Event().wait()
    say("child", pid)
    os.waitpid(pid, 0)
    say("gone")
"""


class Killed:
    """A worker, started and killed again and again, and what it said."""

    def __init__(self, location: object, key: Path) -> None:
        self.acknowledged: list[str] = []
        self.touched: list[str] = []
        self.lost: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(location), str(key)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._round = 0
        self._child = 0

    def start(self) -> None:
        self._round += 1
        self._process.stdin.write(f"{self._round}\n")
        self._process.stdin.flush()
        while not self._child:
            self._hear()

    def hear(self, lines: int) -> None:
        """Wait until it said something so often."""
        for _ in range(lines):
            self._hear()

    def kill(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        while self._child:
            self._hear()

    def _hear(self) -> None:
        line = self._process.stdout.readline()
        assert line, "the worker is gone"
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "child":
            self._child = int(rest)
        elif word == "gone":
            self._child = 0
        else:
            {"done": self.acknowledged, "touched": self.touched, "unavailable": self.lost}[
                word
            ].append(rest)

    def close(self) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)
        self._process.kill()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@contextmanager
def killed(location: object, key: Path) -> Iterator[Killed]:
    worker = Killed(location, key)
    try:
        yield worker
    finally:
        worker.close()


def kill_rounds(location: object, key: Path, rng: random.Random, *, rounds: int) -> None:
    with killed(location, key) as worker:
        for number in range(rounds):
            worker.start()
            # Some right after the start, some in the midst of work.
            worker.hear(rng.choice([0, 1, rng.randrange(2, 60)]))
            time.sleep(rng.random() * 0.02)
            worker.kill()
            if rounds <= 20 or number % 10 == 9:
                check(location, worker.acknowledged, touched=worker.touched, key=key)
        check(location, worker.acknowledged, touched=worker.touched, key=key)
        assert len(worker.acknowledged) > rounds
        assert worker.touched
        assert worker.lost == []  # a dead process holds up nobody


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path, rng):
    found(tmp_path / "budget.db")
    kill_rounds(tmp_path / "budget.db", tmp_path / "budget.db.key", rng, rounds=20)


@pytest.mark.slow
def test_a_process_killed_200_times_loses_nothing(tmp_path, rng):
    found(tmp_path / "budget.db")
    kill_rounds(tmp_path / "budget.db", tmp_path / "budget.db.key", rng, rounds=200)


def test_a_killed_process_leaves_the_others_working(tmp_path, rng):
    """It may die while it holds the lock, and with requests of others in its hands."""
    place, key = tmp_path / "budget.db", tmp_path / "budget.db.key"
    found(place)
    with killed(place, key) as survivor, killed(place, key) as victim:
        survivor.start()
        for _ in range(6):
            victim.start()
            victim.hear(rng.randrange(10))
            time.sleep(rng.random() * 0.01)
            victim.kill()
            survivor.hear(20)
        survivor.kill()
        acknowledged = survivor.acknowledged + victim.acknowledged
        check(place, acknowledged, touched=survivor.touched + victim.touched, key=key)
        assert survivor.lost == []


def test_a_founding_that_was_killed_can_be_repeated(tmp_path, rng):
    """Whenever it was killed, the next one to come gets a sound ledger, and the right one."""
    code = """
        import sys, os
        from discreet.ledger import Ledger
        os.write(1, b"x")
        ledger = Ledger.open(sys.argv[1])
        os.write(1, b"y")
        ledger.close()
    """
    for number in range(6):
        place = tmp_path / f"{number}.db"
        command = [sys.executable, "-c", textwrap.dedent(code), str(place)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            child.stdout.read(1)
            time.sleep(rng.random() * 0.03)
            child.kill()
            was_made = child.stdout.read() == b"y"
        with Ledger.open(place, create=not was_made) as ledger:
            assert ledger.verify().size == 1


# --- PostgreSQL: the client dies, the server dies ---


@pytest.fixture(scope="module")
def server():
    from discreet.testing._postgres import PostgresServer

    with PostgresServer() as running:
        yield running


@pytest.fixture
def served(server, tmp_path) -> tuple[str, Path]:
    location, key = server.new_database(), tmp_path / "ledger.key"
    found(location, key=key)
    return location, key


@pytest.mark.needs("postgres")
def test_a_killed_client_loses_nothing_that_it_acknowledged(served, rng):
    kill_rounds(*served, rng, rounds=8)


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_client_killed_200_times_loses_nothing(served, rng):
    kill_rounds(*served, rng, rounds=200)


def server_rounds(server, served, rng: random.Random, *, rounds: int) -> None:
    location, key = served
    with killed(location, key) as worker:
        worker.start()
        for number in range(rounds):
            worker.hear(rng.randrange(5, 60))
            if number % 2:
                server.stop(mode="immediate")
            else:
                server.kill()
            server.start()
            worker.hear(40)  # it comes back by itself, or asks again with the same key
        worker.kill()
        check(location, worker.acknowledged, touched=worker.touched, key=key)


@pytest.mark.needs("postgres")
def test_a_killed_server_loses_nothing_that_was_acknowledged(server, served, rng):
    server_rounds(server, served, rng, rounds=3)


@pytest.mark.slow
@pytest.mark.needs("postgres")
def test_a_server_killed_40_times_loses_nothing(server, served, rng):
    server_rounds(server, served, rng, rounds=40)


@pytest.mark.needs("postgres")
def test_a_lost_connection_is_a_clear_error_and_nothing_is_charged_twice(
    server, served, monkeypatch
):
    monkeypatch.setattr("discreet.ledger.stores.postgres.store.PATIENCE", 0.3)
    location, key = served
    with Ledger.open(location, key=key) as ledger:
        account = ledger["people"]
        account.charge(LOSS, **WHO, key="before")
        server.stop(mode="fast")
        try:
            for _ in range(2):
                with pytest.raises(LedgerUnavailable, match="server"):
                    account.charge(LOSS, **WHO, key="meanwhile")
            with pytest.raises(LedgerUnavailable, match="server"):
                ledger.verify()
            with pytest.raises(LedgerUnavailable, match="server"):
                Ledger.open(location, key=key)
        finally:
            server.start()
        first = account.charge(LOSS, **WHO, key="meanwhile")
        assert account.charge(LOSS, **WHO, key="meanwhile") == first
        assert ledger.verify().size == first.index + 1


# --- a disk that fails at any operation ---


@contextmanager
def on_disk(
    place: Path, disk: Disk, *, checkpoints: bool = False, syncs: bool = True
) -> Iterator[Ledger]:
    """Open a ledger on a faulty disk."""

    def connect(uri):
        return Connection(disk.connect(uri), checkpoints=checkpoints, syncs=syncs)

    store = SqliteStore(place, create=True, connect=connect)
    try:
        keyring = Keyring(Path(f"{place}.key"))
        with store.read() as view:
            is_new = not view.facts(["ledger"])
        if is_new:
            opening.found(store, keyring, testing=False, name=None)
        yield Ledger(store, keyring, read_only=False)
    finally:
        store.close()


class Connection:
    """A connection that checkpoints after every commit, or never syncs, for a test of the tests."""

    def __init__(self, connection, *, checkpoints: bool, syncs: bool) -> None:
        self._connection = connection
        self._checkpoints = checkpoints
        self._syncs = syncs
        # SQLite keeps to itself what goes wrong in an automatic checkpoint, since the commit before
        # it stands. apsw raises it all the same, from the commit. So do it by hand.
        connection.execute("PRAGMA wal_autocheckpoint=0")

    def execute(self, sql, parameters=()):
        if sql.startswith("PRAGMA synchronous") and not self._syncs:
            sql = "PRAGMA synchronous=OFF"
        done = self._connection.execute(sql, parameters)
        if sql == "COMMIT" and self._checkpoints:
            with suppress(apsw.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return done

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A ledger with an account, in one file."""
    place = tmp_path_factory.mktemp("prepared") / "budget.db"
    found(place)
    with Ledger.open(place) as ledger:
        for n in range(5):
            ledger["people"].charge(LOSS, **WHO, key=f"old-{n}")
    return place


def copied(prepared: Path, folder: Path) -> Path:
    folder.mkdir()
    shutil.copyfile(prepared, folder / "budget.db")
    shutil.copy2(f"{prepared}.key", folder / "budget.db.key")
    return folder / "budget.db"


def after_cut(disk: Disk, place: Path, folder: Path) -> Path:
    """Return a copy of the ledger as a power cut at this moment may leave it."""
    folder.mkdir()
    disk.cut(folder)
    key = Path(f"{place}.key")
    if key.exists():
        shutil.copy2(key, folder)
    return folder / place.name


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
            release = ledger["people"].answer(
                noisy, lambda: self.touched.append(purpose) or 41, who="ana", purpose=purpose
            )
            self.acknowledged += release.receipt.bodies
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


# --- the power is cut ---


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
    sync = sqlite_module._sync

    def folder_synced(path):
        sync(path)
        disk.folder_synced()

    monkeypatch.setattr(sqlite_module, "_sync", folder_synced)

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


# --- full disks, read-only files, files that move, locks that are not let go ---

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


def test_a_file_that_may_not_grow_is_a_clear_error(tmp_path):
    run_full(tmp_path / "budget.db", "limit")


def test_a_full_disk_is_a_clear_error(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("only root can make a small disk; the test above stands in for it")
    try:
        run_full(small / "budget.db", "disk")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


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
