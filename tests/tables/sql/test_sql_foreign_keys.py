"""Rows that reach their unit under another name, or through a declared foreign key."""

from collections import Counter
from dataclasses import replace

import duckdb
import pytest

from discreet.errors import DataError, ParameterError, Refused
from discreet.privacy import Guarantee, Unit
from discreet.tables import Declaration, DeclaredTable, ForeignKey
from discreet.tables.declarations.reading import load
from discreet.tables.engines.shown import plan_sql
from discreet.tables.sql.parse import parse

TYPES = {
    "people": {"id": "BIGINT", "age": "BIGINT"},
    "orders": {"nr": "BIGINT", "customer": "BIGINT", "day": "DATE"},
    "items": {"order_nr": "INTEGER", "part": "VARCHAR", "price": "DOUBLE", "item": "BIGINT"},
    "returns": {"item": "BIGINT", "why": "VARCHAR"},
    "parts": {"part": "VARCHAR", "size": "BIGINT"},
}
ORDERS = ForeignKey(column="order_nr", table="orders", key="nr")
ITEMS = ForeignKey(column="item", table="items", key="item")
DECLARED = Declaration(
    name="shop", unit=Unit.column("id"), guarantee=Guarantee(epsilon=1),
    tables={
        "people": DeclaredTable(), "orders": DeclaredTable(unit="customer"),
        "items": DeclaredTable(unit=ORDERS), "returns": DeclaredTable(unit=ITEMS),
    },
    public={"parts": DeclaredTable()},
)  # fmt: skip
CATALOG = DECLARED.catalog(TYPES)
ROWS = {
    "people": [(1, 30), (2, 40), (3, 50), (None, 9)],
    "orders": [(10, 1, "2026-01-01"), (11, 1, "2026-02-01"), (12, 2, "2026-01-05"),
               (13, 4, "2026-01-07"), (None, 2, None), (14, None, "2026-01-01")],
    "items": [(10, "nut", 1.0, 100), (10, "bolt", 2.0, 101), (11, "nut", 3.0, 102),
              (12, "bolt", 4.0, 103), (12, None, None, 104), (99, "nut", 7.0, 105),
              (None, "nut", 8.0, 106), (14, "bolt", 9.0, 107), (13, "nut", 5.0, None)],
    "returns": [(100, "broken"), (100, "again"), (103, None), (105, "lost"), (None, "x")],
    "parts": [("nut", 1), ("bolt", 2), ("bolt", 3)],
}  # fmt: skip
OF_SOMEBODY = "order_nr IN (SELECT nr FROM orders WHERE customer IS NOT NULL)"
# Questions, and how plain SQL says that rows which belong to nobody do not count.
QUESTIONS = [
    ("SELECT SUM(price) FROM items", f"SELECT price FROM items WHERE {OF_SOMEBODY}"),
    ("SELECT SUM(age) FROM people JOIN orders ON people.id = orders.customer", None),
    ("SELECT SUM(age) FROM people, orders WHERE id = customer", None),
    ("SELECT SUM(price) FROM orders JOIN items ON orders.nr = items.order_nr "
     "AND customer IS NOT NULL", None),
    ("SELECT SUM(price) FROM people, orders, items WHERE id = customer AND nr = order_nr", None),
    ("SELECT SUM(price) FROM orders LEFT JOIN items ON nr = order_nr WHERE customer > 0", None),
    ("SELECT SUM(a.price + b.price) FROM items AS a JOIN items AS b ON a.order_nr = b.order_nr "
     "AND a.part < b.part", None),
    ("SELECT SUM(price) FROM items JOIN returns USING (item) WHERE item < 105", None),
    ("SELECT SUM(price * size) FROM items JOIN parts USING (part)",
     f"SELECT price * size FROM items JOIN parts USING (part) WHERE {OF_SOMEBODY}"),
    ("SELECT SUM(s) FROM (SELECT order_nr, SUM(price) AS s FROM items GROUP BY order_nr) AS t",
     f"SELECT SUM(price) FROM items WHERE {OF_SOMEBODY} GROUP BY order_nr"),
    ("SELECT SUM(nr) FROM orders WHERE nr IN (SELECT order_nr FROM items WHERE price > 1)"
     " AND customer > 0", None),
    ("SELECT SUM(nr) FROM orders WHERE customer > 0 AND EXISTS "
     "(SELECT 1 FROM items WHERE order_nr = nr AND part = 'nut')", None),
    ("SELECT SUM(nr) FROM orders WHERE customer > 0 AND NOT EXISTS "
     "(SELECT 1 FROM items WHERE order_nr = nr AND part = 'nut')", None),
    ("SELECT SUM(age) FROM people WHERE id IN (SELECT customer FROM orders)", None),
    ("SELECT SUM(x) FROM (SELECT customer, nr AS x FROM orders UNION ALL SELECT id, age FROM "
     "people) AS t WHERE customer > 0", None),
]  # fmt: skip


def database(rows):
    made = duckdb.connect()
    made.execute("SET threads = 1")
    for name, columns in TYPES.items():
        typed = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
        made.execute(f"CREATE TABLE {name} ({typed})")
        marks = ", ".join("?" for _ in columns)
        for row in rows[name]:
            made.execute(f"INSERT INTO {name} VALUES ({marks})", row)
    return made


def plan(question, rows, catalog=CATALOG, **settings):
    with database(rows) as connection:
        return connection.execute(plan_sql(parse(question, catalog, **settings).rows)).fetchall()


@pytest.mark.parametrize(("question", "plain"), QUESTIONS)
def test_rows_are_those_of_plain_sql(question, plain):
    found = Counter(row[1] for row in plan(question, ROWS))
    plain = plain or question.replace("SUM(", "(", 1)
    with database(ROWS) as connection:
        wanted = Counter(
            float(v) if v is not None else v for (v,) in connection.execute(plain).fetchall()
        )
    assert found == wanted
    assert found.total() > 0


def owned(rows):
    """Return all rows with whom they belong to, None for nobody, as declared."""
    orders = {}
    for nr, who, _ in rows["orders"]:
        if nr is not None and who is not None:
            orders[nr] = min(who, orders.get(nr, who))
    items = {}
    for nr, _, _, item in rows["items"]:
        if item is not None and nr in orders:
            items[item] = min(orders[nr], items.get(item, orders[nr]))
    whose = {
        "people": lambda row: row[0], "orders": lambda row: row[1],
        "items": lambda row: orders.get(row[0]), "returns": lambda row: items.get(row[0]),
        "parts": lambda row: None,
    }  # fmt: skip
    return {name: [(whose[name](row), row) for row in rows[name]] for name in rows}


# Keys of several people, of nobody, and of somebody and nobody.
SHARED = {
    **ROWS,
    "orders": [*ROWS["orders"], (10, 3, None), (12, 1, "2026-01-09"), (12, 4, None), (14, 2, None)],
    "items": [*ROWS["items"], (12, "nut", 6.0, 100), (10, "nut", 2.5, 103)],
}


@pytest.mark.lengthy
@pytest.mark.parametrize("rows", [ROWS, SHARED], ids=["one owner", "several"])
@pytest.mark.parametrize("question", [question for question, _ in QUESTIONS])
def test_whoever_goes_takes_along_their_own_rows_and_nobody_elses(question, rows):
    found = Counter(plan(question, rows))
    assert None not in {row[0] for row in found}
    for unit in (1, 2, 3, 4):
        without = {n: [row for who, row in own if who != unit] for n, own in owned(rows).items()}
        left = Counter(plan(question, without))
        assert left == Counter({row: n for row, n in found.items() if row[0] != unit})


def test_a_row_belongs_to_one_unit_however_many_have_its_key():
    for table, column in (("items", "price"), ("returns", "item")):
        found = plan(f"SELECT COUNT(*), SUM({column}) FROM {table}", SHARED)
        wanted = Counter(who for who, _ in owned(SHARED)[table] if who is not None)
        assert Counter(row[0] for row in found) == wanted


def test_periods_are_those_of_the_table_that_has_the_unit():
    monthly = replace(DECLARED, unit=Unit.column("id").per("month", time="day"),
                      tables={"orders": DECLARED.tables["orders"],
                              "items": DECLARED.tables["items"]})  # fmt: skip
    catalog = monthly.catalog(TYPES)
    asked = "SELECT SUM(price) FROM items"
    for periods, wanted in ((["2026-01"], {"2026-01|1": 2, "2026-01|2": 2, "2026-01|4": 1}),
                            (["2026-02"], {"2026-02|1": 1})):  # fmt: skip
        found = Counter(row[0] for row in plan(asked, ROWS, catalog, periods=periods))
        assert found == wanted
    # An order of two months is of the first of them, whichever is asked.
    twice = {**ROWS, "orders": [*ROWS["orders"], (11, 1, "2026-01-31")]}
    assert not plan(asked, twice, catalog, periods=["2026-02"])
    joined = "SELECT SUM(price) FROM orders JOIN items ON nr = order_nr"
    assert len(plan(joined, ROWS, catalog, periods=["2026-01"])) == 5


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("SELECT COUNT(*) FROM orders JOIN items ON orders.nr = items.item", "join_unit"),
        ("SELECT COUNT(*) FROM people JOIN items ON people.id = items.order_nr", "join_unit"),
        ("SELECT COUNT(*) FROM people JOIN orders ON people.id = orders.nr", "join_unit"),
        ("SELECT COUNT(*) FROM (SELECT part, COUNT(*) FROM items GROUP BY part)", "unit_missing"),
        ("SELECT customer, COUNT(*) FROM orders GROUP BY customer", "unit_key"),
    ],
)
def test_what_says_nothing_of_the_unit_is_refused(question, code):
    with pytest.raises(Refused) as caught:
        parse(question, CATALOG)
    assert caught.value.code == code


def test_a_declaration_is_kept_in_its_file(tmp_path):
    DECLARED.save(tmp_path / "shop.toml")
    assert load(tmp_path / "shop.toml") == DECLARED
    assert 'unit = "customer"' in DECLARED.to_toml()
    assert 'unit = { column = "order_nr", table = "orders", key = "nr" }' in DECLARED.to_toml()


@pytest.mark.parametrize(
    ("tables", "word"),
    [
        ({"items": DeclaredTable(unit=ORDERS)}, "no protected table"),
        ({"orders": DeclaredTable(unit=ForeignKey(column="nr", table="items", key="order_nr")),
          "items": DeclaredTable(unit=ORDERS)}, "circle"),
        ({"orders": DeclaredTable(unit=ForeignKey(column="nr", table="orders", key="nr"))},
         "circle"),
    ],
)  # fmt: skip
def test_keys_that_lead_nowhere_are_refused(tables, word):
    with pytest.raises(ParameterError, match=word):
        replace(DECLARED, tables=tables)


def test_units_that_cannot_be_are_refused():
    with pytest.raises(ParameterError, match="public"):
        replace(DECLARED, public={"parts": DeclaredTable(unit="part")})
    with pytest.raises(ParameterError, match="each row"):
        replace(DECLARED, unit=Unit.record())
    for types, word in (
        ({**TYPES, "orders": {**TYPES["orders"], "nr": "VARCHAR"}}, "compared exactly"),
        ({**TYPES, "orders": {**TYPES["orders"], "customer": "VARCHAR"}}, "compared exactly"),
        ({**TYPES, "orders": {"customer": "BIGINT"}}, "no column 'nr'"),
        ({**TYPES, "items": {"item": "BIGINT"}}, "no column 'order_nr'"),
        ({**TYPES, "orders": {"nr": "BIGINT"}}, "no column 'customer'"),
    ):
        with pytest.raises(DataError, match=word):
            DECLARED.catalog(types)
