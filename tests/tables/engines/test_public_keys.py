"""Public keys go to DuckDB as tables, each question's own, however many there are."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.bounds import WEIGHT_STEPS, Norm
from discreet.tables.model.query import Key, Query
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Cells, Combinations, Sums

MOMENT = "1970-01-01 00:00:01.000001"
KEY = Key(name="place", type="text", values=None)
QUERY = Query(rows=Select.of("t", unit="unit", key_0="place"), tables=("t",), keys=(KEY,))
SUMS = Sums(query=QUERY, cells=(Cells(kind="rows"),), bounding=Norm(limit=9, order=1), salt="")


def _counts(engine, statement):
    found = engine.aggregate(statement).reveal_without_noise().to_pydict()
    return {key: n // WEIGHT_STEPS for key, n in zip(found["key_0"], found["cell_0"], strict=True)}


def test_questions_at_once_see_their_own_keys():
    places = [f"place {i}" for i in range(40)]
    table = pa.table({"unit": range(40), "place": places})
    with DuckDBConnection({"t": table}, threads=2) as engine, ThreadPoolExecutor(8) as pool:
        asked = [replace(SUMS, groups=((place,),)) for place in places]
        found = list(pool.map(lambda one: _counts(engine, one), asked))
    assert found == [{place: 1} for place in places]


@pytest.mark.parametrize("name", ["keys0", "list_0", "typed", "source", "counted"])
def test_a_table_of_any_name_is_not_taken_for_the_keys(name):
    query = replace(QUERY, rows=Select.of(name, unit="unit", key_0="place"), tables=(name,))
    table = pa.table({"unit": [1, 2, 3], "place": ["a", "a", "b"], "code_0": [7, 8, 9]})
    with DuckDBConnection({name: table}) as engine:
        assert _counts(engine, replace(SUMS, query=query, groups=(("a",), ("c",)))) == {"a": 2}


@pytest.mark.parametrize(
    ("type_", "column", "groups"),
    [
        ("boolean", pa.array([True, False, None]), (True, None)),
        ("int8", pa.array([-128, 127, None], pa.int8()), (-128, None)),
        ("uint64", pa.array([2**64 - 1, 0, None], pa.uint64()), (2**64 - 1, 0)),
        ("double", pa.array([0.1, -0.0, None]), (0.1, float("nan"))),
        ("double", pa.array([1e300, 0.0, 5e-324]), (1e300, 5e-324)),
        ("date", pa.array([date(2026, 1, 31), date(1, 1, 1), None]), ("2026-01-31", None)),
        ("timestamp", pa.array([0, 1_000_001, None], pa.timestamp("us")), (MOMENT,)),
        ("text", pa.array(["it's", '"', "NULL"]), ('"', "NULL", "it's", "NULL")),
    ],
)
def test_keys_of_all_types_find_their_rows(type_, column, groups):
    query = replace(QUERY, keys=(Key(name="place", type=type_, values=None),))
    with DuckDBConnection({"t": pa.table({"unit": range(3), "place": column})}) as engine:
        found = _counts(engine, replace(SUMS, query=query, groups=tuple((g,) for g in groups)))
    shown = {str(key) if isinstance(key, date) else key for key in found}
    assert shown == {None if g != g else g for g in groups}  # NaN is no key
    assert all(n == 1 for n in found.values())


MANY = """
import resource, sys
import numpy as np
from discreet import Guarantee
from discreet.tables import protect
n = 50_000
places = np.array([f"place {i}" for i in range(n)], dtype=object)
with protect(
    {"person": np.arange(n), "place": places}, name="people", unit="person", rows=1,
    guarantee=Guarantee(epsilon=3, delta=1e-6), ledger=sys.argv[1],
    columns={"place": {"keys": list(places)}},
) as T:
    T.sql("SELECT COUNT(*) AS n FROM people WHERE place <> 'nowhere'", epsilon=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = T.sql("SELECT place, COUNT(*) AS n FROM people GROUP BY place", epsilon=1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(answer.to_dicts()) == n, answer.to_json().count(b"place 49999"), (after - before) / n)
"""


@pytest.mark.lengthy
def test_many_public_keys_take_little_memory(tmp_path):
    """As literals each took more than 10 kB of it."""
    code = [sys.executable, "-c", MANY, str(tmp_path / "budget.db")]
    run = subprocess.run(code, capture_output=True, text=True, check=True)
    is_whole, times, each = run.stdout.split()
    assert is_whole == "True"
    assert times == "1"  # in the answer, and not in what is said about it
    assert float(each) < 5  # kB


@pytest.mark.parametrize(
    "lists",
    [(("a", None, "a", "z"), (1, 2)), (("b",), (None, 7)), (("a", "b"), ())],
    ids=["repeated", "missing", "none"],
)
def test_combinations_are_what_all_of_them_are(lists):
    keys = (KEY, Key(name="part", type="int64", values=None))
    rows = Select.of("t", unit="unit", key_0="place", key_1="part")
    asked = replace(SUMS, query=Query(rows=rows, tables=("t",), keys=keys))
    table = pa.table(
        {"unit": range(6), "place": ["a", "a", "b", "b", None, "q"], "part": [1, 2, 1, None, 2, 1]}
    )

    def found(engine, groups):
        answer = engine.aggregate(replace(asked, groups=groups)).reveal_without_noise()
        return sorted(map(repr, answer.to_pylist()))

    with DuckDBConnection({"t": table}) as engine:
        groups = Combinations(lists)
        assert found(engine, groups) == found(engine, tuple(groups))
        assert (len(found(engine, groups)) > 0) == (len(groups) > 0)
