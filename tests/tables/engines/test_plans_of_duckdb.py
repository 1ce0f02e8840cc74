"""How DuckDB carries statements out: no row meets every other one."""

from dataclasses import replace

import pyarrow as pa
import pytest

from discreet.privacy import Neighbours, Unit
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import Norm
from discreet.tables.model.catalog import Catalog, Column, Table
from discreet.tables.model.statements import Cells, Sums
from discreet.tables.sql.parse import parse

COLUMNS = tuple(Column(name=n, type=t) for n, t in (("unit", "BIGINT"), ("x", "VARCHAR")))
CATALOG = Catalog(
    unit=Unit.column("unit"),
    neighbours=Neighbours.add_remove,
    tables=tuple(Table(name=name, columns=COLUMNS) for name in ("t", "u")),
)
TABLE = pa.table({"unit": [1, 2, 3], "x": ["a", "b", "c"]})
LISTED = "x IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')"
QUESTIONS = {
    "listed keys": f"SELECT x, COUNT(*) FROM t WHERE {LISTED} GROUP BY x",
    "a join": f"SELECT COUNT(*) FROM t JOIN u ON t.unit = u.unit WHERE t.{LISTED}",
    "filtered on both sides": f"""
        SELECT COUNT(*) FROM (SELECT unit, x FROM t WHERE {LISTED}) AS a
        JOIN (SELECT unit FROM u WHERE {LISTED}) AS b ON a.unit = b.unit
        WHERE a.x <> 'b'""",
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_conditions_of_joins_stay_in_joins(question):
    query = parse(question, CATALOG)
    groups = tuple((v,) for v in query.keys[0].values or ()) if query.keys else None
    statement = Sums(
        query=query, cells=(Cells(kind="rows"),), bounding=Norm(limit=9, order=1), salt=""
    )
    with DuckDBConnection({"t": TABLE, "u": TABLE}) as engine:
        plan = _plan(engine, replace(statement, groups=groups))
    assert "Hash Join" in plan
    assert "Cross Product" not in plan
    assert "Nested Loop" not in plan


def _plan(engine, statement):
    """Return DuckDB's plan of a statement."""
    shown = []
    explain, engine._run = engine._run, lambda query, *given: shown.append((query, *given))
    engine.aggregate(statement)
    query, *given = shown[0]
    return explain(f"EXPLAIN {query}", *given)["explain_value"][0].as_py()
