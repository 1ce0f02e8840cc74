"""Whole questions on neighbouring tables: nothing moves further than its noise was made for.

An engine remembers every statement that a release runs, together with the noise, draws and choices
that follow it. The same statements then run on a neighbouring table, and the exact tables are
compared: in the norm of the noise, in the scores of quantiles, in the bins of profiles, and in the
chance that a key of one unit alone is shown.
"""

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import Refused
from discreet.noise import SYSTEM
from discreet.privacy import Neighbours, Unit
from discreet.tables.algorithms import quantile_draw as ranks
from discreet.tables.algorithms.noise import Noise
from discreet.tables.engines import DuckDBConnection, open_sources
from discreet.tables.model.bounds import WEIGHT_STEPS, Groups, Norm
from discreet.tables.model.catalog import Catalog, Column, ForeignKey, Table
from discreet.tables.model.statements import Distinct, Profile, Sums
from discreet.tables.pricing.cell_layout import lay_out
from discreet.tables.pricing.prepared import Prepared
from discreet.tables.pricing.price import price
from discreet.tables.release.execution.run import run
from discreet.tables.sql.parse import parse

CONFIDENCE = Fraction(95, 100)
SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("place", pa.string()),
        ("x", pa.float64()),
        ("n", pa.int64()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
    ]
)
PLACES = ("harbour", "market", "park", "", "日本", None)
NUMBERS = (0.0, -0.0, 1.0, 2.5, -7.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, None)
WHOLE = (0, 1, -1, 7, 2**62, -(2**62), 2**53 + 1, None)
PUBLIC = pa.table(
    {
        "place": ["harbour", "harbour", "harbour", "park", None],
        "land": ["a", "b", "a", "c", "d"],
        "factor": [1.0, math.nan, -2.0, math.inf, 3.0],
    }
)

OWNERS = {"cards": "who", "buys": ForeignKey(column="card", table="cards", key="nr")}

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(x) AS n, COUNT(*) AS m FROM t",
    "SELECT COUNT(*) FILTER (WHERE n > 0) AS n FROM t",
    "SELECT COUNT(DISTINCT person) AS n FROM t",
    "SELECT COUNT(DISTINCT x) AS n FROM t",
    "SELECT COUNT(DISTINCT place) AS n, COUNT(*) AS m FROM t",
    "SELECT SUM(CLAMP(x, -10, 10)) AS s FROM t",
    "SELECT SUM(CLAMP(x, 0, 10)) AS s, SUM(CLAMP(n, -5, 3)) AS u FROM t",
    "SELECT SUM(CLAMP(n * n, 0, 100)) AS s FROM t",
    "SELECT AVG(CLAMP(x, -1, 3)) AS m, COUNT(*) AS n FROM t",
    "SELECT AVG(x) AS m FROM t",
    "SELECT VARIANCE(CLAMP(x, -5, 5)) AS v FROM t",
    "SELECT STDDEV_POP(CLAMP(n, 0, 9)) AS v, COUNT(*) AS k FROM t",
    "SELECT CORR(CLAMP(x, -5, 5), CLAMP(n, 0, 9)) AS c FROM t",
    "SELECT COVAR_POP(CLAMP(x, -5, 5), CLAMP(x + n, 0, 9)) AS c, COUNT(*) AS k FROM t",
    "SELECT MEDIAN(CLAMP(x, -10, 10)) AS q FROM t",
    "SELECT QUANTILE(CLAMP(n, 0, 20), 0.9) AS q, MIN(CLAMP(x, -3, 3)) AS a FROM t",
    "SELECT MAX(CLAMP(x, -10, 10)) AS q FROM t",
    "SELECT HISTOGRAM(x, -10, 10, 4) AS h FROM t",
    "SELECT place, COUNT(*) AS n FROM t WHERE place IN ('harbour', 'park', '') GROUP BY place",
    "SELECT place, COUNT(*) AS n FROM t GROUP BY place",
    "SELECT place, flag, AVG(CLAMP(x, -1, 3)) AS m FROM t GROUP BY place, flag",
    "SELECT x, COUNT(*) AS n FROM t GROUP BY x",
    "SELECT place, COUNT(DISTINCT person) AS n FROM t GROUP BY place",
    "SELECT place, COUNT(DISTINCT n) AS n FROM t GROUP BY place",
    "SELECT place, MEDIAN(CLAMP(n, 0, 9)) AS q, COUNT(*) AS k FROM t"
    " WHERE place IN ('harbour', 'park') GROUP BY place",
    "SELECT flag, MAX(CLAMP(x, 0, 10)) AS q FROM t WHERE flag IN (TRUE, FALSE) GROUP BY flag",
    "SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM t GROUP BY m",
    "SELECT CASE WHEN x > 0 THEN 'up' WHEN x <= 0 THEN 'down' END AS k, COUNT(*) AS n FROM t"
    " GROUP BY k",
    "SELECT COUNT(*) AS n FROM t JOIN public USING (place)",
    "SELECT land, COUNT(*) AS n FROM t JOIN public ON t.place = public.place GROUP BY land",
    "SELECT SUM(CLAMP(x * factor, -10, 10)) AS s FROM t CROSS JOIN public",
    "SELECT COUNT(*) AS n, COUNT(factor) AS f FROM t LEFT JOIN public USING (place)",
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.person = b.person AND a.n < b.n",
    "SELECT COUNT(*) AS n FROM t JOIN other USING (person) WHERE age > 30",
    "SELECT AVG(CLAMP(age, 0, 99)) AS a FROM other LEFT JOIN t USING (person)",
    "WITH each AS (SELECT person, COUNT(*) AS k, SUM(x) AS s FROM t GROUP BY person)"
    " SELECT AVG(CLAMP(s, -50, 50)) AS m, COUNT(*) AS n FROM each WHERE k > 1",
    "WITH each AS (SELECT person, place, AVG(CLAMP(x, -9, 9)) AS a FROM t GROUP BY person, place)"
    " SELECT place, SUM(CLAMP(a, -9, 9)) AS s FROM each GROUP BY place",
    "SELECT k, COUNT(*) AS n FROM (SELECT person, COUNT(DISTINCT place) AS k FROM t"
    " GROUP BY person) AS u GROUP BY k",
    "SELECT MEDIAN(CLAMP(k, 0, 50)) AS q FROM (SELECT person, MAX(n) AS k FROM t GROUP BY person)"
    " AS u",
    "SELECT SUM(x) AS s FROM t",
    "SELECT MEDIAN(n) AS q FROM t",
    "SELECT COUNT(*) AS n, COUNT(a.x) AS m FROM t AS a FULL JOIN t AS b"
    " ON a.person = b.person AND a.n < b.n",
    "SELECT place, SUM(CLAMP(x, -9, 9)) AS s FROM other FULL JOIN t USING (person) GROUP BY place",
    "SELECT COUNT(*) AS n, COUNT(age) AS m FROM other RIGHT JOIN (t JOIN public USING (place))"
    " ON other.person = t.person AND age > 30",
    "SELECT COUNT(DISTINCT place, n, x) AS n FROM t",
    "SELECT SUM(DISTINCT CLAMP(x, -10, 10)) AS s FROM t",
    "SELECT AVG(DISTINCT CLAMP(n, 0, 9)) AS s FROM t",
    "SELECT place, SUM(DISTINCT CLAMP(n, -3, 9)) AS n FROM t GROUP BY place",
    "SELECT COUNT(*) AS n, SUM(CLAMP(x, 0, 10)) AS s FROM (SELECT person, x FROM t UNION ALL"
    " SELECT person, age FROM other UNION ALL SELECT person, n FROM t WHERE n > 0) AS u",
    "SELECT place, COUNT(*) AS n FROM (SELECT person, place FROM t UNION SELECT person, 'home'"
    " FROM other) AS u GROUP BY place",
    "SELECT COUNT(*) AS n, SUM(CLAMP(cost, 0, 9)) AS s FROM buys",
    "SELECT COUNT(*) AS n, AVG(CLAMP(cost, 0, 9)) AS a FROM t JOIN cards ON t.person = cards.who"
    " LEFT JOIN buys ON cards.nr = buys.card",
    "SELECT COUNT(*) AS n FROM (SELECT card, SUM(cost) AS s FROM buys GROUP BY card) AS u"
    " WHERE s > 3",
)
RECORD_QUESTIONS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT SUM(CLAMP(x, -10, 10)) AS s, COUNT(x) AS k FROM t",
    "SELECT place, AVG(CLAMP(x, -1, 3)) AS m FROM t GROUP BY place",
    "SELECT COUNT(DISTINCT x) AS k FROM t",
    "SELECT SUM(DISTINCT CLAMP(x, -1, 3)) AS k FROM t",
    "SELECT MEDIAN(CLAMP(x, -10, 10)) AS q FROM t",
    "SELECT SUM(x) AS s FROM t",
)


# The harness


@dataclass
class Spy:
    """An engine that remembers what it was asked."""

    inner: DuckDBConnection
    events: list = field(default_factory=list)

    def aggregate(self, statement, /):
        found = self.inner.aggregate(statement)
        self.events.append(("statement", statement, found.reveal_without_noise()))
        return found

    def sql(self, statement, /):
        return self.inner.sql(statement)


@pytest.fixture(scope="module")
def spied():
    """Note noise, draws and choices among the statements of whatever spy is current."""
    current: list[Spy] = []
    with pytest.MonkeyPatch.context() as patch:

        def noted(owner, name, entry):
            real = getattr(owner, name)

            def wrapped(*given, **named):
                current[-1].events.append((entry, given, named))
                return real(*given, **named)

            patch.setattr(owner, name, wrapped)

        noted(Noise, "add", "noise")
        noted(ranks.Ranks, "interval", "rank")
        noted(ranks.Ranks, "extreme", "extreme")
        yield current


def catalog_for(*, neighbours="add_remove", unit=None, rows=None, groups=None, bounds=None):
    empty = {"t": SCHEMA.empty_table(), "other": other([]), **bought([])}
    columns = open_sources({**empty, "public": PUBLIC})

    def table(name):
        return Table(
            name=name,
            columns=tuple(
                Column(name=c, type=t, bounds=bounds if c == "x" else None)
                for c, t in columns[name].columns
            ),
            is_public=name == "public",
            unit=OWNERS.get(name),
        )

    return Catalog(
        unit=unit or Unit.column("person"),
        neighbours=Neighbours(neighbours),
        tables=tuple(map(table, ("t", "other", "cards", "buys", "public"))),
        rows=rows,
        groups=groups,
    )


def other(people):
    return pa.table(
        {
            "person": pa.array(people, type=pa.int64()),
            "age": pa.array([20 + 7 * i % 60 for i in people], type=pa.int64()),
        }
    )


def bought(people):
    """Return cards of people, under another name, and what was bought with them or with others."""
    cards = [(10 * p + i, p) for p in people for i in range(p % 3)]
    buys = [(nr, float(nr % 7)) for nr, who in cards for _ in range(5 if who == 4 else 1)]
    buys += [(None, 1.0), (-1, 2.0), (-1, None)]
    return {
        "cards": pa.table({"nr": pa.array([n for n, _ in cards], type=pa.int64()),
                           "who": pa.array([p for _, p in cards], type=pa.int64())}),
        "buys": pa.table({"card": pa.array([n for n, _ in buys], type=pa.int64()),
                          "cost": pa.array([c for _, c in buys], type=pa.float64())}),
    }  # fmt: skip


def engine_for(rows):
    t = pa.Table.from_pylist(rows, schema=SCHEMA) if isinstance(rows, list) else rows
    people = sorted({p for p in t["person"].to_pylist() if p is not None})
    tables = {"t": t, "other": other(people), **bought(people), "public": PUBLIC}
    return DuckDBConnection(tables, threads=2)


def prepared_for(question, catalog, *, bounding=None, epsilon=1, delta=Fraction(1, 10**6)):
    query = parse(question, catalog)
    layout = lay_out(query, bounding=bounding)
    found = price(query, layout, catalog, epsilon=Fraction(epsilon), delta=delta, bounding=bounding)
    return Prepared(question=question, query=query, layout=layout, price=found, bounding=bounding)


def check(question, catalog, one, two, spied, *, bounding=None):
    """Run a question on one table, and compare all that it looked at with a neighbour."""
    prepared = prepared_for(question, catalog, bounding=bounding)
    spy = Spy(one)
    spied.append(spy)
    released = run(prepared, connection=spy, catalog=catalog, confidence=CONFIDENCE, source=SYSTEM)
    spied.pop()
    steps = list(_by_statement(spy.events))
    assert steps, "the question looked at nothing"
    # The first sums of a question with secret keys decide which of them are shown.
    selecting = next((s for s, _, _ in steps if isinstance(s, Sums)), None)
    for statement, before, followers in steps:
        after = two.aggregate(statement).reveal_without_noise()
        if isinstance(statement, Profile):
            _check_profile(before, after, followers)
        elif getattr(statement, "grid", None) is not None:
            _check_ranks(prepared, statement, before, after, followers, catalog)
        else:
            is_first = statement is selecting
            _check_noise(prepared, statement, before, after, followers, released, is_first)


def _by_statement(events):
    starts = [i for i, event in enumerate(events) if event[0] == "statement"]
    for start, end in itertools.pairwise([*starts, len(events)]):
        yield *events[start][1:], events[start + 1 : end]


def _cells(table, keys):
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {tuple(map(_hashable, row[:keys])): [c or 0 for c in row[keys:]] for row in rows}


def _hashable(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _check_noise(prepared, statement, before, after, followers, released, is_first):
    keys = len(prepared.query.keys)
    one, two = _cells(before, keys), _cells(after, keys)
    width = 1 if isinstance(statement, Distinct) else sum(c.count for c in statement.cells)
    nothing = [0] * width
    moves = {
        g: [a - b for a, b in zip(one.get(g, nothing), two.get(g, nothing), strict=True)]
        for g in {*one, *two}
    }
    # Where groups are selected by their first cells, others are released of shown groups alone,
    # and that one is shown which only one of the tables has is what the delta of keys is for.
    is_selecting = released.threshold is not None and is_first
    shared = [move for g, move in moves.items() if not is_selecting or (g in one and g in two)]
    if isinstance(statement, Distinct):
        sizes, scale = [1], WEIGHT_STEPS if statement.bounds is None else 1
    else:
        sizes, scale = [c.count for c in statement.cells], 1
    noises = [event for event in followers if event[0] == "noise"]
    assert len(noises) == len(sizes), "every family of cells has noise of its own"
    start = 0
    for size, (_, positional, named) in zip(sizes, noises, strict=True):
        noise, reach = positional[0], Fraction(named["sensitivity"]) * WEIGHT_STEPS
        compared = shared if start else moves.values()
        flat = [abs(v) * scale for move in compared for v in move[start : start + size]]
        if noise.order == 1:
            assert sum(flat) <= reach
        else:
            assert sum(v * v for v in flat) <= reach**2
        start += size
    if is_selecting:
        _check_keys(prepared, one, two, noises[0], released)


def _check_keys(prepared, one, two, first, released):
    """Add up the chances that a key that only one of the tables has is shown."""
    noise, reach = first[1][0], first[2]["sensitivity"]
    for mine, others in ((one, two), (two, one)):
        alone = [cells[0] / WEIGHT_STEPS for g, cells in mine.items() if g not in others]
        hidden = 1.0
        for count in alone:
            hidden *= 1 - _tail(noise, float(released.threshold) - count, float(reach))
        assert 1 - hidden <= float(prepared.price.key_delta) * (1 + 1e-9)


def _tail(noise, distance, reach):
    """Return the chance that noise, rounded to a step, is at least this distance."""
    scale = float(noise.multiplier) * reach
    z = (distance - 0.5 / WEIGHT_STEPS) / scale
    if noise.kind == "laplace":
        return math.exp(-z) / 2 if z > 0 else 1 - math.exp(z) / 2
    return math.erfc(z / math.sqrt(2)) / 2


def _check_profile(before, after, followers):
    (event,) = [event for event in followers if event[0] == "noise"]
    _, (noise, values), named = event
    one, two = (np.zeros(len(values), dtype=int) for _ in range(2))
    for bins, table in ((one, before), (two, after)):
        bins[table["bin"].to_numpy()] = table["units"].to_numpy()
    assert (one * WEIGHT_STEPS == values).all()
    moved = np.linalg.norm(one - two, ord=noise.order)
    assert moved <= float(named["sensitivity"]) * (1 + 1e-12)


def _check_ranks(prepared, statement, before, after, followers, catalog):
    """Compare the scores of all places, as the exponential mechanism sees them."""
    draws = [event for event in followers if event[0] in ("rank", "extreme")]
    if not draws:
        return  # no group to draw in
    drawer = draws[0][1][0]
    assert drawer.neighbours is catalog.neighbours
    assert drawer.group_size == catalog.unit.size
    keys = len(prepared.query.keys)
    sides = [_placed(table, keys) for table in (before, after)]
    wanted = {
        (event, str(named.get("q")), named.get("kind")): (event, named.get("q"), named.get("kind"))
        for event, _, named in draws
    }
    for event, q, kind in wanted.values():
        moved = Fraction(0)
        for group in {*sides[0], *sides[1]}:
            one, two = (side.get(group, {}) for side in sides)
            tried = {0, drawer.points - 1, *one, *two}
            tried |= {p + d for p in list(tried) for d in (-1, 1)}
            tried = [p for p in tried if 0 <= p < drawer.points]
            aside = 0 if event == "rank" else drawer.extreme_rank(confidence=CONFIDENCE)
            scores = [_scores(side, tried, q, kind, aside) for side in (one, two)]
            moved += max(abs(a - b) for a, b in zip(*scores, strict=True))
        assert moved <= drawer.sensitivity(q if event == "rank" else None) * WEIGHT_STEPS


def _placed(table, keys):
    found = defaultdict(dict)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[tuple(map(_hashable, row[:keys]))][row[keys]] = row[keys + 1] or 0
    return found


def _scores(weights, places, q, kind, aside):
    total = sum(weights.values())
    if kind is None:
        rank = Fraction(q) * total
    else:
        shift = math.floor(Fraction(aside) * WEIGHT_STEPS + Fraction(1, 2))
        rank = Fraction(shift) if kind == "minimum" else Fraction(total - shift)
    scores = []
    for place in places:
        below = sum(w for p, w in weights.items() if p < place)
        upto = sum(w for p, w in weights.items() if p <= place)
        scores.append(-max(Fraction(0), below - rank, rank - upto))
    return scores


# Tables


def row(person, i):
    return {
        "person": person,
        "place": PLACES[(person + i) % 6],
        "x": NUMBERS[(person * 5 + i) % 12],
        "n": WHOLE[(person * 3 + i) % 8],
        "day": date(2025, 1 + (person + i) % 12, 1),
        "flag": (None, True, False)[(person * 2 + i) % 3],
    }


def adversarial():
    """Return rows by unit: one has many of everything, others have little or nothing usable."""
    return {
        0: [row(0, i) for i in range(300)],
        1: [row(1, 0)],
        2: [{**row(2, i), "x": math.nan} for i in range(5)],
        3: [{**row(3, i), "x": None, "n": None, "place": None} for i in range(4)],
        4: [{**row(4, 0), "place": f"own {i}"} for i in range(40)],
        5: [{**row(5, 0), "x": math.inf} for _ in range(30)],
        6: [{**row(6, i), "x": 1e308, "n": 2**62} for i in range(7)],
        7: [row(7, i) for i in range(12)],
    }


def joined(units, *, without=(), instead=()):
    """Return all rows, some units' left out, and those of ``without`` replaced."""
    kept = [r for u, rows in units.items() if u not in without for r in rows]
    new = [{**r, "person": u} for u in without for r in instead]
    return kept + new


@pytest.fixture(scope="module")
def engines():
    """Open the adversarial table once, with each unit removed, and with each replaced."""
    units = adversarial()
    found = {"all": engine_for(joined(units))}
    for u in (0, 3, 4, 6):
        found[f"without {u}"] = engine_for(joined(units, without=(u,)))
        found[f"replaced {u}"] = engine_for(joined(units, without=(u,), instead=units[(u + 4) % 8]))
    found["without 3 units"] = engine_for(joined(units, without=(0, 4, 5)))
    yield found
    for engine in found.values():
        engine.close()


# Every question


SETTINGS = (
    (catalog_for(bounds=(Fraction(-100), Fraction(100)), rows=3, groups=2), "without 0"),
    (catalog_for(rows=3, groups=2), "without 4"),
    (catalog_for(neighbours="replace_one", rows=4, groups=3), "replaced 0"),
    (catalog_for(), "without 0"),
    (catalog_for(unit=Unit.column("person").group(3), rows=2, groups=2), "without 3 units"),
)
MORE_SETTINGS = (
    (catalog_for(rows=3, groups=2), "without 3"),
    (catalog_for(rows=1), "without 6"),
    (catalog_for(neighbours="zero_out", rows=5), "without 0"),
    (catalog_for(neighbours="replace_one"), "replaced 4"),
    (catalog_for(neighbours="replace_one", rows=1), "replaced 6"),
    (catalog_for(unit=Unit.column("person").group(3)), "without 3 units"),
)
BOUNDINGS = (
    Norm(limit=Fraction(5, 2), order=1),
    Norm(limit=Fraction(5, 2), order=2),
    Groups(groups=2, rows=3),
    Groups(groups=1, rows=1),
)


@pytest.mark.lengthy
@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_one_unit_more_less_or_other(place, engines, spied):
    """Every question in two of the settings; the slow test below has all of them."""
    for catalog, neighbour in (SETTINGS[place % 5], SETTINGS[(place + 2) % 5]):
        check(QUESTIONS[place], catalog, engines["all"], engines[neighbour], spied)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_one_unit_more_less_or_other_in_all_settings(question, engines, spied):
    for catalog, neighbour in (*SETTINGS, *MORE_SETTINGS):
        check(question, catalog, engines["all"], engines[neighbour], spied)
        if "replaced" not in neighbour:
            check(question, catalog, engines[neighbour], engines["all"], spied)


@pytest.mark.lengthy
@pytest.mark.parametrize("bounding", BOUNDINGS, ids=str)
def test_bounding_that_is_asked_for(bounding, engines, spied):
    catalog = catalog_for(rows=6, groups=2)
    for question in QUESTIONS[::6]:
        check(question, catalog, engines["all"], engines["without 0"], spied, bounding=bounding)


@pytest.mark.slow
@pytest.mark.parametrize("bounding", BOUNDINGS, ids=str)
def test_bounding_that_is_asked_for_in_all_questions(bounding, engines, spied):
    for neighbours, other_one in (("add_remove", "without 0"), ("replace_one", "replaced 0")):
        catalog = catalog_for(neighbours=neighbours, rows=6, groups=2)
        for question in QUESTIONS:
            check(question, catalog, engines["all"], engines[other_one], spied, bounding=bounding)


@pytest.mark.lengthy
@pytest.mark.parametrize("question", RECORD_QUESTIONS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_records_as_units(question, neighbours, spied):
    rows = joined(adversarial())
    catalog = catalog_for(unit=Unit.record(), neighbours=neighbours)
    instead = [{**rows[40], "x": 9.0, "place": "nowhere else"}]
    other_one = [*rows[1:], *(instead if neighbours == "replace_one" else [])]
    with engine_for(rows) as one, engine_for(other_one) as two:
        check(question, catalog, one, two, spied)


def test_a_record_joined_with_a_public_table_is_refused():
    """A public table can make a thousand rows of one record, and nothing would bound them."""
    with pytest.raises(Refused):
        prepared_for(
            "SELECT COUNT(*) AS n FROM t JOIN public USING (place)",
            catalog_for(unit=Unit.record()),
        )


@pytest.mark.lengthy
def test_a_unit_with_a_hundred_thousand_rows(spied):
    n = np.arange(100_000)
    heavy = pa.table(
        {
            "person": np.zeros(len(n), dtype=np.int64),
            "place": pa.array([f"place {i % 1000}" for i in n]),
            "x": pa.array(np.where(n % 7 == 0, np.nan, n * 1e3)),
            "n": pa.array(n),
            "day": pa.array([date(2025, 1, 1)] * len(n), type=pa.date32()),
            "flag": pa.array(n % 2 == 0),
        },
        schema=SCHEMA,
    )
    few = pa.Table.from_pylist([row(1, i) for i in range(9)], schema=SCHEMA)
    with engine_for(pa.concat_tables([heavy, few])) as one, engine_for(few) as two:
        for question in (QUESTIONS[i] for i in (4, 9, 20, 24, 36)):
            check(question, catalog_for(rows=5, groups=5), one, two, spied)
        for question in (QUESTIONS[i] for i in (0, 6)):
            check(question, catalog_for(), one, two, spied)


@pytest.mark.lengthy
def test_empty_tables(spied):
    rows, catalog = [row(0, i) for i in range(7)], catalog_for(rows=2, groups=2)
    with engine_for(rows) as one, engine_for([]) as two:
        for question in QUESTIONS[::2]:
            check(question, catalog, two, one, spied)


@pytest.mark.lengthy
def test_columns_of_nulls(spied):
    empty = {"place": None, "x": None, "n": None, "day": None, "flag": None}
    rows, catalog = [{**empty, "person": i // 3} for i in range(12)], catalog_for(rows=2)
    with engine_for(rows) as one, engine_for(rows[3:]) as two:
        for question in QUESTIONS[1::2]:
            check(question, catalog, one, two, spied)


# NaN by different writers


def write_parquet(table, path, writer):
    if writer == "pyarrow":
        pq.write_table(table, path, row_group_size=16)
    elif writer == "pandas":
        table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path, row_group_size=16)
    else:
        with duckdb.connect() as connection:
            connection.register("given", table)
            connection.execute(f"COPY given TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


@pytest.mark.lengthy
@pytest.mark.parametrize("writer", ["pyarrow", "pandas", "duckdb"])
def test_nan_hidden_in_parquet_statistics(writer, tmp_path, spied):
    """Statistics leave NaN out; rows with it must not get through a filter or a clamp."""
    rows = [{**row(i % 20, i), "x": math.nan if i % 3 else 1.0 + i % 2} for i in range(64)]
    opened = []
    for name, kept in (("one", rows), ("two", [r for r in rows if r["person"] != 1])):
        path = tmp_path / f"{name}.parquet"
        write_parquet(pa.Table.from_pylist(kept, schema=SCHEMA), path, writer)
        people = sorted({r["person"] for r in kept})
        opened.append(
            DuckDBConnection({"t": str(path), "other": other(people), "public": PUBLIC}, threads=2)
        )
    catalog = catalog_for(rows=2, groups=2)
    for question in (
        *(QUESTIONS[i] for i in (1, 4, 6, 9, 11, 15, 17, 22)),
        "SELECT COUNT(*) AS n FROM t WHERE x <= 2",
        "SELECT COUNT(*) AS n FROM t WHERE NOT (x > 100)",
        "SELECT SUM(CLAMP(x, 0, 2)) AS s FROM t WHERE x BETWEEN 0 AND 2",
    ):
        check(question, catalog, *opened, spied)
    for question in ("SELECT COUNT(*) AS n FROM t WHERE x > 100", "SELECT COUNT(*) AS n FROM t"
                     " WHERE NOT (x <= 100)"):  # fmt: skip
        prepared = prepared_for(question, catalog)
        spy = Spy(opened[0])
        spied.append(spy)
        run(prepared, connection=spy, catalog=catalog, confidence=CONFIDENCE, source=SYSTEM)
        table = spy.events[0][2]
        assert sum(v or 0 for v in table["cell_0"].to_pylist()) == 0, "NaN is no number above 100"
    for engine in opened:
        engine.close()


# Random tables


random_rows = st.fixed_dictionaries(
    {
        "person": st.one_of(st.none(), st.integers(0, 4)),
        "place": st.sampled_from(PLACES),
        "x": st.one_of(st.sampled_from(NUMBERS), st.floats()),
        "n": st.one_of(st.sampled_from(WHOLE), st.integers(-(2**63), 2**63 - 1)),
        "day": st.one_of(st.none(), st.dates(date(1900, 1, 1), date(2100, 1, 1))),
        "flag": st.sampled_from([None, True, False]),
    }
)


anything = given(
    rows=st.lists(random_rows, max_size=40),
    repeat=st.integers(1, 30),
    question=st.sampled_from(QUESTIONS),
    neighbours=st.sampled_from(["add_remove", "replace_one"]),
    limit=st.one_of(st.none(), st.integers(1, 5)),
    bounding=st.sampled_from([None, None, Norm(limit=2, order=2), Groups(groups=2, rows=2)]),
    instead=st.lists(random_rows, max_size=10),
)


@pytest.mark.lengthy
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@anything
def test_random_tables(spied, **drawn):
    check_random(spied, **drawn)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@anything
def test_many_random_tables(spied, **drawn):
    check_random(spied, **drawn)


def check_random(spied, *, rows, repeat, question, neighbours, limit, bounding, instead):
    table = [r for r in rows for _ in range(repeat if r["person"] == 0 else 1)]
    changed = [r for r in table if r["person"] != 0]
    if neighbours == "replace_one":
        changed += [{**r, "person": 0} for r in instead]
    catalog = catalog_for(neighbours=neighbours, rows=limit, groups=limit)
    with engine_for(table) as one, engine_for(changed) as two:
        check(question, catalog, one, two, spied, bounding=bounding)


@pytest.mark.lengthy
def test_the_check_can_fail(engines, spied, monkeypatch):
    """Noise for half the sensitivity, or weights that are not applied, would be noticed."""
    from discreet.tables.release.execution import context
    from discreet.tables.release.execution.limits import Limits

    catalog, question = catalog_for(rows=3, groups=2), QUESTIONS[0]
    real = context.sensitivity
    with monkeypatch.context() as patch:
        patch.setattr(context, "sensitivity", lambda *a, **k: real(*a, **k) / 2)
        with pytest.raises(AssertionError):
            check(question, catalog, engines["all"], engines["without 0"], spied)
    with monkeypatch.context() as patch:
        patch.setattr(Limits, "of_sums", lambda self: Norm(limit=1000, order=1))
        patch.setattr(context, "sensitivity", lambda *a, **k: Fraction(3))
        with pytest.raises(AssertionError):
            check(question, catalog, engines["all"], engines["without 0"], spied)
