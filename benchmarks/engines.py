"""What does user-level privacy cost where the data lies? Spark and PostgreSQL, each beside itself.

One run: a generated table of ten million rows (half a million people), the questions about 50
regions and about a million keys, each asked in turn of this library (from SQL to answer, ledger and
all) and of the engine itself, which groups by person and key: what every method of bounding people
has to do. DuckDB stands beside them. Then the regions of a million rows, asked of Tumult Analytics
in the same Spark session: PySpark 3.5, which Tumult wants. Only ratios mean much.

    python benchmarks/engines.py [--rows N] [--engines duckdb,postgres,spark] [--no-tumult]
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from tables_data import ITEMS, REGIONS, visits

from discreet.privacy import Guarantee
from discreet.tables import Norm, Protected, protect
from discreet.tables.engines import DuckDBEngine, Engine, SparkEngine

DELTA: Final = 1e-6
QUESTIONS: Final = {
    "regions": "SELECT region, COUNT(*) AS n FROM visits GROUP BY region",
    "items": "SELECT item, COUNT(*) AS n FROM visits GROUP BY item",
}
# The groups are counted, not fetched: fetching millions of rows costs more than making them.
FLOORS: Final = {
    "regions": "SELECT COUNT(*), SUM(n) FROM "
    "(SELECT user_id, region, COUNT(*) AS n FROM visits GROUP BY user_id, region) AS g",
    "items": "SELECT COUNT(*), SUM(n) FROM "
    "(SELECT user_id, item, COUNT(*) AS n FROM visits GROUP BY user_id, item) AS g",
}
FLOOR, OURS, TUMULT = "its own GROUP BY person, key", "discreet", "Tumult"
_turns = count(1)
Job = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place where the table lies: what our engine takes, and how to ask the engine itself."""

    engine: Engine
    source: object
    ask: Callable[[str], Any]


@contextmanager
def duckdb_site(path: Path) -> Iterator[Site]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW visits AS SELECT * FROM '{path}'")
        yield Site(
            engine=DuckDBEngine(),
            source=str(path),
            ask=lambda text: connection.sql(text).fetchall(),
        )


@contextmanager
def postgres_site(path: Path) -> Iterator[Site]:
    """Load the table into a server of its own, with the memory that a small server has."""
    import psycopg

    from discreet.tables.engines import PostgresEngine
    from discreet.testing import PostgresServer

    settings = {"shared_buffers": "1GB", "work_mem": "512MB", "max_wal_size": "8GB"}
    with PostgresServer(settings=settings) as server:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE visits (user_id bigint, region text, item bigint, income float8)"
            )
            copy = "COPY visits FROM STDIN (FORMAT csv)"
            with connection.cursor() as cursor, cursor.copy(copy) as lines:
                for batch in pq.ParquetFile(path).iter_batches(100_000):
                    lines.write(_csv(batch))
            connection.execute("ANALYZE visits")
            connection.execute("VACUUM visits")
            yield Site(
                engine=PostgresEngine(url),
                source="visits",
                ask=lambda text: connection.execute(text.encode()).fetchall(),
            )


def _csv(batch: Any) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    out = pa.BufferOutputStream()
    csv.write_csv(batch, out, csv.WriteOptions(include_header=False))
    return bytes(out.getvalue())


@contextmanager
def spark_site(path: Path) -> Iterator[Site]:
    with spark_session() as spark:
        frame = spark.read.parquet(str(path))
        frame.createOrReplaceTempView("visits")
        yield Site(
            engine=SparkEngine(spark), source=frame, ask=lambda text: spark.sql(text).collect()
        )


@contextmanager
def spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers of Tumult's own functions
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


SITES: Final = {"duckdb": duckdb_site, "postgres": postgres_site, "spark": spark_site}


@contextmanager
def protected(site: Site) -> Iterator[Protected]:
    """Protect the table with a budget that a benchmark does not exhaust."""
    with tempfile.TemporaryDirectory() as folder:
        table = protect(
            site.source,
            name="visits",
            unit="user_id",
            guarantee=Guarantee(epsilon=10**6, delta=0.1),
            ledger=Path(folder) / "budget.db",
            columns={"region": {"keys": list(REGIONS)}},
            engine=site.engine,
        )
        with table:
            yield table


def ask(table: Protected, question: str) -> Any:
    """Ask anew: a question that was answered as well before would only be recalled."""
    epsilon = 1 + next(_turns) / 10**9
    norm = Norm(limit=8, order=2)
    return table.sql(question, epsilon=epsilon, delta=DELTA, bounding=norm).to_arrow()


def interleaved(parties: dict[str, Job], repeats: int) -> dict[str, float]:
    """Let all take turns, the first to warm up; return medians of seconds."""
    taken: dict[str, list[float]] = {name: [] for name in parties}
    for turn in range(repeats + 1):
        for name, job in parties.items():
            if name == TUMULT and turn > 1:
                continue  # the slowest has one turn that counts
            start = time.perf_counter()
            job()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(each[1:] or each) for name, each in taken.items()}


def against_itself(name: str, path: Path, repeats: int) -> dict[str, Any]:
    """Ask an engine with and without privacy."""
    found: dict[str, Any] = {}
    with SITES[name](path) as site, protected(site) as table:
        for question, text in QUESTIONS.items():
            times = interleaved(
                {
                    FLOOR: lambda: site.ask(FLOORS[question]),  # noqa: B023
                    OURS: lambda: ask(table, text),  # noqa: B023
                },
                repeats,
            )
            found[question] = times | {"ratio": times[OURS] / times[FLOOR]}
            print(
                f"{name:10} {question:8} {times[FLOOR]:8.2f} s  {times[OURS]:8.2f} s  "
                f"{times[OURS] / times[FLOOR]:6.2f}",
                flush=True,
            )
    return found


def against_tumult(path: Path, repeats: int) -> dict[str, Any]:
    """Ask about regions, of Tumult in the same session."""
    from tmlt.analytics import (
        AddRowsWithID,
        ApproxDPBudget,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        QueryBuilder,
        Session,
    )

    with spark_site(path) as site, protected(site) as table:
        everything = ApproxDPBudget(float("inf"), 1)
        session = Session.from_dataframe(
            everything, "visits", site.source, protected_change=AddRowsWithID("user_id")
        )
        keys = KeySet.from_dict({"region": list(REGIONS)})
        query = (
            QueryBuilder("visits")
            .enforce(MaxGroupsPerID("region", 5))
            .enforce(MaxRowsPerGroupPerID("region", 4))
            .groupby(keys)
            .count()
        )
        times = interleaved(
            {
                TUMULT: lambda: session.evaluate(query, ApproxDPBudget(1, DELTA)).collect(),
                OURS: lambda: ask(table, QUESTIONS["regions"]),
            },
            repeats,
        )
    ratio = times[TUMULT] / times[OURS]
    print(f"Tumult {times[TUMULT]:.2f} s, discreet {times[OURS]:.2f} s: {ratio:.1f} x", flush=True)
    return times | {"ratio": ratio}


def main() -> None:
    """Run everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=10**7)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engines", default=",".join(SITES))
    parser.add_argument("--no-tumult", action="store_true")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where to keep tables")
    parser.add_argument("--json", help="also write the figures, versions and hardware to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of peers
    folder, rows = Path(options.folder), int(options.rows)
    packages = ("discreet", "duckdb", "psycopg", "pyspark", "pyarrow", "numpy")
    report: dict[str, Any] = {
        "versions": {name: metadata.version(name) for name in packages},
        "python": sys.version.split()[0],
        "hardware": {"machine": platform.machine(), "cores": os.cpu_count()},
        "load": os.getloadavg(),
    }
    print(f"load at the start: {report['load']}; {rows:,} rows, up to {ITEMS:,} keys")
    print(f"{'engine':10} {'question':8} {'floor':>10}  {OURS:>10}  {'ratio':>6}")
    report["seconds"] = {
        name: against_itself(name, visits(folder, rows), options.repeats)
        for name in options.engines.split(",")
    }
    if not options.no_tumult:
        report["tumult"] = against_tumult(visits(folder, min(rows, 10**6)), options.repeats)
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
