"""What do very many public groups cost, and a hierarchy of very many places? Seconds and memory.

python benchmarks/many_groups.py [--listed 1e6] [--leaves 1e7]
"""

import argparse
import resource
import tempfile
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.privacy import Guarantee
from discreet.tables import Result, consistent, protect
from discreet.tables.results.example import region_counts

REGIONS, PARTS = 50, 100


def peak() -> int:
    """Return the most memory that this process had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def listed(groups: int) -> None:
    """Ask for all combinations of three lists; say how long the release took, and all of it."""
    dice, sizes = np.random.default_rng(0), {"x": 100, "y": 100, "z": max(1, groups // 10_000)}
    people = {name: dice.integers(0, size, 300_000) for name, size in sizes.items()}
    answer: Any = import_module("discreet.tables.release.answer")  # its run is timed
    spent, run = [], answer.run

    def timed(*given, **named):  # type: ignore[no-untyped-def]
        start = process_time()
        found = run(*given, **named)
        spent.append(process_time() - start)
        return found

    answer.run = timed
    with (
        tempfile.TemporaryDirectory() as folder,
        protect(
            pa.table({"person": np.arange(300_000), **people}), name="visits", unit="person",
            guarantee=Guarantee(epsilon=3, delta=1e-8), ledger=Path(folder) / "budget.db", rows=1,
            columns={name: {"keys": list(range(size))} for name, size in sizes.items()},
        ) as table,
    ):  # fmt: skip
        before, start = peak(), process_time()
        found = table.sql("SELECT x, y, z, COUNT(*) AS n FROM visits GROUP BY ALL", epsilon=1)
        print(
            f"{len(found):,} listed groups: {sum(spent):.1f} s for the release, "
            f"{process_time() - start:.1f} s with the record; {before} MB before, {peak()} MB after"
        )


def places(leaves: int) -> list[Result]:
    """Return made-up noisy counts of a whole, regions, places, and parts of places."""
    dice, middle = np.random.default_rng(0), leaves // PARTS
    place = np.arange(middle)
    keys = [
        {},
        {"region": np.arange(REGIONS)},
        {"region": place % REGIONS, "place": place},
        {
            "region": np.repeat(place % REGIONS, PARTS),
            "place": np.repeat(place, PARTS),
            "part": np.tile(np.arange(PARTS), middle),
        },
    ]
    made = []
    for columns, size in zip(keys, (1, REGIONS, middle, middle * PARTS), strict=True):
        values = 3 * leaves / size + dice.normal(0, 5, size)
        made.append(
            region_counts(
                columns=(*columns, "n"), keys=tuple(columns), values={**columns, "n": values},
                errors={"n": np.full(size, 5.0)}, lows={"n": values - 10},
                highs={"n": values + 10}, reliable={}, facts={},
            )
        )  # fmt: skip
    return made


def hierarchy(leaves: int) -> None:
    """Make a hierarchy add up."""
    given = places(leaves)
    before, start = peak(), process_time()
    found = consistent(given, column="n", nonnegative=True)
    print(
        f"{len(found[-1]):,} leaves: {process_time() - start:.1f} s; {before} MB before, "
        f"{peak()} MB after"
    )


def main() -> None:
    """Ask for listed groups, then make places add up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listed", type=float, default=1e6)
    parser.add_argument("--leaves", type=float, default=1e7)
    given = parser.parse_args()
    if given.listed:
        listed(int(given.listed))
    if given.leaves:
        hierarchy(int(given.leaves))


if __name__ == "__main__":
    main()
