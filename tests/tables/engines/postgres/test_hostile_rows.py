"""No value in any row makes a question fail: extreme and malformed ones, of every type."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines import PostgresEngine
from discreet.tables.model.bounds import Groups, Norm
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.scalar import Call, Cast, ColumnRef
from discreet.tables.model.statements import Cells, Profile, Sums, ValueGrid
from discreet.tables.sql.parse import parse

pytestmark = pytest.mark.needs("postgres")

FLOATS = [
    "0", "-0", "1", "-1", "0.5", "-2.5", "5e-324", "-5e-324", "2.2250738585072014e-308", "1e-200",
    "-1e-200", "1e200", "-1e200", "1.7976931348623157e308", "-1.7976931348623157e308", "Infinity",
    "-Infinity", "NaN", "9007199254740993", "4503599627370495.5", "9.3e18", "-9.3e18", "709.79",
    "-745.2", "1e-150", "1e150", "1024", "-1075",
]  # fmt: skip
VALUES = {
    "i2": ("smallint", ["-32768", "32767", "0", "1"]),
    "i4": ("integer", ["-2147483648", "2147483647", "0", "-1"]),
    "i8": ("bigint", ["-9223372036854775808", "9223372036854775807", "0", "9007199254740993"]),
    "f4": ("real", ["1e-45", "-3.4028235e38", "NaN", "Infinity", "-0", "0.1"]),
    "f8": ("float8", FLOATS),
    "g8": ("float8", FLOATS[::-1]),
    "n": (
        "numeric",
        ["NaN", "Infinity", "-Infinity", "1e400", "-1e5000", "1e-400", "-1e-16000", "0", "1.5",
         "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017"
         "97758720709633028641669288791094655554785194040263065748867150582068190890200070838367627"
         "38854845817711531764475730270069855571366959622842914819860834936475292719074168444365510"
         "7043427115596995080930428801779041744977920"],
    ),
    "d2": ("numeric(9,2)", ["NaN", "9999999.99", "-0.01", "0"]),
    "ok": ("boolean", ["t", "f"]),
    "t": (
        "text",
        ["", " ", "1e999", "-1e999", "1e-999", "1e99999", "0x10", "nan", "inf", "1_000", "٣", "é\n",
         "9" * 500, "2024-02-30", "0000-00-00", "2024-13-01 25:61:61", "infinity", "-infinity",
         "99999-12-31", "2024-02-29 23:59:59.9999999", "10000-01-01", "epoch", "now", "\\", "%",
         "'; DROP", "$1", "İß", "🙂" * 3000, "x" * 1_000_000, "true", "TRUE ", "0001-01-01", "(",
         "a\u0301", "00:00", "12.13.9999", "29.02.2023", "1.1.0000", "+.e1", "1e+0001", "-", "."],
    ),
    "c": ("char(3)", ["a", "", "é"]),
    "e": ("mood", ["sad", "it's"]),
    "u": ("uuid", ["00000000-0000-0000-0000-000000000000"]),
    "d": (
        "date",
        ["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "0001-01-01", "9999-12-31",
         "2024-02-29", "0001-12-31 BC"],
    ),
    "s": (
        "timestamp",
        ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999", "0001-01-01",
         "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999"],
    ),
    "z": (
        "timestamptz",
        ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59.999999+00", "0001-01-01",
         "9999-12-31 23:59:59.999999+00", "2024-03-31 01:30+00"],
    ),
    "p": ("positive", ["1", "2147483647"]),
}  # fmt: skip
NUMBERS = ["i2", "i4", "i8", "f4", "f8", "n", "d2", "p"]
OF_NUMBERS = [
    "{0}", "-{0}", "ABS({0})", "SIGN({0})", "FLOOR({0})", "CEIL({0})", "TRUNC({0})", "ROUND({0})",
    "ROUND({0}, 2)", "ROUND({0}, -2)", "ROUND({0}, 15)", "SQRT({0})", "EXP({0})", "LN({0})",
    "LOG2({0})", "LOG10({0})", "SIN({0})", "COS({0})", "TAN({0})", "ASIN({0})", "ACOS({0})",
    "ATAN({0})", "CAST({0} AS INTEGER)", "CAST({0} AS TINYINT)", "CAST({0} AS BIGINT)",
    "CAST({0} AS UBIGINT)", "CAST({0} AS VARCHAR)", "CAST({0} AS BOOLEAN)", "CAST({0} AS FLOAT)",
    "TO_TIMESTAMP({0})", "{0} * {0}", "1 / {0}", "{0} // 3", "EXP(EXP({0}))", "{0} ** 3",
    "WIDTH_BUCKET({0}, 0, 4, 4)", "CLAMP({0}, -1, 1e300) * 1e10", "{0} * 1e-300 * 1e-300",
    "CASE WHEN {0} > 0 THEN LN({0}) ELSE SQRT(-{0}) END", "{0} IN (0, 1)", "NULLIF({0}, 0)",
    "{0} || 'x'",
]  # fmt: skip
OF_TWO = [
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "POWER({0}, {1})",
    "ATAN2({0}, {1})", "LEAST({0}, {1})", "GREATEST({0}, {1})", "{0} // {1}", "{0} = {1}",
    "COALESCE({0}, {1})", "({0} + {1}) * ({0} - {1}) / ({0} * {1})",
]  # fmt: skip
OF_TEXTS = [
    "{0}", "LOWER({0})", "UPPER({0})", "INITCAP({0})", "TRIM({0})", "LENGTH({0})", "STRLEN({0})",
    "CAST({0} AS DOUBLE)", "CAST({0} AS INTEGER)", "CAST({0} AS BIGINT)", "CAST({0} AS BOOLEAN)",
    "CAST({0} AS DATE)", "CAST({0} AS TIMESTAMP)", "{0} || {0}", "CONCAT({0}, 'a', {0})",
    "REPLACE({0}, 'x', 'xyz')", "REVERSE({0})", "LEFT({0}, 2)", "RIGHT({0}, -2)",
    "SUBSTRING({0}, -3, 2)", "SUBSTRING({0}, 2, 3)", "SPLIT_PART({0}, '-', -1)",
    "LPAD({0}, 5, 'xy')", "RPAD({0}, 0, 'x')", "{0} LIKE '%e%_'", "{0} ILIKE '%E%'", "{0} ~ '^a*b'",
    "REGEXP_EXTRACT({0}, '[0-9]+')", "REGEXP_REPLACE({0}, '([a-z])', '\\1\\1', 'g')",
    "TO_DATE({0}, 'DD.MM.YYYY')", "STRPTIME({0}, '%Y-%m-%d %H:%M:%S')", "POSITION('e' IN {0})",
    "STARTS_WITH({0}, 'a')", "ENDS_WITH({0}, 'a')", "CONTAINS({0}, '%')", "{0} < 'é'",
    "INITCAP(LOWER({0} || 'x'))",
]  # fmt: skip
OF_MOMENTS = [
    "{0}", "YEAR({0})", "EXTRACT(isoyear FROM {0})", "EXTRACT(week FROM {0})", "SECOND({0})",
    "EXTRACT(dayofyear FROM {0})", "QUARTER({0})", "EPOCH({0})", "DATE_TRUNC('week', {0})",
    "DATE_TRUNC('year', {0})", "DATE_TRUNC('second', {0})", "{0} + INTERVAL 9999 YEAR",
    "{0} - INTERVAL 9999 YEAR", "{0} - INTERVAL 9999 MONTH", "{0} + INTERVAL 999999 DAY",
    "{0} - INTERVAL 999999999 SECOND", "LAST_DAY({0})", "CAST({0} AS VARCHAR)", "CAST({0} AS DATE)",
    "CAST({0} AS TIMESTAMP)", "STRFTIME({0}, '%Y-%j %H:%M:%S.%f')",
    "DATE_DIFF('month', {0}, d)", "DATE_DIFF('second', {0}, s)", "DATE_DIFF('week', z, {0})",
    "TIME_BUCKET(INTERVAL 15 MINUTE, {0})", "TIME_BUCKET(INTERVAL 3 MONTH, {0})",
    "{0} BETWEEN '1900-01-01' AND '2024-01-01'",
]  # fmt: skip
FAMILIES = ["present", "sum", "linear", "quadratic"]
ZONED = ["{0} AT TIME ZONE 'Asia/Tokyo'", "{0} AT TIME ZONE 'America/New_York'"]
EXPRESSIONS = [
    *(one.format(name) for name in NUMBERS for one in OF_NUMBERS),
    *(one.format(*pair) for one in OF_TWO for pair in product(["f8", "n", "i8"], ["g8", "f4"])),
    *(one.format("f8", "g8") for one in OF_TWO),
    *(one.format(name) for name in ("t", "c", "e", "u") for one in OF_TEXTS),
    *(one.format(name) for name in ("d", "s", "z") for one in OF_MOMENTS),
    *(one.format(name) for name in ("s", "z") for one in ZONED),
]


@pytest.fixture(scope="module")
def hostile(postgres):
    """A table of all values of a column beside NULLs, and of all pairs of two columns."""
    import psycopg

    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s')")
        connection.execute("CREATE DOMAIN positive AS integer CHECK (value > 0)")
        columns = ", ".join(f"{name} {type_}" for name, (type_, _) in VALUES.items())
        connection.execute(f"CREATE TABLE hostile (id integer, {columns})")
        for name, (_, values) in VALUES.items():
            for value in values:
                connection.execute(
                    f"INSERT INTO hostile (id, {name}) VALUES (%s, %s)", [len(value), value]
                )
        connection.execute("INSERT INTO hostile (id, t) SELECT 0, repeat('y', 300000000)")
        for number, pair in enumerate(product(FLOATS, FLOATS)):
            connection.execute(
                "INSERT INTO hostile (id, f8, g8, f4, i8) VALUES (%s, %s, %s, 1e-45, -1)",
                [number, *pair],
            )
        for number, (day, second, zoned) in enumerate(
            product(*(VALUES[name][1] for name in "dsz"))
        ):
            connection.execute(
                "INSERT INTO hostile (id, d, s, z) VALUES (%s, %s, %s, %s)",
                [number, day, second, zoned],
            )
    engine = PostgresEngine(url)
    source = engine.look("hostile", "hostile")
    with engine.open({"hostile": source}) as opened:
        yield source, opened


def catalog(source, unit="id"):
    return Catalog(
        unit=Unit.column(unit),
        neighbours=Neighbours.add_remove,
        tables=(
            Table(
                name="hostile",
                columns=tuple(Column(name=name, type=type_) for name, type_ in source.columns),
                is_public=False,
            ),
        ),
    )


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_value_makes_an_expression_fail(expression, hostile):
    source, opened = hostile
    query = parse(f"SELECT COUNT({expression}) FROM hostile", catalog(source))
    assert opened.rows(query.rows).reveal_without_noise().num_rows > 500


@pytest.mark.parametrize("column", [name for name in VALUES if name != "f4"])
def test_no_value_makes_a_statement_fail(column, hostile):
    """As a key."""
    source, opened = hostile
    query = parse(f"SELECT {column} AS k, COUNT(*) FROM hostile GROUP BY k", catalog(source))
    for bounding in (Norm(limit=2, order=2), Groups(groups=1, rows=2)):
        found = opened.aggregate(
            Sums(query=query, cells=(Cells(kind="rows"),), bounding=bounding, salt="s")
        )
        assert found.reveal_without_noise().num_rows > 0


@pytest.mark.parametrize("column", VALUES)
def test_no_value_makes_a_unit_fail(column, hostile):
    """Whoever rows belong to: units are grouped, weighed, ranked, and joined with themselves."""
    source, opened = hostile
    plain = "SELECT ok AS k, COUNT(*) FROM hostile GROUP BY k"
    joined = f"SELECT COUNT(*) FROM hostile AS a JOIN hostile AS b ON a.{column} = b.{column}"
    for question in (plain, joined):
        query = parse(question, catalog(source, column))
        for bounding in (Norm(limit=2, order=2), Groups(groups=1, rows=2)):
            found = opened.aggregate(
                Sums(query=query, cells=(Cells(kind="rows"),), bounding=bounding, salt="s")
            )
            assert found.reveal_without_noise().num_rows > 0


@pytest.mark.parametrize("column", ["f8", "f4", "n", "d2", "i8"])
@pytest.mark.parametrize(
    "ends", [(0, 1), (-1, 1), (10**308, 10**308 + 1), (-(10**308), 10**308), (0, 5), (3, 3)]
)
def test_no_value_makes_a_sum_fail(column, ends, hostile):
    source, opened = hostile
    low, high = map(Fraction, ends)
    query = parse(f"SELECT SUM(CLAMP({column}, -1, 1)) FROM hostile", catalog(source))
    bounds = ((low, high),)
    families = [Cells(kind=kind, values=(0,), bounds=bounds) for kind in FAMILIES]
    twice = Cells(kind="moments", values=(0, 0), bounds=bounds * 2)
    grid = ValueGrid(value=0, low=low, high=high, points=7)
    raw = replace(query.rows, columns=(*query.rows.columns[:-1], _raw(query, column)))
    query = replace(query, rows=raw)
    opened.aggregate(
        Sums(query=query, cells=(*families, twice), bounding=Norm(limit=3, order=2), salt="s",
             grid=grid)
    )  # fmt: skip
    own = Cells(kind="total", values=(0,), bounds=bounds, own=Norm(limit=3, order=2))
    opened.aggregate(Sums(query=query, cells=(own,), bounding=None, salt="s"))
    for of in ("largest", "smallest"):
        edges = (Fraction(-5), Fraction(1, 10**320), Fraction(10**309))
        opened.aggregate(Profile(query=query, of=of, edges=edges, value=0))


def _raw(query, column):
    """Read the value as it is, free of NaN, and not clamped before."""
    (name, _) = query.rows.columns[-1]
    number = Cast(ColumnRef(column), "double", widens=column in ("f8", "f4", "i8"))
    return name, Call("not_nan", (number,))
