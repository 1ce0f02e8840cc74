"""NaN that a file's statistics do not mention must not slip through filters and clamps."""

import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import WEIGHT_STEPS, Norm
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Cells, Profile, Sums
from discreet.tables.sql.parse import parse

ROWS = 6000
VALUES = np.where(np.arange(ROWS) % 3 == 0, np.nan, np.arange(ROWS) / ROWS)  # from 0 to 1, and NaN
NAN = int(np.isnan(VALUES).sum())
COLUMNS = tuple(
    Column(name=name, type=type_)
    for name, type_ in (("unit", "BIGINT"), ("x", "DOUBLE"), ("n", "BIGINT"))
)
CATALOG = Catalog(
    unit=Unit.column("unit"),
    neighbours=Neighbours.add_remove,
    tables=(Table(name="t", columns=COLUMNS),),
)


def by_pyarrow(path):
    table = pa.table({"unit": np.arange(ROWS), "x": VALUES, "n": np.arange(ROWS)})
    pq.write_table(table, path, row_group_size=1000)


def by_pandas(path):
    frame = pd.DataFrame({"unit": np.arange(ROWS), "x": VALUES, "n": np.arange(ROWS)})
    table = pa.Table.from_pandas(frame, preserve_index=False).to_pandas()
    # pandas writes NaN as NULL unless it is told otherwise; both must come to the same.
    table.to_parquet(path, index=False)


def by_duckdb(path):
    table = pa.table({"unit": np.arange(ROWS), "x": VALUES, "n": np.arange(ROWS)})
    with duckdb.connect() as connection:
        connection.register("rows_", table)
        connection.execute(f"COPY rows_ TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def by_duckdb_table(path):
    table = pa.table({"unit": np.arange(ROWS), "x": VALUES, "n": np.arange(ROWS)})
    with duckdb.connect(str(path)) as connection:
        connection.register("rows_", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM rows_")


WRITERS = {
    "pyarrow": (by_pyarrow, "t.parquet"),
    "pandas": (by_pandas, "t.parquet"),
    "duckdb": (by_duckdb, "t.parquet"),
    "database": (by_duckdb_table, "t.duckdb"),
}


@pytest.fixture(params=WRITERS)
def engine(request, tmp_path):
    write, name = WRITERS[request.param]
    write(tmp_path / name)
    source = f"{tmp_path / name}::t" if name.endswith("duckdb") else tmp_path / name
    with DuckDBConnection({"t": source}, threads=2) as made:
        yield made


def query(value, where="TRUE"):
    return parse(f"SELECT SUM({value}) FROM t WHERE {where}", CATALOG)


def count(engine, asked):
    statement = Sums(
        query=asked, cells=(Cells(kind="rows"),), bounding=Norm(limit=1, order=1), salt=""
    )
    return engine.aggregate(statement).reveal_without_noise()["cell_0"][0].as_py() // WEIGHT_STEPS


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("x IS NULL", NAN),
        ("x IS NOT NULL", ROWS - NAN),
        ("x > 2", 0),
        ("x >= 0.5", int(np.nansum(VALUES >= 0.5))),
        ("NOT x < 2", 0),
        ("x <= 1", ROWS - NAN),
        ("COALESCE(x, 7) > 2", NAN),
        ("x > 0.25 OR x IS NULL", int(np.nansum(VALUES > 0.25)) + NAN),
        ("n >= 5990", 10),
        ("CASE WHEN x > 2 THEN 1 ELSE 0 END = 1", 0),
    ],
)
def test_filters_on_floats_are_right(engine, where, wanted):
    assert count(engine, query("x", where)) == wanted


def test_raw_nan_is_clamped_and_never_raises(engine):
    # A query promises values without NaN; if it were wrong, NaN would still be a bounded value.
    asked = replace(query("x"), rows=Select.of("t", unit="unit", value_0="x"))
    bounds = ((Fraction(0), Fraction(1, 2)),)
    for kind in ("sum", "linear", "quadratic"):
        statement = Sums(
            query=asked,
            cells=(Cells(kind=kind, values=(0,), bounds=bounds, with_absent=True),),
            bounding=Norm(limit=1, order=1),
            salt="",
        )
        (found,) = engine.aggregate(statement).reveal_without_noise().to_pylist()
        assert all(0 <= cell <= ROWS * WEIGHT_STEPS for cell in found.values())
        assert sum(found.values()) <= ROWS * WEIGHT_STEPS


def test_absent_values_are_counted(engine):
    statement = Sums(
        query=query("x"),
        cells=(Cells(kind="present", values=(0,), with_absent=True),),
        bounding=Norm(limit=1, order=1),
        salt="",
    )
    (found,) = engine.aggregate(statement).reveal_without_noise().to_pylist()
    assert found == {"cell_0": (ROWS - NAN) * WEIGHT_STEPS, "cell_1": NAN * WEIGHT_STEPS}


def test_profiles_leave_nan_out(engine):
    statement = Profile(query=query("x"), of="largest", edges=(Fraction(2),), value=0)
    found = engine.aggregate(statement).reveal_without_noise().to_pylist()
    assert found == [{"bin": 0, "units": ROWS - NAN}]


def test_the_statistics_of_these_files_do_mislead(tmp_path):
    """Without care DuckDB believes the statistics: the tests above would notice."""
    by_pyarrow(tmp_path / "t.parquet")
    with duckdb.connect() as connection:
        rows = f"FROM read_parquet('{tmp_path / 't.parquet'}')"
        careless = connection.execute(f"SELECT COUNT(*) {rows} WHERE ISNAN(x)").fetchone()
        connection.execute("SET disabled_optimizers = 'statistics_propagation,filter_pushdown'")
        careful = connection.execute(f"SELECT COUNT(*) {rows} WHERE ISNAN(x)").fetchone()
    assert careful == (NAN,)
    assert careless != careful
    assert math.isnan(VALUES[0])
