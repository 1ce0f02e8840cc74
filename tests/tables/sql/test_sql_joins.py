"""Outer and nested joins: the same rows as plain SQL, each of one unit and nobody else's."""

from collections import Counter
from dataclasses import replace

import duckdb
import pytest

from discreet.errors import Refused
from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.relation import most_rows
from discreet.tables.sql.parse import parse

COLUMNS = (
    Column(name="id", type="BIGINT"),
    Column(name="k", type="VARCHAR"),
    Column(name="x", type="DOUBLE"),
)
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(
        *(Table(name=name, columns=COLUMNS) for name in ("a", "b", "c")),
        *(Table(name=name, columns=COLUMNS[1:], is_public=True) for name in ("p", "q")),
    ),
)
ROWS = {
    "a": [(1, "u", 1.0), (1, "v", 2.0), (2, "u", 3.0), (3, None, 4.0), (4, "w", None)],
    "b": [(1, "u", 2.0), (1, "u", 3.0), (2, "v", 0.5), (5, "w", 9.0), (3, "u", None)],
    "c": [(2, "u", 7.0), (3, "v", 8.0), (5, None, 1.0), (6, "w", 2.0), (6, "u", 2.5)],
    "p": [("u", 1.0), ("u", 2.0), ("v", 0.0), (None, 1.0)],
    "q": [("u", 5.0), ("w", 6.0), ("x", 7.0)],
}
# The tables whose columns are compared (with ":" the key of USING, too), and FROM and WHERE.
QUESTIONS = [
    # Both sides are kept.
    ("ab", "a JOIN b ON a.id = b.id WHERE 1 < 2"),
    ("ab", "a LEFT JOIN b ON a.id = b.id AND 1 > 2 WHERE 2 > 1"),
    ("ab", "a FULL JOIN b ON a.id = b.id"),
    ("ab", "a FULL JOIN b ON a.id = b.id AND a.k = b.k AND b.x > 1"),
    ("ab", "a FULL JOIN b ON a.id = b.id AND a.x + b.x > 3"),
    ("ab:", "a FULL JOIN b USING (id)"),
    ("ab:", "a FULL OUTER JOIN b USING (id, k)"),
    ("abc:", "a FULL JOIN b USING (id) FULL JOIN c USING (id)"),
    ("abc", "a FULL JOIN b ON a.id = b.id FULL JOIN c ON a.id = c.id"),
    ("abc", "a FULL JOIN b ON a.id = b.id JOIN c ON b.id = c.id"),
    ("abc", "a FULL JOIN b ON a.id = b.id, c WHERE b.id = c.id"),
    ("abc:", "a FULL JOIN b USING (id) LEFT JOIN c USING (id)"),
    ("abc:", "a FULL JOIN b USING (id) RIGHT JOIN c USING (id)"),
    ("abc", "a LEFT JOIN b ON a.id = b.id AND b.x > 2 FULL JOIN c ON c.id = a.id"),
    ("abp", "a FULL JOIN b ON a.id = b.id LEFT JOIN p ON p.k = b.k AND p.x > a.x"),
    ("apq", "a JOIN (p FULL JOIN q ON p.k = q.k) ON a.k = q.k"),
    ("ab", "a FULL JOIN b ON a.id = b.id WHERE a.x > 1 OR b.x > 1"),
    ("ab", "a FULL JOIN b ON a.id = b.id AND a.k = b.k WHERE b.id IS NULL"),
    ("ab", "a FULL JOIN b ON a.id = b.id AND a.k = b.k WHERE a.x > 1"),
    ("ab:", "a FULL JOIN b USING (id) WHERE id NOT IN (SELECT id FROM c)"),
    # The right side is kept.
    ("ab", "a RIGHT JOIN b ON a.id = b.id AND a.x > b.x"),
    ("ab:", "a RIGHT JOIN b USING (id) WHERE id < 4"),
    ("ab", "a RIGHT JOIN b ON a.id = b.id AND a.k = b.k WHERE b.x > 1"),
    ("ab", "a RIGHT JOIN b ON a.id = b.id AND a.k = b.k WHERE a.x < 2"),
    ("ab", "a RIGHT JOIN b ON a.id = b.id AND b.x > 1"),
    ("abc", "a JOIN b ON a.id = b.id RIGHT JOIN c ON c.id = b.id AND a.x > 1"),
    ("abc", "a RIGHT JOIN b ON a.id = b.id JOIN c ON c.id = b.id AND a.x > 1"),
    ("abc", "a RIGHT JOIN b ON a.id = b.id AND a.k = b.k JOIN c ON c.id = b.id AND a.x IS NULL"),
    ("abc", "a RIGHT JOIN b USING (id) LEFT JOIN c ON c.id = b.id AND b.x > 1"),
    ("abc", "a RIGHT JOIN b ON a.id = b.id AND a.x > 1 RIGHT JOIN c ON c.id = b.id AND b.x > 1"),
    ("abc", "a LEFT JOIN b ON a.id = b.id RIGHT JOIN c ON c.id = a.id AND b.x > 1"),
    ("pa", "p RIGHT JOIN a ON p.k = a.k AND p.x < a.x"),
    ("pqa", "p JOIN q ON p.k = q.k RIGHT JOIN a ON p.k = a.k"),
    ("pqa", "p RIGHT JOIN q ON p.k = q.k JOIN a ON q.k = a.k"),
    ("ab", "a RIGHT JOIN b ON a.id = b.id WHERE b.id IN (SELECT id FROM c)"),
    # The right side is itself a join.
    ("abc", "a JOIN (b JOIN c ON b.id = c.id) ON a.id = b.id"),
    ("abc", "a LEFT JOIN (b JOIN c ON b.id = c.id) ON a.id = c.id AND b.x < c.x"),
    ("abc:", "a LEFT JOIN (b LEFT JOIN c USING (id)) USING (id)"),
    ("abc", "a RIGHT JOIN (b JOIN c USING (id)) ON a.id = b.id"),
    ("abc:", "a FULL JOIN (b FULL JOIN c USING (id)) USING (id)"),
    ("abc", "a JOIN b JOIN c ON b.id = c.id ON a.id = b.id"),
    ("abcd", "a LEFT JOIN ((b JOIN c USING (id)) RIGHT JOIN a AS d USING (id)) ON d.id = a.id"),
    ("apq", "a LEFT JOIN (p JOIN q ON p.k = q.k) ON p.k = a.k"),
    ("abp", "a JOIN (b LEFT JOIN p ON p.k = b.k) ON a.id = b.id WHERE p.x > 0 OR p.x IS NULL"),
    ("abc", "(a JOIN b USING (id)) JOIN c ON a.id = c.id"),
]
UNITS = range(1, 7)
some = pytest.mark.parametrize(("titles", "sql"), QUESTIONS)


@pytest.fixture(scope="module")
def connection():
    """Return a connection to the rows; in the schema without_3 those of unit 3 are not there."""
    with duckdb.connect() as made:
        made.execute("SET threads = 1")
        for name, rows in ROWS.items():
            typed = "id BIGINT, " if len(rows[0]) == 3 else ""
            made.execute(f"CREATE TABLE {name} ({typed}k VARCHAR, x DOUBLE)")
            marks = ", ".join("?" for _ in rows[0])
            made.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        for unit in UNITS:
            made.execute(f"CREATE SCHEMA without_{unit}")
            for name in ROWS:
                where = f"WHERE id <> {unit}" if name in "abc" else ""
                copied = f"SELECT * FROM main.{name} {where}"
                made.execute(f"CREATE TABLE without_{unit}.{name} AS {copied}")
        yield made


def read(titles, sql, connection, **settings):
    """Return a plan that has all columns of the tables, and the rows of plain SQL."""
    columns = [
        f"{t}.{c}"
        for t in titles.strip(":")
        for c in ("id", "k", "x")
        if t not in "pq" or c != "id"
    ]
    columns += ["id + 1"] if ":" in titles else []
    plain = [f"{c} + 0" if c.endswith("id") else c for c in columns]  # the unit is no value
    shown = ", ".join(f"COUNT(DISTINCT {c})" for c in plain)
    query = parse(f"SELECT {shown} FROM {sql}", replace(CATALOG, **settings))
    wanted = connection.execute(f"SELECT {', '.join(columns)} FROM {sql}").fetchall()
    return columns, query, wanted


def check_alone(query, found, connection):
    """Check that whoever is left out takes along their own rows and nobody else's."""
    for unit in UNITS:
        connection.execute(f"USE without_{unit}")
        left = connection.execute(plan_sql(query.rows)).fetchall()
        connection.execute("USE main")
        assert Counter(left) == Counter(row for row in found if row[0] != unit)


@pytest.mark.lengthy
@some
def test_rows_are_those_of_plain_sql_and_each_is_of_one_unit(titles, sql, connection):
    columns, query, wanted = read(titles, sql, connection)
    found = connection.execute(plan_sql(query.rows)).fetchall()
    assert wanted
    assert Counter(row[1:] for row in found) == Counter(wanted)
    for row in found:
        said = {v for c, v in zip(columns, row[1:], strict=True) if c.endswith("id")}
        assert said - {None} == {row[0]}
    check_alone(query, found, connection)


@pytest.mark.lengthy
@some
def test_no_unit_has_more_rows_than_joins_may_make(titles, sql, connection):
    for most in (1, 3):
        _, query, _ = read(titles, sql, connection, joined_rows=most)
        found = connection.execute(plan_sql(query.rows)).fetchall()
        partners = 2 ** sum(title in "pq" for title in titles)  # at most 2 rows of p have one k
        least = partners * 2 ** sql.count("FULL")
        assert max(Counter(row[0] for row in found).values(), default=0) <= max(most, least)
        check_alone(query, found, connection)


ONE = "(SELECT id, MAX(x) AS x FROM {} GROUP BY id)"
TWO = "(SELECT DISTINCT id, x > 1 AS x FROM {})"


@pytest.mark.parametrize(
    ("kind", "left", "right", "most"),
    [
        *((kind, ONE, ONE, 1) for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN")),
        ("FULL JOIN", ONE, ONE, 2),  # with a condition that does not hold, both are kept
        ("RIGHT JOIN", TWO, ONE, 3),
        ("FULL JOIN", TWO, TWO, 9),
        ("FULL JOIN", ONE, TWO, 4),
    ],
)
def test_rows_of_a_unit_are_counted_for_each_kind(kind, left, right, most, connection):
    sql = f"{left.format('a')} AS v {kind} {right.format('b')} AS w ON v.id = w.id AND FALSE"
    assert most_rows(parse(f"SELECT COUNT(*) FROM {sql}", CATALOG).rows) == most
    found = connection.execute(f"SELECT COALESCE(v.id, w.id) FROM {sql}").fetchall()
    assert max(Counter(found).values(), default=0) <= most


def test_a_key_of_using_is_the_unit_only_where_it_is_there_in_every_row():
    asked = (
        "SELECT COUNT(*) FROM (SELECT {0}, COUNT(*) AS n FROM a {1} JOIN b USING (id) GROUP BY {0})"
    )
    for key, kind in (("id", "FULL"), ("id", "RIGHT"), ("b.id", "RIGHT"), ("a.id", "LEFT")):
        assert most_rows(parse(asked.format(key, kind), CATALOG).rows) == 1
    for key, kind in (("a.id", "FULL"), ("b.id", "FULL"), ("a.id", "RIGHT"), ("b.id", "LEFT")):
        with pytest.raises(Refused) as caught:
            parse(asked.format(key, kind), CATALOG)
        assert caught.value.code == "unit_missing"
