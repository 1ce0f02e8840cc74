"""Plans as data: equal questions have equal plans, also in another process."""

import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines.duckdb.dialect import DUCKDB
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.output import Order, Output
from discreet.tables.model.query import canonical
from discreet.tables.model.scalar import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Fold,
    Function,
    Literal,
    ReleasedAggregate,
    ReleasedKey,
    form,
    rewritten,
    walk,
)
from discreet.tables.model.types import Type
from discreet.tables.sql.parse import parse

COLUMNS = (Column(name="id", type="BIGINT"), Column(name="x", type="DOUBLE"))
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(Table(name="t", columns=(*COLUMNS, Column(name="k", type="VARCHAR"))),),
)
ONE, OTHER = ReleasedAggregate(0), ReleasedAggregate(1)
NODES = [
    ColumnRef("x"), ColumnRef("x", "s0"), Literal("x", "text"), Literal(1, "int32"),
    Literal(1.0, "double"), Literal(True, "boolean"), Literal(None, "null"), Literal(None, "text"),
    Call("abs", (ONE,)), Call("negate", (ONE,)), Call("add", (ONE, OTHER)),
    Call("add", (OTHER, ONE)), Case(((ONE, OTHER),)), Case(((ONE, OTHER),), OTHER),
    Cast(ONE, "double"), Cast(ONE, "double", widens=True), Cast(ONE, "text"), Fold("count"),
    Fold("count", ONE), Fold("sum", ONE), ReleasedKey(0), ONE, OTHER,
]  # fmt: skip


def test_nodes_are_equal_just_if_their_forms_are():
    for i, one in enumerate(NODES):
        for j, other in enumerate(NODES):
            assert (one == other) == (form(one) == form(other)) == (i == j), (one, other)


def test_everything_inside_a_node_is_found_and_changed():
    for node in NODES:
        assert next(walk(node)) is node
        assert rewritten(node, lambda inner: inner) == node
        moved = rewritten(node, lambda inner: OTHER if inner == ONE else inner)
        assert ONE not in walk(moved)
        assert (moved == node) == (ONE not in walk(node))


def test_outputs_know_their_aggregates():
    ratio = Call("divide", (ONE, OTHER))
    output = Output(columns=(("k", ReleasedKey(0)), ("n", ONE)), where=ratio, order=(Order(OTHER),))
    assert output.aggregates == {0, 1}
    assert output.plain == {"n": 0}
    assert not output.is_whole
    moved = output.renumbered({0: 5, 1: 6})
    assert moved.aggregates == {5, 6}
    assert moved.renumbered({5: 0, 6: 1}) == output


def test_a_dialect_has_the_whole_vocabulary():
    assert set(DUCKDB.functions) == set(get_args(Function))
    assert set(DUCKDB.types) == set(get_args(Type)) - {"null", "released"}


SAME = [
    "SELECT k, AVG(x) AS a FROM t WHERE x > 1 AND k IN ('a', 'b') GROUP BY k",
    "select T.k, avg(T.x) as a from t as T where k in ('a', 'b') and (x > 1) group by 1",
]


@pytest.mark.lengthy
def test_equal_questions_have_equal_plans_in_any_process():
    plans = [parse(question, CATALOG) for question in SAME]
    assert plans[0] == plans[1]
    assert hash(plans[0].rows) == hash(plans[1].rows)
    assert canonical(plans[0]) == canonical(plans[1])
    code = (
        "from test_plan_nodes import CATALOG, SAME, canonical, parse;"
        "print(canonical(parse(SAME[0], CATALOG)))"
    )
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert run.stdout.strip() == canonical(plans[0])


@pytest.mark.parametrize(
    "question",
    ["SELECT AVG(x) AS b FROM t", "SELECT AVG(x + 0) AS a FROM t", "SELECT SUM(x) AS a FROM t",
     "SELECT AVG(x) AS a FROM t LIMIT 1", "SELECT AVG(x) AS a FROM t WHERE x > 1",
     "SELECT AVG(x) AS a FROM t HAVING AVG(x) > 1"],
)  # fmt: skip
def test_other_questions_have_other_fingerprints(question):
    plain = parse("SELECT AVG(x) AS a FROM t", CATALOG)
    assert canonical(parse(question, CATALOG)) != canonical(plain)
    assert canonical(replace(plain, unit_is_row=True)) != canonical(plain)
