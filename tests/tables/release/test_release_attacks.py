"""Attacks on whole questions: random accepted SQL on random neighbouring tables, and known traps.

The first test writes questions by chance over nearly all of the accepted grammar (joins, subqueries
within units, public tables, odd expressions), runs each on two tables that differ in one unit,
and compares every integer that leaves the engine with the sensitivity of the noise added to it.
"""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.accounting import delta as delta_of
from discreet.errors import DiscreetError, ParameterError, Refused
from discreet.noise import SYSTEM
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables import Protected, protect
from discreet.tables.algorithms import quantile_draw as _ranks
from discreet.tables.algorithms.limit_choice import limit_edges, total_edges, value_edges
from discreet.tables.algorithms.noise import Noise
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import WEIGHT_STEPS, Groups, Norm, Totals, sensitivity
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.statements import Cells, Distinct, Profile, Statement, Sums
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import SIZE_SHARE, price, size_noise
from discreet.tables.release.execution import run as _running
from discreet.tables.release.execution import sums as _run_sums
from discreet.tables.release.execution.run import run
from discreet.tables.sql.parse import parse

FALSE_ALARM = 1e-9


# The tables that random questions are about.

VISITS = {"u": "BIGINT", "x": "DOUBLE", "i": "BIGINT", "k": "VARCHAR", "b": "BOOLEAN", "d": "DATE"}
ORDERS = {"u": "BIGINT", "y": "DOUBLE", "k": "VARCHAR"}
PUBLIC = {"u": "BIGINT", "w": "DOUBLE", "k": "VARCHAR"}
ARROW = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(),
         "BOOLEAN": pa.bool_(), "DATE": pa.date32()}  # fmt: skip
KINDS = {"BIGINT": "number", "DOUBLE": "number", "VARCHAR": "text", "BOOLEAN": "truth",
         "DATE": "date"}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "BIGINT": [0, 1, -1, 5, 2**53 + 1, 2**63 - 1, -(2**63), None],
    "DOUBLE": [0.0, -0.0, 1.0, -1.0, 0.5, 100.0, 1e308, -1e308, math.inf, -math.inf, math.nan,
               None, 5e-324, 2.5, 1e-7],
    "VARCHAR": ["a", "b", "A", "", None, "é", "it's"],
    "BOOLEAN": [True, False, None],
    "DATE": [date(2025, 1, 31), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), None],
}  # fmt: skip
SHARED = pa.table({"u": [1, 2, 2, 3], "w": [1.0, 2.0, -3.0, 4.0], "k": ["a", "b", "a", None]})

Rows = list[tuple[Any, ...]]
Kind = Literal["number", "text", "truth", "date"]
Column_ = tuple[str, str]  # as a question writes it, and its kind


def filled(columns: dict[str, str], rows: Rows) -> pa.Table:
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], type=ARROW[kind])
            for i, (name, kind) in enumerate(columns.items())
        }
    )


def rows_of(
    unit: int | None, columns: dict[str, str], rng: random.Random, sizes: list[int]
) -> Rows:
    """Return the rows of one unit: some of them many times."""
    kinds = list(columns.values())[1:]
    some = [(unit, *(rng.choice(VALUES[kind]) for kind in kinds)) for _ in range(6)]
    return [rng.choice(some) for _ in range(rng.choice(sizes))]


def catalog(neighbours: Neighbours, **limits: int | None) -> Catalog:
    def table(name: str, columns: dict[str, str], *, is_public: bool = False) -> Table:
        listed = tuple(Column(name=column, type=kind) for column, kind in columns.items())
        return Table(name=name, columns=listed, is_public=is_public)

    tables = (table("visits", VISITS), table("orders", ORDERS),
              table("shared", PUBLIC, is_public=True))  # fmt: skip
    return Catalog(unit=Unit.column("u"), neighbours=neighbours, tables=tables, **limits)


class Writer:
    """Writes questions by chance; nearly all of them are accepted."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.aliases = rng, 0

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def one(self, *options: Callable[[], str]) -> str:
        return self.rng.choice(options)()

    def column(self, columns: list[Column_], kind: Kind, default: str) -> str:
        found = [name for name, own in columns if own == kind]
        return self.rng.choice(found) if found and self.rng.random() < 0.8 else default

    def number(self, columns: list[Column_], depth: int = 1) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.3:
            literal = rng.choice(["0", "1", "-1", "2.5", "1e300", "NULL", "1e-9"])
            return self.column(columns, "number", literal)

        def n() -> str:
            return self.number(columns, depth - 1)

        def t() -> str:
            return self.truth(columns, depth - 1)

        return self.one(
            lambda: f"({n()} {rng.choice(['+', '-', '*', '/', '%', '//'])} {n()})",
            lambda: f"{rng.choice(['ABS', 'SQRT', 'LN', 'EXP', 'FLOOR', 'SIGN'])}({n()})",
            lambda: (
                f"{rng.choice(['LEAST', 'GREATEST', 'COALESCE', 'NULLIF', 'POWER'])}({n()}, {n()})"
            ),
            lambda: f"CASE WHEN {t()} THEN {n()} END",
            lambda: f"CASE WHEN {t()} THEN {n()} ELSE {n()} END",
            lambda: f"ROUND({n()}, {rng.randint(-2, 3)})",
            lambda: f"CAST({n()} AS {rng.choice(['BIGINT', 'TINYINT', 'DOUBLE', 'UBIGINT'])})",
            lambda: f"CLAMP({n()}, -3, {rng.choice(['3', '1e307'])})",
            lambda: f"LENGTH({self.text(columns, depth - 1)})",
            lambda: f"CAST({self.text(columns, depth - 1)} AS DOUBLE)",
            lambda: f"EXTRACT({rng.choice(['year', 'week', 'dow'])} FROM {self.day(columns)})",
            lambda: f"({self.day(columns)} - {self.day(columns)})",
        )

    def text(self, columns: list[Column_], depth: int = 1) -> str:
        if depth <= 0 or self.rng.random() < 0.4:
            return self.column(columns, "text", "'a'")
        again = lambda: self.text(columns, depth - 1)  # noqa: E731
        return self.one(
            lambda: f"UPPER({again()})",
            lambda: f"({again()} || {again()})",
            lambda: f"COALESCE({again()}, 'z')",
            lambda: f"LEFT({again()}, 1)",
            lambda: f"CAST({self.number(columns, depth - 1)} AS VARCHAR)",
            lambda: f"CASE WHEN {self.truth(columns, depth - 1)} THEN 'a' ELSE {again()} END",
        )

    def day(self, columns: list[Column_]) -> str:
        return self.column(columns, "date", "DATE '2020-02-29'")

    def truth(self, columns: list[Column_], depth: int = 1) -> str:
        if depth <= 0:
            return self.column(columns, "truth", f"({self.number(columns, 0)} > 0)")
        n = lambda: self.number(columns, depth - 1)  # noqa: E731
        t = lambda: self.truth(columns, depth - 1)  # noqa: E731
        signs = ["<", "<=", "=", "<>", "IS DISTINCT FROM"]
        return self.one(
            lambda: f"({n()} {self.rng.choice(signs)} {n()})",
            lambda: f"({self.text(columns, depth - 1)} IN ('a', 'b'))",
            lambda: f"({self.text(columns, depth - 1)} LIKE '%a%')",
            lambda: f"({n()} IS NULL)",
            lambda: f"(NOT {t()})",
            lambda: f"({t()} {self.rng.choice(['AND', 'OR'])} {t()})",
        )

    def source(self, depth: int) -> tuple[str, str, list[Column_]]:
        """Return a table or subquery, its alias, and its columns, the unit first."""
        rng, alias, chance = self.rng, self.alias(), self.rng.random()
        if depth <= 0 or chance < 0.5:
            name, declared = rng.choice([("visits", VISITS), ("orders", ORDERS)])
            return f"{name} AS {alias}", alias, [(c, KINDS[kind]) for c, kind in declared.items()]
        rows, columns = self.rows(depth - 1)
        unit = columns[0][0]
        where = f" WHERE {self.truth(columns)}" if rng.random() < 0.4 else ""
        if chance < 0.65:
            shown = f"{unit} AS u, {self.number(columns)} AS m, {self.text(columns)} AS k"
            found = [("u", "number"), ("m", "number"), ("k", "text")]
            return f"(SELECT {shown} FROM {rows}{where}) AS {alias}", alias, found
        if chance < 0.75:
            shown = f"DISTINCT {unit} AS u, {self.text(columns)} AS k"
            found = [("u", "number"), ("k", "text")]
            return f"(SELECT {shown} FROM {rows}{where}) AS {alias}", alias, found
        key, word = self.text(columns), rng.choice(["SUM", "AVG", "MIN", "MAX", "COUNT"])
        having = rng.choice(
            ["", " HAVING COUNT(*) > 1", f" HAVING COUNT(DISTINCT {self.number(columns, 0)}) < 3"]
        )
        shown = f"{unit} AS u, {key} AS k, {word}({self.number(columns)}) AS m, COUNT(*) AS n"
        text = f"(SELECT {shown} FROM {rows}{where} GROUP BY {unit}, {key}{having}) AS {alias}"
        return text, alias, [("u", "number"), ("k", "text"), ("m", "number"), ("n", "number")]

    def rows(self, depth: int) -> tuple[str, list[Column_]]:
        """Return FROM, and its columns: that of the unit first."""
        rng = self.rng
        sql, first, own = self.source(depth)
        columns = [(f"{first}.{name}", kind) for name, kind in own]
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            word = rng.choice(["JOIN", "LEFT JOIN"])
            if rng.random() < 0.4:
                other = self.alias()
                new = [(f"{other}.{name}", KINDS[kind]) for name, kind in PUBLIC.items()]
                condition = f"{other}.u = {first}.u"
                if rng.random() < 0.5:
                    condition = self.truth(columns + new)
                sql += f" {word} shared AS {other} ON {condition}"
            else:
                text, other, own = self.source(depth - 1)
                new = [(f"{other}.{name}", kind) for name, kind in own]
                condition = f"{first}.u = {other}.u"
                if rng.random() < 0.5:
                    condition += f" AND {self.truth(columns + new)}"
                sql += f" {word} {text} ON {condition}"
            columns += new
        return sql, columns

    def aggregate(self, columns: list[Column_]) -> str:
        rng = self.rng
        low, high = rng.choice([("0", "10"), ("-5", "1"), ("-1e307", "1e307"), ("0", "1e-300")])
        value = self.number(columns, 2)
        clamped = f"CLAMP({value}, {low}, {high})" if rng.random() < 0.85 else value
        words = ["COUNT", "SUM", "AVG", "VARIANCE", "MEDIAN", "MAX"]
        return self.one(
            lambda: "COUNT(*)",
            lambda: f"COUNT(DISTINCT {columns[0][0]})",
            lambda: f"COUNT(DISTINCT {self.text(columns)})",
            lambda: f"{rng.choice(words)}({clamped})",
            lambda: f"{rng.choice(words)}({clamped})",
            lambda: f"SUM({clamped}) FILTER (WHERE {self.truth(columns)})",
            lambda: f"CORR({clamped}, CLAMP({self.number(columns)}, -1, 1))",
        )

    def question(self) -> str:
        rng = self.rng
        rows, columns = self.rows(rng.choice([0, 1, 1, 2]))
        conditions = [self.truth(columns, 2)] if rng.random() < 0.5 else []
        keys = [self.one(lambda: self.text(columns), lambda: self.truth(columns))
                for _ in range(rng.choice([0, 0, 1, 1, 2]))]  # fmt: skip
        if keys and rng.random() < 0.5:
            keys = [self.text(columns)]
            conditions.append(f"{keys[0]} IN ('a', 'b', '')")
        shown = [*keys, *(self.aggregate(columns) for _ in range(rng.choice([1, 1, 2, 3])))]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(shown)} FROM {rows}{where}{grouped}"


# Running without randomness, and looking at all that leaves the engine.


@dataclass
class Recorder:
    """An engine that remembers what was asked and what it answered."""

    engine: DuckDBConnection
    seen: list[tuple[Statement, pa.Table]] = field(default_factory=list)

    def aggregate(self, statement: Statement, /) -> Any:
        found = self.engine.aggregate(statement)
        self.seen.append((statement, found.reveal_without_noise()))
        return found

    def sql(self, statement: Statement, /) -> str:
        return self.engine.sql(statement)


@dataclass
class Trace:
    """What one run released, before the noise that was left out."""

    tables: list[tuple[Statement, pa.Table]]
    noised: list[tuple[np.ndarray, Fraction, str]]
    sizes: list[tuple[np.ndarray, Fraction]]
    profiles: list[tuple[np.ndarray, Fraction, str]]
    choices: int
    draws: int


PROFILES = {
    (len(edges) + 1,) for edges in (value_edges(), limit_edges(), limit_edges(2), total_edges())
}


def peaked(size: int, turn: int) -> np.ndarray:
    """Return a profile whose units are all in one bin, another one each time."""
    bins = np.zeros(size, dtype=np.int64)
    bins[7 * turn % size] = 10**6 * WEIGHT_STEPS
    return bins


@contextmanager
def without_randomness(prepared: Prepared, trace: Trace) -> Iterator[None]:
    """Add no noise, show every key, and choose limits in turn; note what each part would cost."""

    def add(self: Noise, values: Any, *, sensitivity: Any, source: Any = SYSTEM) -> Any:
        if self == size_noise(prepared.price.rank_epsilon):
            trace.sizes.append((np.asarray(values), Fraction(sensitivity)))
            return np.asarray(values)  # sizes of groups: totals of what quantiles are drawn from
        if self == prepared.price.inference_noise and np.shape(values) in PROFILES:
            trace.choices += 1
            trace.profiles.append((np.asarray(values), Fraction(sensitivity), self.kind))
            return peaked(len(values), trace.choices)
        assert self == prepared.price.noise
        trace.noised.append((np.asarray(values), Fraction(sensitivity), self.kind))
        return np.asarray(values)

    def ranks(**terms: Any) -> _ranks.Ranks:
        assert terms["epsilon"] == prepared.price.rank_epsilon * (1 - SIZE_SHARE)
        trace.draws += 1
        return real_ranks(**terms)

    real_ranks = _ranks.Ranks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Noise, "add", add)
        patch.setattr(_ranks, "Ranks", ranks)
        patch.setattr(_run_sums, "threshold", lambda *_, **__: Fraction(0))
        patch.setattr(_running, "token_hex", lambda _: "salt")
        yield


def traced(prepared: Prepared, known: Catalog, visits: Rows, orders: Rows) -> Trace:
    tables = {"visits": filled(VISITS, visits), "orders": filled(ORDERS, orders), "shared": SHARED}
    trace = Trace(tables=[], noised=[], sizes=[], profiles=[], choices=0, draws=0)
    with DuckDBConnection(tables, threads=1) as engine, without_randomness(prepared, trace):
        recorder = Recorder(engine, trace.tables)
        run(prepared, connection=recorder, catalog=known, confidence=Fraction(1, 2), source=SYSTEM)
    return trace


def cells_by_group(table: pa.Table) -> dict[tuple[Any, ...], list[int]]:
    is_cell = [name.startswith("cell_") or name == "units" for name in table.column_names]
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        group = tuple(v for v, cell in zip(row, is_cell, strict=True) if not cell)
        assert group not in found
        found[group] = [v or 0 for v, cell in zip(row, is_cell, strict=True) if cell]
    return found


def moved(before: pa.Table, after: pa.Table) -> list[list[int]]:
    """Return how far each cell moved, group by group."""
    old, new = cells_by_group(before), cells_by_group(after)
    zero = [0] * (len(next(iter([*old.values(), *new.values()]), [])))
    return [
        [int(a) - int(b) for a, b in zip(old.get(g, zero), new.get(g, zero), strict=True)]
        for g in old.keys() | new.keys()
    ]


def squared_norm(numbers: list[int], order: int) -> int:
    return sum(map(abs, numbers)) ** 2 if order == 1 else sum(n * n for n in numbers)


def check_statement(
    statement: Statement, moves: list[list[int]], known: Catalog, order: int
) -> None:
    factor = 2 if known.neighbours is Neighbours.replace_one else 1
    if isinstance(statement, Profile):
        assert sum(abs(move[0]) for move in moves) <= factor
        return
    if isinstance(statement, Distinct):
        one = 1 if statement.bounds is None else WEIGHT_STEPS
        assert sum(abs(move[0]) for move in moves) <= factor * statement.most * one
        return
    start = 0
    for cells in statement.cells:
        own = [n for move in moves for n in move[start : start + cells.count]]
        start += cells.count
        norm: Literal[1, 2] = 1 if statement.grid is not None or order == 1 else 2
        most = sensitivity(
            cells.own or statement.bounding or Norm(limit=1, order=1), order=norm,
            neighbours=known.neighbours, is_signed=cells.is_signed,
        )  # fmt: skip
        assert squared_norm(own, norm) <= (most * WEIGHT_STEPS) ** 2


@pytest.mark.lengthy
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**40))
def test_no_question_moves_more_than_its_noise_hides(seed: int) -> None:
    rng = random.Random(seed)
    neighbours = rng.choice([Neighbours.add_remove, Neighbours.replace_one])
    known = catalog(neighbours, rows=rng.choice([None, 1, 3]), groups=rng.choice([None, 2]))
    question = Writer(rng).question()
    try:
        query = parse(question, known)
    except Refused:
        return
    boundings = [None, Groups(groups=2, rows=3), Norm(limit=2.5, order=1), Norm(limit=1.5, order=2)]
    if lay_out(query).totals:
        boundings += [Totals(limit=7.5, order=1), Totals(limit=0.1, order=2)]
    bounding = rng.choice(boundings)
    layout, failure = lay_out(query, bounding=bounding), Fraction(1, 10**6)
    paid = price(query, layout, known, epsilon=Fraction(1), delta=failure, bounding=bounding)
    # The bound that accounting computes is a little above what basic composition proves.
    assert delta_of(paid.loss, epsilon=1) <= failure * Fraction(101, 100)
    prepared = Prepared(
        question=question, query=query, layout=layout, price=paid, bounding=bounding
    )
    units = [1, 2, 3, 2**53, 2**53 + 1, -1][: rng.choice([2, 3, 6])]
    sizes = [0, 1, 1, 2, 5, 40, 200]
    visits = {unit: rows_of(unit, VISITS, rng, sizes) for unit in units}
    orders = {unit: rows_of(unit, ORDERS, rng, [0, 1, 2, 3, 7]) for unit in units}
    nobody = rows_of(None, VISITS, rng, [0, 2])
    first = traced(prepared, known, [*chain(*visits.values()), *nobody], [*chain(*orders.values())])
    gone = rng.choice(units)
    visits[gone] = orders[gone] = []
    if neighbours is Neighbours.replace_one:
        visits[gone] = rows_of(gone, VISITS, rng, sizes)
        orders[gone] = rows_of(gone, ORDERS, rng, [0, 1, 2, 3])
    others = [*nobody, *chain(*visits.values())]
    rng.shuffle(others)  # the order of rows must not matter either
    second = traced(prepared, known, others, [*chain(*orders.values())])
    assert first.choices == len(paid.inferences)
    assert first.draws == len(layout.ranks)
    assert len(first.noised) == layout.parts - len(layout.ranks)
    assert [s for s, _ in first.tables] == [s for s, _ in second.tables]
    for (statement, before), (_, after) in zip(first.tables, second.tables, strict=True):
        check_statement(statement, moved(before, after), known, paid.order)
    if not query.has_known_keys:
        return  # then arrays have a row for each group that was found
    noised = zip([*first.noised, *first.profiles], [*second.noised, *second.profiles], strict=True)
    for (one, reach, kind), (other, _, _) in noised:
        change = [int(a) - int(b) for a, b in zip(one.flat, other.flat, strict=True)]
        order = 1 if kind == "laplace" else 2
        assert squared_norm(change, order) <= (reach * WEIGHT_STEPS) ** 2
    assert len(first.sizes) == len(layout.ranks)
    for (one, reach), (other, _) in zip(first.sizes, second.sizes, strict=True):
        assert sum(abs(int(a) - int(b)) for a, b in zip(one, other, strict=True)) <= (
            reach * WEIGHT_STEPS
        )


def test_the_search_notices_a_unit_that_counts_too_much() -> None:
    known, cells = catalog(Neighbours.add_remove), (Cells(kind="rows"),)
    query = parse("SELECT COUNT(*) FROM visits", known)
    statement = Sums(query=query, cells=cells, bounding=Norm(limit=2, order=1), salt="")
    check_statement(statement, [[2 * WEIGHT_STEPS]], known, 1)
    with pytest.raises(AssertionError):
        check_statement(statement, [[2 * WEIGHT_STEPS + 1]], known, 1)


# Traps, each of which is or was one way around a guarantee.


@pytest.fixture
def protected(tmp_path: Any) -> Iterator[Callable[..., Protected]]:
    opened: list[Protected] = []

    def make(source: object, **declared: Any) -> Protected:
        facts: dict[str, Any] = {
            "name": "t", "unit": "u", "rows": 4, "guarantee": Guarantee(epsilon=10**4, delta=1e-6),
            "ledger": tmp_path / f"budget{len(opened)}.db", **declared,
        }  # fmt: skip
        opened.append(protect(source, **facts))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def exact(T: Protected, question: str, bounding: Norm | Groups) -> dict[tuple[Any, ...], list[int]]:
    """Return what the engine computes for the rows of a question."""
    statement = Sums(query=parse(question, T.catalog), cells=(Cells(kind="rows"),),
                     bounding=bounding, salt="salt")  # fmt: skip
    return cells_by_group(T._opened.connection.aggregate(statement).reveal_without_noise())


def error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def distance(one: dict[Any, list[int]], other: dict[Any, list[int]]) -> int:
    return sum(abs(one.get(k, [0])[0] - other.get(k, [0])[0]) for k in one.keys() | other.keys())


@pytest.mark.lengthy
@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.timestamp("ns")])
def test_units_that_differ_stay_different_units(protected: Any, kind: pa.DataType) -> None:
    ann, bob = (2**60, 2**60 + 1) if kind == pa.decimal128(38, 0) else (1001, 1002)

    def cells(*rows: tuple[int, str, int]) -> dict[Any, list[int]]:
        units = [unit for unit, _, n in rows for _ in range(n)]
        values = [Decimal(u) for u in units] if pa.types.is_decimal(kind) else units
        keys = [key for _, key, n in rows for _ in range(n)]
        T = protected(pa.table({"u": pa.array(values, type=kind), "k": keys}))
        question = "SELECT k, COUNT(*) FROM t WHERE k IN ('a', 'b') GROUP BY k"
        return exact(T, question, Norm(limit=4, order=1))

    try:
        both, alone = cells((ann, "a", 4), (bob, "b", 4000)), cells((ann, "a", 4))
    except DiscreetError:
        return  # refusing such units is as good
    assert distance(both, alone) <= 4 * WEIGHT_STEPS


def test_joined_tables_agree_on_who_is_who(protected: Any) -> None:
    ann, bob = 2**53, 2**53 + 1
    question = f"SELECT COUNT(*) FROM a JOIN b ON a.u = b.u WHERE a.u = {bob}"

    def cells(orders: list[float]) -> dict[Any, list[int]]:
        tables = {"a": pa.table({"u": [bob]}), "b": pa.table({"u": pa.array(orders, pa.float64())})}
        return exact(protected(tables), question, Norm(limit=4, order=1))

    try:
        assert cells([float(ann)] * 3) == cells([])  # Ann's orders are no business of Bob's count
    except DiscreetError:
        return


def collated(path: Any, rows: list[tuple[str, str]]) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t(u VARCHAR COLLATE NOCASE, k VARCHAR COLLATE NOCASE)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    return f"{path}::t"


def test_collations_neither_merge_units_nor_show_one_persons_spelling(
    protected: Any, tmp_path: Any
) -> None:
    rows = [("ann", "north")] * 4 + [("ANN", "NORTH")]
    try:
        T = protected(collated(tmp_path / "c.duckdb", rows))
        groups = exact(T, "SELECT k, COUNT(*) FROM t GROUP BY k", Norm(limit=4, order=1))
    except DiscreetError:
        return
    assert groups == {("north",): [4 * WEIGHT_STEPS], ("NORTH",): [WEIGHT_STEPS]}


def test_partition_folders_do_not_replace_the_unit(protected: Any, tmp_path: Any) -> None:
    for folder in ("u=1", "u=2"):
        (tmp_path / "parts" / folder).mkdir(parents=True)
        pq.write_table(pa.table({"u": [5] * 3}), tmp_path / "parts" / folder / "x.parquet")
    try:
        T = protected(str(tmp_path / "parts"))
    except DiscreetError:
        return
    counted = exact(T, "SELECT COUNT(*) FROM t", Norm(limit=1, order=1))
    assert counted[()][0] <= WEIGHT_STEPS


@pytest.mark.lengthy
@pytest.mark.parametrize("word", ["REPLACE", "CONCAT"])
def test_no_text_grows_until_the_engine_fails(protected: Any, word: str) -> None:
    """A text that one row makes too large for memory tells that the row is there."""
    many, several = "a" * 1500, ", ".join(["k"] * 200)
    grown, start = f"CONCAT({several}) || CONCAT({several})", "a" * 10_000
    if word == "REPLACE":
        grown, start = f"REPLACE(REPLACE(k, 'a', '{many}'), 'a', '{many}')", "a"
    T = protected(pa.table({"u": [1], "k": [start]}))
    question = f"SELECT LENGTH({grown}), COUNT(*) FROM t GROUP BY 1"
    try:
        lengths = exact(T, question, Norm(limit=1, order=1))
    except Refused:
        return
    ((length,),) = lengths
    assert length is None or length <= 1_000_000


@pytest.mark.parametrize("line", ['9,"x"y', '9,"x\ny"', "9,x\r", '9,"x'])
def test_one_line_of_a_csv_file_does_not_change_how_others_are_read(
    protected: Any, tmp_path: Any, line: str
) -> None:
    path = tmp_path / "t.csv"
    others = "".join(f"{i},n\n" for i in range(100, 140))
    path.write_text(f"u,k\n{line}\n{others}", newline="")
    columns = {"u": {"type": "BIGINT"}, "k": {"type": "VARCHAR"}}
    T = protected(str(path), columns=columns)
    counted = exact(T, "SELECT COUNT(*) FROM t WHERE u >= 100", Norm(limit=1, order=1))
    assert counted == {(): [40 * WEIGHT_STEPS]}


def test_text_that_is_no_unicode_shows_up_in_no_error(protected: Any) -> None:
    names = pa.array([b"ok"] * 50 + [b"\xff\xfeann"], pa.binary()).view(pa.string())
    question = "SELECT k, j, COUNT(DISTINCT u) AS n, AVG(CLAMP(u, 0, 3)) AS a FROM t GROUP BY k, j"

    def ask() -> None:
        T = protected(pa.table({"u": list(range(51)), "k": names, "j": ["x"] * 51}), rows=1)
        T.sql(question, epsilon=10)

    error = error_of(ask)  # a UnicodeDecodeError would hold the text itself
    assert error is None or isinstance(error, DiscreetError)
    assert error is None or error.__context__ is None


def test_groups_are_kept_with_equal_chances(protected: Any) -> None:
    # 4000 units with all 8 keys keep one each. A count that is off by a fifth of 500 has, by
    # Hoeffding's inequality, a chance of at most 2 exp(-2 * 100**2 / 4000) = 0.013 for one key; a
    # half (250) of 2 exp(-2 * 250**2 / 4000) < 6e-14, so that all 8 stay below FALSE_ALARM.
    units, keys = 4000, [f"k{i}" for i in range(8)]
    T = protected(pa.table({"u": np.repeat(np.arange(units), 8), "k": keys * units}))
    kept = exact(T, "SELECT k, COUNT(*) FROM t GROUP BY k", Groups(groups=1, rows=1))
    counts = [kept.get((key,), [0])[0] / WEIGHT_STEPS for key in keys]
    assert 8 * 2 * math.exp(-2 * 250**2 / units) < FALSE_ALARM
    assert sum(counts) == units
    assert max(abs(count - units / 8) for count in counts) <= 250


@pytest.mark.lengthy
def test_a_plan_tells_columns_of_two_tables_apart(protected: Any) -> None:
    people = list(range(200))
    T = protected({"a": pa.table({"u": people, "x": [0.0] * 200}),
                   "b": pa.table({"u": people, "x": [1.0] * 200})}, rows=1)  # fmt: skip
    rows = "FROM a JOIN b ON a.u = b.u"
    plan = T.plan([f"SELECT AVG(CLAMP(a.x, 0, 1)) AS m {rows}",
                   f"SELECT AVG(CLAMP(b.x, 0, 1)) AS m {rows}"], epsilon=500)  # fmt: skip
    low, high = (answer.value for answer in plan.release())
    assert low < 0.5 < high


@pytest.mark.parametrize(
    "question",
    ["SELECT -COUNT(*) AS n FROM t", "SELECT COUNT(*) * 0 AS n FROM t",
     "SELECT COUNT(*) AS n FROM t HAVING COUNT(*) < 0"],
)  # fmt: skip
def test_a_watch_answers_the_question_that_was_asked(protected: Any, question: str) -> None:
    T = protected(pa.table({"u": list(range(100))}), rows=1)
    with pytest.raises(DiscreetError):
        T.watch([question], threshold=1, epsilon=500)


NEVER_ANSWERED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "no key is left": ("SELECT k, COUNT(*) AS n FROM t WHERE k = 'a' AND k = 'b' GROUP BY k",
                       {}, {}),
    "a key beyond its type": ("SELECT s, COUNT(*) AS n FROM t WHERE s IN (1, 300) GROUP BY s",
                              {}, {}),
    "a key beyond 64 bits": ("SELECT u, COUNT(*) AS n FROM t WHERE u IN (1, 1e20) GROUP BY u",
                             {}, {}),
    "L2 norm without delta": ("SELECT COUNT(*) AS n FROM t", {},
                              {"delta": 0, "bounding": Norm(limit=1, order=2)}),
    "more groups than can be ranked": ("SELECT k, COUNT(*) AS n FROM t GROUP BY k", {},
                                       {"bounding": Groups(groups=10**6, rows=1)}),
    "more values than can be ranked": ("SELECT COUNT(DISTINCT k) AS n FROM t",
                                       {"rows": 5 * 10**6}, {}),
    "rows as units": ("SELECT k, AVG(CLAMP(s, 0, 1)) AS m FROM t GROUP BY k",
                      {"unit": Unit.record()}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", NEVER_ANSWERED)
def test_what_can_never_be_answered_is_not_charged(protected: Any, case: str) -> None:
    question, declared, terms = NEVER_ANSWERED[case]
    people = pa.table({"u": [1, 2], "k": ["a", "b"], "s": pa.array([1, 2], pa.int8())})
    T = protected(people, **declared)
    error = error_of(lambda: T.sql(question, epsilon=1, **terms))
    # An answer is as good; otherwise the message must say what to change.
    assert error is None or isinstance(error, Refused | ParameterError)
    assert error is None or T.remaining == 1


def test_a_protected_file_is_not_public_as_well(protected: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "people.parquet")
    pq.write_table(pa.table({"u": [1, 2], "x": [1.0, 2.0]}), path)
    with pytest.raises(DiscreetError):
        protected({"t": path}, public={"p": path})
