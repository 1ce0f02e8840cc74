"""Parameters in a part of WITH: in their place where that is the same question, else untouched."""

import pytest
import sqlglot

from discreet.tables.sql.question.constants import with_constants_in_place

PUT = {
    "WITH p AS (SELECT 40 AS low, 'n' AS name) "
    "SELECT COUNT(*) FROM p, t WHERE a > low AND b = p.name": (
        "SELECT COUNT(*) FROM t WHERE a > 40 AND b = 'n'"
    ),
    "WITH p AS (SELECT -1 AS low) SELECT SUM(a - q.low) FROM t CROSS JOIN p AS q": (
        "SELECT SUM(a - -1) FROM t"
    ),
    "WITH p AS (SELECT DATE '2026-01-01' AS d), u AS (SELECT a FROM t, p WHERE b > d) "
    "SELECT COUNT(*) FROM u, p WHERE a > d": (
        "WITH u AS (SELECT a FROM t WHERE b > CAST('2026-01-01' AS DATE)) "
        "SELECT COUNT(*) FROM u WHERE a > CAST('2026-01-01' AS DATE)"
    ),
    "WITH p AS (SELECT 1 AS x), q AS (SELECT 2 AS y) "
    "SELECT COUNT(*) FROM p, q, t JOIN u ON t.a = u.a AND u.b > x + y": (
        "SELECT COUNT(*) FROM t JOIN u ON t.a = u.a AND u.b > 1 + 2"
    ),
}

LEFT = [
    "WITH p AS (SELECT 1 AS n) SELECT COUNT(*) FROM p, t GROUP BY n",  # would be a position
    "WITH p AS (SELECT 1 AS n) SELECT COUNT(*) FROM p, t ORDER BY n",
    "WITH p AS (SELECT 1 AS n) SELECT a AS n, COUNT(*) FROM p, t GROUP BY a HAVING n > 2",
    "WITH p AS (SELECT 1 AS n) SELECT n, COUNT(*) FROM p, t GROUP BY ALL",
    "WITH p AS (SELECT 1 AS n) SELECT * FROM p, t",
    "WITH p AS (SELECT 1 AS n) SELECT COUNT(*) FROM p",
    "WITH p AS (SELECT 1 AS n) SELECT COUNT(*) FROM t LEFT JOIN p ON t.a = p.n",
    "WITH p AS (SELECT 1 AS n) SELECT COUNT(*) FROM t",
    "WITH p AS (SELECT 1 AS n WHERE FALSE) SELECT COUNT(*) FROM p, t",
    "WITH p AS (SELECT RANDOM() AS n) SELECT COUNT(*) FROM p, t WHERE a > n",
    "WITH p AS (SELECT a AS n FROM u) SELECT COUNT(*) FROM p, t WHERE a > n",
    "WITH u AS (SELECT a FROM p, t), p AS (SELECT 1 AS a) SELECT COUNT(*) FROM p, u",
    "WITH u AS (WITH p AS (SELECT 1 AS n) SELECT a FROM p, t) SELECT COUNT(*) FROM p, u",
]


def put(sql: str) -> str:
    return with_constants_in_place(sqlglot.parse_one(sql, read="duckdb")).sql("duckdb")


@pytest.mark.parametrize("sql", PUT)
def test_constants_stand_where_they_are_used(sql):
    assert put(sql) == PUT[sql]


@pytest.mark.parametrize("sql", LEFT)
def test_a_name_that_might_mean_something_else_stays(sql):
    assert put(sql) == sqlglot.parse_one(sql, read="duckdb").sql("duckdb")
