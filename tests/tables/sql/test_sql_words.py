"""Words of SQL mean what they mean in DuckDB, row by row, whatever stands in the rows."""

import itertools
import math
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.sql.parse import parse

VALUES = {
    "x": ("DOUBLE", ["'nan'", "'inf'", "'-inf'", "1.7976931348623157e308", "5e-324", "-0.0", "0.5",
                     "-2.5", "0.06", "1e15", "100"]),
    "n": ("INTEGER", ["0", "1", "-1", "3", "7", "2147483647", "-2147483648", "1000"]),
    "b": ("BIGINT", ["9223372036854775807", "-9223372036854775808", "0", "60", "1700000000"]),
    "p": ("DECIMAL(15,2)", ["0.05", "0.06", "0.07", "19.99", "-0.01", "9999999.99", "0"]),
    "s": ("VARCHAR", ["''", "'a'", "'a-b-c'", "'North'", "' pad '", "'é😀%_'", "'12'", "'-3.5e2'",
                      "'nan'", "'2026-01-31'", "'2026-02-31'", "'2026-01-31 07:08:09'", "'true'",
                      "repeat('ab', 5000)", "chr(0)", "'a\nb'"]),
    "r": ("VARCHAR", ["'a'", "''", "'-'", "'2026-01-31'"]),
    "d": ("DATE", ["'2024-02-29'", "'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'2026-12-31'",
                   "'1969-12-31'"]),
    "t": ("TIMESTAMP", ["'2024-02-29 23:59:59.999999'", "'1969-12-31 23:59:59.5'", "'0001-01-01'",
                        "'9999-12-31 23:59:59.999999'", "'2026-11-01 08:05:03'"]),
    "ok": ("BOOLEAN", ["TRUE", "FALSE"]),
    "z": ("TIMESTAMPTZ", ["'2024-03-31 01:00:00+00'", "'2024-10-27 00:30:00+00'",
                          "'0001-01-01 00:00:00+00'", "'9999-12-31 23:59:59.999999+00'",
                          "'1900-01-01 00:00:00+00'", "'2050-07-01 12:00:00.5+00'", "'infinity'"]),
}  # fmt: skip
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(
        Table(
            name="odd",
            columns=(
                Column(name="id", type="BIGINT"),
                *(Column(name=name, type=type_) for name, (type_, _) in VALUES.items()),
            ),
        ),
    ),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Rows with every value of every column, NULL too, beside changing values of the others."""
    with duckdb.connect() as found:
        declared = ", ".join(f"{name} {type_}" for name, (type_, _) in VALUES.items())
        found.execute(f"CREATE TABLE odd (id BIGINT, {declared})")
        listed = {name: [*values, "NULL"] for name, (_, values) in VALUES.items()}
        for row in range(60):  # numbers of values that share few factors meet in many ways
            cells = [values[row % len(values)] for values in listed.values()]
            found.execute(f"INSERT INTO odd VALUES ({row}, {', '.join(cells)})")
        # A NaN is no value here.
        found.execute("CREATE VIEW plain AS SELECT * REPLACE (nullif(x, 'nan') AS x) FROM odd")
        yield found


def compared(connection: duckdb.DuckDBPyConnection, words: str, meaning: str) -> None:
    """Hold the value of an expression in each row against what DuckDB makes of its meaning."""
    rows = parse(f"SELECT {words} AS k, COUNT(*) FROM odd GROUP BY k", CATALOG).rows
    found = dict(connection.execute(plan_sql(rows)).fetchall())
    wanted = dict(connection.execute(f"SELECT id, TRY({meaning}) FROM plain").fetchall())
    assert len(found) == len(wanted) == 60
    assert not all(value is None for value in wanted.values())
    for row, value in wanted.items():
        assert same(found[row], value), (row, found[row], value)


def same(one: Any, other: Any) -> bool:
    if isinstance(other, float) and math.isnan(other):
        other = None
    if isinstance(other, str) and re.match(r"\d{5}-\d\d-|.*\(BC\)", other):
        other = None  # only years 1 to 9999 are kept
    if isinstance(other, date) and isinstance(one, datetime) and not isinstance(other, datetime):
        other = datetime.combine(other, datetime.min.time())
    if one is None or other is None or isinstance(other, str | date | bool):
        return bool(one == other) and type(one) is type(other)
    return math.isclose(float(one), float(other), rel_tol=1e-12)


NUMBERS = [
    "0.06 - 0.01", "0.06 + 0.01", "0.1 + 0.2", "3 * 0.1", "1.1 * 1.1", "1 / 3", "7 / 2",
    "0.1 / 0.3", "2 - 0.9 - 1.1", "-0.3 + 0.1", "1e2 + 1", "10 % 3", "100 * 1.15",
]  # fmt: skip
SIGNS = ["=", "<", "<=", ">", ">=", "<>"]


@pytest.mark.lengthy
@pytest.mark.parametrize("column", ["x", "n", "p"])
def test_written_numbers_are_decimals_as_in_sql(
    connection: duckdb.DuckDBPyConnection, column: str
) -> None:
    for literal, sign in itertools.product(NUMBERS, SIGNS):
        words = f"{column} {sign} {literal}"
        compared(connection, words, words)
    for low, high in itertools.pairwise(NUMBERS):
        words = f"{column} BETWEEN {low} AND {high}"
        compared(connection, words, words)


EXACT = [
    "p + 0.01 = 0.07", "p - 0.01 = 0.05", "p * 1.1 = 0.066", "p + p = 0.12", "p * p = 0.0036",
    "p * 100 = 6", "FLOOR(p * 100)", "CEIL(p * 100)", "ROUND(p * 1.1, 1)", "TRUNC(p * 100)",
    "n * 0.1 = 0.3", "n * 0.1 IN (0.3, 0.7)", "n * 0.1 + 0.2 <= 0.5", "0.3 - n * 0.1 >= 0",
    "p * (1 - 0.1) < 0.054", "p * (1 - 0.1) <= 0.054", "-p * 3 = -0.18", "ABS(p) * 3 = 0.21",
    "CASE WHEN ok THEN p * 3 ELSE 0.21 END = 0.21", "COALESCE(p * 3, 0.1) >= 0.21",
    "GREATEST(p * 3, 0.1) = 0.15", "n * 0.1 * 3", "p BETWEEN n * 0.01 AND n * 0.02",
    "x * 3 = 0.18", "x + 0.01 = 0.07", "p * 100 % 7", "p % 0.05", "n * 0.1 % 0.1 = 0",
]  # fmt: skip


@pytest.mark.parametrize("words", EXACT)
def test_decimals_are_computed_exactly_and_doubles_as_doubles(
    connection: duckdb.DuckDBPyConnection, words: str
) -> None:
    compared(connection, words, words)


@pytest.mark.parametrize(
    "literal",
    ["1e300 * 1e300", "-1e300 * 1e300", "1e300 / 1e-300", "1 / 1e-400", "NULL / 2", "2 * NULL",
     "1 / 0", "0 / 0", "1e-300 * 1e-300"],
)  # fmt: skip
def test_written_numbers_of_any_size_can_be_computed(
    connection: duckdb.DuckDBPyConnection, literal: str
) -> None:
    rows = parse(f"SELECT n > {literal} AS k, COUNT(*) FROM odd GROUP BY k", CATALOG).rows
    wanted = {"1e300 * 1e300": False, "-1e300 * 1e300": True, "1e300 / 1e-300": False}
    found = dict(connection.execute(plan_sql(rows)).fetchall())
    assert found[3] is wanted.get(literal, True if literal.startswith("1e-300") else None)


# Words as DuckDB has them, and words of other databases with what they mean in DuckDB's.
SAME = [
    "POSITION('a' IN s)", "STRPOS(s, 'b')", "INSTR(s, r)", "SPLIT_PART(s, '-', 2)",
    "SPLIT_PART(s, '-', -1)", "LPAD(s, 4, '0')", "RPAD(s, 7, 'xy')", "LPAD(s, 0, ' ')",
    "REVERSE(s)", "STRLEN(s)", "s LIKE '%!%!_' ESCAPE '!'", "s NOT LIKE '%!_%' ESCAPE '!'",
    "r || n", "n || '-' || ok", "CONCAT(ok, d, NULL)",
    "REGEXP_MATCHES(s, 'a.b')", "s SIMILAR TO '[a-c-]+'", "REGEXP_FULL_MATCH(s, '.*')",
    "REGEXP_MATCHES(s, 'NORTH', 'i')", "REGEXP_EXTRACT(s, '(\\w)-(\\w)', 2)",
    "REGEXP_EXTRACT(s, '\\d{1,3}')", "REGEXP_EXTRACT(s, '(x)?b', 1)", "REGEXP_MATCHES(s, '^$')",
    "EPOCH(t)", "EPOCH(d)", "EXTRACT(epoch FROM t)", "LAST_DAY(d)", "LAST_DAY(t)",
    "STRFTIME(t, '%Y-%m-%d %H:%M:%S')", "STRFTIME(d, '%b %d, %j')", "STRFTIME(t, '%A %-d %B %y')",
    "STRFTIME(d, '%G-W%V-%u')", "MONTHNAME(d)", "DAYNAME(t)", "TRY_STRPTIME(s, '%Y-%m-%d')",
    "TRY_STRPTIME(s, '%Y-%m-%d %H:%M:%S')", "d + 7", "d - 30", "7 + d", "d + INTERVAL '3 months'",
    "DATE_ADD(d, INTERVAL 1 MONTH)", "t - INTERVAL '90' DAY", "t + INTERVAL 100000 SECOND",
    "t + INTERVAL '-1' HOUR", "SIN(x)", "COS(n)", "TAN(n)", "ATAN(x)", "ATAN2(x, n)", "ASIN(x)",
    "ACOS(x)", "PI()", "RADIANS(n)", "DEGREES(n)", "CBRT(n)", "ROUND(p, 1)", "ROUND(n, -2)",
    "TRUNC(p, 1)", "DATE_TRUNC('minute', t)",
    "EXTRACT(minute FROM t)", "DATE_DIFF('day', d, t)", "MOD(n, 3)",
    "TIME_BUCKET(INTERVAL 15 MINUTE, t)", "TIME_BUCKET(INTERVAL '7 hours', t)",
    "TIME_BUCKET(INTERVAL 2 WEEK, d)", "TIME_BUCKET(INTERVAL '1' MONTH, d)",
    "TIME_BUCKET(INTERVAL '3 months', t)", "TIME_BUCKET(INTERVAL 1 YEAR, t)",
    "TIME_BUCKET(INTERVAL 13 SECOND, t)",
]  # fmt: skip
MEANT = {
    "TO_CHAR(t, 'YYYY-MM-DD HH24:MI:SS')": "strftime(t, '%Y-%m-%d %H:%M:%S')",
    "TO_CHAR(d, 'Mon DD, YYYY')": "strftime(d, '%b %d, %Y')",
    "TO_CHAR(t, 'yyyy-mm-dd\"T\"hh24:mi')": "strftime(t, '%Y-%m-%dT%H:%M')",
    "FORMAT_DATE('%F', d)": "strftime(d, '%Y-%m-%d')",
    "DATE_FORMAT(t, '%Y-%m-%d %H:%i:%s')": "strftime(t, '%Y-%m-%d %H:%M:%S')",
    "s ~ '^[aN]'": "regexp_matches(s, '^[aN]')",
    "s !~* 'north'": "NOT regexp_matches(s, 'north', 'i')",
    "REGEXP_CONTAINS(s, '\\d')": "regexp_matches(s, '\\d')",
    "REGEXP_REPLACE(s, '(.)-', '<\\1>', 'g')":
        "CASE WHEN length(s) < 9999 THEN regexp_replace(s, '(.)-', '<\\1>', 'g') END",
    "REGEXP_REPLACE(s, 'b|é', '')":
        "CASE WHEN length(s) <= 10000 THEN regexp_replace(s, 'b|é', '') END",
    "CONCAT_WS('--', s, n, r)":
        "CASE WHEN length(s) < 9000 OR s IS NULL THEN concat_ws('--', s, n, r) END",
    "SPLIT(s, '-')[OFFSET(1)]": "split_part(s, '-', 2)",
    "STRING_SPLIT(s, '-')[1]": "split_part(s, '-', 1)",
    "n BETWEEN SYMMETRIC 3 AND 0": "n BETWEEN 0 AND 3",
    "HOUR(t AT TIME ZONE 'UTC')": "hour(t)",
    "CHARINDEX('a', s)": "instr(s, 'a')",
    "LOCATE('-', s)": "instr(s, '-')",
    "TO_DATE(s, 'YYYY-MM-DD')": "try_strptime(s, '%Y-%m-%d')::DATE",
    "TO_DATE(s)": "try_cast(s AS DATE)",
    "PARSE_DATE('%Y-%m-%d', s)": "try_strptime(s, '%Y-%m-%d')::DATE",
    "IFF(n > 0, 'up', s)": "CASE WHEN n > 0 THEN 'up' ELSE s END",
    "IF(n > 0, n, NULL)": "CASE WHEN n > 0 THEN n END",
    "NVL(n, 5)": "coalesce(n, 5)",
    "DECODE(n, 0, 'none', 3, s, 'many')":
        "CASE WHEN n = 0 THEN 'none' WHEN n = 3 THEN s ELSE 'many' END",
    "DECODE(n, NULL, -1, 7, 1)": "CASE WHEN n IS NULL THEN -1 WHEN n = 7 THEN 1 END",
    "NVL2(n, 1, 0)": "CASE WHEN n IS NOT NULL THEN 1 ELSE 0 END",
    "ZEROIFNULL(n)": "coalesce(n, 0)",
    "NULLIFZERO(n)": "nullif(n, 0)",
    "SAFE_DIVIDE(n, b)": "CASE WHEN b <> 0 THEN n / b END",
    "DIV0(n, b)": "CASE WHEN b = 0 THEN 0 ELSE n / b END",
    "EQUAL_NULL(s, r)": "s IS NOT DISTINCT FROM r",
    "SQUARE(n)": "n::DOUBLE * n",
    "BTRIM(s, 'a')": "trim(s, 'a')",
    "s LIKE ANY ('a%', '%h')": "s LIKE 'a%' OR s LIKE '%h'",
    "s LIKE ALL ('a%', '%c')": "s LIKE 'a%' AND s LIKE '%c'",
    "TO_NUMBER(s)": "nullif(try_cast(s AS DOUBLE), 'nan')",
    "DATEADD(day, -3, t)": "t - INTERVAL 3 DAY",
    "DATE_ADD('month', 2, d)": "d + INTERVAL 2 MONTH",
    "DATE_SUB(d, INTERVAL 1 YEAR)": "d - INTERVAL 1 YEAR",
    "TIMESTAMP_SUB(t, INTERVAL 5 HOUR)": "t - INTERVAL 5 HOUR",
    "ADD_MONTHS(d, 1)": "(d + INTERVAL 1 MONTH)::DATE",
    "DATE_TRUNC(t, MONTH)": "date_trunc('month', t)",
    "TIMESTAMP_TRUNC(t, hour)": "date_trunc('hour', t)",
    "DATE_DIFF(t, d, DAY)": "date_diff('day', d, t)",
    "TIMESTAMP_DIFF(t, TIMESTAMP '2026-01-01', DAY)": "date_diff('day', TIMESTAMP '2026-01-01', t)",
    "DATEDIFF(month, d, t)": "date_diff('month', d, t)",
    "DATEPART(year, t)": "year(t)",
    "EXTRACT(DATE FROM t)": "t::DATE",
    "EXTRACT(ISOWEEK FROM d)": "week(d)",
    "EXTRACT(EPOCH FROM (t - d))": "epoch(t) - epoch(d)",
    "EXTRACT(DAY FROM t - TIMESTAMP '2026-01-01 12:00')":
        "trunc((epoch(t) - epoch(TIMESTAMP '2026-01-01 12:00')) / 86400)",
    "UNIX_SECONDS(t)": "floor(epoch(t))",
    "EPOCH_MS(t)": "floor(epoch(t) * 1000)",
    "TO_TIMESTAMP(b)": "make_timestamp(b * 1000000)",
    "FROM_UNIXTIME(n)": "make_timestamp(n::BIGINT * 1000000)",
    "EPOCH_MS(b)": "make_timestamp(b * 1000)",
    "WIDTH_BUCKET(x, 0, 10, 5)":
        "CASE WHEN x < 0 THEN 0 WHEN x >= 10 THEN 6 ELSE floor(x / 2) + 1 END",
    "WIDTH_BUCKET(p, 0.05, 0.07, 2)":
        "CASE WHEN p < 0.05 THEN 0 WHEN p >= 0.07 THEN 3 ELSE floor((p - 0.05) / 0.01) + 1 END",
    "TRUNCATE(p, 1)": "trunc(p * 10) / 10",
    "CAST(s AS FLOAT64)": "nullif(try_cast(s AS DOUBLE), 'nan')",
    "SAFE_CAST(s AS INT64)": "try_cast(try_cast(s AS DOUBLE) AS BIGINT)",
    "CAST(t AS DATETIME)": "t",
    # What is compared is read as what it is compared with.
    "n = '3'": "n = 3",
    "n > '-1'": "n > -1",
    "n IN ('1', 3)": "n IN (1, 3)",
    "n BETWEEN '0' AND '7.5'": "n BETWEEN 0 AND 7.5",
    "p = '0.06'": "p = 0.06",
    "n + '2'": "n::BIGINT + 2",
    "ok = 'true'": "ok",
    "ok = 1": "ok",
    "ok <> 0": "ok",
    "CASE WHEN n > 0 THEN '5' ELSE n END": "CASE WHEN n > 0 THEN 5 ELSE n END",
    "COALESCE(n, '7')": "coalesce(n, 7)",
    "s = 12": "nullif(try_cast(s AS DOUBLE), 'nan') = 12",
    "12 < s": "12 < nullif(try_cast(s AS DOUBLE), 'nan')",
    "s IN (12, 13)": "nullif(try_cast(s AS DOUBLE), 'nan') IN (12, 13)",
    "s BETWEEN 1 AND 100": "nullif(try_cast(s AS DOUBLE), 'nan') BETWEEN 1 AND 100",
    "s = n": "nullif(try_cast(s AS DOUBLE), 'nan') = n",
    "s = d": "try_cast(s AS DATE) = d",
    "s < t": "try_cast(s AS TIMESTAMP) < t",
    "s > DATE '2000-01-01'": "try_cast(s AS DATE) > DATE '2000-01-01'",
    "d > '2000-01-01'": "d > DATE '2000-01-01'",
    "t >= '2000-01-01'": "t >= TIMESTAMP '2000-01-01'",
    "d BETWEEN '1970-01-01' AND '2026-12-31'": "d BETWEEN DATE '1970-01-01' AND '2026-12-31'",
    "s = ok": "try_cast(s AS BOOLEAN) = ok",
    "YEAR('2026-01-31')": "2026",
}  # fmt: skip


@pytest.mark.parametrize(("words", "meaning"), [*zip(SAME, SAME, strict=True), *MEANT.items()])
def test_functions_that_people_use(
    connection: duckdb.DuckDBPyConnection, words: str, meaning: str
) -> None:
    compared(connection, words, meaning)


def in_years(moment: str) -> str:
    """Write what lies outside the years 1 to 9999 as NULL, which it is here."""
    ends = "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {moment} BETWEEN {ends} THEN {moment} END"


ZONES = ["Europe/Berlin", "america/new_york", "Asia/Kathmandu", "Pacific/Apia", "UTC", "EST"]


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_of_other_zones_show_what_they_do_in_duckdb(
    connection: duckdb.DuckDBPyConnection, zone: str
) -> None:
    at = f"AT TIME ZONE '{zone}'"
    instant = "CASE WHEN isfinite(z) THEN z END"
    compared(connection, f"z {at}", in_years(f"({instant} {at})"))
    compared(connection, f"TIMEZONE('{zone}', z)", in_years(f"({instant} {at})"))
    compared(connection, f"t {at}", in_years(f"(t {at} AT TIME ZONE 'UTC')"))
    compared(connection, f"t AT TIME ZONE 'UTC' {at}", in_years(f"(t AT TIME ZONE 'UTC' {at})"))
    tokyo = in_years("(t AT TIME ZONE 'Asia/Tokyo' AT TIME ZONE 'UTC')")
    there = in_years(f"({tokyo} AT TIME ZONE 'UTC' {at})")
    compared(connection, f"CONVERT_TIMEZONE('Asia/Tokyo', '{zone}', t)", there)
    hour = f"DATE_TRUNC('hour', z + INTERVAL 1 HOUR) {at}"
    is_kept = f"isfinite(z) AND year(z) < 9999 AND year({hour}) > 0"
    meaning = f"hour(CASE WHEN {is_kept} THEN {hour} END)"
    compared(connection, f"EXTRACT(hour FROM {hour})", meaning)


@pytest.mark.parametrize("zone", ["'Nowhere/Else'", "s", "'+02:00'", "''", "NULL"])
def test_zones_that_an_engine_may_not_know_are_refused(zone: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(f"SELECT COUNT(*) FROM odd WHERE t AT TIME ZONE {zone} > '2026-01-01'", CATALOG)
    assert caught.value.code in ("time_zone", "syntax")


def test_initcap_makes_the_first_letter_of_each_word_a_capital(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    rows = parse("SELECT INITCAP(s) AS k, COUNT(*) FROM odd GROUP BY k", CATALOG).rows
    found = dict(connection.execute(plan_sql(rows)).fetchall())
    for row, text in connection.execute("SELECT id, s FROM odd").fetchall():
        words = None if text is None else re.split(r"([\W_]+)", text)
        assert found[row] == (None if words is None else "".join(w.capitalize() for w in words))
    assert {"A-B-C", "North"} <= set(found.values())


@pytest.mark.parametrize(
    "pattern",
    ["(a", "a)", "*a", "a**", "a++", "a{2}{3}", "[b-a]", "(a)\\1", "(?=a)", "(?P<n>a)",
     "(a{99}){99}", "a{1001}", "[[:alpha:]]", "\\pL", "a" * 201, "\\", "[", "(?i)a", "a{2,1}",
     "\\x41", "\\Qa\\E"],
)  # fmt: skip
def test_patterns_that_an_engine_may_not_take_are_refused(pattern: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(f"SELECT COUNT(*) FROM odd WHERE REGEXP_MATCHES(s, '{pattern}')", CATALOG)
    assert caught.value.code == "regexp"


@settings(max_examples=100, deadline=None)
@given(pattern=st.text("ab-.^$|()*+?{}123,[]\\\\dwsb é", max_size=12))
def test_patterns_that_are_taken_never_raise(
    connection: duckdb.DuckDBPyConnection, pattern: str
) -> None:
    for call in ("REGEXP_MATCHES(s, '{}')", "REGEXP_EXTRACT(s, '{}')",
                 "REGEXP_REPLACE(s, '{}', 'xy', 'g')"):  # fmt: skip
        words = call.format(pattern)
        try:
            rows = parse(f"SELECT {words} AS k, COUNT(*) FROM odd GROUP BY k", CATALOG).rows
        except Refused:
            continue
        assert len(connection.execute(plan_sql(rows)).fetchall()) == 60
