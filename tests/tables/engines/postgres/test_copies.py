"""A copy of a table is known by what is in it, whichever engine it is opened with."""

import random
import struct

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import Guarantee
from discreet.errors import DiscreetError
from discreet.tables.engines import ColumnRef, DuckDBConnection, PostgresEngine, Scan, Select
from discreet.tables.engines.postgres.words.casts import cast

pytestmark = [pytest.mark.needs("postgres"), pytest.mark.lengthy]

SELECT = """
    SELECT i::{type} AS x, i % 7 AS y, DATE '2020-01-01' + i AS d,
        TIMESTAMP '2020-01-01' + i * INTERVAL '1001 microsecond' AS t,
        'Name ' || i || repeat('x', i % 90) AS n, i / 7.0::float8 AS f
    FROM generate_series(0, 899) AS i
"""


def content(url, name, unit="x", salt="s"):
    engine = PostgresEngine(url)
    with engine.open({"t": engine.look("t", name)}) as opened:
        return opened.sample("t", unit=unit, salt=salt).reveal_without_noise()


@pytest.fixture(scope="module")
def database(postgres):
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        for type_ in ("bigint", "float8", "numeric", "text", "real", "varchar(9)"):
            name = f"t_{type_.replace('(', '_').replace(')', '')}"
            connection.execute(f"CREATE TABLE {name} AS {SELECT.format(type=type_)}")
    return url


@pytest.mark.parametrize("name", ["t_bigint", "t_float8", "t_numeric", "t_text", "t_real"])
def test_samples_are_those_of_duckdb(name, database):
    engine = PostgresEngine(database)
    with engine.open({"t": engine.look("t", "t_bigint")}) as opened:
        columns = ("x", "y", "d", "t", "n", "f")
        rows = Select(Scan("t"), tuple((one, ColumnRef(one)) for one in columns))
        copied = opened.rows(rows).reveal_without_noise()
    with DuckDBConnection({"t": copied}) as duckdb:
        wanted = duckdb.sample("t", unit="x", salt="s").reveal_without_noise()
    found = content(database, name)
    by_unit = [one for one in found.samples if one.is_unit]
    (own,) = (one for one in wanted.samples if one.is_unit)
    assert [(one.hashes, one.values, one.times) for one in by_unit] == [
        (own.hashes, own.values, own.times)
    ]
    assert sorted(map(repr, by_unit[0].beside)) == sorted(map(repr, own.beside))


def test_whatever_a_cell_holds_a_sample_is_taken(postgres):
    url = postgres.new_database()
    odd = [
        "'infinity'::timestamptz", "'294276-01-01'::timestamp", "'5874897-12-31'::date",
        "'nan'::float8", "'1e400'::numeric", "'NaN'::numeric", "'\\xff'::bytea", "ARRAY[1]",
        "repeat('x', 100000)", "''::text", "NULL::text", "'3 days'::interval", "'1e400'::text",
        "'9999999-01-01'::text", "'inf'::text", "'-infinity'::date", "1.50::numeric(5,2)",
        "'inf'::real", "'2024-02-30 99:99'::text", "'{}'::jsonb", "'nan'::text",
    ]  # fmt: skip
    with psycopg.connect(url, autocommit=True) as connection:
        columns = ", ".join(f"{one} AS c{i}" for i, one in enumerate(odd))
        connection.execute(f"CREATE TABLE odd AS SELECT {columns}")
    found = content(url, "odd", unit="c0")
    assert len(found.rows) == 1
    assert "1.5" in found.rows[0]
    assert max(len(one) for one in found.rows[0] if one) <= 64


def test_a_parquet_copy_gets_no_budget_of_its_own(database, tmp_path):
    fields = {"unit": "x", "guarantee": Guarantee(epsilon=1, delta=1e-6)}
    ledger = tmp_path / "budget.db"
    with discreet.protect(
        "t_bigint", name="here", engine=PostgresEngine(database), ledger=ledger, **fields
    ):
        pass
    path = tmp_path / "copy.parquet"
    engine = PostgresEngine(database)
    with engine.open({"t": engine.look("t", "t_bigint")}) as opened:
        rows = Select(Scan("t"), tuple((one, ColumnRef(one)) for one in ("x", "y", "d", "n")))
        pq.write_table(opened.rows(rows).reveal_without_noise(), path)
    with pytest.raises(DiscreetError, match="here"):
        discreet.protect(str(path), name="elsewhere", ledger=ledger, **fields)


def test_numbers_are_written_as_duckdb_writes_them(database):
    dice = random.Random(5)
    values = [struct.unpack("d", dice.randbytes(8))[0] for _ in range(2000)]
    values += [dice.uniform(-1, 1) * 10 ** dice.randint(-8, 18) for _ in range(2000)]
    values += [float(dice.randint(-(10**17), 10**17)) for _ in range(500)]
    values += [0.0, -0.0, 1e15, 1e16, 1e17, 123.0, 5e-324, float("inf"), float("-inf")]
    text = cast("x", "double", "text", True).replace("1e15", "1e15::float8").replace("0e0", "0")
    with psycopg.connect(database) as connection:
        asked = f"SELECT {text} FROM unnest(%s::float8[]) WITH ORDINALITY AS v(x, i) ORDER BY i"
        found = [one for (one,) in connection.execute(asked, [values]).fetchall()]
    import duckdb

    shown = pa.table({"x": values})  # noqa: F841 - read by name
    wanted = duckdb.sql("SELECT CAST(x AS VARCHAR) FROM shown").fetchall()
    differ = [(a, b) for a, (b,) in zip(found, wanted, strict=True) if a != b]
    # Beyond 2**53, the ends between which a text is read as the double can be short texts
    # themselves; PostgreSQL does not use them, and writes a digit more.
    assert [a for a, b in differ if float(a) != float(b) or abs(float(a)) < 2**53] == []
    assert len(differ) < len(values) / 20
