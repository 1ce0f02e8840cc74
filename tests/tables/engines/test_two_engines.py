"""Plans mean the same to DuckDB and to the engine of plain Python, question by question."""

import importlib.util
import math
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.sql.parse import parse

ROOT = Path(__file__).parents[3]
TABLES = {
    "people": pa.table(
        {
            "id": pa.array([1, 1, 2, 3, None, 4], pa.int64()),
            "x": pa.array([0.5, -0.0, math.nan, math.inf, 3.0, None], pa.float64()),
            "n": pa.array([3, -7, 0, 2**31 - 1, 5, None], pa.int32()),
            "name": ["ann", " Bob ", "", "Çelik_%", "eve", None],
            "ok": [True, False, None, True, True, False],
            "d": pa.array([date(2024, 2, 29), date(1, 1, 1), None, date.max, date(2000, 1, 1)] * 1
                          + [date(2023, 12, 31)], pa.date32()),
            "t": pa.array([datetime(2024, 2, 29, 12, 30), None, datetime.max, datetime.min,  # noqa: DTZ001, DTZ901
                           datetime(1999, 12, 31, 23, 59, 59), datetime(2024, 1, 1)],  # noqa: DTZ001
                          pa.timestamp("us")),
        }
    ),
    "visits": pa.table({"id": [1, 1, 2, 2, 3, None], "cost": [1.5, 2.5, None, 1e300, -1.0, 7.0]}),
    "words": pa.table({"name": ["ann", "eve", None], "kind": ["a", "e", "none"]}),
}  # fmt: skip
TYPES = {
    "people": {
        "id": "BIGINT", "x": "DOUBLE", "n": "INTEGER", "name": "VARCHAR", "ok": "BOOLEAN",
        "d": "DATE", "t": "TIMESTAMP",
    },
    "visits": {"id": "BIGINT", "cost": "DOUBLE"},
    "words": {"name": "VARCHAR", "kind": "VARCHAR"},
}  # fmt: skip
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=tuple(
        Table(
            name=name,
            columns=tuple(Column(name=column, type=type_) for column, type_ in columns.items()),
            is_public=name == "words",
        )
        for name, columns in TYPES.items()
    ),
)
VALUES = [
    "x", "n + x", "x * 2 - n", "x / n", "n // 2", "n % 3", "-x", "ABS(n)", "SIGN(x)", "FLOOR(x)",
    "CEIL(x / 3)", "ROUND(x, 1)", "SQRT(x)", "EXP(x)", "LN(x)", "LOG2(n)", "LOG10(x)",
    "POWER(x, 2)", "CLAMP(x, 0, 1)", "LEAST(x, n)", "GREATEST(x, 1)", "COALESCE(x, n, 1)",
    "NULLIF(n, 0)", "CAST(name AS DOUBLE)", "CAST(x AS INTEGER)", "CAST(ok AS INTEGER)",
    "LENGTH(name)", "CASE WHEN x > 0 THEN n WHEN ok THEN 1 ELSE x END", "YEAR(d)", "MONTH(t)",
    "DATE_DIFF('day', d, t)", "d - DATE '2020-01-01'", "EXTRACT(isodow FROM d)",
    "EXTRACT(week FROM t)", "x > 0 AND ok", "name LIKE '%n%'", "x IN (0.5, 3)", "NOT ok", "ok",
    "SIN(x)", "COS(n)", "ATAN2(x, n)", "ASIN(x)", "ACOS(n)", "POSITION('n' IN name)",
    "STRLEN(name)", "EPOCH(t)", "EPOCH(d)", "n * 0.1 = 0.3", "WIDTH_BUCKET(x, 0, 4, 4)",
    "name LIKE '%!_!%' ESCAPE '!'", "TRUNC(x, 1)", "n % 0.7",
]  # fmt: skip
KEYS = [
    "name", "ok", "n", "d", "t", "x", "FLOOR(x)", "LOWER(TRIM(name))", "UPPER(name)",
    "LEFT(name, 2)", "RIGHT(name, 1)", "SUBSTRING(name, 2, 3)", "name || '!'",
    "CONCAT(name, '-', name)", "REPLACE(name, 'e', 'ee')", "DATE_TRUNC('month', d)",
    "DATE_TRUNC('week', t)", "d + INTERVAL 1 MONTH", "t - INTERVAL 90 MINUTE", "CAST(n AS VARCHAR)",
    "CAST(d AS VARCHAR)", "CAST(t AS DATE)", "x IS NULL", "STARTS_WITH(name, 'a')",
    "SPLIT_PART(name, 'l', -1)", "LPAD(name, 4, 'xy')", "RPAD(name, 2, ' ')", "REVERSE(name)",
    "TO_TIMESTAMP(n)", "STRFTIME(t, '%m/%d %H:%M:%S')", "TO_CHAR(d, 'Mon DD')", "LAST_DAY(d - 400)",
    "REGEXP_EXTRACT(name, '[a-n]+')", "REGEXP_REPLACE(name, '(.)e', '\\1-', 'g')", "name ~ '^.n'",
    "REGEXP_FULL_MATCH(name, '\\s*B.*')", "TO_DATE(name, 'YYYY-MM-DD')", "d + 7",
    "DATEADD(day, -1, t)",
    "CASE WHEN x > 0 THEN 'up' END", "INITCAP(name)", "DECODE(n, 3, 'three', NULL, 'none', name)",
    "TIME_BUCKET(INTERVAL 15 MINUTE, t)", "TIME_BUCKET(INTERVAL 2 WEEK, d)",
    "t AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Tokyo'", "t AT TIME ZONE 'Asia/Tokyo'",
]  # fmt: skip
QUESTIONS = [
    *(f"SELECT SUM({value}) FROM people" for value in VALUES),
    *(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k" for key in KEYS),
    "SELECT COUNT(*) FROM people WHERE x >= 0 OR name <> 'ann'",
    "SELECT COUNT(*) FROM people WHERE d BETWEEN '2000-01-01' AND '2024-12-31' AND n IS NOT NULL",
    "SELECT kind, SUM(x) FROM people LEFT JOIN words USING (name) GROUP BY kind",
    "SELECT SUM(cost * x) FROM people JOIN visits ON people.id = visits.id AND cost > 1",
    "SELECT SUM(cost), SUM(x) FROM people FULL JOIN visits ON people.id = visits.id AND cost > n",
    "SELECT SUM(cost), SUM(x) FROM people RIGHT JOIN visits USING (id)",
    "SELECT SUM(v.cost), SUM(x) FROM visits AS w "
    "LEFT JOIN (people FULL JOIN visits AS v USING (id)) ON v.id = w.id AND w.cost < v.cost",
    "SELECT k, SUM(c) FROM (SELECT id, cost AS c, 'v' AS k FROM visits UNION ALL "
    "SELECT id, n, name FROM people UNION ALL SELECT id, NULL, NULL FROM visits) AS u GROUP BY k",
    "SELECT SUM(c) FROM (SELECT id, cost AS c FROM visits UNION SELECT id, x FROM people) AS u",
    "SELECT AVG(c) FROM (SELECT id, SUM(cost) AS c, COUNT(*) AS n FROM visits GROUP BY id) AS v",
    "SELECT h, COUNT(*) FROM (SELECT id, MAX(cost) AS h FROM visits GROUP BY id "
    "HAVING COUNT(cost) > 1) AS v GROUP BY h",
    "WITH rich AS (SELECT id, cost FROM visits WHERE cost > 2) SELECT COUNT(DISTINCT cost) "
    "FROM rich JOIN people USING (id)",
    "SELECT HISTOGRAM(x, 0, 2, 4) AS h FROM people",
]


@pytest.fixture(scope="module")
def engines():
    file = ROOT / "docs/contributions/engine/src/discreet/tables/engines/plain_python.py"
    spec = importlib.util.spec_from_file_location("plain_python", file)
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    with DuckDBConnection(TABLES, threads=1) as duckdb:
        yield plain.PlainPythonConnection(TABLES), duckdb


@pytest.mark.parametrize("question", QUESTIONS)
def test_both_read_the_same_rows(question, engines):
    rows = parse(question, CATALOG).rows
    plain, duckdb = (
        sorted((tuple(row.values()) for row in found.to_pylist()), key=_order)
        for found in (engine.rows(rows).reveal_without_noise() for engine in engines)
    )
    assert len(plain) == len(duckdb)
    for one, other in zip(plain, duckdb, strict=True):
        assert all(map(_is_close, one, other)), (one, other)


def _order(row):
    return [(value is not None, float(value) if hasattr(value, "__float__") else 0.0, str(value))
            for value in row]  # fmt: skip


def _is_close(one, other):
    if one is None or other is None or isinstance(one, str | date):
        return one == other
    return math.isclose(one, other, rel_tol=1e-14)
