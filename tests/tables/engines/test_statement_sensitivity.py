"""Adding, removing or replacing all rows of a unit moves the integers by at most the sensitivity.

This is what every guarantee of the room rests on, so the machine is asked to break it: on random
and on nasty tables, for every kind of cells and bounding, from frames and from Parquet files whose
statistics differ.
"""

import math
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.privacy import Neighbours
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import WEIGHT_STEPS, Groups, Norm, squared_sensitivity
from discreet.tables.model.query import Key, Query, Value
from discreet.tables.model.relation import Scan, Select
from discreet.tables.model.scalar import Call, ColumnRef, Literal
from discreet.tables.model.statements import Cells, Distinct, Profile, Sums, ValueGrid

# NaN is turned into NULL by the rows of a query; hidden in a file, it must not come back.
VALUES = tuple((name, Call("not_nan", (ColumnRef(name),))) for name in ("value_0", "value_1"))
QUERY = Query(
    rows=Select(
        Scan("t"), (*((name, ColumnRef(name)) for name in ("unit", "key_0", "key_1")), *VALUES)
    ),
    keys=(
        Key(name="key_0", type="text", values=None),
        Key(name="key_1", type="double", values=None),
    ),
    values=(Value(text="value_0", bounds=None), Value(text="value_1", bounds=None)),
    tables=("t",),
)
SCHEMA = pa.schema(
    {
        "unit": pa.int64(),
        "key_0": pa.string(),
        "key_1": pa.float64(),
        "value_0": pa.float64(),
        "value_1": pa.float64(),
    }
)
ENDS = st.sampled_from(
    [(Fraction(low), Fraction(high)) for low, high in ((-3, 7), (0, 5), (-9, -1), (0, 0))]
)
BOUNDS = ((Fraction(-3), Fraction(7)), (Fraction(1, 3), Fraction(1, 3) + Fraction(10)))
FAMILIES = {
    "rows": Cells(kind="rows"),
    "present": Cells(kind="present", values=(0,), with_absent=True),
    "sum": Cells(kind="sum", values=(0,), bounds=BOUNDS[:1]),
    "units": Cells(kind="units", own=Norm(limit=1, order=1)),
    "total": Cells(kind="total", values=(0,), bounds=BOUNDS[:1], own=Norm(limit=1, order=1)),
    "plain total": Cells(
        kind="total",
        values=(1,),
        bounds=((Fraction(0), Fraction(1, 10)),),
        own=Norm(limit=1, order=1),
    ),
    "linear": Cells(kind="linear", values=(0,), bounds=BOUNDS[:1]),
    "linear or absent": Cells(kind="linear", values=(1,), bounds=BOUNDS[1:], with_absent=True),
    "quadratic": Cells(kind="quadratic", values=(1,), bounds=BOUNDS[1:]),
    "quadratic or absent": Cells(
        kind="quadratic", values=(0,), bounds=BOUNDS[:1], with_absent=True
    ),
    "moments": Cells(kind="moments", values=(0, 1), bounds=BOUNDS, with_absent=True),
    "tiny": Cells(kind="quadratic", values=(0,), bounds=((Fraction(0), Fraction(5, 10**324)),)),
    "huge": Cells(kind="quadratic", values=(0,), bounds=((-Fraction(10**308), Fraction(10**308)),)),
}
BOUNDINGS = {
    "first norm": Norm(limit=Fraction(5, 2), order=1),
    "second norm": Norm(limit=Fraction(5, 2), order=2),
    "tiny norm": Norm(limit=Fraction(1, 1000), order=2),
    "odd norm": Norm(limit=0.1 + 0.2, order=2),
    "groups": Groups(groups=2, rows=3),
    "one group": Groups(groups=1, rows=1),
}
GRID = ValueGrid(value=0, low=Fraction(-3), high=Fraction(7), points=5)
FORMS = {
    "plain": {},
    "least": {"least": Fraction(1, 3)},
    "place": {"grid": GRID},
    "listed": {"groups": (("a", None), (None, 0.0), ("b", 1.5), ("", math.inf))},
}

numbers = st.one_of(
    st.sampled_from(
        [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.0, -3.0, 7.0, 1 / 3]
    ),
    st.floats(-4, 11),
)
row = st.fixed_dictionaries(
    {
        "key_0": st.sampled_from([None, "", "a", "b", "a\x00", "ä"]),
        "key_1": st.sampled_from([None, 0.0, -0.0, 1.5, math.inf, math.nan]),
        "value_0": numbers,
        "value_1": numbers,
    }
)
own = st.lists(row, max_size=12).flatmap(
    # Repeated rows, so that units are large and their norms are irrational.
    lambda rows: st.integers(1, 40).map(lambda times: rows * times if len(rows) < 5 else rows)
)
others = st.lists(st.tuples(st.integers(2, 4), row), max_size=12)


def table(rest, rows, unit=1):
    listed = [{"unit": owner, **one} for owner, one in rest] + [{"unit": unit, **r} for r in rows]
    return pa.Table.from_pylist(listed, schema=SCHEMA)


def answer(source, statement):
    with DuckDBConnection({"t": source}, threads=2) as engine:
        return as_cells(engine.aggregate(statement).reveal_without_noise())


def answers(worlds, *statements):
    """Return, for each statement, the answers over several tables; one engine holds them all."""
    marked = [
        t.append_column("world", pa.array([i] * len(t), pa.int64())) for i, t in enumerate(worlds)
    ]
    with DuckDBConnection({"t": pa.concat_tables(marked)}, threads=2) as engine:
        for statement in statements:
            found = []
            for world in range(len(worlds)):
                where = (Call("equal", (ColumnRef("world"), Literal(world, "int64"))),)
                rows = replace(statement.query.rows, where=where)
                asked = replace(statement, query=replace(statement.query, rows=rows))
                found.append(as_cells(engine.aggregate(asked).reveal_without_noise()))
            yield found


def as_cells(found):
    """Return all numbers by group and column."""
    names = [name for name in found.column_names if name.startswith(("key_", "place", "bin"))]
    cells = {}
    for line in found.to_pylist():
        group = tuple(line[name] for name in names)
        for name, number in line.items():
            if name not in names:
                assert (group, name) not in cells, "a group appears twice"
                cells[group, name] = number
    return cells


def moved(one, two):
    """Return the sum of sizes and the sum of squares of the difference."""
    gaps = [one.get(at, 0) - two.get(at, 0) for at in one.keys() | two.keys()]
    return sum(map(abs, gaps)), sum(gap * gap for gap in gaps)


def assert_bounded(one, two, statement, neighbours):
    """Compare with the sensitivity of both norms, exactly."""
    first, second = moved(one, two)
    bounding = statement.bounding or statement.cells[0].own
    is_signed = any(cells.is_signed for cells in statement.cells)
    for order, gap in ((1, first**2), (2, second)):
        if isinstance(bounding, Norm) and order < bounding.order:
            continue
        most = squared_sensitivity(
            bounding, order=order, neighbours=neighbours, is_signed=is_signed
        )
        assert gap <= most * WEIGHT_STEPS**2


def sums(cells, bounding, form):
    settings, family, limit = dict(FORMS[form]), FAMILIES[cells], BOUNDINGS[bounding]
    if family.own is not None:
        if not isinstance(limit, Norm):
            limit = Norm(limit=limit.rows, order=1)
        family, limit = replace(family, own=limit), None
    if form == "least" and not isinstance(limit, Norm) and cells != "units":
        settings = {}
    return Sums(query=QUERY, cells=(family,), bounding=limit, salt="s", **settings)


def depth(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        database=None,
    )


few = depth(3)


def check_sums(statements, rest, before, after):
    worlds = [table(rest, []), table(rest, before), table(rest, after)]
    for statement, found in zip(statements, answers(worlds, *statements), strict=True):
        without, one, two = found
        assert_bounded(without, one, statement, Neighbours.add_remove)
        assert_bounded(without, two, statement, Neighbours.add_remove)
        assert_bounded(one, two, statement, Neighbours.replace_one)


@pytest.mark.lengthy
@pytest.mark.parametrize("bounding", BOUNDINGS)
@few
@given(data=st.data(), rest=others, before=own, after=own)
def test_one_unit_moves_sums_by_at_most_the_sensitivity(bounding, data, rest, before, after):
    cells = {form: data.draw(st.sampled_from(sorted(FAMILIES))) for form in FORMS}
    check_sums([sums(cells[form], bounding, form) for form in FORMS], rest, before, after)


@pytest.mark.lengthy
@pytest.mark.parametrize("cells", FAMILIES)
@few
@given(rest=others, before=own, after=own)
def test_one_unit_moves_cells_by_at_most_the_sensitivity(cells, rest, before, after):
    listed = [sums(cells, bounding, "plain") for bounding in ("first norm", "odd norm", "groups")]
    check_sums(listed, rest, before, after)


@pytest.mark.slow
@pytest.mark.parametrize("cells", FAMILIES)
@depth(30)
@given(data=st.data(), rest=others, before=own, after=own)
def test_no_search_finds_a_unit_that_moves_more(cells, data, rest, before, after):
    forms = st.tuples(st.sampled_from(sorted(BOUNDINGS)), st.sampled_from(sorted(FORMS)))
    drawn = data.draw(st.lists(forms, min_size=5, max_size=5))
    check_sums([sums(cells, *form) for form in drawn], rest, before, after)


def written(rows, folder, writer):
    """Write a table as one of three programs does; their statistics treat NaN differently."""
    path = Path(folder) / "t.parquet"
    if writer == "pyarrow":
        pq.write_table(rows, path, row_group_size=3)
    elif writer == "pandas":
        rows.to_pandas().to_parquet(path)
        pq.write_table(pq.read_table(path).select(SCHEMA.names).cast(SCHEMA), path)
    else:
        with duckdb.connect() as connection:
            connection.register("rows_", rows)
            connection.execute(f"COPY rows_ TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return path


@pytest.mark.lengthy
@pytest.mark.parametrize("writers", [("pyarrow", "duckdb"), ("pandas", "pyarrow"), ("duckdb",) * 2])
@few
@given(data=st.data(), rest=others, before=own)
def test_files_with_other_statistics_change_nothing(writers, data, rest, before):
    statement = sums(
        data.draw(st.sampled_from(sorted(FAMILIES))),
        data.draw(st.sampled_from(sorted(BOUNDINGS))),
        data.draw(st.sampled_from(sorted(FORMS))),
    )
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        without = answer(written(table(rest, []), one, writers[0]), statement)
        there = answer(written(table(rest, before), two, writers[1]), statement)
    assert without == answer(table(rest, []), statement)
    assert_bounded(without, there, statement, Neighbours.add_remove)


@pytest.mark.lengthy
@pytest.mark.parametrize("bounding", BOUNDINGS)
@pytest.mark.parametrize("cells", ["moments", "sum", "rows", "total", "units"])
def test_a_unit_of_many_rows_is_bounded(bounding, cells):
    many = pa.Table.from_pylist(
        [
            {"unit": 1, "key_0": k, "key_1": 1.5, "value_0": x, "value_1": 1 / 3}
            for k in ("a", "b", None)
            for x in (1e308, -math.inf, math.nan, 0.1, None)
        ],
        schema=SCHEMA,
    )
    many = pa.concat_tables([many] * 7000)  # 105,000 rows
    statement = sums(cells, bounding, "plain")
    assert_bounded({}, answer(many, statement), statement, Neighbours.add_remove)


@pytest.mark.lengthy
@few
@given(rest=others, before=own, after=own, most=st.integers(1, 3), keys=st.booleans())
def test_one_unit_moves_distinct_counts_by_at_most_its_values(rest, before, after, most, keys):
    query = QUERY if keys else without_keys()
    statement = Distinct(query=query, value=0, most=most, salt="s")
    worlds = [table(rest, []), table(rest, before), table(rest, after)]
    ((without, one, two),) = answers(worlds, statement)
    assert moved(without, one)[0] <= most
    assert moved(one, two)[0] <= 2 * most


@pytest.mark.lengthy
@few
@given(rest=others, before=own, after=own, most=st.integers(1, 3), keys=st.booleans(), ends=ENDS)
def test_one_unit_moves_distinct_sums_by_at_most_its_values(rest, before, after, most, keys, ends):
    query = QUERY if keys else without_keys()
    statement = Distinct(query=query, value=0, most=most, salt="s", bounds=ends)
    worlds = [table(rest, []), table(rest, before), table(rest, after)]
    ((without, one, two),) = answers(worlds, statement)
    assert moved(without, one)[0] <= most * WEIGHT_STEPS
    assert moved(one, two)[0] <= (2 if ends[0] < 0 < ends[1] or keys else 1) * most * WEIGHT_STEPS


def without_keys():
    rows = Select(Scan("t"), (("unit", ColumnRef("unit")), *VALUES))
    return Query(rows=rows, values=QUERY.values, tables=("t",))


@pytest.mark.lengthy
@pytest.mark.parametrize("of", ["rows", "norm", "pairs", "largest", "smallest", "total"])
@few
@given(rest=others, before=own, after=own, once=st.booleans())
def test_one_unit_is_in_one_bin(of, rest, before, after, once):
    value = 0 if of in ("pairs", "largest", "smallest", "total") else None
    edges = (Fraction(-3), Fraction(0), Fraction(1), Fraction(3, 2), Fraction(6))
    bounds, order = (BOUNDS[0] if of == "total" else None), 2 if once else 1
    statement = Profile(
        query=QUERY, of=of, edges=edges, value=value, once=once, bounds=bounds, order=order
    )
    worlds = [table(rest, []), table(rest, before), table(rest, after)]
    ((without, one, two),) = answers(worlds, statement)
    assert moved(without, one)[0] <= 1
    assert moved(one, two)[0] <= 2


def test_the_comparison_can_fail():
    """A unit of 100 rows under a limit of 50 moves further than a limit of 5/2 allows."""
    many = [{"key_0": "a", "key_1": 0.0, "value_0": 1.0, "value_1": 1.0}] * 100
    loose = replace(sums("rows", "first norm", "plain"), bounding=Norm(limit=50, order=1))
    ((without, there),) = answers([table([], []), table([], many)], loose)
    strict = sums("rows", "first norm", "plain")
    with pytest.raises(AssertionError):
        assert_bounded(without, there, strict, Neighbours.add_remove)
    assert_bounded(without, there, loose, Neighbours.add_remove)
