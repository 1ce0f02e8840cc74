"""Does it stay as it is under load? Thousands of questions while files and disks change.

    python benchmarks/soak.py --minutes 3

One process with 16 threads and 8 processes with one each ask the same protected table, all
against one ledger. Meanwhile the data is replaced every 50 ms, for five seconds of every ten,
and the ledger's disk is full for one second of every ten (a small disk of its own, which
only root can make; without it that part is left out, and said so).

Every question notes what became of it. In the end the ledger is verified, and each of its charges
must belong to exactly one answer, whose receipt it proves. Memory, latency and bytes per
entry of the last third are compared with those of the second one: the first warms up. The exit
status is 1 where anything was lost or grew.
"""

import argparse
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from discreet.errors import DiscreetError, LedgerUnavailable
from discreet.tables import Protected, open_tables

PEOPLE, EPSILON, DISK = 20_000, 0.01, 4 << 30
KINDS = (
    "SELECT COUNT(*) AS n FROM people WHERE age > {age}",
    "SELECT region, COUNT(*) AS n FROM people WHERE age > {age} GROUP BY region",
    "SELECT AVG(income) AS pay FROM people WHERE age > {age}",
    "SELECT MEDIAN(income) AS half FROM people WHERE age > {age}",
)
MOST_GROWTH = {"memory": 1.1, "latency": 1.5, "bytes per answer": 1.1}


def write_data(place: Path, version: int) -> None:
    """Replace the data by a version with a few rows more or less."""
    rng, n = np.random.default_rng(version), PEOPLE + version % 7
    table = pa.table(
        {
            "person": np.arange(n),
            "age": rng.uniform(0, 100, n),
            "income": rng.uniform(0, 100_000, n),
            "region": rng.integers(0, 5, n),
        }
    )
    pq.write_table(table, place.with_suffix(".new"))
    os.replace(place.with_suffix(".new"), place)


def ask_for_long(place: Path, notes: Path, *, threads: int, until: float, seed: int) -> None:
    """Ask from several threads of this process, and note what became of each question."""
    warnings.simplefilter("ignore")
    number = itertools.count()
    with notes.open("a", buffering=1) as out, opened(place) as tables:

        def ask() -> None:
            while time.time() < until:
                n = next(number)
                # No two alike, but for every tenth: that one is asked twice, and free then.
                age = 10 + (seed + (n - (n % 10 == 9)) / 1e6)
                question = KINDS[n // 10 % len(KINDS)].format(age=f"{age:.6f}")
                start = time.time()
                note: dict[str, Any] = {"at": start}
                try:
                    answer = tables.sql(question, epsilon=EPSILON)
                    note |= {"outcome": "recalled" if answer.is_recalled else "answered"}
                    note |= {"charge": answer.receipt.index, "is_proof": n % 50 == 0}
                except LedgerUnavailable as error:
                    note["outcome"] = "unclear" if error.may_be_recorded else "put off"
                except DiscreetError as error:
                    note |= {"outcome": "failed", "error": f"{type(error).__name__}: {error}"}
                note |= {"seconds": time.time() - start, "memory": memory()}
                out.write(json.dumps(note) + "\n")

        at_work = [threading.Thread(target=ask) for _ in range(threads)]
        for one in at_work:
            one.start()
        for one in at_work:
            one.join()


def opened(place: Path) -> Protected:
    """Open the tables, which may write an entry, when the ledger's disk has room."""
    while True:
        try:
            return open_tables(place)
        except LedgerUnavailable:
            time.sleep(0.1)


def memory() -> int:
    """Return the bytes of memory that this process has for itself."""
    resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """Mount a disk whose size can be changed, if we may."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(place)],
        capture_output=True, check=False,
    )  # fmt: skip
    try:
        yield not made.returncode
    finally:
        if not made.returncode:
            subprocess.run(["umount", "-l", str(place)], check=True)


def resize(place: Path, size: int) -> bool:
    """Change the size of that disk: just what is used, for 0."""
    if not size:
        disk = os.statvfs(place)
        size = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
    done = subprocess.run(
        ["mount", "-o", f"remount,size={size}", str(place)], capture_output=True, check=False
    )
    return not done.returncode


def make_weather(site: Path, disk: Path | None, *, until: float) -> Counter[str]:
    """Replace the data and fill the disk again and again, and watch the ledger grow."""
    counts: Counter[str] = Counter()
    growth = (site / "growth").open("a", buffering=1)
    start, is_full = time.time(), False
    while (now := time.time()) < until:
        phase = (now - start) % 10
        if phase < 5:
            counts["files replaced"] += 1
            write_data(site / "people.parquet", counts["files replaced"])
        if disk and (6 < phase < 7) != is_full:
            is_full = resize(disk, DISK if is_full else 0) != is_full
            counts["disks filled"] += is_full
        if not is_full:
            growth.write(json.dumps({"at": now, "bytes": ledger_bytes(disk or site)}) + "\n")
        time.sleep(0.05)
    if is_full:
        resize(disk or site, DISK)
    return counts


def ledger_bytes(folder: Path) -> int:
    """Return the size of the database and of what waits to go into it."""
    return sum(place.stat().st_size for place in folder.glob("budget.db*") if place.exists())


def thirds(notes: list[dict[str, Any]], start: float, until: float) -> list[list[dict[str, Any]]]:
    """Cut notes into those of each third of the time."""
    third = (until - start) / 3
    return [
        [note for note in notes if start + i * third <= note["at"] < start + (i + 1) * third]
        for i in range(3)
    ]


def run(options: argparse.Namespace, site: Path, disk: Path | None) -> int:
    ledger, declared = (disk or site) / "budget.db", site / "people.toml"
    write_data(site / "people.parquet", 0)
    warnings.simplefilter("ignore")
    with discreet.protect(
        site / "people.parquet", name="people", unit="person", rows=1, ledger=ledger,
        guarantee=discreet.Guarantee(epsilon=10_000, delta=1e-6),
        columns={"income": {"bounds": (0, 100_000)}, "region": {"keys": list(range(5))}},
    ) as tables:  # fmt: skip
        tables.save(declared)
    start = time.time()
    until = start + 60 * options.minutes
    workers = [
        subprocess.Popen(
            [
                sys.executable, __file__, "--worker", str(site), "--seed", str(i),
                "--until", str(until), "--threads", str(1 if i else options.threads),
            ],
        )
        for i in range(options.processes + 1)
    ]  # fmt: skip
    counts = make_weather(site, disk, until=until)
    ended = [worker.wait() for worker in workers]
    notes = [
        {**json.loads(line), "worker": place.suffix}
        for place in sorted(site.glob("notes.*"))
        for line in place.read_text().splitlines()
    ]
    growth = [json.loads(line) for line in (site / "growth").read_text().splitlines()]
    faults = [f"a worker ended with {code}" for code in ended if code]
    if not disk:
        print("The disk was not filled: only root can make a small one.")
    print(f"{', '.join(f'{n:,} {what}' for what, n in counts.items())}.")
    return report(ledger, thirds(notes, start, until), thirds(growth, start, until), faults=faults)


def report(
    place: Path,
    notes: list[list[dict[str, Any]]],
    growth: list[list[dict[str, Any]]],
    *,
    faults: list[str],
) -> int:
    """Print what became of all questions, and of what they used; return the exit status."""
    everything = [note for part in notes for note in part]
    outcomes = Counter(note["outcome"] for note in everything)
    print(f"{len(everything):,} questions: {', '.join(f'{n:,} {o}' for o, n in outcomes.items())}.")
    for error, n in Counter(note["error"] for note in everything if "error" in note).most_common(5):
        faults.append(f"{n} x {error}")
    faults += settled(place, everything)
    waits = sorted(note["seconds"] for note in everything if note["outcome"] == "answered")
    middle, late = (waits[int(len(waits) * share)] for share in (0.5, 0.99))
    print(f"Half of the answers took up to {middle:.2f} s, 99 % up to {late:.2f} s.")
    for what, ratio in grown(notes, growth).items():
        print(f"{what:16} last third over second: {ratio:.2f} (at most {MOST_GROWTH[what]})")
        if ratio > MOST_GROWTH[what]:
            faults.append(f"{what} grew by {ratio:.2f}")
    for fault in faults:
        print(f"FAULT  {fault}")
    print("soak: " + ("failed." if faults else "nothing lost, nothing grew."))
    return bool(faults)


def settled(place: Path, notes: list[dict[str, Any]]) -> list[str]:
    """Compare what was answered with what the ledger says; return what does not agree."""
    with discreet.Ledger.open(place, create=False) as ledger:
        size = ledger.verify().size
        entries = ledger.history("people")
        charges = {entry["index"] for entry in entries if entry["kind"] == "charge"}
        released = Counter(entry["charge"] for entry in entries if entry["kind"] == "release")
        answered = Counter(note["charge"] for note in notes if note["outcome"] == "answered")
        unclear = sum(note["outcome"] == "unclear" for note in notes)
        proofs = [note["charge"] for note in notes if note.get("is_proof")]
        is_proven = all(ledger.prove(index).is_proven for index in proofs)
    print(f"The ledger of {size:,} entries verifies; {len(proofs):,} receipts were proved.")
    print(f"{len(charges):,} charges, {len(answered):,} answers, {len(released):,} on record.")
    lost = len(charges - set(answered))
    found = {
        f"{lost} charges without an answer ({unclear} were unclear)": lost > unclear,
        "answers without a charge": bool(set(answered) - charges),
        "one charge, several answers": any(n > 1 for n in (answered | released).values()),
        "a receipt is not proven": not is_proven,
    }
    return [fault for fault, is_so in found.items() if is_so]


def grown(
    notes: list[list[dict[str, Any]]], growth: list[list[dict[str, Any]]]
) -> dict[str, float]:
    """Return how much more of each resource the last third took than the second."""

    def per_worker(part: list[dict[str, Any]]) -> float:
        by_worker: dict[str, list[int]] = {}
        for note in part:
            by_worker.setdefault(note["worker"], []).append(note["memory"])
        return float(sum(statistics.median(sizes) for sizes in by_worker.values()))

    def latency(part: list[dict[str, Any]]) -> float:
        return float(statistics.median(n["seconds"] for n in part if n["outcome"] == "answered"))

    def bytes_each(which: int) -> float:
        sizes: list[int] = [note["bytes"] for note in growth[which]]
        answered = sum(note["outcome"] == "answered" for note in notes[which])
        return float((sizes[-1] - sizes[0]) / max(answered, 1))

    return {
        "memory": per_worker(notes[2]) / per_worker(notes[1]),
        "latency": latency(notes[2]) / latency(notes[1]),
        "bytes per answer": bytes_each(2) / max(bytes_each(1), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        ask_for_long(
            options.worker / "people.toml", options.worker / f"notes.{options.seed}",
            threads=options.threads, until=options.until, seed=options.seed,
        )  # fmt: skip
        return
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        with small_disk(site / "disk") as is_small:
            sys.exit(run(options, site, site / "disk" if is_small else None))


if __name__ == "__main__":
    main()
