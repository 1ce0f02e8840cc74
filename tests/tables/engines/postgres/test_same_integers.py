"""With a given salt the bounded aggregates are those of DuckDB, to the last integer."""

import importlib.util
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import Groups, Norm
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Distinct, Profile, Sums

pytestmark = pytest.mark.needs("postgres")

FILE = Path(__file__).parents[1] / "test_statement_sensitivity.py"
SPEC = importlib.util.spec_from_file_location("statement_sensitivity", FILE)
made = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(made)

NUL = str.maketrans("", "", "\x00")  # which no text of PostgreSQL has
salts = st.text(alphabet="ab'|$%\\é", max_size=6)


def clean(table):
    texts = pa.array([t and t.translate(NUL) for t in table["key_0"].to_pylist()], pa.string())
    return table.set_column(1, "key_0", texts)


def statements(data, salt):
    bounding = data.draw(st.sampled_from(sorted(made.BOUNDINGS)))
    forms = [*made.FORMS, "plain", "plain"]
    for form in forms:
        cells = data.draw(st.sampled_from(sorted(made.FAMILIES)))
        yield replace(made.sums(cells, bounding, form), salt=salt)
    most = data.draw(st.integers(1, 3))
    yield Distinct(query=made.QUERY, value=0, most=most, salt=salt)
    yield Distinct(query=made.QUERY, value=1, most=most, salt=salt, bounds=made.BOUNDS[0])
    edges = (Fraction(-3), Fraction(0), Fraction(1), Fraction(3, 2), Fraction(6))
    for of in ("rows", "norm", "pairs", "largest", "smallest", "total"):
        value = 0 if of in ("pairs", "largest", "smallest", "total") else None
        bounds = made.BOUNDS[0] if of == "total" else None
        for order in (1, 2) if of == "total" else (1,):
            yield Profile(
                query=made.QUERY, of=of, edges=edges, value=value, bounds=bounds, order=order
            )


def both(loaded, table):
    return (
        DuckDBConnection({"t": table}, threads=1, portable=True),
        loaded.connect({"t": table}),
    )


def compare(engines, asked):
    one, other = (made.as_cells(e.aggregate(asked).reveal_without_noise()) for e in engines)
    # Groups that nobody counts in may be there or not, unless they decide what is shown.
    if getattr(asked, "least", None) is None:
        one, other = ({at: n for at, n in each.items() if n} for each in (one, other))
    assert one == other, asked


@pytest.mark.lengthy
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    database=None,
)
@given(data=st.data(), rest=made.others, own=made.own, salt=salts)
def test_generated_statements_over_generated_tables(data, rest, own, salt, loaded):
    engines = both(loaded, clean(made.table(rest, own)))
    try:
        for asked in statements(data, salt):
            compare(engines, asked)
    finally:
        for engine in engines:
            engine.close()


@pytest.mark.lengthy
@pytest.mark.parametrize("salt", ["one", "another"])
def test_which_groups_and_values_count_is_the_same(salt, loaded):
    """Most of 40 pairs of each unit are dropped: by another rank, others would be."""
    keys = [None, *"abcdefghi"]
    rows = [
        {"unit": unit, "key_0": key, "key_1": number, "value_0": unit + 0.1, "value_1": 1e-300}
        for unit in range(1, 30)
        for key in keys
        for number in (None, -0.0, 1.5, 2.0**70)
    ]
    engines = both(loaded, pa.Table.from_pylist(rows, schema=made.SCHEMA))
    for bounding in (Groups(groups=3, rows=2), Groups(groups=1, rows=1)):
        found = Sums(query=made.QUERY, cells=(made.FAMILIES["rows"],), bounding=bounding, salt=salt)
        compare(engines, found)
    for most in (1, 5):
        compare(engines, Distinct(query=made.QUERY, value=0, most=most, salt=salt))
    for engine in engines:
        engine.close()


def test_the_comparison_can_fail(loaded):
    """Another salt chooses other groups."""
    rows = [{"unit": 1, "key_0": key, "key_1": 0.0, "value_0": 1.0, "value_1": 1.0}
            for key in "abcdefghij"]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=made.SCHEMA)
    engines = both(loaded, table)
    asked = Sums(query=made.QUERY, cells=(made.FAMILIES["rows"],), salt="a",
                 bounding=Groups(groups=1, rows=1))  # fmt: skip
    found = [
        made.as_cells(engine.aggregate(replace(asked, salt=salt)).reveal_without_noise())
        for engine, salt in zip(engines, "ab", strict=True)
    ]
    assert found[0] != found[1]
    for engine in engines:
        engine.close()


def test_norms_and_selects_are_those_of_the_plan():
    """The names that this module takes from another are what it thinks they are."""
    assert isinstance(made.BOUNDINGS["first norm"], Norm)
    assert isinstance(made.QUERY.rows, Select)
