"""What accepted questions are translated into, and that they still mean the same."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from discreet.errors import ParameterError, Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.compile.relations import output_sql
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.query import Aggregate, Query, canonical
from discreet.tables.sql.parse import parse

PEOPLE = Table(
    name="people",
    columns=(
        Column(name="user_id", type="BIGINT"),
        Column(name="region", type="VARCHAR", keys=("north", "south")),
        Column(name="city", type="VARCHAR"),
        Column(name="income", type="DOUBLE", bounds=(Fraction(0), Fraction(200_000))),
        Column(name="age", type="INTEGER"),
        Column(name="born", type="DATE"),
        Column(name="ok", type="BOOLEAN"),
        Column(name="Größe", type="DOUBLE"),
        Column(name="unit", type="VARCHAR"),
    ),
)
VISITS = Table(
    name="visits",
    columns=(
        Column(name="user_id", type="BIGINT"),
        Column(name="seen", type="TIMESTAMP"),
        Column(name="cost", type="DECIMAL(18,3)"),
        Column(name="city", type="VARCHAR"),
    ),
)
CITIES = Table(
    name="cities",
    columns=(
        Column(name="city", type="VARCHAR"),
        Column(name="country", type="VARCHAR", keys=("A", "B")),
        Column(name="size", type="INTEGER"),
    ),
    is_public=True,
)
CATALOG = Catalog(
    unit=Unit.column("user_id"),
    neighbours=Neighbours.add_remove,
    tables=(PEOPLE, VISITS, CITIES),
)


def ask(sql: str, catalog: Catalog = CATALOG, **more: Any) -> Query:
    return parse(sql, catalog, **more)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        found.execute(
            """
            CREATE TABLE people AS SELECT i // 2 AS user_id,
                CASE i % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' END AS region,
                'c' || (i % 5) AS city, CASE WHEN i % 7 > 0 THEN i * 1000.5 END::DOUBLE AS income,
                (18 + i % 60)::INTEGER AS age, DATE '1960-01-01' + (i * 97)::INTEGER AS born,
                i % 4 = 0 AS ok, 150 + i / 4 AS "Größe", 'u' || (i % 2) AS unit
            FROM range(120) AS t(i);
            CREATE TABLE visits AS SELECT i % 50 AS user_id,
                TIMESTAMP '2026-01-01' + INTERVAL (i * 9) HOUR AS seen,
                (i % 13)::DECIMAL(18,3) / 4 AS cost, 'c' || (i % 6) AS city
            FROM range(300) AS t(i);
            CREATE TABLE cities AS SELECT 'c' || i AS city, CASE WHEN i < 3 THEN 'A' ELSE 'B' END
                AS country, (i * 10)::INTEGER AS size FROM range(5) AS t(i);
            CREATE MACRO clamp(x, low, high) AS
                CASE WHEN x IS NULL THEN NULL ELSE least(greatest(x, low), high) END;
            """
        )
        yield found


NAMES = {
    "sum": "sum", "mean": "avg", "minimum": "min", "maximum": "max", "correlation": "corr",
    "count_values": "count",
}  # fmt: skip


def plainly(aggregate: Aggregate) -> str:
    """Return an aggregate as SQL over the rows of a query, without any noise."""
    values = ", ".join(f"value_{place}" for place in aggregate.values)
    ending = "samp" if aggregate.is_sample else "pop"
    match aggregate.kind:
        case "count":
            return "count(*)"
        case "count_units":
            return "count(DISTINCT unit)"
        case "count_distinct":
            return f"count(DISTINCT {values})"
        case "sum_distinct":
            return f"sum(DISTINCT {values})"
        case "variance":
            return f"var_{ending}({values})"
        case "deviation":
            return f"stddev_{ending}({values})"
        case "covariance":
            return f"covar_{ending}({values})"
        case "quantile":
            return f"quantile_cont({values}, {float(aggregate.quantile or 0)})"
        case kind:
            return f"{NAMES[kind]}({values})"


def answer(connection: duckdb.DuckDBPyConnection, query: Query) -> list[tuple[Any, ...]]:
    """Answer a query exactly, through its rows and its output."""
    keys = [f"key_{i}" for i in range(len(query.keys))]
    columns = keys + [f"{plainly(a)} AS aggregate_{i}" for i, a in enumerate(query.aggregates)]
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE released AS SELECT {', '.join(columns)} "
        f"FROM ({plan_sql(query.rows)}) {group}"
    )
    found = connection.execute(output_sql(query.output, DUCKDB))
    assert tuple(column[0] for column in found.description) == query.names
    return found.fetchall()


def same(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> bool:
    def close(x: Any, y: Any) -> bool:
        if isinstance(x, str) or x is None or y is None or not hasattr(x, "__float__"):
            return bool(x == y)
        return math.isclose(float(x), float(y), rel_tol=1e-9, abs_tol=1e-9)

    return len(one) == len(other) and all(
        len(a) == len(b) and all(map(close, a, b)) for a, b in zip(one, other, strict=True)
    )


MEANINGS = [
    "SELECT COUNT(*), COUNT(income), COUNT(DISTINCT city), COUNT(DISTINCT user_id) FROM people",
    "SELECT SUM(income), AVG(age), MIN(age), MAX(income), MEDIAN(age) FROM people WHERE age > 30",
    "SELECT VARIANCE(age), VAR_POP(age), STDDEV(income), STDDEV_POP(age), STDDEV_SAMP(age), "
    "CORR(age, income), COVAR_POP(age, income), COVAR_SAMP(income, age) FROM people",
    "SELECT QUANTILE_CONT(income, 0.25), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age), "
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age DESC) FROM people",
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC, region",
    "SELECT city, ok, SUM(age) / COUNT(*) AS r FROM people GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT city, ROUND(AVG(income), 2) AS pay FROM people GROUP BY ALL HAVING pay > 50000 "
    "ORDER BY pay DESC LIMIT 3 OFFSET 1",
    "SELECT LOWER(city) AS c, COUNT(*) FROM people GROUP BY c HAVING COUNT(*) > 3 "
    "ORDER BY LOWER(city)",
    "SELECT city || '!' AS c, COUNT(*) FROM people GROUP BY city ORDER BY 1",
    "SELECT age // 10 AS decade, COUNT(*) FROM people GROUP BY 1 ORDER BY 1",
    "SELECT CASE WHEN age < 30 THEN 'young' ELSE 'old' END AS g, AVG(CLAMP(income, 0, 50000)) "
    "FROM people GROUP BY g ORDER BY g",
    "SELECT EXTRACT(month FROM born) AS m, YEAR(born) > 1970 AS late, COUNT(*) FROM people "
    "GROUP BY m, late ORDER BY ALL",
    "SELECT DATE_TRUNC('year', seen) AS y, SUM(cost), AVG(cost) FROM visits GROUP BY y ORDER BY y",
    "SELECT COUNT(*) FILTER (WHERE ok), SUM(age) FILTER (WHERE age > 40), "
    "COUNT(DISTINCT city) FILTER (WHERE NOT ok) FROM people",
    "SELECT SUM(DISTINCT CLAMP(age, 0, 99)), AVG(DISTINCT CLAMP(income, 0, 1e5)), "
    "SUM(DISTINCT CLAMP(age, -5, 40)) FILTER (WHERE ok), COUNT(*) FROM people",
    "SELECT city, AVG(DISTINCT CLAMP(age, 0, 99)) AS a FROM people GROUP BY city ORDER BY city",
    "SELECT DISTINCT city FROM people ORDER BY city DESC",
    "SELECT city FROM people GROUP BY city ORDER BY city",
    "SELECT SUM(ok::INTEGER), AVG(CAST(ok AS INTEGER)), SUM(CASE WHEN ok THEN age END) FROM people",
    "SELECT SUM(age % 7), SUM(-age), SUM(ABS(age - 40)), SUM(age * 2 + 1), SUM(age / 3) "
    "FROM people",
    "SELECT SUM(SQRT(age)), SUM(LN(age)), SUM(LOG10(age)), SUM(LOG(age)), SUM(LOG2(age)), "
    "SUM(POWER(age, 2)), SUM(EXP(age / 100)), SUM(SIGN(age - 40)) FROM people",
    "SELECT SUM(ROUND(income / 7, 1)), SUM(FLOOR(income / 7)), SUM(CEIL(income / 7)) FROM people",
    "SELECT SUM(LEAST(age, 40, income)), SUM(GREATEST(income, 5000)), "
    "SUM(COALESCE(income, age)), SUM(NULLIF(age, 40)), SUM(IFNULL(income, -1)) FROM people",
    "SELECT SUM(LENGTH(city || region)), COUNT(*) FROM people WHERE city LIKE 'c%' AND "
    "city NOT LIKE '%4' AND NOT STARTS_WITH(city, 'c3') AND CONTAINS(city, 'c') "
    "OR region ILIKE 'N%'",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 40 AND born >= '1965-01-01' AND "
    "city IN ('c1', 'c2') AND region IS NOT NULL AND ok IS NOT TRUE AND age <> 33",
    "SELECT COUNT(*) FROM people WHERE born + INTERVAL 10 YEAR > DATE '1975-01-01'",
    "SELECT SUM(DATE_DIFF('month', born, DATE '2026-01-01')), SUM(DATE '2026-01-01' - born) "
    "FROM people",
    "SELECT SUBSTRING(city, 2, 1) AS s, RIGHT(unit, 1) AS r, COUNT(*) FROM people GROUP BY s, r "
    "ORDER BY s, r",
    "SELECT country, COUNT(*), SUM(size) FROM people JOIN cities USING (city) GROUP BY country "
    "ORDER BY country",
    "SELECT c.country, COUNT(*) FROM visits AS v LEFT JOIN cities AS c ON v.city = c.city "
    "AND c.size > 10 GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*), SUM(size) FROM people CROSS JOIN cities",
    "SELECT COUNT(*) FROM people, cities WHERE people.city = cities.city AND size > age",
    "SELECT COUNT(*) FROM cities AS c JOIN people AS p ON c.city = p.city OR c.size < p.age",
    "SELECT p.region, COUNT(*), SUM(v.cost) FROM people AS p JOIN visits AS v "
    "ON p.user_id = v.user_id AND v.cost > 1 GROUP BY p.region ORDER BY 1",
    "SELECT COUNT(v.cost), COUNT(*), COUNT(DISTINCT v.user_id) FROM people AS p "
    "LEFT JOIN visits AS v ON v.user_id = p.user_id",
    "SELECT COUNT(*) FROM people AS a JOIN people AS b USING (user_id) WHERE a.age < b.age",
    "WITH v AS (SELECT user_id, SUM(cost) AS total, COUNT(*) AS n, AVG(cost) AS mean, MIN(seen) AS "
    "first FROM visits GROUP BY user_id HAVING COUNT(*) > 2) SELECT region, AVG(total), SUM(n), "
    "SUM(mean), COUNT(first) FROM people JOIN v USING (user_id) GROUP BY region ORDER BY region",
    "WITH a AS (SELECT *, age + 1 AS next FROM people WHERE ok), "
    "b AS (SELECT a.*, next * 2 AS more FROM a) SELECT SUM(more), COUNT(DISTINCT user_id) FROM b",
    "SELECT AVG(n) FROM (SELECT user_id, city, COUNT(DISTINCT cost) AS n FROM visits "
    "GROUP BY user_id, city) AS t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, city FROM visits) AS t",
    "SELECT AVG(age) AS age FROM people HAVING COUNT(*) > 5",
    'SELECT unit, AVG("Größe") FROM people GROUP BY UNIT ORDER BY unit',
    "SELECT 100 * SUM(CASE WHEN ok THEN 1 ELSE 0 END) / COUNT(*) AS percent FROM people",
    "SELECT MAX(s) FROM (SELECT country, SUM(size) AS s FROM cities GROUP BY country) AS t, people",
    "SELECT COUNT(*) AS n, n * 2 AS twice, SUM(age) / twice AS r FROM people HAVING twice > 0",
    "FROM people SELECT COUNT(*)",
    "SELECT MIN(born), MAX(born), DATE_DIFF('day', MIN(born), MAX(born)) FROM people",
    "SELECT region, MAX(born + INTERVAL 1 HOUR) AS last FROM people GROUP BY region HAVING "
    "MIN(born) < '1962-01-01' ORDER BY last DESC",
    # Units that WHERE equates.
    "SELECT COUNT(*), SUM(v.cost) FROM people AS p, visits AS v WHERE p.user_id = v.user_id AND "
    "v.cost > 1",
    "SELECT COUNT(*) FROM people AS a, visits AS b, people AS c WHERE a.user_id = c.user_id AND "
    "b.user_id = c.user_id AND a.age > b.cost",
    "SELECT COUNT(*) FROM people AS p CROSS JOIN visits AS v WHERE v.user_id = p.user_id",
    "SELECT COUNT(*) FROM people AS p JOIN visits AS v ON p.city = v.city "
    "WHERE (p.user_id = v.user_id)",
    "SELECT COUNT(*) FROM people AS p, (SELECT user_id AS who, cost FROM visits) AS v, cities AS c "
    "WHERE p.user_id = who AND c.city = p.city AND cost > size / 10",
    "SELECT COUNT(*) FROM people AS a, visits AS b JOIN visits AS c ON b.user_id = c.user_id "
    "WHERE a.user_id = b.user_id",
    # IN and EXISTS.
    "SELECT COUNT(*), SUM(age) FROM people WHERE user_id IN (SELECT user_id FROM visits "
    "WHERE cost > 2)",
    "SELECT COUNT(*) FROM people WHERE user_id NOT IN (SELECT user_id FROM visits WHERE cost > 2) "
    "AND age > 20",
    "SELECT COUNT(*) FROM people WHERE user_id = ANY (SELECT user_id FROM visits WHERE cost > 2)",
    "SELECT region, COUNT(*) FROM people AS p WHERE EXISTS (SELECT * FROM visits AS v WHERE "
    "v.user_id = p.user_id AND v.cost > 2) GROUP BY region ORDER BY region",
    "SELECT COUNT(*) FROM people AS p WHERE NOT EXISTS (SELECT 1 FROM visits WHERE "
    "visits.user_id = p.user_id AND visits.city = p.city)",
    "SELECT COUNT(*) FROM people WHERE user_id IN (SELECT user_id FROM visits GROUP BY user_id "
    "HAVING SUM(cost) > 8)",
    "SELECT COUNT(*) FROM people WHERE user_id NOT IN (SELECT user_id FROM visits GROUP BY "
    "user_id, city HAVING COUNT(*) > 1)",
    "SELECT COUNT(*) FROM people WHERE city IN (SELECT city FROM cities WHERE size > 10)",
    "SELECT COUNT(*) FROM people WHERE NOT EXISTS (SELECT 1 FROM cities WHERE size > 10 AND "
    "cities.city = people.city)",
    "SELECT COUNT(*) FROM people WHERE (ok AND user_id IN (SELECT v.user_id FROM visits AS v JOIN "
    "cities AS c ON v.city = c.city WHERE c.size > 20)) AND age < 60",
    "SELECT COUNT(*) FROM people WHERE user_id IN (SELECT user_id FROM visits WHERE city IN "
    "(SELECT city FROM cities WHERE country = 'A') AND cost > 1)",
    "WITH rich AS (SELECT user_id, cost FROM visits WHERE cost > 2) SELECT AVG(age), COUNT(*) FROM "
    "people WHERE user_id IN (SELECT user_id FROM rich)",
    "SELECT SUM(n) FROM (SELECT user_id, COUNT(*) AS n FROM visits AS v WHERE EXISTS (SELECT 1 "
    "FROM people AS p WHERE p.user_id = v.user_id AND p.ok) GROUP BY user_id) AS t",
    "SELECT COUNT(*) FROM people AS p LEFT JOIN visits AS v ON p.user_id = v.user_id WHERE "
    "p.user_id IN (SELECT user_id FROM visits WHERE cost = 0) AND EXISTS (SELECT 1 FROM cities "
    "AS c WHERE c.city = p.city)",
    "SELECT COUNT_IF(age > 40), COUNT_IF(ok), SUM(age) FILTER (age > 40) FROM people",
    "SELECT MIN(DISTINCT age), MAX(DISTINCT income) FROM people",
    "SELECT REGR_SLOPE(age, income), REGR_R2(income, age), REGR_COUNT(income, age), "
    "REGR_AVGX(age, income), REGR_AVGY(income, age) FROM people",
    "SELECT REGR_INTERCEPT(age, income), REGR_SXX(income, age), REGR_SXY(income, age), "
    "REGR_SYY(income, age), SKEWNESS(age), KURTOSIS(age), SKEWNESS(age) FILTER (age > 40) "
    "FROM people",
    "SELECT region, WEEK(born) AS w, COUNT(*) FROM people GROUP BY ALL ORDER BY ALL",
    "WITH p AS (SELECT 40 AS low), q AS (SELECT 'x' AS region) SELECT COUNT(*), SUM(income) "
    "FROM p, people, q WHERE age > low AND people.region <> q.region",
    "WITH seen AS (SELECT * FROM people AS p JOIN visits AS v ON p.user_id = v.user_id "
    "WHERE age > 30) SELECT COUNT(*), SUM(cost) FROM seen",
    "(SELECT COUNT(*) FROM people);",
]


@pytest.mark.parametrize("sql", MEANINGS)
def test_a_translated_question_has_the_answer_that_duckdb_gives(
    connection: duckdb.DuckDBPyConnection, sql: str
) -> None:
    expected = connection.execute(sql).fetchall()
    assert same(answer(connection, ask(sql)), expected)


# Words of other databases, and what they mean in DuckDB's.
WORDS = {
    "SELECT VAR(age), STD(income), STDEV(age), STDEVP(age), VARP(age), VARIANCE_POP(age) "
    "FROM people":
        "SELECT VAR_SAMP(age), STDDEV(income), STDDEV(age), STDDEV_POP(age), VAR_POP(age), "
        "VAR_POP(age) FROM people",
    "SELECT COUNTIF(age > 40), APPROX_COUNT_DISTINCT(city), APPROX_DISTINCT(user_id) FROM people":
        "SELECT COUNT_IF(age > 40), COUNT(DISTINCT city), COUNT(DISTINCT user_id) FROM people",
    "SELECT APPROX_QUANTILES(age, 100)[OFFSET(90)], APPROX_QUANTILES(age, 4)[SAFE_OFFSET(0)], "
    "APPROX_QUANTILES(age, 4)[ORDINAL(2)] FROM people":
        "SELECT QUANTILE_CONT(age, 0.9), MIN(age), QUANTILE_CONT(age, 0.25) FROM people",
    "SELECT COUNT(DISTINCT city, ok, age) FROM people":
        "SELECT COUNT(*) FROM (SELECT DISTINCT city, ok, age FROM people "
        "WHERE city IS NOT NULL AND ok IS NOT NULL AND age IS NOT NULL)",
    "SELECT COUNT(DISTINCT city, age) FILTER (WHERE ok) FROM people":
        "SELECT COUNT(*) FROM (SELECT DISTINCT city, age FROM people "
        "WHERE city IS NOT NULL AND age IS NOT NULL AND ok)",
    "SELECT SUM(n) FROM (SELECT user_id, COUNT(DISTINCT city, cost) AS n FROM visits "
    "GROUP BY user_id)":
        "SELECT COUNT(*) FROM (SELECT DISTINCT user_id, city, cost FROM visits "
        "WHERE user_id IS NOT NULL AND city IS NOT NULL AND cost IS NOT NULL)",
    "SELECT APPROX_MEDIAN(age), APPROX_PERCENTILE(age, 0.9), COVAR(age, income) FROM people":
        "SELECT MEDIAN(age), QUANTILE_CONT(age, 0.9), COVAR_SAMP(age, income) FROM people",
    "SELECT IFF(SUM(age) > 0, 1, 0), SAFE_DIVIDE(SUM(age), COUNT(*)), ZEROIFNULL(SUM(income)), "
    "DIV0(COUNT(*), 0) FROM people":
        "SELECT 1, AVG(age), SUM(income), 0 FROM people",
    "SELECT TO_CHAR(born, 'YYYY') AS y, COUNT(*) FROM people GROUP BY TO_CHAR(born, 'YYYY') "
    "HAVING COUNTIF(ok) > 0 ORDER BY 1":
        "SELECT STRFTIME(born, '%Y') AS y, COUNT(*) FROM people GROUP BY 1 "
        "HAVING COUNT_IF(ok) > 0 ORDER BY 1",
    "SELECT DATE_TRUNC(born, YEAR) AS y, COUNT(*) FROM people GROUP BY DATE_TRUNC(born, YEAR) "
    "ORDER BY y":
        "SELECT DATE_TRUNC('year', born)::TIMESTAMP AS y, COUNT(*) FROM people GROUP BY 1 "
        "ORDER BY y",
    "SELECT DATEPART(month, born) AS m, COUNT(*) FROM people GROUP BY DATEPART(month, born) "
    "ORDER BY m":
        "SELECT MONTH(born) AS m, COUNT(*) FROM people GROUP BY 1 ORDER BY m",
}  # fmt: skip


@pytest.mark.parametrize(("sql", "meaning"), WORDS.items())
def test_words_of_other_databases_have_the_answer_that_is_meant(
    connection: duckdb.DuckDBPyConnection, sql: str, meaning: str
) -> None:
    expected = connection.execute(meaning).fetchall()
    assert same(answer(connection, ask(sql)), expected)


SCALARS = [
    "DAYOFWEEK(seen)", "WEEKDAY(seen)", "ISODOW(seen)", "WEEK(seen)", "DAYOFYEAR(seen)",
    "HOUR(seen)", "QUARTER(seen)", "DATE_PART('dow', seen)", "MINUTE(seen)", "DAY(seen)",
    "EXTRACT(isoyear FROM seen)", "DATE_TRUNC('week', seen)", "DATE_TRUNC('month', seen::DATE)",
    "DATE(seen)", "CAST(seen AS VARCHAR)", "seen - INTERVAL 3 MONTH", "INTERVAL 2 DAY + seen",
    "DATE_DIFF('week', seen, TIMESTAMP '2026-03-01 00:00:00')", "DATEDIFF('hour', seen, seen)",
    "cost::DOUBLE // 0.7 >= 0", "cost > 1.25", "cost = 1.25", "cost::INTEGER", "cost::DOUBLE",
    "cost IS NOT NULL", "CEILING(cost)", "TRUNC(cost)", "-cost", "cost::DOUBLE % 2", "ROUND(cost)",
    "user_id // 7", "-user_id // 7", "-user_id % 7", "CAST(user_id AS VARCHAR) || city",
    "CONCAT(city, NULL, 'x')", "LTRIM(city, 'c')", "RTRIM(city)", "TRIM(BOTH 'c' FROM city)",
    "REPLACE(city, 'c', 'CC')", "LEFT(city, 1)", "LEFT(city, -1)", "UPPER(city) = 'C1'",
    "SUFFIX(city, '1')", "ENDS_WITH(city, '2')", "PREFIX(city, 'c')", "city ILIKE 'C_'",
    "IF(cost > 1, 'dear', 'cheap')", "CASE city WHEN 'c1' THEN 1 WHEN 'c2' THEN 2 END",
    "city IS DISTINCT FROM 'c1'", "city NOT IN ('c1', 'c2')", "cost NOT BETWEEN 1 AND 2",
    "CAST('12' AS INTEGER) + user_id", "TRY_CAST(city AS DOUBLE)", "SUBSTR(city, -1)",
    "NULLIF(city, 'c1')", "COALESCE(NULLIF(city, 'c1'), 'none')", "user_id ** 2", "NOT cost > 1",
    "LEAST(city, 'c3')", "GREATEST(seen, TIMESTAMP '2026-02-01 00:00:00')", "user_id = 3 OR NULL",
    "CAST(user_id % 2 AS BOOLEAN)", "user_id IN (1, 2, 3)", "1e2 + user_id", "user_id > 1_0",
]  # fmt: skip


@pytest.mark.parametrize("expression", SCALARS)
def test_a_scalar_expression_means_what_it_means_in_duckdb(
    connection: duckdb.DuckDBPyConnection, expression: str
) -> None:
    sql = f"SELECT {expression} AS k, COUNT(*) FROM visits GROUP BY k ORDER BY k"
    assert same(answer(connection, ask(sql)), connection.execute(sql).fetchall())


@pytest.mark.parametrize(
    "expression",
    ["1 / (age - age)", "age % (age - age)", "age // (age - age)", "LN(-age)", "SQRT(-age)",
     "LOG2(age - age)", "CAST(city AS DOUBLE)", "CAST(1e30 * age AS BIGINT)", "POWER(-age, 0.5)"],
)  # fmt: skip
def test_what_has_no_value_is_null(connection: duckdb.DuckDBPyConnection, expression: str) -> None:
    rows = connection.execute(
        plan_sql(ask(f"SELECT SUM({expression}) FROM people").rows)
    ).fetchall()
    assert {value for _, value in rows} == {None}


@pytest.mark.parametrize(
    "types", [("BIGINT", "HUGEINT"), ("UBIGINT", "TINYINT"), ("UUID", "VARCHAR")]
)
def test_units_of_different_types_are_compared_without_an_error(types: tuple[str, str]) -> None:
    tables = tuple(
        Table(name=name, columns=(Column(name="id", type=declared),))
        for name, declared in zip(("a", "b"), types, strict=True)
    )
    catalog = replace(CATALOG, unit=Unit.column("id"), tables=tables)
    query = ask("SELECT COUNT(*) FROM a JOIN b USING (id)", catalog)
    with duckdb.connect() as c:
        c.execute(f"CREATE TABLE a (id {types[0]}); CREATE TABLE b (id {types[1]})")
        if types[0] == "UUID":
            c.execute("INSERT INTO a SELECT gen_random_uuid(); INSERT INTO b VALUES ('no uuid')")
        else:
            c.execute("INSERT INTO a VALUES (9223372036854775807); INSERT INTO b VALUES (-1)")
        assert c.execute(plan_sql(query.rows)).fetchall() == []


def test_a_histogram_is_a_known_key_with_its_edges(connection: duckdb.DuckDBPyConnection) -> None:
    query = ask(
        "SELECT ok, HISTOGRAM(age, 20, 70, 5) AS h FROM people GROUP BY ok "
        "HAVING h >= 0 ORDER BY h DESC"
    )
    assert query.names == ("ok", "h_from", "h_to", "h")
    assert query.key_names == ("ok", "h_from", "h_to")
    assert query.keys[1].values == (0, 1, 2, 3, 4)
    rows = answer(connection, query)
    assert sum(row[3] for row in rows) == 120
    assert [row[3] for row in rows] == sorted((row[3] for row in rows), reverse=True)
    first = [row for row in rows if row[1] == 20 and row[0] is True]
    assert first[0][2:] == (
        30.0,
        connection.execute("SELECT COUNT(*) FROM people WHERE ok AND age < 30").fetchall()[0][0],
    )


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("region", ("north", "south")),
        ("city", None),
        ("age", None),
        ("ok", (False, True, None)),
        ("age > 5", (False, True, None)),
        ("age IS NULL", (False, True)),
        ("MONTH(born)", (*range(1, 13), None)),
        ("EXTRACT(quarter FROM born)", (1, 2, 3, 4, None)),
        ("DAYOFWEEK(born)", (*range(7), None)),
        ("YEAR(born)", None),
        ("CASE WHEN ok THEN 'a' WHEN age > 3 THEN 'b' ELSE 'a' END", ("a", "b")),
        ("CASE WHEN ok THEN 1 END", (1, None)),
        ("CASE WHEN ok THEN city ELSE 'x' END", None),
        ("COALESCE(CASE WHEN ok THEN 1 END, 0)", (1, 0)),
    ],
)
def test_keys_are_known_where_their_values_are_public(
    key: str, values: tuple[object, ...] | None
) -> None:
    query = ask(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k")
    assert query.keys[0].values == values
    assert query.keys[0].name == "k"


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("city IN ('b', 'a', 'b')", ("b", "a")),
        ("city = 'a'", ("a",)),
        ("'a' = city AND age > 3", ("a",)),
        ("city IN ('a', 'b') AND (city = 'b')", ("b",)),
        ("city = 'b' AND city IN ('a', 'b')", ("b",)),
        ("city IN ('a', NULL)", ("a",)),
        ("city = 'a' OR city = 'b'", None),
        ("NOT city = 'a'", None),
        ("city > 'a'", None),
        ("LOWER(city) = 'a'", None),
    ],
)
def test_keys_are_known_where_the_question_lists_them(
    where: str, values: tuple[object, ...] | None
) -> None:
    assert ask(f"SELECT city FROM people WHERE {where} GROUP BY 1").keys[0].values == values


def test_listed_keys_have_the_type_of_their_column() -> None:
    query = ask(
        "SELECT age, income, born, COUNT(*) FROM people WHERE age IN (1, 2.0) "
        "AND income IN (1, 2.5) AND born = '2026-01-31' GROUP BY ALL"
    )
    assert [key.values for key in query.keys] == [(1, 2), (1.0, 2.5), ("2026-01-31",)]
    assert [type(v) for v in query.keys[0].values or ()] == [int, int]
    assert [key.type for key in query.keys] == ["int32", "double", "date"]


@pytest.mark.parametrize(
    ("expression", "bounds", "is_whole"),
    [
        ("income", (0, 200_000), False),
        ("age", None, True),
        ("CLAMP(age, 0, 120)", (0, 120), True),
        ("CLAMP(income, -5, 1e5)", (0, 100_000), False),
        ("LEAST(GREATEST(age, 18), 99)", (18, 99), True),
        ("LEAST(age, 99)", None, True),
        ("2 * CLAMP(age, 0, 120) - 20", (-20, 220), True),
        ("CLAMP(age, 0, 120) / 4", (0, 30), False),
        ("CASE WHEN ok THEN 5 ELSE -1.5 END", (-1.5, 5), False),
        ("ok", (0, 1), True),
        ("age > 18", (0, 1), True),
        ("MONTH(born)", (1, 12), True),
        ("POWER(CLAMP(age, -3, 2), 2)", (0, 9), True),
        ("ABS(CLAMP(age, -3, 2))", (0, 3), True),
        ("CLAMP(age, 1, 9) % 5", (0, 5), True),
        ("FLOOR(CLAMP(income, 0.5, 2.5))", (0, 3), True),
        ("ROUND(CLAMP(income, 0.26, 2.31), 1)", (0.2, 2.4), False),
        ("COALESCE(CLAMP(age, 1, 2), 9)", (1, 9), True),
        ("LENGTH(city)", None, True),
    ],
)
def test_bounds_follow_from_literals_and_declarations(
    expression: str, bounds: tuple[float, float] | None, is_whole: bool
) -> None:
    (value,) = ask(f"SELECT SUM({expression}) FROM people").values
    found = None if value.bounds is None else tuple(float(end) for end in value.bounds)
    assert found == (None if bounds is None else tuple(map(float, bounds)))
    assert value.is_whole is is_whole


def test_equal_aggregates_and_values_are_shared() -> None:
    query = ask(
        "SELECT AVG(age), SUM(age), SUM(p.AGE) / COUNT(*), COUNT(*) FROM people AS p "
        "HAVING COUNT(*) > 5 ORDER BY AVG(age)"
    )
    assert [value.text for value in query.values] == ["age"]
    assert [aggregate.kind for aggregate in query.aggregates] == ["mean", "sum", "count"]


SAME = "SELECT region, AVG(income) FROM people AS p WHERE age > 3 AND ok GROUP BY region"


@pytest.mark.parametrize(
    "other",
    [
        "select  region,avg(income)\nfrom people as p where age>3 and ok group by region;",
        "SELECT q.region, AVG(q.income) FROM people q WHERE q.age > 3 AND q.ok GROUP BY q.region",
        "SELECT region, AVG(income) FROM People WHERE ok AND (AGE > 3) GROUP BY 1 -- remark",
        'SELECT "region", AVG("Income") FROM "PEOPLE" WHERE ok AND age > 3 GROUP BY ALL',
        "WITH unused AS (SELECT cost FROM visits) " + SAME,
    ],
)
def test_questions_that_differ_in_writing_only_are_equal(other: str) -> None:
    assert ask(other) == ask(SAME)
    assert canonical(ask(other)) == canonical(ask(SAME))


def test_the_canonical_text_tells_different_questions_apart() -> None:
    one, other = ask(SAME), ask(SAME.replace("3", "4"))
    assert canonical(one) != canonical(other)
    assert json.loads(canonical(one))["values"][0]["bounds"] == ["0", "200000"]
    assert canonical(one) != canonical(replace(one, unit_is_row=True))


def test_names_of_an_answer_are_unique_and_free_of_table_names() -> None:
    query = ask("SELECT AVG(p.age), COUNT(*), p.ok, 1 AS n, 2 AS N FROM people AS p GROUP BY ok")
    assert query.names == ("avg(age)", "count(*)", "ok", "n", "N_1")
    assert query.key_names == ("ok",)


def test_only_the_unit_of_the_row_itself_counts_units() -> None:
    public = Table(name="known", columns=(Column(name="user_id", type="BIGINT"),), is_public=True)
    catalog = replace(CATALOG, tables=(*CATALOG.tables, public))
    query = ask(
        "SELECT COUNT(DISTINCT p.user_id), COUNT(DISTINCT k.user_id), COUNT(DISTINCT v.user_id) "
        "FROM people AS p JOIN known AS k ON p.age = k.user_id "
        "LEFT JOIN visits AS v ON p.user_id = v.user_id",
        catalog,
    )
    kinds = [aggregate.kind for aggregate in query.aggregates]
    assert kinds == ["count_units", "count_distinct", "count_distinct"]


def test_a_record_is_a_unit_of_its_own() -> None:
    catalog = replace(CATALOG, unit=Unit.record())
    query = ask("SELECT COUNT(*), COUNT(DISTINCT user_id) FROM people", catalog)
    assert query.unit_is_row
    assert "unit" not in plan_sql(query.rows).replace("user_id", "")
    assert [aggregate.kind for aggregate in query.aggregates] == ["count", "count_distinct"]


def test_rows_of_a_period_belong_to_the_unit_in_that_period(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    for period, labels, condition in [
        ("month", ["2026-02", "2026-01"], "seen < TIMESTAMP '2026-03-01'"),
        ("year", ["2026"], "year(seen) = 2026"),
        ("day", ["2026-01-03"], "seen::DATE = DATE '2026-01-03'"),
        ("week", ["2026-W02"], "seen >= TIMESTAMP '2026-01-05' AND seen < TIMESTAMP '2026-01-12'"),
    ]:
        catalog = replace(CATALOG, unit=Unit.column("user_id").per(period))
        query = ask("SELECT COUNT(*) FROM visits", catalog, periods=labels)
        found = connection.execute(f"SELECT unit FROM ({plan_sql(query.rows)})").fetchall()
        label = {"month": "%Y-%m", "year": "%Y", "day": "%Y-%m-%d", "week": "%G-W%V"}[period]
        expected = connection.execute(
            f"SELECT strftime(seen, '{label}') || '|' || user_id FROM visits WHERE {condition}"
        ).fetchall()
        assert sorted(found) == sorted(expected) != []
    with pytest.raises(ParameterError):
        ask("SELECT COUNT(*) FROM visits", catalog, periods=["soon"])


def test_private_rows_are_joined_within_one_unit_and_period_only(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    catalog = replace(CATALOG, unit=Unit.column("user_id").per("month"))
    query = ask(
        "SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (user_id)",
        catalog,
        periods=["2026-01", "2026-02"],
    )
    expected = connection.execute(
        "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.user_id = b.user_id AND "
        "date_trunc('month', a.seen) = date_trunc('month', b.seen) "
        "WHERE a.seen < TIMESTAMP '2026-03-01'"
    ).fetchall()
    assert answer(connection, query) == expected


def test_a_sum_within_a_unit_does_not_depend_on_the_order_of_rows() -> None:
    query = ask(
        "SELECT SUM(s) FROM (SELECT user_id, SUM(income) AS s, AVG(income) AS a FROM people "
        "GROUP BY user_id) AS t"
    )
    found = set()
    for order in ("x", "-x", "abs(x)"):
        with duckdb.connect() as c:
            c.execute(
                "CREATE TABLE people AS SELECT 1::BIGINT AS user_id, x AS income FROM (VALUES "
                "(1e16::DOUBLE), (1.0), (-1e16), (1e-3), ('inf'::DOUBLE), (NULL), ('nan'::DOUBLE), "
                f"(3.3)) AS t(x) ORDER BY {order}"
            )
            found.add(c.execute(plan_sql(query.rows)).fetchall()[0])
    assert len(found) == 1
    (_, total) = found.pop()
    assert total == pytest.approx(2.0**60 + 4.301, rel=1e-12)


@pytest.mark.lengthy
def test_a_question_of_usual_length_may_list_many_keys() -> None:
    listed = ", ".join(str(i) for i in range(2000))
    query = ask(f"SELECT age, COUNT(*) FROM people WHERE age IN ({listed}) GROUP BY age")
    assert len(query.keys[0].values or ()) == 2000


def test_a_question_cannot_grow_beyond_measure() -> None:
    parts = ["c0 AS (SELECT user_id, income * income AS x FROM people)"]
    for i in range(1, 12):
        parts.append(
            f"c{i} AS (SELECT a.user_id, a.x * b.x AS x FROM c{i - 1} AS a JOIN c{i - 1} AS b "
            "USING (user_id))"
        )
    with pytest.raises(Refused) as caught:
        ask(f"WITH {', '.join(parts)} SELECT SUM(x) FROM c11")
    assert caught.value.code == "too_complex"
    nested = "CLAMP(" * 40 + "income" + ", 0, 1)" * 40
    with pytest.raises(Refused) as caught:
        ask(f"SELECT SUM({nested}) FROM people")
    assert caught.value.code == "too_complex"


def test_names_follow_the_rules_of_duckdb_for_case() -> None:
    catalog = Catalog(
        unit=Unit.column("ID"),
        neighbours=Neighbours.add_remove,
        tables=(
            Table(
                name='odd "table"',
                columns=(
                    Column(name="id", type="UUID"),
                    Column(name="Ü", type="INTEGER"),
                    Column(name="ü", type="DOUBLE"),
                ),
            ),
        ),
    )
    query = ask('SELECT SUM("Ü"), SUM("ü") FROM "ODD ""table"""', catalog)
    assert [value.column for value in query.values] == ["Ü", "ü"]
    assert '"odd ""table"""' in plan_sql(query.rows)


@pytest.mark.lengthy
def test_the_parser_is_loaded_only_when_someone_asks() -> None:
    import subprocess
    import sys

    code = "import sys, discreet.tables.sql.parse; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
