"""What does user-level privacy cost on a table, beside plain DuckDB, Qrlew and OpenDP?

One run: a generated Parquet file of ten million rows (half a million people), three questions, each
asked in turn of this library from SQL to answer (ledger and all), of plain DuckDB (what grouping by
person costs anyway, the floor of every method), of Qrlew and of OpenDP; then memory, planning
time, and how time grows with rows. `--accuracy` compares errors at equal privacy instead
(tables_accuracy.py). Only ratios mean much, and those by the clock only on a quiet machine; those
of processors' time, summed over threads, are less easily disturbed.

    python benchmarks/tables.py [--accuracy] [--rows N] [--full] [--no-peers] [--json FILE]
"""

import argparse
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
from tables_data import LARGEST, REGIONS, visits
from tables_peers import Truncation, multiplier, opendp_query, qrlew_sql

from discreet.privacy import Guarantee
from discreet.tables import Groups, Norm, Protected, protect

DELTA = 1e-6
REGION = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
ITEM = "SELECT item, COUNT(*) AS n FROM visits GROUP BY item"
TOTAL = "SELECT SUM(income) AS total, AVG(income) AS pay FROM visits"
FLOORS = {
    "regions": "SELECT user_id, region, COUNT(*) AS n FROM visits GROUP BY ALL",
    "items": "SELECT user_id, item, COUNT(*) AS n FROM visits GROUP BY ALL",
    "total": "SELECT user_id, COUNT(*) AS n, SUM(income) AS s FROM visits GROUP BY ALL",
}
TYPICAL = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT COUNT(DISTINCT user_id) AS people FROM visits",
    "SELECT AVG(income) AS pay FROM visits",
    "SELECT SUM(income) AS total FROM visits WHERE region = 'region 03'",
    "SELECT MEDIAN(income) AS middle FROM visits",
    "SELECT QUANTILE(income, 0.9) AS high FROM visits",
    "SELECT MIN(income) AS low, MAX(income) AS high FROM visits",
    "SELECT STDDEV(income) AS spread FROM visits",
    "SELECT CORR(income, item) AS r FROM visits WHERE item BETWEEN 0 AND 1000",
    "SELECT COUNT(DISTINCT item) AS items FROM visits",
    REGION,
    "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM visits GROUP BY region ORDER BY n DESC",
    "SELECT region, SUM(income) / COUNT(*) AS pay FROM visits GROUP BY region LIMIT 5",
    "SELECT region, MEDIAN(income) AS middle FROM visits GROUP BY region",
    "SELECT region, COUNT(*) AS n FROM visits WHERE income > 50000 GROUP BY region",
    ITEM,
    "SELECT item % 100 AS part, COUNT(*) AS n FROM visits GROUP BY part HAVING COUNT(*) > 1000",
    "SELECT CASE WHEN income > 50000 THEN 'high' ELSE 'low' END AS class, COUNT(*) AS n "
    "FROM visits GROUP BY class",
    "WITH rich AS (SELECT user_id, region FROM visits WHERE income > 100000) "
    "SELECT region, COUNT(*) AS n FROM rich GROUP BY region",
    TOTAL,
)
FLOOR_NAMES = ("DuckDB, fetched", "DuckDB, only counted")
_turns = count(1)


# --- the parties ------------------------------------------------------------------------------


@contextmanager
def protected(path: Path) -> Iterator[Protected]:
    """Protect the table with a budget that a benchmark does not exhaust."""
    facts = {"income": {"bounds": (0, LARGEST)}, "region": {"keys": list(REGIONS)}}
    with tempfile.TemporaryDirectory() as folder:
        table = protect(
            str(path),
            name="visits",
            unit="user_id",
            guarantee=Guarantee(epsilon=10**6, delta=0.1),
            ledger=Path(folder) / "budget.db",
            columns={**facts, "item": {"bounds": (0, 10**6)}},
        )
        with table:
            yield table


def ask(table: Protected, question: str, **terms: Any) -> Any:
    """Ask anew: a question that was answered as well before would only be recalled."""
    return table.sql(question, epsilon=1 + next(_turns) / 10**9, delta=DELTA, **terms).to_arrow()


def connected(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"CREATE VIEW visits AS SELECT * FROM '{path}'")
    return connection


Job = Callable[[], Any]


def jobs(path: Path, rows: int, table: Protected, *, with_peers: bool) -> dict[str, dict[str, Job]]:
    """Return for each question who answers it; the first is the floor that ratios refer to."""
    plain = connected(path)

    def floor(name: str) -> dict[str, Job]:
        text = FLOORS[name]
        only_count = f"SELECT COUNT(*), SUM(n) FROM ({text})"
        return {
            FLOOR_NAMES[0]: lambda: plain.sql(text).to_arrow_table(),
            FLOOR_NAMES[1]: lambda: plain.sql(only_count).to_arrow_table(),
        }

    def qrlew(question: str, **terms: Any) -> Job:
        return lambda: plain.sql(
            qrlew_sql(question, rows=rows, epsilon=1.0, most=DELTA, **terms)
        ).to_arrow_table()

    def opendp(kind: str, bound: Truncation, **more: float) -> Job:
        rho = 1 / (2 * multiplier(1.0, DELTA) ** 2)
        return lambda: opendp_query(path, rows, kind, bound, rho=rho, **more).release().collect()

    norm = Norm(limit=8, order=2)
    found: dict[str, dict[str, Job]] = {
        "regions": {
            **floor("regions"),
            "norm": lambda: ask(table, REGION, bounding=norm),
            "rank": lambda: ask(table, REGION, bounding=Groups(groups=5, rows=4)),
            "norm, limit inferred": lambda: ask(table, REGION),
        },
        "items": {**floor("items"), "norm": lambda: ask(table, ITEM, bounding=norm)},
        "total": {
            **floor("total"),
            "norm": lambda: ask(table, TOTAL, bounding=Norm(limit=60, order=1)),
        },
    }
    if with_peers:
        found["regions"]["Qrlew"] = qrlew(REGION, limit=8)
        found["regions"]["OpenDP"] = opendp("regions", Truncation(20))
        found["items"]["Qrlew"] = qrlew(ITEM, limit=8, groups=10)
        found["items"]["OpenDP"] = opendp("items", Truncation(10), delta=DELTA / 2)
        found["total"]["Qrlew"] = qrlew(TOTAL, limit=60)
        found["total"]["OpenDP"] = opendp("mean", Truncation(60))
    return found


# --- what is measured ---------------------------------------------------------------------------


def seconds(job: Job) -> tuple[float, float]:
    """Return how long a job takes, by the clock and in processors' time."""
    start, begun = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - start, time.process_time() - begun


def interleaved(parties: dict[str, Job], repeats: int) -> dict[str, dict[str, float]]:
    """Let all take turns, the first to warm up; return medians. OpenDP, the slowest, has two."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in parties}
    for turn in range(repeats + 1):
        for name, job in parties.items():
            if name != "OpenDP" or turn < 2:
                taken[name].append(seconds(job))
    return {
        name: {
            "seconds": statistics.median(wall for wall, _ in each[1:]),
            "processor_seconds": statistics.median(used for _, used in each[1:]),
        }
        for name, each in taken.items()
    }


def speed_part(path: Path, rows: int, *, repeats: int, with_peers: bool) -> dict[str, Any]:
    """Ask all questions of all parties; print ratios to the two floors, by both clocks."""
    found: dict[str, Any] = {}
    with protected(path) as table:
        for question, parties in jobs(path, rows, table, with_peers=with_peers).items():
            times = found[question] = interleaved(parties, repeats)
            print(f"{question}, {rows:,} rows; ratios to DuckDB's GROUP BY person, and to ours")
            print(f"  {'':24}{'time':>11} fetched counted    ours   {'processors':>12}", end="")
            print(" fetched counted    ours")
            for name, taken in times.items():
                print(f"  {name:24}", end="")
                for clock, value in taken.items():
                    ratios = [value / times[other][clock] for other in (*FLOOR_NAMES, "norm")]
                    print(f"{value:9.3f} s " + " ".join(f"{r:7.2f}" for r in ratios), end="    ")
                print(flush=True)
    return found


def memory_part(path: Path) -> dict[str, float]:
    """Return peaks of child processes in MiB, of which the first does nothing."""
    found = {}
    for who in ("nothing", *FLOOR_NAMES, "norm", "rank"):
        command = [sys.executable, __file__, "--child", who, "--file", str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[who] = float(done.stdout) / 1024
    print("peak memory of the question about regions")
    for who, peak in found.items():
        ratios = " ".join(f"{peak / found[floor]:7.2f}" for floor in FLOOR_NAMES)
        print(f"  {who:24}{peak:9.0f} MiB {ratios}")
    return found


def child(who: str, path: Path) -> None:
    """Do one thing and print the peak of this process in KiB.

    (Not by getrusage, which on Linux remembers the peak of the process that this was forked from.)
    """
    with protected(path) as table:
        parties = jobs(path, 1, table, with_peers=False)["regions"]
        if who != "nothing":
            parties[who]()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(status.partition("VmHWM:")[2].split()[0])


def planning_part(path: Path) -> dict[str, float]:
    """Price typical questions; the first one loads what is needed, and does not count."""
    taken = {}
    with protected(path) as table:
        first = seconds(lambda: table.quote(TYPICAL[0], epsilon=1))[0]
        for question in TYPICAL:
            job = lambda: table.quote(question, epsilon=1)  # noqa: B023, E731
            taken[question] = statistics.median(seconds(job)[0] for _ in range(3))
    slowest = max(taken, key=lambda question: taken[question])
    found = {
        "first_ms": first * 1000,
        "median_ms": statistics.median(taken.values()) * 1000,
        "max_ms": taken[slowest] * 1000,
    }
    print(f"planning of {len(TYPICAL)} questions: {found}; the slowest: {slowest}")
    return found


def growth_part(folder: Path, sizes: list[int]) -> dict[str, Any]:
    """Return seconds per million rows for each size."""
    found = {}
    for rows in sizes:
        path = visits(folder, rows)
        with protected(path) as table, connected(path) as plain:
            wrapped = f"SELECT COUNT(*), SUM(n) FROM ({FLOORS['regions']})"
            times = interleaved(
                {
                    "ours": lambda: ask(table, REGION, bounding=Norm(limit=8, order=2)),
                    "DuckDB": lambda: plain.sql(wrapped).to_arrow_table(),  # noqa: B023
                },
                3 if rows <= 10**7 else 1,
            )
        per = {
            name: {clock: value / rows * 10**6 for clock, value in taken.items()}
            for name, taken in times.items()
        }
        found[f"{rows:.0e}"] = per
        words = ", ".join(
            f"{name} {one['seconds']:.4f} s a million ({one['processor_seconds']:.4f} processors)"
            for name, one in per.items()
        )
        print(f"{rows:>12,} rows: {words}", flush=True)
    return found


def main() -> None:
    """Run everything and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accuracy", action="store_true", help="compare errors, not speed")
    parser.add_argument("--only", help="with --accuracy: one question, such as 'region means'")
    parser.add_argument("--full", action="store_true", help="grow to 1e8 rows on disk")
    parser.add_argument("--rows", type=float, default=None, help="of the main table")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true", help="only DuckDB and this library")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to keep tables")
    parser.add_argument("--json", help="also write the figures, versions and hardware to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, Path(options.file))
        return
    warnings.simplefilter("ignore")  # of peers
    logging.getLogger("opendp").setLevel(logging.ERROR)
    folder = Path(options.folder)
    packages = ("discreet", "duckdb", "pyarrow", "numpy", "opendp", "polars", "pyqrlew")
    report: dict[str, Any] = {
        "versions": {name: metadata.version(name) for name in packages},
        "python": sys.version.split()[0],
        "hardware": {"machine": platform.machine(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
    }
    print(f"load at the start: {report['load']}")
    if options.accuracy:
        from tables_accuracy import accuracy

        report["accuracy"] = accuracy(folder, int(options.rows or 10**6), options.only)
    else:
        rows = int(options.rows or 10**7)
        path = visits(folder, rows)
        peers = not options.no_peers
        report["seconds"] = speed_part(path, rows, repeats=options.repeats, with_peers=peers)
        report["memory_mib"] = memory_part(path)
        report["planning"] = planning_part(path)
        sizes = [rows // 10, rows, rows * 10] if options.full else [rows // 10, rows]
        report["growth"] = growth_part(folder, sizes)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
