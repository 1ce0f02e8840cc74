"""From published tables to the people behind them, by integer programming."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, final

import numpy as np

from discreet._exact import Number, exact
from discreet._rates import interval
from discreet.attacks.reconstruction.decoding import Floats
from discreet.attacks.reconstruction.statistics import Columns, Statistic
from discreet.attacks.report import AttackReport
from discreet.errors import DataError

__all__ = ["Rebuilt", "rebuild"]

# Noisy tables fit no people exactly, and the last percent of the fit says nothing about anybody.
_ENOUGH: Final = {"mip_rel_gap": 0.05, "node_limit": 200, "time_limit": 20.0}
_EXACT: Final = {"node_limit": 20_000, "time_limit": 60.0}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Hold people that fit what was published, and how many of them nobody else could be.

    ``gap`` is by how much they miss the statistics, in all. Whoever else fits as well shares at
    least ``certain`` records with these: all of them, where the solution is the only one. It is
    None where tables were noisy, where they let people be as many as one likes, or where it was not
    found in time.

    >>> people = Rebuilt(columns=("sex", "age"), records=(("f", 3),), gap=0.0, certain=1)
    >>> people.is_unique
    True
    """

    columns: tuple[str, ...]
    records: tuple[tuple[Any, ...], ...]
    gap: float
    certain: int | None

    @property
    def is_unique(self) -> bool:
        """Whether no other people fit."""
        return self.certain == len(self.records)

    def report(
        self, truth: Columns, *, baseline: Number, confidence: Number = 0.95
    ) -> AttackReport:
        """Compare with the true people, as a report.

        What counts is the share of records found, of all that are real or were named, whichever
        are more. ``baseline`` is the share that somebody gets right who saw nothing of this block:
        of another block's people, say.

        >>> people = Rebuilt(columns=("sex", "age"), records=(("f", 3),), gap=0.0, certain=1)
        >>> people.report({"sex": ["f"], "age": [3]}, baseline=0.1).success
        1.0
        """
        real = Counter(zip(*(_plain(truth[name]) for name in self.columns), strict=True))
        people = real.total()
        if not people:
            raise DataError("truth must have at least one person.")
        hits = (real & Counter(self.records)).total()
        # Whoever names everybody finds everybody: records too many count against the attack.
        named = max(people, len(self.records))
        level = float(exact(confidence, name="confidence"))
        kept = {None: "", people: " No other people fit the tables."}.get(
            self.certain, f" At least {self.certain} of them are in every solution."
        )
        return AttackReport(
            attack="rebuilding",
            measure="records right",
            success=hits / named,
            baseline=float(exact(baseline, name="baseline")),
            interval=interval(hits, trials=named, confidence=level),
            confidence=level,
            trials=named,
            summary=f"{hits} of {people} people were found with all of {', '.join(self.columns)}."
            + kept,
            details={
                "people": people,
                "records": len(self.records),
                "gap": self.gap,
                "certain": self.certain,
            },
        )


def rebuild(statistics: Sequence[Statistic], *, columns: Columns) -> Rebuilt:
    """Return people who fit published tables, exactly or as well as any.

    ``columns`` has the values that each column may take. The people are whole numbers of each
    possible kind of person, found by integer programming, so that the sum of what they miss of the
    statistics is smallest, each in units of its own.

    Why it works: a block of n people has fewer unknowns than the tables have cells, which is how
    the 2010 census was rebuilt [GAM19].

    >>> from discreet.attacks.reconstruction import publish
    >>> columns = {"sex": ["f", "m"], "age": range(5)}
    >>> records = {"sex": ["f", "m", "f"], "age": [3, 1, 2]}
    >>> printed = {"counts": [["sex"], ["age"]], "of": "age", "by": [["sex"]]}
    >>> rebuild(publish(records, columns=columns, **printed), columns=columns).records
    (('f', 2), ('f', 3), ('m', 1))
    """
    if not statistics:
        raise DataError("statistics must have at least one entry.")
    weights = np.array([one.weights(columns) for one in statistics])
    low = np.array([one.low for one in statistics], dtype=np.float64)
    high = np.array([one.high for one in statistics], dtype=np.float64)
    kinds = list(product(*(_plain(values) for values in columns.values())))
    counts, gap = _fitted(weights, low, high)
    certain = _shared(weights, low, high, counts) if gap < 1e-3 else None
    records = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    return Rebuilt(
        columns=tuple(columns), records=tuple(records), gap=round(gap, 3), certain=certain
    )


def _plain(values: Any) -> list[Any]:
    return [one.item() if isinstance(one, np.generic) else one for one in values]


def _fitted(weights: Floats, low: Floats, high: Floats) -> tuple[list[int], float]:
    """Return how many people of each kind fit best, and what they miss."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack

    rows, kinds = weights.shape
    short, over = eye_array(rows), -eye_array(rows)
    solve = {
        "c": np.repeat([0.0, 1.0], [kinds, 2 * rows]),
        "integrality": np.repeat([1, 0], [kinds, 2 * rows]),
        "constraints": LinearConstraint(hstack([csr_array(weights), short, over]), low, high),
        "bounds": Bounds(0, np.inf),
    }
    found = milp(**solve, options=_ENOUGH)
    if found.x is None:  # not one solution in whole numbers so far: round the fractions
        found = milp(**solve | {"integrality": np.zeros(kinds + 2 * rows)})
    if found.x is None:
        raise DataError("nobody can fit the statistics. Is low above high somewhere?")
    counts = np.rint(found.x[:kinds])
    sums = weights @ counts
    gap = float(np.maximum(0, np.maximum(low - sums, sums - high)).sum())
    return [int(count) for count in counts], gap


def _shared(weights: Floats, low: Floats, high: Floats, counts: list[int]) -> int | None:
    """Return the fewest records that any people who fit have in common with these.

    It is one less where all are shared, but there might be more people.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array, csr_array, eye_array

    kinds = len(counts)
    held = np.flatnonzero(counts)
    most = np.array(counts, dtype=np.float64)[held]
    fitting = LinearConstraint(csr_array(weights), low, high)
    crowd = milp(np.full(kinds, -1.0), constraints=fitting, bounds=Bounds(0, np.inf))
    if crowd.x is None:
        return None
    people = sum(counts)
    k, everybody = len(held), max(people, int(np.floor(-crowd.fun + 1e-6)))
    pick = eye_array(kinds, format="csr")[held]
    one = eye_array(k)
    # shared >= min(count, most), by a switch that says which of the two is smaller.
    constraints = LinearConstraint(
        block_array([
            [csr_array(weights), None, None],
            [-pick, one, float(everybody) * one],  # shared >= count - everybody * switch
            [None, one, -eye_array(k).multiply(most[:, None])],  # shared >= most * switch
        ]),
        np.concatenate([low, np.zeros(2 * k)]),
        np.concatenate([high, np.full(2 * k, np.inf)]),
    )  # fmt: skip
    found = milp(
        np.repeat([0.0, 1.0, 0.0], [kinds, k, k]),
        integrality=np.repeat([1, 0, 1], [kinds, k, k]),
        constraints=constraints,
        bounds=Bounds(0, np.concatenate([np.full(kinds + k, np.inf), np.ones(k)])),
        options=_EXACT,
    )
    if found.x is None:
        return None
    shared = int(np.ceil(found.mip_dual_bound - 1e-6))
    return min(shared, people - 1) if everybody > people else shared
