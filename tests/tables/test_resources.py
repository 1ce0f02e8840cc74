"""Limits of memory, disk and time: declared, kept, and nothing is lost when they are reached."""

import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import DataError, ParameterError
from discreet.ledger import Ledger
from discreet.privacy import Guarantee
from discreet.tables import DuckDBEngine, Resources, load, open_tables, protect
from discreet.tables.engines import DuckDBConnection
from discreet.tables.engines.progress import time_limit
from discreet.tables.model.bounds import Norm
from discreet.tables.model.query import Key, Query
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Cells, Sums

ROWS = 300_000  # far more than can be counted in a microsecond
PEOPLE = {"id": np.arange(ROWS), "x": np.arange(ROWS) % 1000}
COUNT = Sums(
    query=Query(rows=Select.of("people", unit="id"), tables=("people",)),
    cells=(Cells(kind="rows"),),
    bounding=Norm(limit=1, order=1),
    salt="",
)
QUESTION = "SELECT COUNT(*) AS n FROM people"


def protected(tmp_path, **given):
    return protect(
        PEOPLE, name="people", unit="id", rows=1, guarantee=Guarantee(epsilon=3, delta=1e-6),
        ledger=tmp_path / "budget.db", **given,
    )  # fmt: skip


def workers():
    return [one.name for one in threading.enumerate() if one.name == "discreet-query"]


def test_a_statement_that_is_stopped_leaves_the_engine_as_it_was():
    with DuckDBConnection({"people": PEOPLE}) as engine:
        for _ in range(3):
            with time_limit(1e-6), pytest.raises(DataError, match="took longer than it may"):
                engine.aggregate(COUNT)
            assert workers() == []
            with time_limit(None):
                counted = engine.aggregate(COUNT).reveal_without_noise()
            assert counted["cell_0"].to_pylist() == [ROWS << 20]


def test_the_statements_of_a_question_share_its_time():
    with DuckDBConnection({"people": PEOPLE}) as engine, time_limit(1e-6):
        for _ in range(2):
            with pytest.raises(DataError, match="took longer"):
                engine.aggregate(COUNT)


def test_only_the_statement_of_the_one_who_is_late_is_stopped():
    found = []

    def count(engine):
        found.extend(engine.aggregate(COUNT).reveal_without_noise()["cell_0"].to_pylist())

    with DuckDBConnection({"people": PEOPLE}) as engine:
        others = [threading.Thread(target=count, args=(engine,)) for _ in range(3)]
        with time_limit(1e-6):
            for other in others:
                other.start()
                with pytest.raises(DataError, match="took longer"):
                    engine.aggregate(COUNT)
        for other in others:
            other.join()
    assert found == [ROWS << 20] * 3


def test_a_question_out_of_time_is_charged_once_and_can_be_asked_again(tmp_path):
    with protected(tmp_path, resources=Resources(seconds=1e-6)) as T:
        with pytest.raises(DataError, match=r"took longer.*The charge stands") as raised:
            T.sql(QUESTION, epsilon=1)
        assert raised.value.__context__ is None
        left = T.remaining
        assert 0.6 < left < 0.7
        T.save(tmp_path / "people.toml")
    frames = {"people": PEOPLE}
    with open_tables(
        tmp_path / "people.toml", sources=frames, resources=Resources(seconds=None)
    ) as T:
        assert T.remaining == left
        assert abs(T.sql(QUESTION, epsilon=1).value - ROWS) < 40
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.verify()


def test_a_watch_is_stopped_too(tmp_path):
    with protected(tmp_path, resources=Resources(seconds=1e-6)) as T:
        watch = T.watch([QUESTION], threshold=5, epsilon=1)
        with pytest.raises(DataError, match="took longer"):
            watch.ask()


@pytest.mark.lengthy
def test_no_more_disk_is_used_than_allowed(tmp_path):
    count = 400_000
    people = {"id": np.arange(count), "x": np.array([f"{i:060}" for i in range(count)])}
    keyed = replace(
        COUNT,
        query=Query(
            rows=Select.of("people", unit="id", key_0="x"), tables=("people",),
            keys=(Key(name="x", type="text", values=None),),
        ),
        least=Fraction(2),
    )  # fmt: skip
    small = DuckDBEngine(memory_limit="30MB", threads=1, spill=tmp_path)
    with small.open({"people": small.look("people", people)}) as engine:
        assert engine.aggregate(keyed).reveal_without_noise().num_rows == 0
    smaller = small.limited(Resources(disk="1MB"))
    with smaller.open({"people": small.look("people", people)}) as engine:
        with pytest.raises(DataError, match="more memory or disk"):
            engine.aggregate(keyed)
        assert engine.aggregate(COUNT).reveal_without_noise().num_rows == 1


def test_limits_are_declared_and_read_back(tmp_path):
    limits = Resources(memory="500MB", disk="2 GiB", seconds=90)
    with protected(tmp_path, resources=limits) as T:
        T.save(tmp_path / "people.toml")
        assert T._sources.engine == DuckDBEngine(memory_limit="500MB", spill_limit="2 GiB")
    assert load(tmp_path / "people.toml").resources == limits
    frames = {"people": PEOPLE}
    with open_tables(tmp_path / "people.toml", sources=frames) as T:
        assert T._sources.engine.memory_limit == "500MB"
        settings = T._opened.connection._connections[0].sql(
            "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')"
        )
        assert settings.fetchall() == [("476.8 MiB", "2.0 GiB")]
    with open_tables(tmp_path / "people.toml", sources=frames, resources=Resources()) as T:
        assert T._sources.engine == DuckDBEngine()


@pytest.mark.parametrize("seconds", [None, 0.5, 3600])
def test_seconds_are_read_back(tmp_path, seconds):
    with protected(tmp_path, resources=Resources(seconds=seconds)) as T:
        T.save(tmp_path / "people.toml")
    assert load(tmp_path / "people.toml").resources == Resources(seconds=seconds)


@pytest.mark.parametrize(
    "given",
    [
        {"memory": "4"}, {"memory": "0GB"}, {"memory": "-1GB"}, {"disk": "4 apples"}, {"disk": ""},
        {"disk": 4}, {"memory": "90%"}, {"memory": "1GB; SET x = 1"}, {"seconds": 0},
        {"seconds": -1}, {"seconds": float("nan")}, {"seconds": float("inf")}, {"seconds": "1"},
        {"seconds": 10**10},
    ],
)  # fmt: skip
def test_bad_limits_are_refused_by_name(given):
    (name,) = given
    with pytest.raises(ParameterError, match=name) as raised:
        Resources(**given)
    assert raised.value.parameter == name


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('memory = "lots"', "resources: memory must be a size"), ("memory = 4", "a text"),
        ('seconds = "soon"', "must be a number"), ("second = 4", "Did you mean seconds"),
        ("seconds = -1", "resources: seconds must be a finite number above 0"),
    ],
)  # fmt: skip
def test_bad_limits_in_a_declaration_are_refused_with_their_place(tmp_path, line, told):
    with protected(tmp_path) as T:
        T.save(tmp_path / "people.toml")
    path = tmp_path / "people.toml"
    path.write_text(path.read_text() + f"\n[resources]\n{line}\n")
    with pytest.raises(ParameterError, match=told):
        load(path)


def test_an_engine_without_limits_says_so(tmp_path):
    class Plain:
        name = "plain"

    with pytest.raises(ParameterError, match="engine 'plain' cannot be told"):
        protected(tmp_path, engine=Plain(), resources=Resources(memory="1GB"))
