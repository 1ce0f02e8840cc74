"""A ledger to be killed, on a disk that fails: what it acknowledged must be there afterwards."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import apsw
import pytest
from faulty_vfs import Disk

from discreet.accounting import PureLoss
from discreet.ledger import Ledger
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.session import LedgerSession
from discreet.ledger.stores.sqlite.store import SqliteStore
from discreet.ledger.writing import opening
from discreet.privacy import Guarantee, Unit

LOSS = PureLoss(epsilon=Fraction(1, 1000))


WHO = {"who": "ana", "purpose": "report"}


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
        yield Ledger(LedgerSession(store, keyring, read_only=False))
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
