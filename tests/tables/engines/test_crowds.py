"""One unit with very many rows cannot make a join large, and which rows meet is its own affair."""

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.tables import protect
from discreet.tables.engines import DuckDBConnection
from discreet.tables.engines.compile.relations import rows_sql
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.bounds import Norm
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.relation import most_joined
from discreet.tables.model.statements import Cells, Distinct, Profile, Sums
from discreet.tables.sql.parse import parse

MOST = 400
COLUMNS = tuple(Column(name=n, type="BIGINT") for n in ("id", "x"))
PUBLIC = tuple(Column(name=n, type="BIGINT") for n in ("x", "y"))
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(
        Table(name="a", columns=COLUMNS),
        Table(name="b", columns=COLUMNS),
        Table(name="p", columns=PUBLIC, is_public=True),
    ),
    joined_rows=MOST,
)
QUESTIONS = {
    "two tables": "SELECT COUNT(*), SUM(b.x) FROM a JOIN b ON a.id = b.id",
    "a table with itself": "SELECT COUNT(*) FROM a AS v JOIN a AS w ON v.id = w.id AND v.x < w.x",
    "three": "SELECT COUNT(*) FROM a JOIN b ON a.id = b.id JOIN a AS c ON c.id = b.id",
    "left": "SELECT COUNT(*), COUNT(b.x) FROM a LEFT JOIN b ON a.id = b.id AND b.x > a.x",
    "right": "SELECT COUNT(*), COUNT(b.x) FROM a RIGHT JOIN b ON a.id = b.id AND b.x > a.x",
    "full": "SELECT COUNT(*), SUM(b.x) FROM a FULL JOIN b ON a.id = b.id AND b.x > a.x",
    "nested": """SELECT COUNT(*), SUM(c.x) FROM a LEFT JOIN (b FULL JOIN a AS c USING (id))
        ON a.id = b.id AND a.x < c.x""",
    "of a union": """SELECT COUNT(*), SUM(u.x) FROM a JOIN
        (SELECT id, x FROM a UNION ALL SELECT id, x FROM b) AS u ON a.id = u.id AND a.x < u.x""",
    "in WITH": """WITH v AS (SELECT a.id, a.x FROM a JOIN b USING (id))
        SELECT v.x, COUNT(*) FROM v JOIN v AS w ON v.id = w.id GROUP BY v.x""",
    "in a subquery": """SELECT COUNT(DISTINCT s.n) FROM
        (SELECT a.id, a.x, COUNT(*) AS n FROM a JOIN b ON a.id = b.id GROUP BY a.id, a.x) AS s
        JOIN b ON b.id = s.id WHERE b.x > 3""",
    "every row of a public table": "SELECT COUNT(*) FROM p, a WHERE a.x > p.y",
    "many public partners": "SELECT COUNT(*) FROM a JOIN p ON a.x % 3 = p.y",
}


def tables(units, crowd):
    """Return tables in which unit 0 has very many rows."""
    rows = [(u, x) for u in range(1, units + 1) for x in range(3)] + [(0, x) for x in range(crowd)]
    own = pa.table({"id": [u for u, _ in rows], "x": [x for _, x in rows]})
    return {"a": own, "b": own, "p": pa.table({"x": range(60), "y": [i % 3 for i in range(60)]})}


def statements(query):
    """Return one statement of each kind about the question's rows."""
    yield Sums(query=query, cells=(Cells(kind="rows"),), bounding=Norm(limit=9, order=1), salt="s")
    yield Profile(query=query, of="rows", edges=(1, 10), salt="s")
    if query.values:
        yield Distinct(query=query, value=0, most=3, salt="s")


@pytest.mark.lengthy
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_no_step_of_a_statement_has_more_rows_than_a_unit_may_make(question):
    query, units, crowd = parse(question, CATALOG), 5, 3000
    # Small units have 27 rows in a join at most, or 180 with public partners.
    most = crowd * (1 + question.count("UNION")) + units * 180 + MOST
    with DuckDBConnection(tables(units, crowd)) as engine:
        for statement in statements(query):
            assert max(_rows_of_steps(engine, statement)) <= most


def _rows_of_steps(engine, statement):
    """Return how many rows each operator of DuckDB's plan made, by its own count."""
    return [step["intermediate_rows"] for step in _steps(engine, statement)]


def _steps(engine, statement):
    """Yield the operators of DuckDB's plan."""
    ran = []
    analyze, engine._run = engine._run, lambda query, *given: ran.append((query, *given))
    try:
        engine.aggregate(statement)
    finally:
        del engine._run
    query, *given = ran[0]
    found = analyze(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", *given)["explain_value"][0].as_py()
    steps = json.loads(found)["operator"]
    while steps:
        step = steps.pop()
        steps += step.get("children", ())
        yield step


@pytest.mark.lengthy
def test_where_nobody_is_crowded_few_groups_are_counted_and_rows_are_not_hashed_for_it():
    asked = "SELECT COUNT(*) FROM a JOIN b ON a.id = b.id"
    query = parse(asked, replace(CATALOG, joined_rows=None))
    many, fewer = (pa.table({"id": range(n), "x": range(n)}) for n in (100_000, 20_000))
    with DuckDBConnection({"a": many, "b": fewer}) as engine:
        for statement in statements(query):
            steps = list(_steps(engine, statement))
            groups = [s["intermediate_rows"] for s in steps if s["type"] == "HASH_GROUP_BY"]
            assert [n for n in groups if n > 1 << 14] == [20_000]  # the units themselves, once
            assert "RIGHT_ANTI" not in str(steps)


@pytest.mark.parametrize(
    "condition",
    ["a.id = b.id", "b.id = a.id", "a.id = b.id AND b.id = a.id", "a.id = b.id AND TRUE"],
)
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_units_are_compared_once(kind, condition):
    """They are among the columns under two names, and engines would compare and keep both."""
    query = parse(f"SELECT COUNT(*) FROM a {kind} b ON {condition}", CATALOG)
    text = rows_sql(query.rows, DUCKDB)
    on = text[text.rindex(" ON ") :]
    assert on.count(".unit = ") == 1
    assert '"id" = ' not in on


def test_a_table_that_is_joined_with_itself_is_counted_once():
    for question, counts in (("a table with itself", 1), ("two tables", 2), ("three", 2)):
        text = rows_sql(parse(QUESTIONS[question], CATALOG).rows, DUCKDB)
        assert text.count(" GROUP BY 1") == text.count(" GROUP BY unit") == counts


@pytest.mark.lengthy
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_crowded_unit_leaves_all_others_as_they_are(question):
    query = parse(question, CATALOG)
    counts = []
    for crowd in (0, 1, 500):
        with DuckDBConnection(tables(5, crowd)) as engine:
            units = engine.rows(query.rows).reveal_without_noise()["unit"].to_pylist()
        counts.append(Counter(units))
        assert counts[-1].pop(0, 0) <= MOST
    assert counts[0] == counts[1] == counts[2]


own_rows = st.lists(st.integers(0, 6), max_size=9).flatmap(
    lambda rows: st.integers(1, 8).map(lambda times: rows * times)
)


@pytest.mark.lengthy
@settings(deadline=None, max_examples=12)
@given(
    st.lists(st.tuples(own_rows, own_rows), min_size=2, max_size=3),
    st.sampled_from(sorted(QUESTIONS)),
    st.sampled_from([1, 2, 7, 30]),
)
def test_a_unit_has_the_same_rows_alone_as_among_others(people, name, most):
    query = parse(QUESTIONS[name], replace(CATALOG, joined_rows=most))
    schema = pa.schema({"id": pa.int64(), "x": pa.int64()})

    def joined(*units):
        made = {"p": tables(0, 0)["p"]}
        for i, table in enumerate("ab"):
            rows = [{"id": unit, "x": x} for unit in units for x in people[unit][i]]
            made[table] = pa.Table.from_pylist(rows, schema=schema)
        with DuckDBConnection(made, threads=2) as engine:
            found = engine.rows(query.rows).reveal_without_noise()
        return Counter(tuple(row.values()) for row in found.to_pylist())

    alone = [joined(unit) for unit in range(len(people))]
    assert joined(*range(len(people))) == sum(alone, Counter())
    assert max(one.total() for one in alone) <= max(most, 60)  # the public table has 60 rows


def test_conditions_come_before_rows_are_left_out():
    question = "SELECT COUNT(*) FROM a JOIN b ON a.id = b.id AND b.x < 5 WHERE a.x = 7"
    for asked in (question, question.replace("JOIN", "LEFT JOIN")):
        with DuckDBConnection(tables(0, 3000)) as engine:
            rows = engine.rows(parse(asked, CATALOG).rows).reveal_without_noise()
        assert rows.num_rows == 5


def test_a_question_tells_how_many_rows_of_a_unit_a_join_makes(tmp_path):
    given = {name: table for name, table in tables(50, 0).items() if name != "p"}
    with protect(
        given, name="t", unit="id", guarantee=Guarantee(epsilon=9, delta=1e-6), rows=3,
        ledger=tmp_path / "budget.db", joined_rows=1234,
    ) as T:  # fmt: skip
        asked = "SELECT COUNT(*) AS n FROM a JOIN b ON a.id = b.id"
        assert "at most 1,234 rows of one unit" in str(T.quote(asked, epsilon=1))
        answer = T.sql(asked, epsilon=1)
        assert "at most 1,234 rows of one unit" in answer.explain()
        assert answer.facts["joined_rows"] == 1234
        assert "join" not in str(T.quote("SELECT COUNT(*) AS n FROM a", epsilon=1))
    with protect(
        given, name="u", unit="id", guarantee=Guarantee(epsilon=9, delta=1e-6), rows=3,
        ledger=tmp_path / "other.db",
    ) as T:  # fmt: skip
        # A million, which only monsters exceed: no note at every answer, but it can be looked up.
        answer = T.sql(asked, epsilon=1)
        assert "join" not in str(answer)
        assert answer.facts["joined_rows"] == 10**6


def test_the_limit_is_a_million_unless_more_rows_shall_count():
    asked = "SELECT COUNT(*) FROM a JOIN b ON a.id = b.id"
    declared = replace(CATALOG, joined_rows=None)
    for rows, most in ((None, 10**6), (20, 10**6), (5 * 10**6, 5 * 10**6)):
        assert most_joined(parse(asked, replace(declared, rows=rows)).rows) == most
