"""Another engine is handed over as an object, or named in a declaration and on the command line."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Guarantee, open_tables, protect
from discreet.errors import DataError, ParameterError
from discreet.tables import DuckDBEngine, load
from discreet.tables.engines import DuckDBConnection, engine_named, open_sources
from discreet.tables.rows import read_public, read_rows
from discreet.tables.sources.source import DataSource

TABLE = pa.table({"user_id": list(range(500)), "x": [float(i % 7) for i in range(500)]})


@dataclass(frozen=True)
class Abacus:
    """An engine of another name, which notes what it is asked to do."""

    name: str = "abacus"
    asked: list = field(default_factory=list, compare=False)

    def look(self, name, given, /, *, is_public=False, types=None):
        self.asked.append("look")
        return DuckDBEngine().look(name, given, is_public=is_public, types=types)

    def version(self, source, /):
        return DuckDBEngine().version(source)

    def open(self, sources, /):
        self.asked.append("open")
        return DuckDBEngine(threads=1).open(sources)


@pytest.fixture
def place(tmp_path):
    pq.write_table(TABLE, tmp_path / "people.parquet")
    return tmp_path


def protected(place, **more):
    return protect(
        place / "people.parquet", name="people", unit="user_id", rows=1, ledger=place / "budget.db",
        guarantee=Guarantee(epsilon=3, delta=1e-6), **more,
    )  # fmt: skip


@pytest.mark.lengthy
def test_an_engine_of_ones_own_opens_runs_and_reopens(place):
    abacus = Abacus()
    with protected(place, engine=abacus) as tables:
        answer = tables.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert abs(answer.value - 500) < 30
        assert abacus.asked == ["look", "open"]
        pq.write_table(pa.concat_tables([TABLE, TABLE]), place / "people.parquet")
        assert tables.refresh()
        assert abacus.asked == ["look", "open"] * 2
        read_rows(tables, ["x"], table="people")
        assert abacus.asked == ["look", "open"] * 2 + ["open"]
        pq.write_table(TABLE, place / "other.parquet")
        read_public(tables, ["x"], table="people", place=str(place / "other.parquet"))
        assert abacus.asked == ["look", "open"] * 2 + ["open", "look", "open"]


def test_a_declaration_says_which_engine(place):
    with protected(place, engine=Abacus()) as tables:
        tables.save(place / "people.toml")
    assert 'engine = "abacus"' in (place / "people.toml").read_text()
    assert load(place / "people.toml").engine == "abacus"
    with pytest.raises(ParameterError, match=r"engine must be one of .*duckdb.*, got 'abacus'"):
        open_tables(place / "people.toml")
    abacus = Abacus()
    with open_tables(place / "people.toml", engine=abacus) as tables:
        assert tables.tables == {"people": {"user_id": "BIGINT", "x": "DOUBLE"}}
    assert abacus.asked == ["look", "open"]


def test_the_usual_engine_is_not_written_down(place):
    with protected(
        place, engine=DuckDBEngine(memory_limit="1GB", threads=1, spill=place)
    ) as tables:
        tables.save(place / "people.toml")
    assert "engine" not in (place / "people.toml").read_text()
    assert engine_named(load(place / "people.toml").engine) == DuckDBEngine()


def test_settings_reach_the_engine(place):
    opened = DuckDBEngine(spill=place, threads=3).open(open_sources({"people": TABLE}))
    with opened as engine:
        found = engine._run("SELECT current_setting('threads') AS n, COUNT(*) AS m FROM people", "")
        assert found.to_pylist() == [{"n": 3, "m": 500}]
        assert engine._folder.path.parent == place.resolve()


def test_sources_of_another_engine_are_refused():
    other = DataSource(name="people", kind="beads", columns=(), version="", identities=())
    with pytest.raises(DataError, match="opened for another engine"):
        DuckDBConnection({"people": other})
