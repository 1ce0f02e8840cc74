"""The engine of plain Python passes the suite of all engines, and answers questions."""

import pyarrow as pa
from discreet.tables.engines.plain_python import PlainPythonConnection, PlainPythonEngine

from discreet import Guarantee, protect
from discreet.datasets import census
from discreet.testing import EngineConformance


class TestPlainPython(EngineConformance):
    def connect(self, tables):
        return PlainPythonConnection(tables)


def test_questions_are_answered(tmp_path):
    people = pa.table(census(2000, seed=1))
    with protect(
        people, name="people", unit="person_id", rows=1, ledger=tmp_path / "budget.db",
        guarantee=Guarantee(epsilon=3, delta=1e-6), engine=PlainPythonEngine(),
        columns={"income": {"bounds": (0, 100_000)}, "sex": {"keys": ["female", "male"]}},
    ) as tables:  # fmt: skip
        counted = tables.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1)
        assert abs(sum(row["n"] for row in counted.to_dicts()) - 2000) < 60
        old = tables.sql("SELECT AVG(income) AS pay FROM people WHERE age >= 65", epsilon=1)
        assert 0 < old.value < 100_000
