"""Units are told apart exactly, whatever their type, and units that cannot be are refused."""

from typing import Any

import duckdb
import pytest

from discreet.errors import DataError, ParameterError
from discreet.privacy import Guarantee, Unit
from discreet.tables import Declaration, DeclaredColumn, DeclaredTable
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog
from discreet.tables.sql.parse import parse

# Pairs of different units that a DOUBLE, or a microsecond, would make one.
CLOSE = {
    "BIGINT": ("9007199254740992", "9007199254740993"),
    "UBIGINT": ("18446744073709551614", "18446744073709551615"),
    "HUGEINT": (str(2**127 - 2), str(2**127 - 1)),
    "UHUGEINT": (str(2**128 - 2), str(2**128 - 1)),
    "BIGNUM": ("1" + "0" * 60, "1" + "0" * 59 + "1"),
    "DECIMAL(38,0)": ("1" + "0" * 37, "1" + "0" * 36 + "1"),
    "DOUBLE": ("0.1", "0.10000000000000002"),
    "FLOAT": ("0.1", "0.100000009"),
    "VARCHAR": ("ann", "Ann"),
    "UUID": ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
    "ENUM('a', 'b')": ("a", "b"),
    "BOOLEAN": ("true", "false"),
    "DATE": ("infinity", "5881580-07-10"),
    "TIMESTAMP": ("2026-01-31 00:00:00.000001", "2026-01-31 00:00:00.000002"),
    "TIMESTAMP_NS": ("2026-01-31 00:00:00.000000001", "2026-01-31 00:00:00.000000002"),
    "TIMESTAMP_S": ("2026-01-31 00:00:01", "2026-01-31 00:00:02"),
    "TIMESTAMP WITH TIME ZONE": ("2026-10-25 00:30:00+00", "2026-10-25 01:30:00+00"),
}  # fmt: skip
NOBODY = {"DOUBLE": "nan", "FLOAT": "nan"}


def declared(unit: Unit, **tables: dict[str, str]) -> Catalog:
    declaration = Declaration(
        name="d", unit=unit, guarantee=Guarantee(epsilon=1),
        tables={name: DeclaredTable() for name in tables},
    )  # fmt: skip
    return declaration.catalog(tables)


@pytest.mark.parametrize("kind", CLOSE)
@pytest.mark.parametrize("per", [None, "month"])
def test_two_units_stay_two(kind: str, per: Any) -> None:
    unit = Unit.column("u") if per is None else Unit.column("u").per(per, time="day")
    known = declared(unit, t={"u": kind, "day": "DATE"})
    periods = None if per is None else ["2026-01"]
    query = parse("SELECT COUNT(*) FROM t", known, periods=periods)
    rows = plan_sql(query.rows)
    with duckdb.connect() as c:
        c.execute(f"CREATE TABLE t (u {kind}, day DATE)")
        for one in (*CLOSE[kind], CLOSE[kind][0], NOBODY.get(kind), None):
            c.execute(f"INSERT INTO t VALUES (CAST(? AS {kind}), '2026-01-31')", [one])
        counts = c.execute(
            f"SELECT COUNT(*) FROM ({plan_sql(query.rows)}) GROUP BY unit"
        ).fetchall()
        joined = c.execute(
            f"SELECT COUNT(*) FROM ({rows}) a JOIN ({rows}) b ON a.unit = b.unit"
        ).fetchall()
    assert sorted(counts) == [(1,), (2,)]
    assert joined == [(5,)]


def test_both_zeros_are_one_unit_that_looks_the_same() -> None:
    query = parse("SELECT COUNT(*) FROM t", declared(Unit.column("u"), t={"u": "DOUBLE"}))
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT unnest([0.0, -0.0]::DOUBLE[]) AS u")
        found = c.execute(
            f"SELECT DISTINCT CAST(unit AS VARCHAR) FROM ({plan_sql(query.rows)})"
        ).fetchall()
    assert found == [("0.0",)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("UBIGINT", "BIGINT"), ("HUGEINT", "UBIGINT"), ("INTEGER", "BIGINT"), ("ENUM('a')", "VARCHAR"),
     ("FLOAT", "DOUBLE"), ("ENUM('a')", "ENUM('b')")],
)  # fmt: skip
def test_units_of_two_tables_are_compared_exactly(one: str, other: str) -> None:
    known = declared(Unit.column("u"), a={"u": one}, b={"u": other})
    query = parse("SELECT COUNT(*) FROM a JOIN b ON a.u = b.u", known)
    with duckdb.connect() as c:
        c.execute(f"CREATE TABLE a (u {one}); CREATE TABLE b (u {other})")
        kind = c.execute(f"DESCRIBE {plan_sql(query.rows)}").fetchall()[0][1]
    wanted = {"UBIGINT": "HUGEINT", "HUGEINT": "HUGEINT", "INTEGER": "BIGINT", "FLOAT": "DOUBLE"}
    assert kind == wanted.get(one, "VARCHAR")


@pytest.mark.parametrize(
    ("one", "other"),
    [("BIGINT", "DOUBLE"), ("BIGINT", "VARCHAR"), ("BIGINT", "DECIMAL(18,0)"),
     ("DATE", "TIMESTAMP"), ("TIMESTAMP", "TIMESTAMP_NS"), ("DECIMAL(18,0)", "DECIMAL(18,2)"),
     ("HUGEINT", "UHUGEINT")],
)  # fmt: skip
def test_units_of_two_types_are_refused_by_name(one: str, other: str) -> None:
    with pytest.raises(DataError) as caught:
        declared(Unit.column("u"), a={"u": one}, b={"u": other})
    for word in ("'u'", "'a'", "'b'", one, other):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [
        "BLOB",
        "VARCHAR[]",
        "STRUCT(a INTEGER)",
        "INTERVAL",
        "TIME",
        "MAP(INTEGER, INTEGER)",
        "TIMESTAMPTZ_NS",
    ],
)
def test_types_that_are_no_units_are_refused(kind: str) -> None:
    with pytest.raises(DataError, match="whose rows they are"):
        declared(Unit.column("u"), t={"u": kind})


def test_public_tables_have_no_units() -> None:
    declaration = Declaration(
        name="d", unit=Unit.column("u"), guarantee=Guarantee(epsilon=1),
        tables={"t": DeclaredTable()}, public={"p": DeclaredTable()},
    )  # fmt: skip
    known = declaration.catalog({"t": {"u": "BIGINT"}, "p": {"u": "DOUBLE"}})
    assert parse("SELECT COUNT(*) FROM t JOIN p ON t.u = p.u", known).tables == ("t",)


def test_labels_of_an_enum_are_shown_nowhere() -> None:
    told = "ENUM('spy', 'it''s (b)')"
    known = declared(Unit.column("u"), t={"u": told, "k": told, "l": f"{told}[]"})
    assert [column.type for column in known.tables[0].columns] == ["ENUM", "ENUM", "ENUM[]"]
    query = parse("SELECT k, COUNT(*) FROM t GROUP BY k", known)
    assert query.keys[0].type == "text"
    with duckdb.connect() as c:
        c.execute(f"CREATE TABLE t (u {told}, k {told}); INSERT INTO t VALUES ('spy', 'spy')")
        assert c.execute(plan_sql(query.rows)).fetchall() == [("spy", "spy")]
    with pytest.raises(ParameterError) as caught:
        Declaration(
            name="d", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
            tables={"t": DeclaredTable(columns={"k": DeclaredColumn(bounds=(0, 1))})},
        ).catalog({"t": {"k": told}})  # fmt: skip
    assert "spy" not in str(caught.value)


def keys_of(kind: str, *keys: Any) -> tuple[Any, ...] | None:
    columns = {"k": DeclaredColumn(keys=keys)}
    declaration = Declaration(
        name="d", unit=Unit.record(), guarantee=Guarantee(epsilon=1),
        tables={"t": DeclaredTable(columns=columns)},
    )  # fmt: skip
    return declaration.catalog({"t": {"k": kind}}).tables[0].columns[0].keys


def test_declared_keys_are_written_in_one_way() -> None:
    assert keys_of("DATE", "20250101", "2025-W02-1") == ("2025-01-01", "2025-01-06")
    assert keys_of("TIMESTAMP", "2025-01-01") == ("2025-01-01T00:00:00",)
    assert keys_of("TIMESTAMPTZ", "2025-01-01T01:00:00+02:00") == ("2024-12-31T23:00:00",)
    assert keys_of("UTINYINT", 0, 255.0, None) == (0, 255, None)
    assert keys_of("HUGEINT", 2**63 - 1) == (2**63 - 1,)
    assert keys_of("DECIMAL(9,2)", 1, -0.0) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("DATE", ("2025-01-01", "20250101")),
        ("DOUBLE", (2**53, 2**53 + 1)),
        ("DOUBLE", (10**400,)),
        ("TINYINT", (1, 300)),
        ("UTINYINT", (-1,)),
        ("BIGINT", (1, 1e20)),
        ("BIGINT", (2**63,)),
        ("INTEGER", (1.5,)),
        ("HUGEINT", (2**63,)),
        ("VARCHAR", ("a\0b",)),
        ("VARCHAR", ("\ud800",)),
    ],
)
def test_declared_keys_that_no_row_can_have_are_refused(kind: str, keys: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError, match=r"tables\.t\.columns\.k\.keys"):
        keys_of(kind, *keys)


@pytest.mark.parametrize(
    ("kind", "where", "values"),
    [
        ("TIMESTAMP", "k IN (DATE '2026-01-31', '2026-01-31 00:00:00')", ("2026-01-31T00:00:00",)),
        ("DATE", "k = TIMESTAMP '2026-01-31 00:00:00'", ("2026-01-31",)),
        ("TINYINT", "k IN (-128, 127.0)", (-128, 127)),
        ("DOUBLE", "k IN (1, 1e20)", (1.0, 1e20)),
    ],
)
def test_listed_keys_are_written_in_one_way(kind: str, where: str, values: tuple[Any, ...]) -> None:
    known = declared(Unit.column("u"), t={"u": "BIGINT", "k": kind})
    assert parse(f"SELECT k FROM t WHERE {where} GROUP BY k", known).keys[0].values == values


# Texts.


def grown(expression: str, *texts: str | None) -> list[Any]:
    known = declared(Unit.column("u"), t={"u": "BIGINT", "k": "VARCHAR"})
    query = parse(f"SELECT {expression} AS x, COUNT(*) FROM t GROUP BY x", known)
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t (u BIGINT, k VARCHAR)")
        c.executemany("INSERT INTO t VALUES (1, ?)", [[one] for one in texts])
        return [key for _, key in c.execute(plan_sql(query.rows)).fetchall()]


@pytest.mark.parametrize("expression", ["k || k", "CONCAT(k, k)", "REPLACE(k, 'ab', 'abab')"])
def test_texts_grow_up_to_the_limit_and_not_beyond(expression: str) -> None:
    half = "ab" * 2_500
    assert grown(expression, half) == [half * 2]
    assert grown(expression, half + "ab") == [None]


def test_texts_that_do_not_grow_have_no_limit() -> None:
    long = "ab" * 100_000
    assert grown("REPLACE(k, 'ab', 'x')", long) == ["x" * 100_000]
    assert grown("REPLACE(k, '', 'xyz')", long) == [long]
    assert grown("UPPER(k)", long) == [long.upper()]


@pytest.mark.lengthy
def test_short_texts_are_put_together_as_ever() -> None:
    assert grown("k || '-' || (k || 'b')", "a", None) == ["a-ab", None]
    assert grown("CONCAT(k, '-', NULL, k)", "a", None) == ["a-a", "-"]
    assert grown("'a' || NULL", "a") == [None]
    assert grown("'a' || 'b'", "a") == ["ab"]
    assert grown("REPLACE(k, 'a', 'é\U0001f600')", "aa", None) == ["é\U0001f600é\U0001f600", None]


def test_texts_do_not_grow_from_one_part_of_with_to_the_next() -> None:
    known = declared(Unit.column("u"), t={"u": "BIGINT", "k": "VARCHAR"})
    parts, before = [], "t"
    for i in range(8):
        parts.append(f"p{i} AS (SELECT u, k || k AS k FROM {before})")
        before = f"p{i}"
    query = parse(f"WITH {', '.join(parts)} SELECT k FROM {before} GROUP BY k", known)
    with duckdb.connect() as c:
        c.execute("CREATE TABLE t AS SELECT 1::BIGINT AS u, repeat('x', 1000) AS k")
        assert c.execute(plan_sql(query.rows)).fetchall() == [(1, None)]
