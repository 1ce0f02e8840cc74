"""How many rows and bytes does each stage of a private question move? A model, and its check.

The model is arithmetic: expected numbers of distinct pairs, people and keys, where rows choose a
person and a key independently, evenly or by Zipf's law. The check runs real statements on generated
rows, reads row counts from DuckDB's profile (EXPLAIN ANALYZE), counts what tasks would write to a
shuffle with the rows cut into as many blocks, and compares both with the model. Then the model is
evaluated for what no test can run.

    python benchmarks/scale_model.py [--rows 1e5 1e6 1e7] [--json FILE]
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from discreet.tables.engines import (
    Call,
    Cells,
    ColumnRef,
    Distinct,
    DuckDBConnection,
    Groups,
    Joined,
    Key,
    Norm,
    Profile,
    Query,
    Select,
    Statement,
    Sums,
    Value,
)  # fmt: skip
from discreet.tables.model.bounds import JOINED_ROWS

Floats = npt.NDArray[np.float64]
TASKS = 16  # blocks of rows, and parts of a shuffle, in the check
GROUPS, PAIRS = 5, 10  # how many groups of a unit count, and how many distinct values it names
BEYOND = 1_000_003  # above all keys
WORD = 8  # of a row in a shuffle: one for which values are missing, and one for each column


@dataclass(frozen=True)
class Classes:
    """Shares of rows, for so many people or keys each: a few hundred classes stand for all."""

    counts: Floats
    shares: Floats

    @classmethod
    def even(cls, size: float) -> "Classes":
        """All alike."""
        return cls(np.array([float(size)]), np.array([1 / size]))

    @classmethod
    def zipf(cls, size: float) -> "Classes":
        """The i-th has a share proportional to 1 / i."""
        ends = np.unique(np.round(np.geomspace(1, size + 1, 400)))
        counts = np.diff(ends)
        # The mean of 1 / i over a class, by Euler and Maclaurin from the middle of each step.
        weights = np.log((ends[1:] - 0.5) / (ends[:-1] - 0.5))
        exact = np.cumsum(1 / np.arange(1, 51))
        small = ends[1:] <= 50
        weights[small] = np.diff(np.r_[0, exact])[ends[:-1][small].astype(int) - 1] * counts[small]
        return cls(counts, weights / weights.sum() / counts)


@dataclass(frozen=True)
class Model:
    """So many rows of people and keys, read by ``maps`` tasks and shuffled into ``parts``."""

    rows: float
    people: Classes
    keys: Classes
    maps: float
    parts: float

    @cached_property
    def _rates(self) -> Floats:
        return self.rows * np.outer(self.people.shares, self.keys.shares)

    def pairs(self, tasks: float = 1) -> float:
        """Return the distinct pairs of person and key that tasks of equal size see, added up."""
        seen = -np.expm1(-self._rates / tasks) * tasks
        return float(self.people.counts @ seen @ self.keys.counts)

    def _spread(self, axis: int) -> Floats:
        """Return in how many parts a person (axis 1) or a key (0) has a pair, by hash of pairs."""
        others = (self.people if axis == 0 else self.keys).counts
        logs = np.log1p(np.expm1(-self._rates) / self.parts)
        logs = logs.T @ others if axis == 0 else logs @ others
        return np.asarray(-np.expm1(logs) * self.parts)

    @property
    def _keys_of_a_person(self) -> Floats:
        return np.asarray(-np.expm1(-self._rates) @ self.keys.counts)

    @property
    def _people_of_a_key(self) -> Floats:
        return np.asarray(-np.expm1(-self._rates).T @ self.people.counts)

    @property
    def people_found(self) -> float:
        """Return how many people have a row."""
        return float(self.people.counts @ -np.expm1(-self.rows * self.people.shares))

    @property
    def keys_found(self) -> float:
        """Return how many candidate keys there are."""
        return float(self.keys.counts @ -np.expm1(-self.rows * self.keys.shares))

    def keys_above(self, people: float) -> float:
        """Return how many keys at least so many people have: about as many are shown."""
        return float(self.keys.counts[self._people_of_a_key >= people].sum())

    def kept(self, most: float, each: Floats) -> float:
        """Return how many things are left if of a person's ``each`` at most so many count."""
        spread = np.maximum(each, 1e-12)
        below = np.arange(int(most))
        logs = -spread[:, None] + below * np.log(spread[:, None]) - _log_factorials(int(most))
        chances = np.exp(logs)  # a Poisson number below ``most``
        few = chances @ (most - below)
        return float(self.people.counts @ (most - few))

    def stages(self) -> dict[str, float]:
        """Return the rows of each stage, as it is shuffled or as it comes out."""
        pairs, keys_of = self.pairs(), self._keys_of_a_person
        kept = self.kept(GROUPS, keys_of)
        values = self.kept(PAIRS, self.rows * self.people.shares)
        return {
            "contributions, written": self.pairs(self.maps),
            "contributions": pairs,
            "norms, written": float(self.people.counts @ self._spread(1)),
            "norms": self.people_found,
            "contributions, written again for the join": pairs,
            "sums, written": float(self.keys.counts @ self._spread(0)),
            "sums": self.keys_found,
            "ranks: kept contributions": kept,
            "distinct: kept pairs": values,
            "profile: people": self.people_found,
        }


def _log_factorials(most: int) -> Floats:
    return np.cumsum(np.log(np.maximum(1, np.arange(most))))


# --- the check --------------------------------------------------------------------------------


def generate(connection: duckdb.DuckDBPyConnection, rows: int, model: Model, *, seed: int) -> None:
    """Make rows as the model says: a row's person and key are drawn by inverting the shares."""
    dice = np.random.default_rng(seed)  # makes up data, no noise

    def drawn(classes: Classes) -> npt.NDArray[np.int64]:
        if len(classes.counts) == 1:
            return dice.integers(0, int(classes.counts[0]), rows)
        chosen = dice.choice(len(classes.counts), rows, p=classes.counts * classes.shares)
        firsts = np.cumsum(classes.counts) - classes.counts
        inside = (dice.random(rows) * classes.counts[chosen]).astype(np.int64)
        return firsts[chosen].astype(np.int64) + inside

    made = {"person": drawn(model.people), "item": drawn(model.keys), "x": dice.random(rows)}
    made["block"] = np.arange(rows) * TASKS // rows
    connection.execute("CREATE OR REPLACE TABLE visits AS SELECT * FROM made")


def statements() -> dict[str, Statement]:
    """Return a statement of each kind."""
    rows = Select.of("visits", unit="person", key_0="item", value_0="x")
    keys = (Key(name="item", type="int64", values=None),)
    query = Query(rows=rows, keys=keys, values=(Value(text="x", bounds=None),), tables=("visits",))
    cells = (Cells(kind="rows"),)
    return {
        "norm": Sums(query=query, cells=cells, bounding=Norm(limit=20, order=1), salt="s"),
        "ranks": Sums(query=query, cells=cells, bounding=Groups(groups=GROUPS, rows=4), salt="s"),
        "distinct": Distinct(query=query, value=0, most=PAIRS, salt="s"),
        "profile": Profile(query=query, of="norm", edges=(Fraction(1), Fraction(10))),
    }


def profiled(engine: DuckDBConnection, statement: Statement) -> list[tuple[str, int]]:
    """Return what operators were run and how many rows came out of each, the last one first."""
    text = f"EXPLAIN (ANALYZE, FORMAT json) {engine.sql(statement)}"
    (found,) = engine._run(text, "s").column(1).to_pylist()

    def walk(node: dict[str, Any]) -> Iterator[tuple[str, int]]:
        yield node["type"], node["intermediate_rows"]
        for child in node.get("children", ()):
            yield from walk(child)

    return [one for top in json.loads(found)["operator"] for one in walk(top)]


def measured(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Return the rows of each stage, as they are."""

    def one(text: str) -> float:
        (found,) = connection.execute(text).fetchone() or (0,)
        return float(found)

    def written(inner: str, columns: str, part: str) -> float:
        return one(f"SELECT COUNT(*) FROM (SELECT DISTINCT {columns}, {part} AS part FROM {inner})")

    pairs = "(SELECT DISTINCT person, item FROM visits)"
    rows = connection.sql("SELECT person, item, x FROM visits").to_arrow_table()
    with DuckDBConnection({"visits": rows}, threads=2) as engine:
        ran = {name: profiled(engine, asked) for name, asked in statements().items()}
    groups = {n: [rows for kind, rows in o if "GROUP_BY" in kind] for n, o in ran.items()}
    joins = {n: [rows for kind, rows in o if kind == "HASH_JOIN"] for n, o in ran.items()}
    filters = {n: [rows for kind, rows in o if kind == "FILTER"] for n, o in ran.items()}
    return {
        "contributions, written": written("visits", "person, item", "block"),
        "contributions": groups["norm"][0],
        "norms, written": written(pairs, "person", f"hash(person * {BEYOND} + item) % {TASKS}"),
        "norms": groups["norm"][2],
        "contributions, written again for the join": joins["norm"][0],
        "sums, written": written(pairs, "item", f"hash(person) % {TASKS}"),
        "sums": groups["norm"][1],
        "ranks: kept contributions": filters["ranks"][1],
        "distinct: kept pairs": filters["distinct"][1],
        "profile: people": groups["profile"][1],
    }


def check(sizes: list[int]) -> list[dict[str, Any]]:
    """Compare model and measurement; return one line for each stage."""
    lines, connection = list[dict[str, Any]](), duckdb.connect()
    for rows in sizes:
        people = rows // 20
        for name, keys in (
            ("even, 50", Classes.even(50)),
            ("even, 1e6", Classes.even(10**6)),
            ("Zipf, 1e6", Classes.zipf(10**6)),
        ):
            model = Model(rows, Classes.even(people), keys, maps=TASKS, parts=TASKS)
            generate(connection, rows, model, seed=rows)
            found, expected = measured(connection), model.stages()
            for stage, number in expected.items():
                lines.append(
                    {"rows": rows, "keys": name, "stage": stage, "model": round(number),
                     "measured": round(found[stage]), "ratio": found[stage] / number}
                )  # fmt: skip
        worst = max(abs(line["ratio"] - 1) for line in lines if line["rows"] == rows)
        print(f"{rows:,} rows: {len(lines)} stages so far, the model is off by at most {worst:.2%}")
    return lines


def heavy(rows: int) -> dict[str, float]:
    """Let one person have a tenth of the rows; return what becomes of them, and of a join."""
    connection, people = duckdb.connect(), rows // 20
    generate(connection, rows, Model(rows, Classes.even(people), Classes.even(10**6), 1, 1), seed=1)
    found: dict[str, float] = {}
    for name, person in (("usual", "person"), ("heavy", f"IF(block < {TASKS / 10}, -1, person)")):
        table = connection.sql(f"SELECT {person} AS person, item, x FROM visits").to_arrow_table()
        own = int(np.sum(table["person"].to_numpy() == -1))
        with DuckDBConnection({"visits": table}, threads=2) as engine:
            took = []
            for _ in range(3):
                start = process_time()
                engine.aggregate(statements()["norm"])
                took.append(process_time() - start)
            found |= {f"{name}: processor seconds": min(took), f"{name}: rows of that person": own}
            if rows <= 10**6:
                one, other = (
                    Joined(alias=alias, rows=Select.of("visits", unit="person"), on=on)
                    for alias, on in (
                        ("a", ()),
                        ("b", (Call("equal", (ColumnRef("unit", "a"), ColumnRef("unit", "b"))),)),
                    )
                )
                both = Select((one, other), (("unit", ColumnRef("unit", "a")),), (), JOINED_ROWS)
                unit = engine.rows(both).reveal_without_noise()["unit"].to_numpy()
                found[f"{name}: joined rows of that person"] = int(np.sum(unit == -1))
                found[f"{name}: joined rows of others"] = int(np.sum(unit != -1))
    return found


# --- what no test can run ---------------------------------------------------------------------


def extrapolated(*, rows: float = 1e10, people: float = 5e8, tasks: float = 10_000) -> list[Any]:
    """Return the model's rows and gigabytes for a large table."""
    lines = []
    for name, size in (("50", 50), ("1e6", 1e6), ("1e8", 1e8)):
        for law in (Classes.even, Classes.zipf):
            model = Model(rows, Classes.even(people), law(size), maps=tasks, parts=tasks)
            lines.append({"keys": name, "law": law.__name__, **model.stages()})
            lines[-1]["keys of 50 people or more"] = model.keys_above(50)
            alone = -np.expm1(-1e6 * model.keys.shares)
            lines[-1]["pairs of a person of a million rows"] = float(alone @ model.keys.counts)
    return lines


WIDTHS = {
    "contributions, written": 3,
    "norms, written": 2,
    "contributions, written again for the join": 3,
    "sums, written": 2,
}


def gigabytes(stage: str, rows: float) -> float:
    """Return what rows take in a shuffle before they are compressed: words for their columns."""
    return rows * (1 + WIDTHS[stage]) * WORD / 1e9


def show(lines: list[Any]) -> None:
    """Print the extrapolation as tables."""
    names = list(lines[0])[2:]
    print("| stage | " + " | ".join(f"{one['keys']} {one['law']}" for one in lines) + " |")
    print("|---" * (len(lines) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(f"{one[name]:.3g}" for one in lines) + " |")
    for name in WIDTHS:
        row = " | ".join(f"{gigabytes(name, one[name]):,.0f}" for one in lines)
        print(f"| GB {name} | {row} |")
    by_person = ("contributions, written", "sums, written")  # nothing moves in between
    total = [sum(gigabytes(name, one[name]) for name in WIDTHS) for one in lines]
    print("| GB in all | " + " | ".join(f"{one:,.0f}" for one in total) + " |")
    total = [sum(gigabytes(name, one[name]) for name in by_person) for one in lines]
    print("| GB, first by person | " + " | ".join(f"{one:,.0f}" for one in total) + " |")


def main() -> None:
    """Check the model, then use it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="*", default=[1e5, 1e6, 1e7])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    lines, large = check([int(rows) for rows in given.rows]), extrapolated()
    for line in lines:
        if line["rows"] == int(given.rows[-1]):
            print("| {keys} | {stage} | {model:,} | {measured:,} | {ratio:.3f} |".format(**line))
    crowds = {f"{size:,}": heavy(size) for size in sorted({10**6, int(given.rows[-1])})}
    print(json.dumps(crowds, indent=1))
    show(large)
    if given.json:
        found = {"checked": lines, "heavy": crowds, "extrapolated": large}
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
