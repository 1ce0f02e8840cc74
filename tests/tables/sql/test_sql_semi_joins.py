"""Conditions on subqueries: nobody's rows decide about another unit's rows."""

from dataclasses import replace

import duckdb
import pytest

from discreet.errors import Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.relation import most_rows
from discreet.tables.sql.parse import parse


def catalog(unit):
    kinds = {"id": "BIGINT", "k": "VARCHAR", "x": "DOUBLE"}
    columns = tuple(Column(name=name, type=type_) for name, type_ in kinds.items())
    return Catalog(
        unit=unit,
        neighbours=Neighbours.add_remove,
        tables=(
            Table(name="people", columns=columns),
            Table(name="visits", columns=columns),
            Table(name="kinds", columns=columns[1:], is_public=True),
        ),
    )


PEOPLE = catalog(Unit.column("id"))
QUESTIONS = [
    "id IN (SELECT id FROM visits WHERE x > 1)",
    "id NOT IN (SELECT id FROM visits WHERE x > 1)",
    "id IN (SELECT id FROM visits GROUP BY id HAVING COUNT(*) > 1)",
    "EXISTS (SELECT 1 FROM visits AS v WHERE v.id = people.id AND v.k = people.k)",
    "NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.id = people.id AND v.k = people.k)",
    "id IN (SELECT v.id FROM visits AS v, visits AS w WHERE v.id = w.id AND v.x < w.x)",
    "NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.id = people.id) AND "
    "k IN (SELECT k FROM kinds WHERE x > 0)",
]
ROWS = {
    "people": [(1, "a", 1.0), (1, "b", 2.0), (2, "a", 3.0), (3, None, 4.0), (4, "c", 5.0)],
    "visits": [(1, "a", 2.0), (1, "a", 3.0), (2, "b", 0.5), (5, "c", 9.0)],
    "kinds": [("a", 1.0), ("a", 2.0), ("b", 0.0), (None, 1.0)],
}


def kept(question, rows):
    """Return the rows that a condition keeps, each with its unit."""
    with duckdb.connect() as connection:
        for name in ("people", "visits"):
            connection.execute(f"CREATE TABLE {name} (id BIGINT, k VARCHAR, x DOUBLE)")
        connection.execute("CREATE TABLE kinds (k VARCHAR, x DOUBLE)")
        for name, listed in rows.items():
            for row in listed:
                marks = ", ".join("?" for _ in row)
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", row)
        sql = plan_sql(parse(f"SELECT SUM(x) FROM people WHERE {question}", PEOPLE).rows)
        wanted = connection.execute(f"SELECT id, x FROM people WHERE {question}").fetchall()
        found = connection.execute(sql).fetchall()
    assert sorted(found) == sorted(wanted)
    return sorted(found)


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_unit_decides_about_rows_of_another(question):
    whole = kept(question, ROWS)
    for unit in (1, 2, 3, 4, 5):
        without = {
            name: [row for row in listed if name == "kinds" or row[0] != unit]
            for name, listed in ROWS.items()
        }
        assert kept(question, without) == [row for row in whole if row[0] != unit]


def test_no_row_is_multiplied_by_its_partners():
    asked = parse(
        "SELECT COUNT(*) FROM (SELECT DISTINCT id FROM people) AS p WHERE "
        "id IN (SELECT id FROM visits) AND EXISTS (SELECT 1 FROM visits AS v WHERE v.id = p.id)",
        PEOPLE,
    )
    assert most_rows(asked.rows) == 1


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("k IN (SELECT k FROM visits)", "unit_missing"),
        ("x IN (SELECT id FROM visits)", "join_unit"),
        ("EXISTS (SELECT 1 FROM visits)", "subquery"),
        ("EXISTS (SELECT 1 FROM visits AS v WHERE v.k = people.k)", "unit_missing"),
        (
            "EXISTS (SELECT 1 FROM visits AS v WHERE v.id = people.id AND v.x > people.x)",
            "subquery",
        ),
        ("EXISTS (SELECT 1 FROM visits AS v WHERE v.id = people.id OR v.x > 1)", "subquery"),
        ("id IN (SELECT id FROM visits) OR x > 1", "subquery"),
        ("id IN (SELECT id FROM visits ORDER BY x LIMIT 1)", "inner_order"),
        ("x > (SELECT AVG(x) FROM visits)", "subquery"),
        ("k NOT IN (SELECT k FROM kinds)", "not_in"),
        ("id IN (SELECT id + 1 FROM visits)", "unit_missing"),
    ],
)
def test_what_would_ask_other_units_is_refused(condition, code):
    with pytest.raises(Refused) as caught:
        parse(f"SELECT COUNT(*) FROM people WHERE {condition}", PEOPLE)
    assert caught.value.code == code


def test_a_table_may_have_any_name():
    named = replace(PEOPLE, tables=(*PEOPLE.tables, replace(PEOPLE.tables[0], name="t")))
    for inner in ("SELECT id FROM t GROUP BY id HAVING COUNT(*) > 1", "SELECT id FROM t UNION "
                  "SELECT id FROM visits"):  # fmt: skip
        asked = f"SELECT COUNT(*) FROM people WHERE id IN ({inner})"
        assert "t" in parse(asked, named).tables


def test_rows_that_are_units_may_be_looked_up_in_public_tables_only():
    rows = catalog(Unit.record())
    assert parse("SELECT COUNT(*) FROM people WHERE k IN (SELECT k FROM kinds)", rows).unit_is_row
    for condition in ("id IN (SELECT id FROM visits)", "k IN (SELECT k FROM visits)"):
        with pytest.raises(Refused) as caught:
            parse(f"SELECT COUNT(*) FROM people WHERE {condition}", rows)
        assert caught.value.code == "unit_is_row"
