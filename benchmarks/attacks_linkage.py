"""How fast is linkage on a million rows, beside pandas doing the same?

Both run in one process, interleaved, the best of several; only the ratio means anything. Both
find the same numbers, or the script fails.

    python benchmarks/attacks_linkage.py [--json FILE] [--rows N]
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib import metadata
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from discreet.attacks import AttackReport, linkage

REPEATS = 3
CARDINALITIES = {
    "zip": 2000, "born": 26_000, "sex": 2, "education": 16, "job": 40, "race": 5, "kids": 6,
    "hours": 80, "country": 60,
}  # fmt: skip


def people(rows: int) -> pd.DataFrame:
    dice = np.random.default_rng(0)
    # The smaller of two draws: real columns have common and rare values.
    return pd.DataFrame({
        name: np.minimum(dice.integers(many, size=rows), dice.integers(many, size=rows))
        for name, many in CARDINALITIES.items()
    } | {"person": np.arange(rows)})  # fmt: skip


def fact(report: AttackReport, name: str) -> int:
    value = report.details[name]
    assert isinstance(value, int)
    return value


def alone(frame: pd.DataFrame, columns: list[str]) -> int:
    return int((frame.groupby(columns, sort=False).size() == 1).sum())


def worst(frame: pd.DataFrame) -> int:
    return max(alone(frame, list(chosen)) for chosen in combinations(CARDINALITIES, 3))


def joined(left: pd.DataFrame, right: pd.DataFrame) -> int:
    both = left.merge(right, on=["zip", "sex", "born"], suffixes=("", "_known"))
    single = both[both.groupby("person")["person"].transform("size") == 1]
    return int((single["person"] == single["person_known"]).sum())


def best(jobs: dict[str, Callable[[], int]], repeats: int) -> dict[str, float]:
    """Return the best seconds of each job, run in turns; all must find the same."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        found = set()
        for name, job in jobs.items():
            start = time.perf_counter()
            found.add(job())
            seconds[name].append(time.perf_counter() - start)
        if len(found) > 1:
            raise SystemExit(f"the answers differ: {found}")
    return {name: min(times) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    frame = people(options.rows)
    table = pa.table({name: frame[name].to_numpy() for name in frame})
    some = frame.sample(len(frame) // 10, random_state=0)
    three, names = ["zip", "born", "sex"], list(CARDINALITIES)
    released = pa.Table.from_pandas(some, preserve_index=False)
    tasks: dict[str, tuple[dict[str, Callable[[], int]], int]] = {
        "uniqueness of 3 columns": ({
            "discreet": lambda: fact(linkage.uniqueness(table, three), "alone"),
            "pandas": lambda: alone(frame, three),
        }, REPEATS),
        "worst 3 of 9 columns": ({
            "discreet": lambda: fact(linkage.worst_set(table, size=3, columns=names), "alone"),
            "pandas": lambda: worst(frame),
        }, 1),
        "join of a tenth with all": ({
            "discreet": lambda: fact(
                linkage.match(released, table, on=three, truth="person"), "right"
            ),
            "pandas": lambda: joined(some, frame),
        }, REPEATS),
    }  # fmt: skip
    results = {}
    for task, (jobs, repeats) in tasks.items():
        seconds = best(jobs, repeats)
        ratio = seconds["pandas"] / seconds["discreet"]
        results[task] = {**seconds, "ratio": ratio}
        print(f"{task:<26}" + "".join(f"  {n} {s:.2f} s" for n, s in seconds.items())
              + f"  {ratio:.1f} times as fast")  # fmt: skip
    if options.json:
        facts = {
            "rows": options.rows, "results": results, "machine": platform.machine(),
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("duckdb", "numpy", "pandas")},
        }  # fmt: skip
        options.json.write_text(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
