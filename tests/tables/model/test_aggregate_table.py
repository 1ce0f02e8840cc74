"""One row per aggregate: the table is complete, and everything else follows from it."""

from collections import Counter
from typing import get_args

import pytest
import sqlglot
from sqlglot import exp

from discreet.privacy import Neighbours, Unit
from discreet.tables.algorithms import estimates
from discreet.tables.model.aggregates import AGGREGATES, CELLS, SPECS, AggregateKind, Rewrite
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.sql import aggregate_calls
from discreet.tables.sql.parse import parse

REWRITES = [one for one in AGGREGATES if isinstance(one, Rewrite)]
COLUMNS = (Column(name="id", type="BIGINT"), Column(name="x", type="DOUBLE"))
CATALOG = Catalog(
    unit=Unit.column("id"),
    neighbours=Neighbours.add_remove,
    tables=(Table(name="t", columns=(*COLUMNS, Column(name="y", type="DOUBLE"))),),
)


def test_every_kind_is_released_in_one_way():
    assert set(SPECS) == set(get_args(AggregateKind))
    for spec in SPECS.values():
        ways = [spec.counts, spec.adds, spec.cells, spec.draws]
        if spec.counts == "values":  # the one count that shares the cells of its values
            ways.remove("present")
        assert sum(way is not None for way in ways) == 1, spec
        assert spec.cells is None or spec.cells in CELLS


def test_no_name_means_two_things():
    named = [name for one in AGGREGATES for name in one.names if name != "COUNT"]
    named += [name for spec in SPECS.values() for name in spec.population_names]
    assert [name for name, times in Counter(named).items() if times > 1] == []


def test_everything_that_follows_from_cells_has_an_estimator():
    estimated = {*estimates._TOTALS, *estimates._RATIOS}
    assert estimated == {kind for kind, spec in SPECS.items() if spec.draws is None}


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda one: one.names[0])
def test_a_rewrite_is_an_expression_over_its_parameters(rewrite):
    made = sqlglot.parse_one(rewrite.sql, dialect="duckdb")
    assert {column.name for column in made.find_all(exp.Column)} == set(rewrite.parameters)
    meant = {"condition": "x > y", "share": "0.9"}
    given = ", ".join(meant.get(one, one) for one in rewrite.parameters)
    sql = rewrite.sql
    for word, example in meant.items():
        sql = sql.replace(word, example)
    for name in rewrite.names:
        asked = parse(f"SELECT {name}({given}) AS a FROM t", CATALOG)
        assert asked == parse(f"SELECT {sql} AS a FROM t", CATALOG)


def test_a_new_rewrite_needs_nothing_else(monkeypatch):
    span = Rewrite(names=("SPAN",), sql="MAX(x) - MIN(x)")
    monkeypatch.setitem(aggregate_calls._REWRITES, "SPAN", span)
    asked = parse("SELECT SPAN(x + y) FILTER (WHERE y > 0) AS s FROM t", CATALOG)
    by_hand = parse(
        "SELECT MAX(x + y) FILTER (WHERE y > 0) - MIN(x + y) FILTER (WHERE y > 0) AS s FROM t",
        CATALOG,
    )
    assert asked == by_hand
    within = "SELECT AVG(s) AS s FROM (SELECT id, {} AS s FROM t GROUP BY id)"
    assert parse(within.format("SPAN(x)"), CATALOG) == parse(
        within.format("MAX(x) - MIN(x)"), CATALOG
    )
