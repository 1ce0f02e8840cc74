"""Accepted questions never raise and never yield NaN, whatever stands in the tables."""

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from discreet.errors import Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.types import SQL_NAMES
from discreet.tables.sql.parse import parse

CATALOG = Catalog(
    unit=Unit.column("user_id"),
    neighbours=Neighbours.add_remove,
    tables=(
        Table(
            name="people",
            columns=(
                Column(name="user_id", type="BIGINT"),
                Column(name="name", type="VARCHAR"),
                Column(name="x", type="DOUBLE"),
                Column(name="f", type="FLOAT"),
                Column(name="n", type="BIGINT", bounds=(Fraction(0), Fraction(100))),
                Column(name="small", type="TINYINT"),
                Column(name="huge", type="HUGEINT"),
                Column(name="big", type="UBIGINT"),
                Column(name="money", type="DECIMAL(38,30)"),
                Column(name="d", type="DATE"),
                Column(name="t", type="TIMESTAMP"),
                Column(name="ns", type="TIMESTAMP_NS"),
                Column(name="tz", type="TIMESTAMP WITH TIME ZONE"),
                Column(name="ok", type="BOOLEAN"),
            ),
        ),
        Table(
            name="visits",
            columns=(Column(name="user_id", type="BIGINT"), Column(name="cost", type="DOUBLE")),
        ),
        Table(
            name="names",
            columns=(Column(name="name", type="VARCHAR"), Column(name="weight", type="DOUBLE")),
            is_public=True,
        ),
    ),
)

# One value of a column that is nasty, the others at their defaults; and all nasty ones together.
NASTY = {
    "name": ["''", "'1e999'", "'nan'", "'-inf'", "'9999999999-99-99'", "'é\u202e\U0001f600%_\\'",
             "chr(0)",
             "'infinity'", "'290309-12-22 (BC) 00:00:00'", "'5881580-07-10'", "repeat('x', 10000)"],
    "x": ["'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "1.7976931348623157e308", "-1e308",
          "5e-324", "-0.0::DOUBLE", "0::DOUBLE", "-1::DOUBLE", "9.3e18"],
    "f": ["'nan'::FLOAT", "'inf'::FLOAT", "3.4e38::FLOAT", "-0.0::FLOAT"],
    "n": ["-9223372036854775808", "9223372036854775807", "0", "-1"],
    "small": ["-128", "127", "0"],
    "huge": ["-170141183460469231731687303715884105728", "170141183460469231731687303715884105727"],
    "big": ["18446744073709551615", "0"],
    "money": ["99999999.999999999999999999999999999999", "0"],
    "d": ["'infinity'::DATE", "'-infinity'::DATE", "'5877642-06-25 (BC)'::DATE",
          "'5881580-07-10'::DATE", "'0001-01-01'::DATE", "'9999-12-31'::DATE"],
    "t": ["'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMP",
          "'290309-12-22 (BC) 00:00:00'::TIMESTAMP",
          "'294247-01-10 04:00:54.775806'::TIMESTAMP", "'0001-01-01'::TIMESTAMP",
          "'9999-12-31 23:59:59.999999'::TIMESTAMP"],
    "ns": ["'1677-09-22'::TIMESTAMP_NS", "'2262-04-11'::TIMESTAMP_NS"],
    "tz": ["'infinity'::TIMESTAMPTZ", "'-infinity'::TIMESTAMPTZ",
           "'290309-12-22 (BC) 00:00:00+00'::TIMESTAMPTZ",
           "'294247-01-10 04:00:54.775806+00'::TIMESTAMPTZ",
           "'0001-01-01 00:00:00+15'::TIMESTAMPTZ"],
    "ok": ["TRUE", "FALSE"],
}  # fmt: skip
PLAIN = {
    "name": "'north'", "x": "1.5::DOUBLE", "f": "2.5::FLOAT", "n": "7", "small": "3", "huge": "5",
    "big": "6", "money": "1.25", "d": "'2026-01-31'::DATE", "t": "'2026-01-31 12:00:00'::TIMESTAMP",
    "ns": "'2026-01-31 12:00:00'::TIMESTAMP_NS",
    "tz": "'2026-01-31 12:00:00+02'::TIMESTAMPTZ", "ok": "TRUE",
}  # fmt: skip

ROW_EXPRESSIONS = [
    "x + x", "x - x", "x * x", "x / x", "x % x", "x // x", "n + n", "n * n * n", "n - huge",
    "n / small", "n % small", "n // small", "-n", "-x", "ABS(n)", "ABS(small)", "SIGN(x)",
    "ROUND(n, -18)", "ROUND(x, 300)", "ROUND(x)", "ROUND(money, 2)", "FLOOR(x)", "CEIL(x)",
    "TRUNC(x)",
    "SQRT(x)", "LN(x)", "LOG(x)", "LOG10(n)", "LOG2(x)", "LOG(2, x)", "EXP(x)", "EXP(n)",
    "POWER(x, x)", "POWER(n, 100)", "n ** small", "POWER(x, -0.5)", "CLAMP(x, -1, 1)",
    "CLAMP(huge, 0, 10)", "LEAST(x, n, big)", "GREATEST(f, huge, money)", "COALESCE(x, n, money)",
    "COALESCE(n, big)", "NULLIF(x, 0)", "NULLIF(n, x)", "IFNULL(small, n)",
    "CASE WHEN x > 0 THEN n ELSE money END", "CASE WHEN LN(x) > 0 THEN 1 / x END",
    "CASE n WHEN 0 THEN x ELSE 1 / n END", "IF(ok, x, n)", "CAST(x AS BIGINT)", "x::TINYINT",
    "CAST(huge AS INTEGER)", "CAST(name AS DOUBLE)", "CAST(name AS BIGINT)", "name::FLOAT",
    "CAST(big AS DECIMAL(4, 2))", "CAST(ok AS INTEGER)", "TRY_CAST(name AS UTINYINT)",
    "LENGTH(name)", "LENGTH(name || name)", "EXTRACT(year FROM d)", "EXTRACT(week FROM t)",
    "EXTRACT(isoyear FROM d)", "YEAR(t)", "DAYOFYEAR(d)", "HOUR(d)", "SECOND(ns)", "HOUR(tz)",
    "DATE_DIFF('day', tz, t)",
    "DATE_PART('dow', t)", "DATE_DIFF('second', d, t)", "DATE_DIFF('day', t, ns)",
    "DATEDIFF('week', d, DATE '2026-01-01')", "d - DATE '2026-01-01'",
    "SIN(x)", "COS(huge)", "TAN(x)", "ASIN(x)", "ACOS(f)", "ATAN2(x, x)", "CBRT(x)",
    "RADIANS(x)", "WIDTH_BUCKET(x, -1, 1, 3)", "WIDTH_BUCKET(huge, 0, 1e-300, 3)", "TRUNC(x, 300)",
    "TRUNC(n, -300)", "ROUND(money * n, 2)", "money * money * n", "n * 0.1", "n % 0.1", "x % 0.1",
    "money % 0.1", "EPOCH(t)", "EPOCH(tz)", "EPOCH(d)", "EXTRACT(EPOCH FROM t - ns)",
    "EXTRACT(DAY FROM t - tz)", "EPOCH_MS(t)", "POSITION(name IN name)", "STRLEN(name)",
    "SAFE_DIVIDE(x, n)", "DIV0(n, x)", "ZEROIFNULL(x)", "TO_NUMBER(name)",
    "DATE_PART('month', NULL)", "NULL + 1", "LENGTH(NULL)", "NULL",
    "DATE_DIFF('hour', d - INTERVAL 9999 YEAR, t + INTERVAL 9999 YEAR)",
]  # fmt: skip
KEYS = [
    "SPLIT_PART(name, 'x', 2147483647)", "SPLIT_PART(name, 'x', -2147483647)",
    "LPAD(name, 10000, 'é')", "RPAD(name, 3, 'ab')", "REVERSE(name)", "LAST_DAY(d)", "LAST_DAY(t)",
    "STRFTIME(d, '%Y %G %V %j')", "STRFTIME(t, '%A %B %f %p')", "TO_CHAR(ns, 'YYYY-MM')",
    "TO_DATE(name, 'YYYY-MM-DD')", "STRPTIME(name, '%y %j %H')", "TO_TIMESTAMP(x)",
    "TO_TIMESTAMP(n)", "TO_TIMESTAMP(huge)", "EPOCH_MS(big)", "d + 2000", "d - 999999",
    "DATEADD(year, 9999, d)", "DATE_ADD(t, INTERVAL -9999 YEAR)", "ADD_MONTHS(d, -9999)",
    "name LIKE '%!%%' ESCAPE '%'", "MONTHNAME(tz)", "t + INTERVAL 999999999 SECOND",
    "tz", "DATE_TRUNC('month', tz)",
    "x", "f", "n", "huge", "money", "name", "d", "t", "ns", "ok", "x > 0", "x IS NULL", "n // 10",
    "FLOOR(x / 10)", "x + 1", "LOWER(name)", "UPPER(TRIM(name))", "LEFT(name, 2)",
    "RIGHT(name, -3)", "SUBSTRING(name, -2147483647, 2147483647)", "CONCAT(name, 'x')",
    "REPLACE(name, '', 'y')", "LTRIM(name, 'n')", "CAST(x AS VARCHAR)", "CAST(t AS VARCHAR)",
    "CAST(name AS DATE)", "CAST(name AS TIMESTAMP)", "CAST(name AS BOOLEAN)", "DATE(t)",
    "CAST(d AS TIMESTAMP)", "DATE_TRUNC('year', d)", "DATE_TRUNC('week', t)",
    "DATE_TRUNC('hour', NULL)", "MONTH(NULL)", "NULL", "LOWER(NULL)",
    "DATE_TRUNC('quarter', ns)", "DATE_TRUNC('hour', d)", "d + INTERVAL 9999 YEAR",
    "t - INTERVAL 9999 YEAR", "MONTH(d)", "EXTRACT(quarter FROM t)",
    "CASE WHEN x > 1 THEN 'high' WHEN x <= 1 THEN 'low' END", "COALESCE(name, 'none')",
]  # fmt: skip
CONDITIONS = [
    "name = x", "name > huge", "name < d", "name = t", "name <> tz", "name = ok", "x = ok",
    "name IN (1, 2.5)", "name IN ('2026-01-31', DATE '2026-01-31')", "name BETWEEN n AND big",
    "n = '7'", "x IS DISTINCT FROM name", "money * 3 = name",
    "small IN (300, 1)", "small BETWEEN -1000 AND 1000", "big > -1", "big IN (-1, 1)",
    "x = n", "x > huge", "n > big", "money < n", "small = 300", "n = 9223372036854775807",
    "n > 99999999999999999999", "x BETWEEN n AND huge", "x IN (1, 2.5, 3)", "name IN ('a', '%')",
    "name LIKE '%\\'", "name ILIKE 'É%'", "NOT name LIKE '_'", "name NOT LIKE 'a'",
    "STARTS_WITH(name, 'n')", "PREFIX(name, name)", "SUFFIX(name, 'x')", "CONTAINS(name, '')",
    "d > '2026-01-01'", "t < DATE '2026-01-01'", "d = t", "d <> ns", "t BETWEEN d AND ns",
    "x IS DISTINCT FROM f", "ok IS TRUE", "ok IS NOT FALSE", "NOT ok OR x > 1 AND n < 3",
    "LN(x) > 1 AND 1 / n > 2", "d IN ('2026-01-31', DATE '0001-01-01')", "x % 2 = 1",
]  # fmt: skip
WHOLE = [
    "SELECT COUNT(*), COUNT(x), COUNT(DISTINCT x), COUNT(DISTINCT user_id) FROM people",
    "SELECT name, VARIANCE(x), STDDEV_POP(n), MIN(f), MAX(huge), MEDIAN(money) FROM people "
    "GROUP BY 1",
    "SELECT CORR(x, n), COVAR_POP(f, huge), QUANTILE(x, 0.9) FROM people WHERE x > 0",
    "SELECT HISTOGRAM(x, -10, 10, 7) AS h FROM people",
    "SELECT name, HISTOGRAM(n, 0, 1e-300, 3) AS h FROM people GROUP BY name",
    "SELECT SUM(x) FILTER (WHERE 1 / n > LN(x)), COUNT(*) FILTER (WHERE d > t) FROM people",
    "SELECT AVG(s), MAX(m), SUM(a), MIN(c) FROM (SELECT user_id, SUM(x) AS s, MAX(n) AS m, "
    "AVG(huge) AS a, COUNT(DISTINCT x) AS c FROM people GROUP BY user_id) AS q",
    "WITH q AS (SELECT user_id, d, SUM(1 / x) AS s, MIN(t) AS first FROM people "
    "GROUP BY user_id, d HAVING COUNT(*) > 0 AND SUM(n) IS NOT NULL) "
    "SELECT YEAR(first), AVG(LN(s)) FROM q GROUP BY 1",
    "SELECT SUM(cost * x) FROM people JOIN visits USING (user_id)",
    "SELECT SUM(cost) FROM people AS p LEFT JOIN visits AS v ON p.user_id = v.user_id "
    "AND p.x < cost",
    "SELECT SUM(weight) FROM people AS p LEFT JOIN names AS n ON p.name LIKE 'n%' OR p.x < weight",
    "SELECT SUM(weight / x) FROM people LEFT JOIN names ON people.name = LOWER(names.name)",
    "SELECT COUNT(*) FROM (SELECT * FROM people WHERE x > 0) AS q WHERE LN(x) < 1",
    "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, x, d FROM people) AS q",
    "SELECT SUM(w) FROM (SELECT x - x AS w, 1 / n AS y FROM people) AS q WHERE y > 0 OR w > 0",
]


def accepted() -> list[str]:
    return [
        *(
            f"SELECT SUM({e}), COUNT(DISTINCT {e}), MEDIAN({e}) FROM people"
            for e in ROW_EXPRESSIONS
        ),
        *(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k" for key in KEYS),
        *(f"SELECT AVG(x) FROM people WHERE {condition}" for condition in CONDITIONS),
        *WHOLE,
    ]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        columns = list(PLAIN)
        rows = [", ".join([f"{i}::BIGINT", *PLAIN.values()]) for i in (1, 2)]
        rows.append(", ".join(["NULL", *PLAIN.values()]))
        rows.append(", ".join(["3::BIGINT", *("NULL" for _ in columns)]))
        for column, values in NASTY.items():
            for value in values:
                cells = [value if c == column else PLAIN[c] for c in columns]
                rows.append(", ".join(["4::BIGINT", *cells]))
        for i in range(11):
            cells = [NASTY[c][i % len(NASTY[c])] for c in columns]
            rows.append(", ".join(["9223372036854775807", *cells]))
        types = {c.name: c.type for c in CATALOG.tables[0].columns}
        declared = ", ".join(f"{c} {t}" for c, t in types.items())
        found.execute(f"CREATE TABLE people ({declared})")
        for row in rows:
            found.execute(f"INSERT INTO people SELECT {row}")
        found.execute("CREATE TABLE visits AS SELECT user_id, x AS cost FROM people")
        found.execute("CREATE TABLE names AS SELECT DISTINCT name, x AS weight FROM people")
        yield found


@pytest.mark.parametrize("sql", accepted())
def test_an_accepted_question_never_raises_and_never_yields_nan(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> None:
    query = parse(sql, CATALOG)
    found = connection.execute(plan_sql(query.rows))
    names = [column[0] for column in found.description]
    expected = ["unit", *(f"key_{i}" for i in range(len(query.keys)))]
    assert names == [*expected, *(f"value_{i}" for i in range(len(query.values)))]
    for row in found.fetchall():
        assert row[0] is not None
        assert not any(isinstance(cell, float) and math.isnan(cell) for cell in row)


@pytest.mark.parametrize("sql", accepted())
def test_keys_have_the_types_and_values_have_the_type_that_the_plan_says(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> None:
    query = parse(sql, CATALOG)
    types = [row[1] for row in connection.execute(f"DESCRIBE {plan_sql(query.rows)}").fetchall()]
    keys = types[1 : 1 + len(query.keys)]
    assert keys == [SQL_NAMES[key.type] for key in query.keys]
    counted = {
        place
        for aggregate in query.aggregates
        if aggregate.kind == "count_distinct"
        for place in aggregate.values
    }
    for place, found in enumerate(types[1 + len(query.keys) :]):
        assert found == "DOUBLE" or place in counted


# Random expressions of each kind, built from all that is allowed.
NUMBERS = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["x", "f", "n", "small", "huge", "big", "money", "0", "-1", "2.5"]),
        st.tuples(NUMBERS, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), NUMBERS).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(
            st.sampled_from(
                ["-({})", "ABS({})", "SQRT({})", "LN({})", "EXP({})", "ROUND({}, 2)", "FLOOR({})",
                 "SIGN({})", "CLAMP({}, -2, 3)", "CAST({} AS BIGINT)", "CAST({} AS TINYINT)",
                 "NULLIF({}, 0)", "LEAST({}, 5)", "COALESCE({}, 7)"]
            ),
            NUMBERS,
        ).map(lambda t: t[0].format(t[1])),
        st.tuples(BOOLEANS, NUMBERS, NUMBERS).map(
            lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"
        ),
        TEXTS.map(lambda t: f"CAST({t} AS DOUBLE)"),
        TEXTS.map(lambda t: f"LENGTH({t})"),
        TIMES.map(lambda t: f"EXTRACT(isoyear FROM {t})"),
        st.tuples(TIMES, TIMES).map(lambda t: f"DATE_DIFF('second', {t[0]}, {t[1]})"),
    )
)  # fmt: skip
TEXTS = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["name", "'a%'", "''"]),
        st.tuples(
            st.sampled_from(["LOWER({})", "TRIM({})", "LEFT({}, -3)", "({} || name)", "UPPER({})"]),
            TEXTS,
        ).map(lambda t: t[0].format(t[1])),
        st.one_of(NUMBERS, TIMES, BOOLEANS).map(lambda t: f"CAST({t} AS VARCHAR)"),
    )
)
TIMES = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["d", "t", "ns", "tz", "DATE '2026-01-31'", "CAST(name AS TIMESTAMP)"]),
        st.tuples(
            st.sampled_from(
                ["DATE_TRUNC('week', {})", "DATE_TRUNC('hour', {})", "CAST({} AS DATE)",
                 "({} + INTERVAL 9999 YEAR)", "({} - INTERVAL 9999 MONTH)", "CAST({} AS TIMESTAMP)"]
            ),
            TIMES,
        ).map(lambda t: t[0].format(t[1])),
    )
)  # fmt: skip
BOOLEANS = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["ok", "TRUE", "CAST(name AS BOOLEAN)"]),
        st.tuples(NUMBERS, st.sampled_from(["=", "<", ">=", "<>"]), NUMBERS).map(" ".join),
        st.tuples(TIMES, st.sampled_from(["=", "<", ">="]), TIMES).map(" ".join),
        TEXTS.map(lambda t: f"{t} LIKE '%\\'"),
        st.tuples(BOOLEANS, st.sampled_from(["AND", "OR"]), BOOLEANS).map(
            lambda t: f"(({t[0]}) {t[1]} NOT ({t[2]}))"
        ),
        NUMBERS.map(lambda t: f"({t}) IS NULL"),
    )
)


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(number=NUMBERS, text=TEXTS, moment=TIMES, condition=BOOLEANS)
def test_no_combination_of_expressions_raises_or_yields_nan(
    connection: duckdb.DuckDBPyConnection, number: str, text: str, moment: str, condition: str
) -> None:
    sql = (
        f"SELECT {text} AS a, {moment} AS b, SUM({number}), COUNT(DISTINCT {text}) FROM people "
        f"WHERE {condition} GROUP BY a, b"
    )
    try:
        query = parse(sql, CATALOG)
    except Refused as found:  # too much nesting: a missing rule would be told by its own code
        assume(found.code != "too_complex")
        raise
    assume(len(plan_sql(query.rows)) < 6000)  # longer ones say nothing more, and take long to bind
    for row in connection.execute(plan_sql(query.rows)).fetchall():
        assert not any(isinstance(cell, float) and math.isnan(cell) for cell in row)


NAN = [1.0, math.nan, 2.0, -1.0, math.inf]


def write(writer: str, path: Path) -> None:
    users = [1, 2, 3, 4, 5]
    if writer == "pandas":
        pd.DataFrame({"user_id": users, "x": np.array(NAN)}).to_parquet(path)
    elif writer == "pyarrow":
        table = pa.table({"user_id": users, "x": pa.array(NAN, pa.float64())})
        pq.write_table(table, path)
    else:
        with duckdb.connect() as c:
            values = ", ".join(f"({u}, '{x}'::DOUBLE)" for u, x in zip(users, NAN, strict=True))
            c.execute(f"COPY (SELECT * FROM (VALUES {values}) AS t(user_id, x)) TO '{path}'")


@pytest.mark.parametrize("writer", ["pandas", "pyarrow", "duckdb"])
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x", [-1.0, 1.0, 2.0, math.inf, None]),
        ("CLAMP(x, 0, 5)", [0.0, 1.0, 2.0, 5.0, None]),
        ("CASE WHEN x > 1 THEN 1 ELSE 0 END", [0.0, 0.0, 0.0, 1.0, 1.0]),
        ("x - x", [0.0, 0.0, 0.0, None, None]),
        ("LEAST(x, 0)", [-1.0, 0.0, 0.0, 0.0, 0.0]),
        ("SQRT(x)", [1.0, math.sqrt(2), math.inf, None, None]),
    ],
)
def test_nan_hidden_by_statistics_of_a_file_becomes_null(
    tmp_path: Path, writer: str, expression: str, expected: list[float | None]
) -> None:
    path = tmp_path / "people.parquet"
    write(writer, path)
    query = parse(f"SELECT SUM({expression}) FROM people", CATALOG)
    with duckdb.connect() as c:
        c.execute(f"CREATE VIEW people AS SELECT * FROM '{path}'")
        found = [row[1] for row in c.execute(plan_sql(query.rows)).fetchall()]
    order = sorted(found, key=lambda v: (v is None, v or 0.0))
    assert order == expected


@pytest.mark.parametrize("opened", ["DATE(", "ARRAY[", "CHAR(", "DECIMAL("])
def test_no_question_keeps_the_parser_busy_for_long(opened):
    """Each level took it twice as long as the one before; 40 of them are longer than a life."""
    closed = {"(": ")", "[": "]"}[opened[-1]]
    asked = f"SELECT COUNT(*) FROM people WHERE {40 * opened}d{40 * closed} > 1"
    with pytest.raises(Refused) as found:
        parse(asked, CATALOG)
    assert found.value.code == "too_complex"
