"""Words of SQL mean what they mean in DuckDB, row by row, whatever stands in the rows."""

import itertools
import math
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

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
