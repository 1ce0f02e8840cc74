"""A subquery with a few rows of each person is charged for these, not for the table's limit."""

import math
from collections import Counter

import duckdb
import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.relation import most_rows
from discreet.tables.pricing.inferences import declared_limit
from discreet.tables.sql.parse import parse

VISITS = (
    Column(name="u", type="BIGINT"),
    Column(name="shop", type="VARCHAR", keys=("north", "south")),
    Column(name="paid", type="BOOLEAN"),
    Column(name="day", type="DATE"),
    Column(name="x", type="DOUBLE"),
)
SHOPS = (Column(name="shop", type="VARCHAR"), Column(name="size", type="BIGINT"))
TABLES = (
    Table(name="visits", columns=VISITS),
    Table(name="shops", columns=SHOPS, is_public=True),
)
PEOPLE = "SELECT u, SUM(x) AS s, MIN(shop) AS shop FROM visits GROUP BY u"
KNOWN = {
    f"SELECT SUM(s) FROM ({PEOPLE})": 1,
    "SELECT COUNT(*) FROM (SELECT DISTINCT u FROM visits)": 1,
    f"SELECT COUNT(*) FROM (SELECT u AS who, s FROM ({PEOPLE}) WHERE s > 1)": 1,
    f"WITH p AS ({PEOPLE}) SELECT COUNT(*) FROM p JOIN p AS q ON p.u = q.u": 1,
    f"SELECT COUNT(*) FROM ({PEOPLE}) AS p LEFT JOIN ({PEOPLE}) AS q ON p.u = q.u AND p.s < q.s": 1,
    "SELECT AVG(n) FROM (SELECT u, COUNT(*) AS n FROM (SELECT u, day FROM visits GROUP BY u, day)"
    " GROUP BY u)": 1,
    "SELECT COUNT(*) FROM (SELECT u, 'a' AS a, COUNT(*) AS n FROM visits GROUP BY u, a)": 1,
    "SELECT COUNT(*) FROM (SELECT u, shop FROM visits GROUP BY u, shop)": 3,
    "SELECT COUNT(*) FROM (SELECT DISTINCT u, paid FROM visits)": 3,
    "SELECT COUNT(*) FROM (SELECT DISTINCT u, x > 1 AS large, shop FROM visits)": 9,
    f"SELECT COUNT(*) FROM ({PEOPLE}) AS p JOIN (SELECT DISTINCT u, paid FROM visits) AS q"
    " ON p.u = q.u": 3,
    f"SELECT COUNT(*) FROM ({PEOPLE}) AS p JOIN (SELECT shop, MAX(size) AS m FROM shops"
    " GROUP BY shop) AS z ON p.shop = z.shop WHERE z.m > 1": 1,
}
UNKNOWN = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM (SELECT u, x FROM visits)",
    "SELECT COUNT(*) FROM (SELECT u, day FROM visits GROUP BY u, day)",
    f"SELECT COUNT(*) FROM ({PEOPLE}) AS p JOIN visits ON p.u = visits.u",
    f"SELECT COUNT(*) FROM ({PEOPLE}) AS p JOIN shops ON p.shop = shops.shop",
    f"SELECT COUNT(*) FROM ({PEOPLE}) AS p CROSS JOIN (SELECT DISTINCT shop FROM shops)",
]


def catalog(unit=None, **settings):
    return Catalog(
        unit=unit or Unit.column("u"), neighbours=Neighbours.add_remove, tables=TABLES, **settings
    )


@pytest.mark.parametrize("question", KNOWN)
def test_a_few_rows_of_each_person_are_known_to_be_few(question):
    query = parse(question, catalog(), periods=None)
    most = KNOWN[question]
    assert most_rows(query.rows) == most
    assert declared_limit("rows", query, catalog(rows=50)) == most
    assert declared_limit("rows", query, catalog(rows=2)) == min(2, most)
    assert declared_limit("rows", query, catalog()) == most


@pytest.mark.parametrize("question", UNKNOWN)
def test_rows_that_may_be_many_are_charged_as_declared(question):
    query = parse(question, catalog(), periods=None)
    assert most_rows(query.rows) is None
    assert declared_limit("rows", query, catalog(rows=50)) == 50
    assert declared_limit("rows", query, catalog()) is None


def test_a_period_is_part_of_the_person():
    per = catalog(Unit.column("u").per("month", time="day"))
    one = parse("SELECT COUNT(*) FROM (SELECT DISTINCT u FROM visits)", per, periods=["2026-01"])
    many = parse(
        "SELECT COUNT(*) FROM (SELECT DISTINCT u, day FROM visits)", per, periods=["2026-01"]
    )
    assert most_rows(one.rows) == 1
    assert most_rows(many.rows) is None


def test_one_row_is_one_group_and_one_value():
    asked = "SELECT s, COUNT(*), COUNT(DISTINCT shop), MEDIAN(s) FROM ({}) GROUP BY s"
    query = parse(asked.format(PEOPLE), catalog(), periods=None)
    for of in ("rows", "norm", "groups", "pairs"):
        assert declared_limit(of, query, catalog(rows=50, groups=20)) == 1
    assert declared_limit("rows", parse(UNKNOWN[0], catalog(), periods=None), catalog()) is None


def test_many_rows_by_construction_only_cap_what_is_looked_for():
    shop = Column(name="shop", type="VARCHAR", keys=tuple("abcdefghijklmnopqrst"))
    wide = Catalog(
        unit=Unit.column("u"), neighbours=Neighbours.add_remove,
        tables=(Table(name="visits", columns=(VISITS[0], shop)),),
    )  # fmt: skip
    query = parse("SELECT COUNT(*) FROM (SELECT DISTINCT u, shop FROM visits)", wide, periods=None)
    assert most_rows(query.rows) == 21
    assert declared_limit("rows", query, wide) is None


@pytest.mark.parametrize("question", KNOWN)
def test_nobody_has_more_rows_than_the_plan_says(question):
    query = parse(question, catalog(), periods=None)
    with duckdb.connect() as c:
        c.execute("CREATE TABLE visits (u BIGINT, shop VARCHAR, paid BOOLEAN, day DATE, x DOUBLE)")
        c.execute("CREATE TABLE shops (shop VARCHAR, size BIGINT)")
        c.execute("INSERT INTO shops VALUES ('north', 1), ('north', 2), (NULL, 3)")
        for u in (1, 2, 3):
            for n in range(30):
                shop = ["north", "south", None][n % 3]
                paid = [True, False, None][(n // 3) % 3]
                day, x = f"2026-01-{n + 1:02}", [0.5, 2.0, None, math.nan][n % 4]
                c.execute("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", [u, shop, paid, day, x])
        units = c.execute(f"SELECT unit FROM ({plan_sql(query.rows)})").fetchall()
    assert max(Counter(units).values(), default=0) <= KNOWN[question]
