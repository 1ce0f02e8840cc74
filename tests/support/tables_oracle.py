"""What questions about four small tables mean, worked out in pandas and exact fractions.

The oracle never sees the SQL of a case, nor any code of the engine: a case says in pandas' terms
which rows it is about, what their keys and values are, and what is asked of them. Units are bounded
one by one, by brute force.
"""

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from discreet.privacy import Neighbours, Unit
from discreet.tables.algorithms.noise import Noise
from discreet.tables.engines import open_sources
from discreet.tables.model.bounds import Bounding, Groups, Norm
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.inferences import known_rows
from discreet.tables.pricing.offer import Offer
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import price
from discreet.tables.sql.parse import parse

ANSWERS = Path(__file__).parents[1] / "tables" / "cases" / "answers"
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
TINY = Fraction(1, 1 << 20)  # a noise multiplier of one step: next to no noise
LARGE = Fraction(10**9)  # an epsilon that draws the best candidate
REGIONS = ("north", "south", "east", "west")
PLACES = ("harbour", "market", "museum", "park", "station")
START = date(2025, 1, 1)


# The tables


def people() -> pd.DataFrame:
    """Return 120 people, one row each, in households of three."""
    n = np.arange(120)
    return pd.DataFrame(
        {
            "person": n,
            "household": n // 3,
            "region": [REGIONS[(i * i) % 7 % 4] for i in n],
            "age": 18 + (n * 37) % 67,
            "income": 15_000.0 + (n * 7919) % 90_001,
            "sex": np.where(n % 5 < 2, "f", "m"),
            "member": n % 3 == 0,
            "joined": [START + timedelta(days=int(i * 11 % 365)) for i in n],
        }
    )


def visits() -> pd.DataFrame:
    """Return 396 visits of 60 people: one has 60 of them, most have few."""
    rows = []
    for person in range(60):
        for i in range(60 if person == 7 else 1 + person % 11):
            turn = person * 5 + i * 3
            rows.append(
                {
                    "person": person,
                    "place": PLACES[turn % 5 if person % 4 else 0],
                    "day": START + timedelta(days=(person * 3 + i * 17) % 90),
                    "spend": (turn * 1.25) % 40,
                    "minutes": (turn * 7) % 180,
                    "rating": None if turn % 6 == 0 else turn % 5 + 1,
                }
            )
    frame = pd.DataFrame(rows)
    return frame.astype({"rating": "Int64"})


def nasty() -> pd.DataFrame:
    """Return what goes wrong elsewhere: NULL, NaN, infinities, huge numbers, odd texts."""
    rows = [
        dict(zip(_nasty_lists(), row, strict=True))
        for row in zip(*_nasty_lists().values(), strict=True)
    ]
    return pd.DataFrame(rows)


def _nasty_lists() -> dict[str, list[Any]]:
    x = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, -0.0, 5e-324, 1.5, 2.5, -3.5]
    labels = ["plain", "", None, "ünïcødé", "quote'", 'double"', "a\nb", "日本", " spaced ", "%_"]
    big = [2**62, -(2**62), 0, 1, -1, None, 7, 2**53 + 1]
    count = range(80)
    return {
        "person": [None if i % 20 == 19 else i // 2 for i in count],
        "x": [x[i % 12] for i in count],
        "label": [labels[i % 10] for i in count],
        "big": [big[i % 8] for i in count],
        "flag": [(None, True, False)[i % 3] for i in count],
    }


def regions() -> pd.DataFrame:
    """Return a public table; "east" stands in it three times, "west" is missing."""
    return pd.DataFrame(
        {
            "region": ["north", "south", "east", "east", "east"],
            "land": ["up", "down", "left", "left", "middle"],
            "factor": [1.0, 2.0, 3.0, 4.0, 5.0],
        }
    )


def sessions() -> pd.DataFrame:
    """Return rows without a person: each record is a unit."""
    n = np.arange(50)
    return pd.DataFrame({"size": (n * 13) % 29, "kind": np.where(n % 4 == 0, "new", "old")})


def frames() -> dict[str, pd.DataFrame]:
    """Return all tables by name."""
    return {
        "people": people(),
        "visits": visits(),
        "nasty": nasty(),
        "regions": regions(),
        "sessions": sessions(),
    }


def arrow(name: str, frame: pd.DataFrame) -> pa.Table:
    """Return a table as Arrow has it: NaN apart from NULL, which pandas mixes up."""
    if name != "nasty":
        return pa.Table.from_pandas(frame, preserve_index=False)
    types = {"person": pa.int64(), "x": pa.float64(), "label": pa.string(), "big": pa.int64()}
    return pa.table(
        {
            name: pa.array(values, type=types.get(name, pa.bool_()), from_pandas=False)
            for name, values in _nasty_lists().items()
        }
    )


def tables() -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """Return the private and the public tables."""
    found = {name: arrow(name, frame) for name, frame in frames().items()}
    public = {"regions": found.pop("regions")}
    return found, public


# Cases


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question: what is declared, what it means, and what its plan and price must be."""

    name: str
    sql: str
    table: str
    aggregates: list[str]
    families: list[str]
    answer: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)
    key_kind: str = "none"  # none, known or private
    values: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, list[float]] = field(default_factory=dict)
    groups: list[list[Any]] | None = None  # the only ones that count
    noise: str = "laplace"
    limit: float | str | None = None  # of a unit's norm; None: every record is a unit
    asked: dict[str, Any] | None = None  # bounding that the analyst asks for
    rank_limit: float | None = None  # where quantiles are bounded otherwise
    unit_limit: float | None = None  # of groups, for COUNT(DISTINCT unit)
    infers: list[str] = field(default_factory=list)
    threshold: float | None = None
    selects: str = "rows"  # or "units": what decides which private keys are shown
    having: str | None = None
    sort: str | None = None
    take: list[int] | None = None
    check: str = "cells"  # or "total": only sums over groups are certain
    relative: float = 1e-4
    absolute: float = 1e-3
    rows: int | None = None
    undeclared: bool = False  # forget the rows of the file's setting
    most_groups: int | None = None
    neighbours: str = "add_remove"
    unit: dict[str, Any] = field(default_factory=lambda: {"kind": "column", "name": "person"})
    who: str = "r.person"  # the unit of a row, in pandas' terms
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    periods: list[str] | None = None

    @property
    def bounding(self) -> Bounding | None:
        """How units are bounded, as the case claims."""
        if self.asked is not None and "groups" in self.asked:
            return Groups(groups=self.asked["groups"], rows=self.asked["rows"])
        if self.asked is not None:
            return Norm(limit=Fraction(self.asked["limit"]), order=self.asked["order"])
        if self.limit is None:
            return None
        return Norm(limit=Fraction(self.limit), order=1 if self.noise == "laplace" else 2)


def cases() -> Iterator[Case]:
    """Read all cases; a file's [setting] holds for all of its cases."""
    for path in sorted(ANSWERS.glob("*.toml")):
        text = tomllib.loads(path.read_text())
        for given in text["case"]:
            merged = {**text.get("setting", {}), **given}
            merged["name"] = f"{path.stem}: {given['name']}"
            yield Case(**merged)


def catalog_of(case: Case, types: Mapping[str, Sequence[tuple[str, str]]]) -> Catalog:
    """Return what is declared; ``types`` are all columns of all tables."""

    def column(table: str, name: str, type_: str) -> Column:
        said = case.columns.get(f"{table}.{name}", {})
        bounds, keys = said.get("bounds"), said.get("keys")
        return Column(
            name=name,
            type=type_,
            bounds=None if bounds is None else (Fraction(bounds[0]), Fraction(bounds[1])),
            keys=None if keys is None else tuple(keys),
        )

    return Catalog(
        unit=Unit.from_dict(case.unit),
        neighbours=Neighbours(case.neighbours),
        tables=tuple(
            Table(
                name=table,
                columns=tuple(column(table, *one) for one in columns),
                is_public=table == "regions",
            )
            for table, columns in types.items()
        ),
        rows=None if case.undeclared else case.rows,
        groups=case.most_groups,
    )


def all_types() -> dict[str, Sequence[tuple[str, str]]]:
    """Return the columns of the tables, as an engine names their types."""
    private, public = tables()
    opened = open_sources(private, public=public)
    return {name: one.columns for name, one in opened.items()}


def prepared(case: Case, catalog: Catalog, *, epsilon: Fraction = EPSILON) -> Prepared:
    """Read and price the question."""
    asked = None if case.asked is None else case.bounding
    Offer(epsilon=epsilon, delta=DELTA, bounding=asked)
    query = parse(case.sql, catalog, periods=case.periods)
    layout = lay_out(query, rows=known_rows(query, catalog), bounding=asked)
    found = price(query, layout, catalog, epsilon=epsilon, delta=DELTA, bounding=asked)
    return Prepared(question=case.sql, query=query, layout=layout, price=found, bounding=asked)


def without_noise(one: Prepared) -> Prepared:
    """Return the same question, of the same kind of noise, with next to none of it."""
    exact = replace(
        one.price,
        noise=Noise(kind=one.price.noise.kind, multiplier=TINY),
        rank_epsilon=LARGE / 1000,  # the noise on sizes of groups must not fall below the grid
        inference_noise=Noise(kind=one.price.noise.kind, multiplier=TINY),
    )
    return replace(one, price=exact)


# The meaning of a case


@dataclass(frozen=True)
class Between:
    """An answer that may be anything from low to high."""

    low: float
    high: float


class Meaning:
    """The rows of a case, by unit and group, and what is asked of them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        scope = {**frames(), "pd": pd, "np": np, "date": date}
        r = eval(case.table, scope)
        self.frame = r.reset_index(drop=True)
        inner = {"r": self.frame, "pd": pd, "np": np}
        size = len(self.frame)
        self.keys = [_column(eval(text, inner), size) for text in case.keys.values()]
        self.values = {k: _column(eval(v, inner), size) for k, v in case.values.items()}
        if case.limit is None and case.asked is None:
            self.owners: list[Any] = list(range(size))
        else:
            self.owners = _column(eval(case.who, inner), size)
        self.rows = [
            i
            for i in range(size)
            if self.owners[i] is not None
            and (case.groups is None or list(self._group(i)) in case.groups)
        ]

    def _group(self, i: int) -> tuple[Any, ...]:
        return tuple(column[i] for column in self.keys)

    def groups(self) -> list[tuple[Any, ...]]:
        """Return all groups of the answer, before any HAVING."""
        if not self.keys:
            return [()]
        if self.case.groups is not None:
            return [tuple(group) for group in self.case.groups]
        shown = {self._group(i) for i in self.rows}
        if self.case.key_kind == "private":
            weighted = self._selecting().sums(lambda i: Fraction(1))
            assert self.case.threshold is not None, "say which keys are shown"
            shown = {group for group in shown if weighted[group] >= self.case.threshold}
        return sorted(shown, key=str)

    def units(self) -> "_Weights":
        """Return weights by which every unit counts once in a group."""
        case = self.case
        most = Fraction(case.unit_limit or case.limit or 1)
        bounding: Norm | None = None
        if case.limit is not None or case.asked is not None:
            order: Literal[1, 2] = 1 if case.noise == "laplace" else 2
            limit = most if order == 1 else Fraction(math.sqrt(most))
            bounding = Norm(limit=limit, order=order)
        return _Weights(self, bounding=bounding, once=True)

    def _selecting(self) -> "_Weights":
        return self.units() if self.case.selects == "units" else _Weights(self)

    def answers(self) -> list[dict[str, Any]]:
        """Return the rows of the answer in their order."""
        found = []
        weights = _Weights(self)
        for group in self.groups():
            asked = _Asked(self, weights, group)
            named = dict(zip(self.case.keys, group, strict=True))
            scope = {**asked.functions(), **named, "math": math}
            row = {name: eval(text, scope) for name, text in self.case.answer.items()}
            found.append({**named, **row})
        if self.case.having is not None:
            found = [row for row in found if eval(self.case.having, {}, dict(row))]
        if self.case.sort is not None:
            found.sort(key=lambda row: eval(self.case.sort, {}, dict(row)))
        if self.case.take is not None:
            found = found[slice(*self.case.take)]
        return found


def _column(values: Any, size: int) -> list[Any]:
    """Return a column as plain values, None where there is none; NaN counts as none."""
    if not isinstance(values, pd.Series):
        return [values] * size
    found = []
    for value in values.tolist():
        if value is None or value is pd.NaT or value is pd.NA or value != value:  # NaN
            found.append(None)
        elif isinstance(value, pd.Timestamp):
            found.append(value.date())
        else:
            found.append(value)
    return found


class _Weights:
    """The weight of each row: one unit at a time."""

    def __init__(
        self,
        meaning: Meaning,
        *,
        rows: Sequence[int] | None = None,
        bounding: Bounding | str | None = "case",
        once: bool = False,
        places: Sequence[Any] | None = None,
    ) -> None:
        self.meaning = meaning
        chosen: Bounding | None = meaning.case.bounding if isinstance(bounding, str) else bounding
        own: dict[Any, list[int]] = defaultdict(list)
        for i in meaning.rows if rows is None else rows:
            own[meaning.owners[i]].append(i)
        self.of: dict[int, Fraction] = {}
        for mine in own.values():
            counts: dict[Any, int] = defaultdict(int)
            for i in mine:
                place = None if places is None else places[i]
                cell = (meaning._group(i), place)
                counts[cell] = 1 if once else counts[cell] + 1
            kept = list(counts)
            if isinstance(chosen, Groups):
                kept = kept[: chosen.groups]
            seen = set()
            for i in mine:
                cell = (meaning._group(i), None if places is None else places[i])
                if cell not in kept or (once and cell in seen):
                    continue
                seen.add(cell)
                self.of[i] = _weight(chosen, counts, cell)
        is_selecting = meaning.case.key_kind == "private" and meaning.case.selects == "rows"
        if is_selecting and isinstance(chosen, Norm) and not once:
            self._drop_small(own, chosen)

    def _drop_small(self, own: Mapping[Any, list[int]], chosen: Norm) -> None:
        """Leave out what a unit has of a group where that is too little."""
        least = min(Fraction(chosen.limit), Fraction(1, 4 if chosen.order == 1 else 2))
        for mine in own.values():
            total: dict[Any, Fraction] = defaultdict(Fraction)
            for i in mine:
                total[self.meaning._group(i)] += self.of[i]
            for i in mine:
                if total[self.meaning._group(i)] < least:
                    del self.of[i]

    def sums(self, value: Any) -> dict[tuple[Any, ...], Fraction]:
        total: dict[tuple[Any, ...], Fraction] = defaultdict(Fraction)
        for i, weight in self.of.items():
            total[self.meaning._group(i)] += weight * value(i)
        return total


def _weight(chosen: Bounding | None, counts: Mapping[Any, int], cell: Any) -> Fraction:
    if chosen is None:
        return Fraction(1)
    if isinstance(chosen, Groups):
        return min(Fraction(1), Fraction(chosen.rows, counts[cell]))
    if chosen.order == 1:
        return min(Fraction(1), Fraction(chosen.limit) / sum(counts.values()))
    norm = math.sqrt(sum(n * n for n in counts.values()))
    return min(Fraction(1), Fraction(float(chosen.limit) / norm))


class _Asked:
    """The functions that a case's answer may use, for one group."""

    def __init__(self, meaning: Meaning, weights: _Weights, group: tuple[Any, ...]) -> None:
        self.meaning, self.case, self.group = meaning, meaning.case, group
        self.weights = weights
        self.own = [(i, w) for i, w in weights.of.items() if meaning._group(i) == group]

    def functions(self) -> dict[str, Any]:
        names = (
            "count", "count_values", "units", "distinct", "total", "mean", "variance", "deviation",
            "covariance", "correlation", "quantile", "least", "greatest",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def _pairs(self, *names: str) -> list[tuple[Fraction, tuple[Fraction, ...]]]:
        found = []
        for i, weight in self.own:
            values = [self.meaning.values[name][i] for name in names]
            if any(value is None for value in values):
                continue
            clamped = tuple(self._clamped(n, v) for n, v in zip(names, values, strict=True))
            found.append((weight, clamped))
        return found

    def _clamped(self, name: str, value: Any) -> Fraction:
        low, high = (Fraction(end) for end in self.case.bounds[name])
        if isinstance(value, float) and math.isinf(value):
            return high if value > 0 else low
        return min(max(Fraction(value), low), high)

    def count(self) -> float:
        return float(sum(w for _, w in self.own))

    def count_values(self, name: str) -> float:
        column = self.meaning.values[name]
        return float(sum(w for i, w in self.own if column[i] is not None))

    def units(self) -> float:
        return float(self.meaning.units().sums(lambda i: Fraction(1))[self.group])

    def distinct(self, name: str) -> int:
        column = self.meaning.values[name]
        own = {column[i] for i in self.meaning.rows if self.meaning._group(i) == self.group}
        return len(own - {None})

    def total(self, name: str) -> float:
        if "total" not in self.case.families:
            return float(sum(w * x for w, (x,) in self._pairs(name)))
        low, high = (Fraction(end) for end in self.case.bounds[name])
        limit = float(Fraction(self.case.limit or 1) * max(-low, high, 0))  # type: ignore[arg-type]
        found, order = 0.0, 1 if self.case.noise == "laplace" else 2
        for sums in self._whole(name).values():
            norm = sum(abs(float(s)) ** order for s in sums.values()) ** (1 / order)
            found += float(sums.get(self.group, 0)) * min(1.0, limit / norm if norm else 1.0)
        return found

    def _whole(self, name: str) -> dict[Any, dict[tuple[Any, ...], Fraction]]:
        """Return the sums of each unit by group."""
        found: dict[Any, dict[tuple[Any, ...], Fraction]] = defaultdict(dict)
        for i in self.meaning.rows:
            value, group = self.meaning.values[name][i], self.meaning._group(i)
            if value is not None:
                own = found[self.meaning.owners[i]]
                own[group] = own.get(group, Fraction(0)) + self._clamped(name, value)
        return found

    def _moments(self, *names: str) -> tuple[Fraction, list[Fraction]]:
        pairs = self._pairs(*names)
        rows = sum((w for w, _ in pairs), Fraction(0))
        if rows == 0:
            return rows, [Fraction(0)] * len(names)
        means = [sum(w * xs[j] for w, xs in pairs) / rows for j in range(len(names))]
        return rows, [Fraction(m) for m in means]

    def mean(self, name: str) -> float:
        rows, (mean,) = self._moments(name)
        return float(mean) if rows else math.nan

    def covariance(self, first: str, second: str, *, sample: bool = True) -> float:
        rows, (one, two) = self._moments(first, second)
        pairs = self._pairs(first, second)
        central = sum(w * (a - one) * (b - two) for w, (a, b) in pairs)
        return float(central / (rows - 1 if sample else rows))

    def variance(self, name: str, *, sample: bool = True) -> float:
        return self.covariance(name, name, sample=sample)

    def deviation(self, name: str, *, sample: bool = True) -> float:
        return math.sqrt(self.variance(name, sample=sample))

    def correlation(self, first: str, second: str) -> float:
        spread = math.sqrt(self.variance(first) * self.variance(second))
        return self.covariance(first, second) / spread

    def _ranked(self, name: str) -> tuple[list[tuple[Fraction, Fraction]], Fraction]:
        """Return values with their weights, sorted, where every unit is bounded over all places."""
        column = self.meaning.values[name]
        rows = [i for i in self.meaning.rows if column[i] is not None]
        bounding: Norm | None = None
        if self.case.limit is not None or self.case.asked is not None:
            limit = self.case.rank_limit or self.case.limit
            if self.case.asked is not None and "groups" in self.case.asked:
                limit = self.case.asked["groups"] * self.case.asked["rows"]
            assert limit is not None
            bounding = Norm(limit=Fraction(limit), order=1)
        weights = _Weights(self.meaning, rows=rows, bounding=bounding, places=column)
        own = sorted(
            (self._clamped(name, column[i]), w)
            for i, w in weights.of.items()
            if self.meaning._group(i) == self.group
        )
        return own, sum((w for _, w in own), Fraction(0))

    def quantile(self, name: str, q: float, *, step: float | None = None) -> Between:
        """Return all values that have at most a share q below and 1 - q above them."""
        own, total = self._ranked(name)
        low_end, high_end = self.case.bounds[name]
        wanted, slack = Fraction(q).limit_denominator(1000) * total, Fraction(1, 1000)
        low, high, before = float(low_end), float(high_end), Fraction(0)
        for value, weight in own:
            before += weight
            if before < wanted - slack:
                low = float(value)
                continue
            low = float(value)
            break
        before = Fraction(0)
        for value, weight in own:
            before += weight
            if before > wanted + slack:
                high = float(value)
                break
        step = (high_end - low_end) / (1 << 14) if step is None else step
        return Between(low - step, high + step)

    def least(self, name: str, *, step: float | None = None) -> Between:
        own, _ = self._ranked(name)
        return self._near(own[0][0], name, step)

    def greatest(self, name: str, *, step: float | None = None) -> Between:
        own, _ = self._ranked(name)
        return self._near(own[-1][0], name, step)

    def _near(self, value: Fraction, name: str, step: float | None) -> Between:
        low, high = self.case.bounds[name]
        around = (high - low) / (1 << 14) if step is None else step
        return Between(float(value) - around, float(value) + around)
