"""No value of any row makes a statement fail: each type of column at its ends and beyond sense."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataError
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines import Call, ColumnRef, Scan, Select, SparkEngine
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.sql.parse import parse

pytestmark = [pytest.mark.lengthy, pytest.mark.needs("spark")]

LONG = 300_000
TEXTS = [
    "''", "'a'", "' '", "CAST(X'FF00FE' AS STRING)", "CAST(X'C328' AS STRING)", "'\\0'", "'%_\\\\'",
    f"repeat('a', {LONG})", f"repeat('ab ', {LONG // 3})", f"repeat('1', {LONG})",
    "'1e400'", "'-1e400'", "'nan'", "'Infinity'", "'1e'", "'0x1p3'", "'99999999999999999999'",
    "'2024-02-30'", "'2024-02-29 25:61:61'", "'+999999999-01-01'", "'-999999-12-31'",
    "'9999-12-31'",
    "'10000-01-01'", "'12:30'", "'2024-01-01T00:00:00+99:99'", "'true'", "'\\uD83D\\uDE00'",
    "'ß\\u0130'", "'.'", "'-'", "'$1\\\\1'", "'\\n'", "NULL",
]  # fmt: skip
NUMBERS = ["0.0D", "-0.0D", "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)",
           "CAST('-inf' AS DOUBLE)", "1.7976931348623157e308D", "4.9e-324D", "-9.3e18D", "0.5D",
           "NULL"]  # fmt: skip
LONGS = ["9223372036854775807", "-9223372036854775808", "0", "-1", "NULL"]
DECIMALS = [
    "CAST('" + "9" * 38 + "' AS DECIMAL(38,0))",
    "CAST('-" + "9" * 38 + "' AS DECIMAL(38,0))",
    "NULL",
]
DATES = ["date_from_unix_date(2147483647)", "date_from_unix_date(-2147483648)",
         "DATE '0001-01-01'", "DATE '9999-12-31'", "NULL"]  # fmt: skip
TIMES = ["timestamp_micros(9223372036854775807)", "timestamp_micros(-9223372036854775808)",
         "TIMESTAMP_LTZ '0001-01-01 00:00:00'", "TIMESTAMP_LTZ '9999-12-31 23:59:59.999999'",
         "NULL"]  # fmt: skip
COLUMNS = {
    "s": TEXTS, "x": NUMBERS, "n": LONGS, "big": DECIMALS, "d": DATES, "z": TIMES,
}  # fmt: skip
TYPES = {
    "id": "BIGINT", "s": "VARCHAR", "x": "DOUBLE", "n": "BIGINT", "big": "DECIMAL(38,0)",
    "d": "DATE", "z": "TIMESTAMP WITH TIME ZONE", "t": "TIMESTAMP", "f": "FLOAT", "i": "TINYINT",
}  # fmt: skip
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(
        Table(
            name="rows", columns=tuple(Column(name=name, type=one) for name, one in TYPES.items())
        ),
    ),
)
OF = {
    "numbers": [
        "{0}", "-{0}", "ABS({0})", "{0} + {0}", "{0} * {0}", "{0} / {0}", "{0} % 3", "{0} // 2",
        "ROUND({0}, 2)", "FLOOR({0})", "CEIL({0})", "TRUNC({0}, 1)", "EXP({0})", "SQRT({0})",
        "LN({0})", "POWER({0}, 3)", "SIN({0})", "CAST({0} AS INTEGER)", "CAST({0} AS TINYINT)",
        "CAST({0} AS UTINYINT)", "CAST({0} AS UBIGINT)", "CLAMP({0}, 0, 1)",
        "EPOCH(TO_TIMESTAMP({0}))",
        "LENGTH(CAST({0} AS VARCHAR))", "WIDTH_BUCKET({0}, 0, 4, 4)", "LEAST({0}, 1)",
    ],
    "texts": [
        "CAST({0} AS DOUBLE)", "CAST({0} AS INTEGER)", "CAST({0} AS UBIGINT)",
        "CAST(CAST({0} AS BOOLEAN) AS INTEGER)", "EPOCH(CAST({0} AS DATE))",
        "EPOCH(CAST({0} AS TIMESTAMP))", "EPOCH(TO_DATE({0}, 'YYYY-MM-DD'))",
        "EPOCH(STRPTIME({0}, '%Y-%m-%d %H:%M:%S'))", "EPOCH(STRPTIME({0}, '%d %b %y %p'))",
        "LENGTH(LOWER({0}))", "LENGTH(UPPER({0}))", "LENGTH(INITCAP({0}))", "LENGTH(TRIM({0}))",
        "LENGTH(TRIM({0}, 'a1'))", "LENGTH(SUBSTRING({0}, -3, 2))", "LENGTH(LEFT({0}, -2))",
        "LENGTH(RIGHT({0}, 2))", "LENGTH({0} || {0})", "LENGTH(CONCAT({0}, {0}))",
        "LENGTH(REPLACE({0}, 'a', 'aaaa'))", "LENGTH(SPLIT_PART({0}, 'a', -2))",
        "LENGTH(LPAD({0}, 9000, 'xy'))", "LENGTH(REVERSE({0}))", "POSITION('aab' IN {0})",
        "STRLEN({0})", "{0} LIKE '%a%a%a%a%a%a%b'", "{0} LIKE 'a_%_b%'", "{0} ILIKE '%A%_1'",
        "{0} LIKE 'a%b'", "{0} ~ '[a-b]+'", "REGEXP_FULL_MATCH({0}, '[ab]?1*')",
        "LENGTH(REGEXP_EXTRACT({0}, '([0-9])([a-z]*)', 2))",
        "LENGTH(REGEXP_REPLACE({0}, '[0-9]+', '<\\0>', 'g'))",
        "LENGTH(REGEXP_REPLACE({0}, 'b', '$1'))", "STARTS_WITH({0}, 'a')", "{0} IN ('a', 'b')",
    ],
    "moments": [
        "YEAR({0})", "EXTRACT(week FROM {0})", "EXTRACT(isodow FROM {0})", "EPOCH({0})",
        "EPOCH({0} + INTERVAL 9999 YEAR)", "EPOCH({0} - INTERVAL 9999 MONTH)",
        "EPOCH({0} + INTERVAL 999999 DAY)", "EPOCH({0} - INTERVAL 999999999 SECOND)",
        "EPOCH(DATE_TRUNC('week', {0}))", "EPOCH(DATE_TRUNC('year', {0}))",
        "DATE_DIFF('hour', {0}, DATE '2024-01-01')", "DATE_DIFF('week', DATE '2024-01-01', {0})",
        "LENGTH(STRFTIME({0}, '%Y-%m-%d %U %W %V %G %j %p'))", "EPOCH(LAST_DAY({0}))",
        "EPOCH(TIME_BUCKET(INTERVAL 15 MINUTE, {0}))",
    ],
    "zoned": ["EPOCH({0} AT TIME ZONE 'Asia/Tokyo')", "HOUR({0} AT TIME ZONE 'America/New_York')"],
}  # fmt: skip
QUESTIONS = [
    *(f"SELECT SUM({one.format(name)}) FROM rows" for name in ("x", "n", "big", "f", "i")
      for one in OF["numbers"]),
    *(f"SELECT SUM({one.format('s')}) FROM rows" for one in OF["texts"]),
    *(f"SELECT SUM({one.format(name)}) FROM rows" for name in ("d", "z", "t")
      for one in OF["moments"]),
    *(f"SELECT SUM({one.format(name)}) FROM rows" for name in ("z", "t") for one in OF["zoned"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(spark, tmp_path_factory):
    """Return a table that has every hostile value in its column, one in each row."""
    rows = max(map(len, COLUMNS.values()))
    listed = [
        "(" + ", ".join([str(i), *(values[i % len(values)] for values in COLUMNS.values())]) + ")"
        for i in range(rows)
    ]
    text = f"SELECT * FROM VALUES {', '.join(listed)} AS r(id, {', '.join(COLUMNS)})"
    more = "CAST(x AS FLOAT) AS f, CAST(id * 5 - 100 AS TINYINT) AS i"
    frame = spark.sql(f"SELECT *, {more} FROM ({text})")
    # In UTC the ends of both kinds of timestamps are the same.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    path = str(tmp_path_factory.mktemp("hostile") / "rows.parquet")
    frame.selectExpr("*", "CAST(z AS TIMESTAMP_NTZ) AS t").write.parquet(path)
    return path


@pytest.mark.parametrize("is_ansi", [True, False])
def test_no_value_makes_a_statement_fail(is_ansi, spark, hostile):
    """All expressions over all rows: in one statement, as the answer is one failure or none."""
    spark.conf.set("spark.sql.ansi.enabled", str(is_ansi).lower())
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Apia" if is_ansi else "Asia/Kathmandu")
    engine = SparkEngine(spark)
    with engine.open({"rows": engine.look("rows", hostile)}) as connection:
        try:
            found = connection.rows(together(QUESTIONS)).reveal_without_noise()
            assert found.num_rows == len(TEXTS)
        except DataError:
            assert [one for one in QUESTIONS if is_failing(one, connection)] == []


def together(questions):
    """Return one plan with the values of all questions."""
    every = "SELECT COUNT(*) FROM rows WHERE s = s AND x + n + big + f + i > 0 AND d < t AND z < t"
    rows = replace(parse(every, CATALOG).rows, where=())
    values = [dict(parse(one, CATALOG).rows.columns)["value_0"] for one in questions]
    return replace(rows, columns=tuple((f"c{i}", value) for i, value in enumerate(values)))


def is_failing(question, connection):
    try:
        connection.rows(parse(question, CATALOG).rows)
    except DataError:
        return True
    return False


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_milliseconds_that_are_no_microseconds(zone, spark, tmp_path):
    """Spark multiplies them, and fails where one is too large: ours are NULL then."""
    path, moments = tmp_path / "rows.parquet", [2**62, 1_000, -(2**62), None]
    kind = pa.timestamp("ms", zone)
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "at": pa.array(moments, kind)}), path)
    engine = SparkEngine(spark)
    source = engine.look("rows", path)
    assert dict(source.columns)["at"] == "TIMESTAMP" + " WITH TIME ZONE" * (zone is not None)
    rows = Select(
        Scan("rows"), (("id", ColumnRef("id")), ("at", Call("from_utc", (ColumnRef("at"),))))
    )
    with engine.open({"rows": source}) as connection:
        found = connection.rows(rows).reveal_without_noise().sort_by("id")["at"].to_pylist()
    assert [str(one) for one in found] == ["None", "1970-01-01 00:00:01", "None", "None"]
    with pytest.raises(DataError, match="milliseconds"):
        engine.look("rows", spark.read.parquet(str(path)))
