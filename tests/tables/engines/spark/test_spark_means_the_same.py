"""DuckDB and Spark: the same rows for every question, and the same integers for the same salt."""

import importlib.util
import math
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.tables.engines import (
    ColumnRef,
    Distinct,
    DuckDBConnection,
    Groups,
    Norm,
    Profile,
    SparkEngine,
)
from discreet.tables.engines.compile.statement import lacking
from discreet.tables.engines.spark.dialect import SPARK
from discreet.tables.sql.parse import parse
from discreet.testing.engines.made_up import (
    GRID,
    LINEAR,
    MOMENTS,
    PRESENT,
    QUADRATIC,
    ROWS,
    SUM,
    TOTAL,
    UNITS,
    arrow_table,
    made_rows,
    query,
    sums,
)

pytestmark = [pytest.mark.lengthy, pytest.mark.needs("spark")]


def _questions():
    file = Path(__file__).parents[1] / "test_two_engines.py"
    spec = importlib.util.spec_from_file_location("two_engines", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


QUESTIONS = _questions()


@pytest.fixture(scope="module")
def engines(spark, frame_of):
    engine = SparkEngine(spark, portable=True)
    sources = {name: engine.look(name, frame_of(table)) for name, table in QUESTIONS.TABLES.items()}
    with (
        engine.open(sources) as ours,
        DuckDBConnection(QUESTIONS.TABLES, threads=1, portable=True) as duckdb,
    ):
        yield ours, duckdb


def expressions():
    """Return all expressions that questions are made of, over the table ``people``."""
    found = {}
    for text in QUESTIONS.VALUES:
        found[text] = dict(
            parse(f"SELECT SUM({text}) FROM people", QUESTIONS.CATALOG).rows.columns
        )["value_0"]
    for text in QUESTIONS.KEYS:
        asked = f"SELECT {text} AS k, COUNT(*) FROM people GROUP BY k"
        found[text] = dict(parse(asked, QUESTIONS.CATALOG).rows.columns)["key_0"]
    return found


def selected(found):
    """Return one plan of all expressions that Spark has words for, and what it has none for."""
    everything = "SELECT SUM(n + x) FROM people WHERE ok AND d < t AND name = 'a'"
    people = replace(parse(everything, QUESTIONS.CATALOG).rows, where=())
    one = {text: replace(people, columns=(("c", node),)) for text, node in found.items()}
    missing = {text for text, rows in one.items() if lacking(rows, SPARK) is not None}
    kept = [text for text in found if text not in missing]
    columns = tuple((f"c{i}", found[text]) for i, text in enumerate(kept))
    return kept, missing, replace(people, columns=(*columns, ("place", ColumnRef("n", "s0"))))


def test_expressions(engines):
    kept, missing, plan = selected(expressions())
    assert all("REGEXP" in text or "~" in text for text in missing), missing
    ours, theirs = (
        engine.rows(plan).reveal_without_noise().sort_by("place").to_pydict() for engine in engines
    )
    wrong = {
        text: (ours[f"c{i}"], theirs[f"c{i}"])
        for i, text in enumerate(kept)
        if not all(map(_is_close, ours[f"c{i}"], theirs[f"c{i}"]))
    }
    # Spark takes a negative zero for a plain one there.
    assert set(wrong) <= {"ATAN2(x, n)"}, wrong


@pytest.mark.parametrize(
    "question",
    [one for one in QUESTIONS.QUESTIONS if "JOIN" in one or "UNION" in one or "(SELECT" in one],
)
def test_rows(question, engines):
    rows = parse(question, QUESTIONS.CATALOG).rows
    ours, theirs = (
        sorted((tuple(row.values()) for row in found.to_pylist()), key=_order)
        for found in (engine.rows(rows).reveal_without_noise() for engine in engines)
    )
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert all(map(_is_close, one, other)), (one, other)


def _order(row):
    return [
        (value is not None, float(value) if hasattr(value, "__float__") else 0.0, str(value))
        for value in row
    ]


def _is_close(one, other):
    if one is None or other is None or isinstance(one, str | date):
        return one == other
    return math.isclose(one, other, rel_tol=1e-14) or (math.isnan(one) and math.isnan(other))


SALTED = [
    sums(ROWS, LINEAR, bounding=Norm(limit=Fraction(7, 2), order=2)),
    sums(QUADRATIC, MOMENTS, bounding=Norm(limit=3, order=1), keys=2),
    sums(SUM, bounding=Groups(groups=2, rows=2), keys=2),
    sums(ROWS, bounding=Groups(groups=1, rows=3), grid=GRID),
    sums(UNITS, TOTAL, least=Fraction(1, 3)),
    sums(ROWS, bounding=Norm(limit=10**6, order=2), groups=(("a",), (None,), ("b",))),
    sums(PRESENT, MOMENTS, keys=2),
    Distinct(query=query(), value=0, most=2, salt="salt"),
    Distinct(query=query(), value=0, most=3, salt="salt", bounds=(Fraction(-10), Fraction(100))),
    Profile(query=query(), of="norm", edges=(Fraction(1), Fraction(5, 2))),
    Profile(
        query=query(), of="total", value=0, bounds=(Fraction(-10), Fraction(100)),
        edges=(Fraction(1, 2), Fraction(2)), order=2,
    ),
]  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_salt_gives_the_same_integers(seed, spark, frame_of):
    """Texts as units, which all engines hash alike, and rows that have everything."""
    table = arrow_table(made_rows(seed, units=15))
    units = pa.array([None if u == 3 else f"u{u}é" for u in table["unit"].to_pylist()])
    table = table.set_column(0, "unit", units)
    engine = SparkEngine(spark, portable=True)
    source = engine.look("visits", frame_of(table))
    with (
        engine.open({"visits": source}) as ours,
        DuckDBConnection({"visits": table}, portable=True) as theirs,
    ):
        for statement in SALTED:
            salted = replace(statement, salt=f"salt {seed}")
            one, other = (
                sorted(map(repr, found.reveal_without_noise().to_pylist()))
                for found in (ours.aggregate(salted), theirs.aggregate(salted))
            )
            assert one == other, statement
