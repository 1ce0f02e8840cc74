"""What do very many candidate keys cost? Rows a second, and the memory of the process at its peak.

A generated Parquet file: of every key one row of a person, and a thousand keys that two hundred
people share, which are all that should be shown. It is asked for its keys in a process of its own,
once with results in parts and once as a whole (as engines do that cannot give parts).

    python benchmarks/many_keys.py [--keys 1e7] [--memory 500MB] [--question items] [--json FILE]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import duckdb

from discreet.privacy import Guarantee
from discreet.tables import Norm, protect
from discreet.tables.engines import DuckDBConnection, DuckDBEngine

POPULAR, PEOPLE_EACH, ROWS_EACH = 1_000, 200, 20
QUESTIONS = {
    "items": "SELECT item, COUNT(*) AS n FROM visits GROUP BY item",
    "pairs": "SELECT item, place, COUNT(*) AS n FROM visits GROUP BY item, place",
    "median": "SELECT item, COUNT(*) AS n, MEDIAN(paid) AS middle FROM visits GROUP BY item",
}


def write(path: Path, keys: int) -> None:
    """Write the table: people of twenty rows each, but for those of the popular keys."""
    many, few = f"range({keys}) AS t(i)", f"range({POPULAR * PEOPLE_EACH}) AS t(i)"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i // {ROWS_EACH} AS user_id, hash(i) % 1000000000000 AS item, "
            f"i % 3 AS place, i % 100 AS paid FROM {many} UNION ALL "
            f"SELECT -1 - i // {ROWS_EACH}, -1 - i % {POPULAR}, 0, i % 100 FROM {few}) "
            f"TO '{path}' (FORMAT parquet)"
        )


def ask(path: Path, memory: str, question: str, *, in_parts: bool) -> dict[str, float]:
    """Ask once, in this process."""
    if not in_parts:
        mock.patch.object(DuckDBConnection, "batches", None).start()
        del DuckDBConnection.batches
    with tempfile.TemporaryDirectory() as folder:
        table = protect(
            str(path),
            name="visits",
            unit="user_id",
            guarantee=Guarantee(epsilon=100, delta=1e-5),
            ledger=Path(folder) / "budget.db",
            engine=DuckDBEngine(memory_limit=memory, spill=folder),
            columns={"paid": {"bounds": (0, 100)}},
        )
        with table:
            start, busy = time.perf_counter(), time.process_time()
            answer = table.sql(
                QUESTIONS[question], epsilon=10, delta=1e-6, bounding=Norm(limit=ROWS_EACH, order=1)
            )
            took, busy = time.perf_counter() - start, time.process_time() - busy
    return {
        "seconds": round(took, 2),
        "processor_seconds": round(busy, 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "shown": len(answer),
    }


def main() -> None:
    """Write the data, ask in both ways, and print what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--keys", type=float, default=1e7)
    parser.add_argument("--memory", default="500MB", help="what DuckDB may use before it spills")
    parser.add_argument("--question", choices=QUESTIONS, default="items")
    parser.add_argument("--only", choices=("parts", "whole"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        found = ask(Path(given.child), given.memory, given.question, in_parts=given.only == "parts")
        print(json.dumps(found))
        return
    keys, results = int(given.keys), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        write(path, keys)
        for how in (given.only,) if given.only else ("whole", "parts"):
            command = [
                sys.executable, __file__, "--child", str(path), "--only", how,
                "--memory", given.memory, "--question", given.question,
            ]  # fmt: skip
            ran = subprocess.run(command, check=True, capture_output=True, text=True)
            results[how] = json.loads(ran.stdout)
            rate = keys / results[how]["seconds"]
            print(f"{given.question}, {how}: {results[how]}, {rate:,.0f} keys/s", flush=True)
    if given.json:
        given.json.write_text(json.dumps({"keys": keys, "memory": given.memory, **results}))


if __name__ == "__main__":
    main()
