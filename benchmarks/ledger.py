"""What does a durable, signed charge cost, and does it stay that way?

All in one run, on one disk: durable single-row inserts by one writer (the floor that a database
sets), a naive chain (one charge a transaction, behind a lock), and this ledger with threads and
with processes, on SQLite and on a PostgreSQL server started for the purpose; the same on a disk
whose every commit takes 3 ms more; charges at 1,000 and at a million entries; verification; proofs;
and a race of 32 processes for the last of a budget. Only ratios mean much.

    python benchmarks/ledger.py [--quick] [--json FILE] [--folder DIR] [--no-race]
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.accounting import LaplaceLoss, PureLoss
from discreet.accounting.filters import PRICING
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.session import LedgerSession
from discreet.ledger.stores.sqlite.store import SqliteStore, connect_sqlite
from discreet.ledger.verifier import check_receipt
from discreet.ledger.writing.request import loss_document, new_key, request
from discreet.ledger.writing.scribe import Scribe
from discreet.privacy import Guarantee, Unit
from discreet.testing import PostgresServer

CLIENTS = 32
SLOW = 0.003  # seconds that a commit takes longer on the slow disk
LOSS = LaplaceLoss(noise_multiplier=10**7)
BODY = os.urandom(300).hex()  # as long as the text of a charge
Client = Callable[[], object]


def account_of(ledger: Ledger, name: str = "people") -> Any:
    if name in ledger:
        return ledger[name]
    return ledger.create(
        name,
        unit=Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=10, delta=1e-6),
    )


class Slow:
    """A connection to SQLite on a disk whose commits take longer."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def execute(self, sql: str, *parameters: Any) -> Any:
        done = self._inner.execute(sql, *parameters)
        if sql == "COMMIT":
            time.sleep(SLOW)
        return done


# --- what is measured: each makes a function that does one durable step -------------------------


def raw_sqlite(path: str, *, slow: bool = False) -> Client:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE IF NOT EXISTS t (i INTEGER PRIMARY KEY, body TEXT)")

    def step() -> None:
        db.execute("INSERT INTO t (body) VALUES (?)", (BODY,))
        if slow:
            time.sleep(SLOW)

    return step


def naive_sqlite(path: str) -> Client:
    """Chain by hand: every charge reads the last hash and commits by itself."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE IF NOT EXISTS t (i INTEGER PRIMARY KEY, body TEXT, hash TEXT)")

    def step() -> None:
        db.execute("BEGIN IMMEDIATE")
        last = db.execute("SELECT hash FROM t ORDER BY i DESC LIMIT 1").fetchone()
        digest = hashlib.sha256(f"{last}{BODY}".encode()).hexdigest()
        db.execute("INSERT INTO t (body, hash) VALUES (?, ?)", (BODY, digest))
        db.execute("COMMIT")

    return step


def raw_postgres(url: str) -> Client:
    import psycopg

    db = psycopg.connect(url, autocommit=True)
    return lambda: db.execute("INSERT INTO raw (body) VALUES (%s)", (BODY,))


def naive_postgres(url: str) -> Client:
    import psycopg

    db = psycopg.connect(url, autocommit=True)

    def step() -> None:
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(7)")
            last = db.execute("SELECT hash FROM naive ORDER BY i DESC LIMIT 1").fetchone()
            digest = hashlib.sha256(f"{last}{BODY}".encode()).hexdigest()
            db.execute("INSERT INTO naive (body, hash) VALUES (%s, %s)", (BODY, digest))

    return step


def ours(location: str, key: str | None = None) -> Client:
    account = Ledger.open(location, key=key, create=False)["people"]
    return lambda: account.charge(LOSS, who="ana", purpose="benchmark")


def ours_on_a_slow_disk(path: str) -> Client:
    store = SqliteStore(Path(path), create=False, connect=lambda uri: Slow(connect_sqlite(uri)))
    session = LedgerSession(store, Keyring(Path(path + ".key")), read_only=False)
    account = Ledger(session)["people"]
    return lambda: account.charge(LOSS, who="ana", purpose="benchmark")


# --- running it -------------------------------------------------------------------------------


def _timed(step: Client, seconds: float, latencies: list[float]) -> None:
    clock = time.perf_counter
    end = clock() + seconds
    before = clock()
    while before < end:
        step()
        now = clock()
        latencies.append(now - before)
        before = now


def with_threads(step: Client, n: int, seconds: float) -> dict[str, float]:
    """Run one client from n threads."""
    found: list[list[float]] = [[] for _ in range(n)]
    threads = [threading.Thread(target=_timed, args=(step, seconds, each)) for each in found]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _summary([x for each in found for x in each], time.perf_counter() - start)


def with_processes(
    make: Callable[..., Client], arguments: tuple[Any, ...], n: int, seconds: float
) -> dict[str, float]:
    """Run n processes with a client each."""
    context = multiprocessing.get_context("spawn")
    ready, go, results = context.Barrier(n + 1), context.Event(), context.Queue()
    processes = [
        context.Process(target=_client, args=(make, arguments, seconds, ready, go, results))
        for _ in range(n)
    ]
    for process in processes:
        process.start()
    ready.wait()
    start = time.perf_counter()
    go.set()
    latencies = [x for _ in processes for x in results.get()]
    wall = time.perf_counter() - start
    for process in processes:
        process.join()
    return _summary(latencies, wall)


def _client(
    make: Callable[..., Client],
    arguments: tuple[Any, ...],
    seconds: float,
    ready: Any,
    go: Any,
    results: Any,
) -> None:
    step = make(*arguments)
    step()
    latencies: list[float] = []
    ready.wait()
    go.wait()
    _timed(step, seconds, latencies)
    results.put(latencies)


def _summary(latencies: list[float], wall: float) -> dict[str, float]:
    latencies.sort()
    worst = latencies[-1] * 1000

    def at(share: float) -> float:
        return latencies[min(int(share * len(latencies)), len(latencies) - 1)] * 1000

    return {
        "rate": len(latencies) / wall,
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "worst_ms": worst,
    }


class Table:
    """Print results as they come, beside the rate they are compared with."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float]] = {}

    def add(self, name: str, found: dict[str, float], *, over: str | None = None) -> None:
        if over is not None:
            found["ratio"] = found["rate"] / self.rows[over]["rate"]
        self.rows[name] = found
        ratio = f"{found['ratio']:8.2f} x {over}" if over else ""
        print(
            f"{name:44}{found['rate']:10,.0f}/s  p50 {found['p50_ms']:7.2f} ms  "
            f"p99 {found['p99_ms']:7.2f} ms  worst {found['worst_ms']:8.1f} ms{ratio}",
            flush=True,
        )


def sqlite_part(table: Table, folder: Path, seconds: float) -> None:
    """Compare on one file system, fast as it is, and slowed down."""
    path = str(folder / "budget.db")
    account_of(Ledger.open(path))
    raw = "SQLite, raw, 1 writer"
    table.add(raw, with_threads(raw_sqlite(str(folder / "raw.db")), 1, seconds))
    naive = (str(folder / "naive.db"),)
    table.add(
        "SQLite, naive chain, 32 processes",
        with_processes(naive_sqlite, naive, CLIENTS, seconds),
        over=raw,
    )
    table.add("SQLite, ledger, 1 thread", with_threads(ours(path), 1, seconds), over=raw)
    table.add("SQLite, ledger, 32 threads", with_threads(ours(path), CLIENTS, seconds), over=raw)
    table.add(
        "SQLite, ledger, 32 processes", with_processes(ours, (path,), CLIENTS, seconds), over=raw
    )
    slow = "slow disk, raw, 1 writer"
    table.add(slow, with_threads(raw_sqlite(str(folder / "slow.db"), slow=True), 1, seconds))
    table.add(
        "slow disk, ledger, 32 threads",
        with_threads(ours_on_a_slow_disk(path), CLIENTS, seconds),
        over=slow,
    )
    table.add(
        "slow disk, ledger, 32 processes",
        with_processes(ours_on_a_slow_disk, (path,), CLIENTS, seconds),
        over=slow,
    )
    with Ledger.open(path) as ledger:
        print(f"{ledger.verify()}", flush=True)


@contextmanager
def database(folder: Path) -> Iterator[tuple[str, str]]:
    """Start a server; its data lies on the same file system."""
    import psycopg

    tempfile.tempdir = str(folder)
    with PostgresServer(settings={"max_connections": "150"}) as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CREATE TABLE raw (i BIGSERIAL PRIMARY KEY, body TEXT)")
            db.execute("CREATE TABLE naive (i BIGSERIAL PRIMARY KEY, body TEXT, hash TEXT)")
        yield url, str(folder / "postgres.key")
    tempfile.tempdir = None


def postgres_part(table: Table, url: str, key: str, seconds: float) -> None:
    """Compare on one server: 32 clients of each kind."""
    account_of(Ledger.open(url, key=key))
    raw = "PostgreSQL, raw, 32 processes"
    table.add(raw, with_processes(raw_postgres, (url,), CLIENTS, seconds))
    table.add(
        "PostgreSQL, naive chain, 32 processes",
        with_processes(naive_postgres, (url,), CLIENTS, seconds),
        over=raw,
    )
    table.add(
        "PostgreSQL, ledger, 32 processes",
        with_processes(ours, (url, key), CLIENTS, seconds),
        over=raw,
    )
    table.add(
        "PostgreSQL, ledger, 32 threads", with_threads(ours(url, key), CLIENTS, seconds), over=raw
    )
    with Ledger.open(url, key=key) as ledger:
        print(f"{ledger.verify()}", flush=True)


# --- growth, verification, proofs --------------------------------------------------------------


def growth_part(folder: Path, size: int, seconds: float) -> dict[str, float]:
    """Charge a short ledger and a long one; verify the long one; prove entries of it."""
    path = str(folder / "long.db")
    ledger = Ledger.open(path)
    account = account_of(ledger)
    fill(path, 1_000)
    found = {}
    for entries in (1_000, size):
        fill(path, entries - ledger.size)
        step = lambda: account.charge(LOSS, who="ana", purpose="benchmark")  # noqa: E731
        many = with_threads(step, CLIENTS, seconds)
        one = with_threads(step, 1, seconds)
        found[f"charge at {entries:,}, 1 thread, ms"] = one["p50_ms"]
        found[f"charge at {entries:,}, 32 threads, 1/s"] = many["rate"]
    found["long over short, 1 thread"] = (
        found[f"charge at {size:,}, 1 thread, ms"] / found["charge at 1,000, 1 thread, ms"]
    )
    start = time.process_time()
    verified = ledger.verify()
    found["verified, entries/s of one core"] = verified.size / (time.process_time() - start)
    times, hashes = [], 0
    for index in range(1, ledger.size, max(1, ledger.size // 200)):
        before = time.perf_counter()
        proven = ledger.prove(index)
        times.append(time.perf_counter() - before)
        assert proven.proof is not None
        hashes = max(hashes, len(proven.proof["entries"][0]["proof"]))
    check_receipt(proven.to_json(), ledger.vkey)
    found["proof, ms"] = statistics.median(times) * 1000
    found["proof, hashes"] = hashes
    ledger.close()
    for name, value in found.items():
        print(f"{name:44}{value:12,.2f}", flush=True)
    return found


def fill(path: str, count: int) -> None:
    """Write many charges in large batches."""
    store = SqliteStore(Path(path), create=False)
    keyring = Keyring(Path(path + ".key"))
    scribe = Scribe(keyring)
    entry = {
        "kind": "charge",
        "account": "people",
        "who": "ana",
        "purpose": "benchmark",
        "noise": "secure",
        "pricing": PRICING,
        "loss": loss_document(LOSS),
    }
    while count > 0:
        batch = [
            keyring.any().seal(request({**entry, "key": new_key()}))
            for _ in range(min(count, 5_000))
        ]
        store.commit_together(batch, scribe.work)
        count -= len(batch)
    store.close()


# --- the race ----------------------------------------------------------------------------------


def race_part(location: str, key: str | None, *, fits: int, tries: int) -> dict[str, float]:
    """Let 32 processes fight for a budget that holds exactly ``fits`` of their charges."""
    with Ledger.open(location, key=key) as ledger:
        ledger.create(
            "race",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1),
        )
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=_racer, args=(location, key, fits, tries // CLIENTS, results))
        for _ in range(CLIENTS)
    ]
    start = time.perf_counter()
    for process in processes:
        process.start()
    accepted = [index for _ in processes for index in results.get()]
    wall = time.perf_counter() - start
    for process in processes:
        process.join()
    with Ledger.open(location, key=key) as ledger:
        ledger.verify()
        logged = {e["index"] for e in ledger["race"].history() if e["kind"] == "charge"}
        assert len(accepted) == len(set(accepted)) == fits, (len(accepted), fits)
        assert set(accepted) == logged
        assert ledger["race"].used == 1
    print(
        f"race on {location.partition(':')[0][:12]}: {tries:,} charges by {CLIENTS} processes in "
        f"{wall:.0f} s; {fits:,} fitted and {len(accepted):,} were accepted, all of them logged",
        flush=True,
    )
    return {"tries": tries, "fitting": fits, "accepted": len(accepted), "seconds": wall}


def _racer(location: str, key: str | None, fits: int, tries: int, results: Any) -> None:
    loss = PureLoss(epsilon=Fraction(1, fits))
    mine = []
    with Ledger.open(location, key=key, create=False) as ledger:
        account = ledger["race"]
        for _ in range(tries):
            with suppress(BudgetExceeded):
                mine.append(account.charge(loss, who=str(os.getpid()), purpose="race").index)
    results.put(mine)


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="also write the figures and hardware to this file")
    parser.add_argument("--quick", action="store_true", help="shorter runs, smaller ledgers")
    parser.add_argument("--folder", default=".", help="where to make the databases")
    parser.add_argument("--no-race", action="store_true", help="leave out the race")
    options = parser.parse_args()
    seconds = 2.0 if options.quick else 6.0
    table = Table()
    report: dict[str, Any] = {
        "python": sys.version.split()[0],
        "hardware": {"machine": platform.machine(), "cores": os.cpu_count()},
        "rates": table.rows,
    }
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)  # the server runs as another user
        sqlite_part(table, folder, seconds)
        report["growth"] = growth_part(folder, 100_000 if options.quick else 1_000_000, seconds)
        race = (
            {"fits": 1_000, "tries": 3_200} if options.quick else {"fits": 60_000, "tries": 100_000}
        )
        if not options.no_race:
            report["race, SQLite"] = race_part(str(folder / "budget.db"), None, **race)
        with database(folder) as (url, key):
            postgres_part(table, url, key, seconds)
            if not options.no_race:
                report["race, PostgreSQL"] = race_part(url, key, **race)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
