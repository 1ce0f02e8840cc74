"""UNION of rows: those of plain SQL, each of one unit, and bounded as what a unit has in all."""

from collections import Counter
from dataclasses import replace

import duckdb
import pytest

from discreet.errors import Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.relation import most_rows
from discreet.tables.pricing.inferences import declared_limit
from discreet.tables.sql.parse import parse

SHOP = (
    Column(name="id", type="BIGINT"),
    Column(name="what", type="VARCHAR", keys=("tea", "cake")),
    Column(name="cost", type="DECIMAL(9,2)", bounds=(0, 10), total=20),
    Column(name="day", type="DATE"),
)
NET = (
    Column(name="id", type="INTEGER"),
    Column(name="item", type="VARCHAR", keys=("tea", "book")),
    Column(name="cost", type="INTEGER", bounds=(-5, 5), total=30),
    Column(name="moment", type="TIMESTAMP"),
)
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(
        Table(name="shop", columns=SHOP),
        Table(name="net", columns=NET),
        Table(name="p", columns=SHOP[1:3], is_public=True),
        Table(name="q", columns=NET[1:3], is_public=True),
    ),
)
BOTH = "SELECT id, what, cost, day FROM shop UNION ALL SELECT id, item, cost, moment FROM net"
# FROM and WHERE, and its columns.
QUESTIONS = {
    f"({BOTH}) AS t": "id what cost day",
    f"({BOTH}) AS t WHERE cost > 1": "id what cost",
    f"({BOTH} UNION ALL SELECT id, 'gift', NULL, NULL FROM net) AS t": "id what cost day",
    "(SELECT NULL AS a, id FROM shop UNION ALL SELECT moment, id FROM net) AS t": "a id",
    "(SELECT * FROM net UNION ALL SELECT * FROM net WHERE cost > 0) AS t": "id item cost moment",
    "(FROM shop UNION ALL (SELECT * FROM shop)) AS t": "id what cost day",
    "(SELECT what, id FROM shop UNION SELECT item, id FROM net) AS t": "what id",
    "(SELECT id FROM shop UNION DISTINCT SELECT id FROM net) AS t": "id",
    "(SELECT id, cost > 1 AS k FROM shop UNION ALL SELECT id, cost FROM net) AS t": "id k",
    "(SELECT id, SUM(cost) AS s FROM shop GROUP BY id UNION ALL SELECT id, cost FROM net) AS t":
        "id s",
    f"({BOTH}) AS t JOIN net ON t.id = net.id AND t.cost < net.cost": "t.id what t.cost item",
    f"net LEFT JOIN ({BOTH}) AS t ON t.id = net.id AND t.what = net.item": "t.id what item t.cost",
    "net JOIN (SELECT what AS k FROM p UNION ALL SELECT item FROM q) AS t ON t.k = item": "id k",
    "(SELECT s.id, n.item FROM shop AS s JOIN net AS n ON s.id = n.id UNION ALL "
    "SELECT id, what FROM shop) AS t": "id item",
    "shop WHERE id IN (SELECT id FROM net UNION ALL SELECT id FROM net WHERE cost > 1)": "id cost",
    "shop WHERE id NOT IN (SELECT id FROM net WHERE cost > 1 UNION SELECT id FROM net WHERE "
    "cost < 0)": "id cost",
}  # fmt: skip
UNITS = range(1, 6)
ROWS = {
    "shop": [(1, "tea", 1.25, "2026-01-01"), (1, "tea", 1.25, "2026-01-01"), (2, "cake", 3, None),
             (3, None, None, "2026-01-02"), (4, "tea", 2, "2026-01-02")],
    "net": [(1, "tea", 1, "2026-01-01 10:00"), (1, "book", 2, "2026-01-03"), (2, "cake", 3, None),
            (5, "tea", -1, None), (5, None, None, "2026-01-01"), (3, "tea", 4, "2026-01-01")],
    "p": [("tea", 1), ("tea", 2), ("cake", 3)],
    "q": [("tea", 1), ("book", 2)],
}  # fmt: skip
TYPES = {
    "shop": "id BIGINT, what VARCHAR, cost DECIMAL(9,2), day DATE",
    "net": "id INTEGER, item VARCHAR, cost INTEGER, moment TIMESTAMP",
    "p": "what VARCHAR, cost DECIMAL(9,2)",
    "q": "item VARCHAR, cost INTEGER",
}


@pytest.fixture(scope="module")
def connection():
    """Return a connection to the rows; in the schema without_3 those of unit 3 are not there."""
    with duckdb.connect() as made:
        made.execute("SET threads = 1")
        for name, rows in ROWS.items():
            made.execute(f"CREATE TABLE {name} ({TYPES[name]})")
            marks = ", ".join("?" for _ in rows[0])
            made.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        for unit in UNITS:
            made.execute(f"CREATE SCHEMA without_{unit}")
            for name in ROWS:
                where = f"WHERE id <> {unit}" if name in ("shop", "net") else ""
                copied = f"SELECT * FROM main.{name} {where}"
                made.execute(f"CREATE TABLE without_{unit}.{name} AS {copied}")
        yield made


def read(sql, columns, **settings):
    plain = [f"{c} + 0" if c.endswith("id") else c for c in columns.split()]  # no value is the unit
    shown = ", ".join(f"COUNT(DISTINCT {c})" for c in plain)
    return parse(f"SELECT {shown} FROM {sql}", replace(CATALOG, **settings))


@pytest.mark.lengthy
@pytest.mark.parametrize("most", [None, 2])
@pytest.mark.parametrize(("sql", "columns"), QUESTIONS.items(), ids=QUESTIONS)
def test_rows_are_those_of_plain_sql_and_nobody_elses(sql, columns, most, connection):
    query = read(sql, columns, joined_rows=most)
    found = connection.execute(plan_sql(query.rows)).fetchall()
    if most is None:
        wanted = connection.execute(f"SELECT {columns.replace(' ', ', ')} FROM {sql}").fetchall()
        assert Counter(map(_plain, (row[1:] for row in found))) == Counter(map(_plain, wanted))
    for unit in UNITS:
        connection.execute(f"USE without_{unit}")
        left = connection.execute(plan_sql(query.rows)).fetchall()
        connection.execute("USE main")
        assert Counter(left) == Counter(row for row in found if row[0] != unit)


def _plain(row):
    return tuple(float(v) if hasattr(v, "__float__") else v for v in row)


def test_what_is_public_of_both_is_public_of_all():
    asked = (
        f"SELECT what, SUM(cost) AS s, COUNT(DISTINCT day) AS d FROM ({BOTH}) AS t GROUP BY what"
    )
    query = parse(asked, CATALOG)
    assert query.keys[0].values == ("tea", "cake", "book")
    assert query.values[0].bounds == (-5, 10)
    assert query.values[0].total == 50
    other = "SELECT cost AS x FROM shop UNION ALL SELECT cost * 2 FROM net"
    assert parse(f"SELECT SUM(x) AS s FROM ({other}) AS t", CATALOG).values[0].total is None
    kinds = "SELECT 'shop' AS k, cost FROM shop UNION ALL SELECT 'net', cost FROM net"
    grouped = parse(f"SELECT k, COUNT(*) AS n FROM ({kinds}) AS t GROUP BY k", CATALOG)
    assert grouped.keys[0].values == ("shop", "net")


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT DISTINCT id FROM shop UNION ALL SELECT DISTINCT id FROM net", 2),
        ("SELECT id FROM shop UNION SELECT id FROM net", 1),
        ("SELECT DISTINCT id, what FROM shop UNION ALL SELECT DISTINCT id, NULL FROM net", 4),
        ("SELECT DISTINCT id FROM shop UNION ALL SELECT id FROM net", None),
    ],
)
def test_a_unit_has_as_many_rows_as_in_all_parts_together(sql, most):
    query = parse(f"SELECT COUNT(*) AS n FROM ({sql}) AS t", CATALOG)
    assert most_rows(query.rows) == most
    assert declared_limit("rows", query, replace(CATALOG, rows=50)) == (most or 50)
    assert declared_limit("rows", query, replace(CATALOG, rows=1)) == 1


@pytest.mark.parametrize(
    ("sql", "code", "word"),
    [
        ("SELECT what FROM shop UNION ALL SELECT what FROM p", "union_public", "nobody"),
        ("SELECT id, what FROM shop UNION ALL SELECT id FROM net", "union_columns", "numbers"),
        ("SELECT what FROM shop UNION ALL SELECT cost FROM net", "types", "UNION"),
        ("SELECT what FROM shop UNION SELECT item FROM net", "unit_missing", "units"),
        ("SELECT id FROM shop UNION ALL BY NAME SELECT id FROM net", "expression", "UNION"),
        ("SELECT id FROM shop UNION ALL SELECT id FROM net LIMIT 3", "inner_order", "LIMIT"),
        ("SELECT id FROM shop EXCEPT SELECT id FROM net", "set_operation", "EXCEPT"),
        ("SELECT id FROM shop UNION ALL SELECT id FROM others", "unknown_table", "others"),
    ],
)
def test_what_would_mix_rows_is_refused(sql, code, word):
    with pytest.raises(Refused) as caught:
        parse(f"SELECT COUNT(*) AS n FROM ({sql}) AS t", CATALOG)
    assert caught.value.code == code
    assert word in caught.value.reason


def test_a_row_that_is_a_unit_may_be_there_once():
    rows = replace(CATALOG, unit=Unit.record())
    asked = "SELECT COUNT(*) AS n FROM (SELECT id FROM {} UNION ALL SELECT id FROM {}) AS t"
    assert parse(asked.format("shop", "net"), rows).unit_is_row
    for twice in (
        asked.format("shop", "shop WHERE cost > 1"),
        asked.format("shop", "net UNION ALL SELECT id FROM shop"),
        "WITH s AS (SELECT id FROM shop) " + asked.format("s", "shop"),
    ):
        with pytest.raises(Refused) as caught:
            parse(twice, rows)
        assert caught.value.code == "unit_is_row"
