"""DuckDB passes the suite of all engines, and keeps to itself what goes wrong."""

import gc
import io
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DataError
from discreet.tables.engines import DuckDBConnection
from discreet.tables.engines import progress as _progress
from discreet.tables.engines.compile.sums import MOST_KEPT
from discreet.tables.engines.duckdb import connection as connection_module
from discreet.tables.engines.duckdb import pinning
from discreet.tables.engines.shown import plan_sql
from discreet.tables.model.bounds import WEIGHT_STEPS, Groups, Norm
from discreet.tables.model.query import Key, Query, Value
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Cells, Distinct, Sums
from discreet.testing import EngineConformance


@pytest.mark.lengthy
class TestDuckDB(EngineConformance):
    def connect(self, tables):
        return DuckDBConnection(tables, threads=2)


TABLE = pa.table({"user_id": [1, 2, 2], "text": ["secret-1", "secret-2", "3"]})


PEOPLE = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
COUNT = Sums(query=PEOPLE, cells=(Cells(kind="rows"),), bounding=Norm(limit=9, order=1), salt="s")


def run_on(engine, rows):
    """Return what the engine makes of a count over rows that no plan could ask for."""
    plain, text = plan_sql(PEOPLE.rows), engine.sql(COUNT)
    assert text.count(plain) == 1
    return engine._run(text.replace(plain, rows), "s")


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT CAST(text AS INTEGER) AS unit FROM people",
        "SELECT user_id * 9223372036854775807 AS unit FROM people",
        "SELECT no_such_column AS unit FROM people",
        "SELECT no such syntax",
    ],
)
def test_errors_show_nothing(rows):
    with DuckDBConnection({"people": TABLE}) as engine, pytest.raises(DataError) as caught:
        run_on(engine, rows)
    assert "secret" not in str(caught.value)
    assert "withheld" in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT 1 AS unit FROM read_csv('{0}/other.csv')",
        "SELECT 1 AS unit FROM read_text('/etc/hostname')",
        "SELECT 1 AS unit FROM '{0}/other.csv'",
        "SELECT 1 AS unit FROM glob('{0}/*')",
        "SELECT 1 AS unit FROM TABLE_IN_PYTHON",
        "SELECT 1 AS unit) SELECT 1; SET threads = 1; COPY (SELECT 1) TO '{0}/out.csv'; --",
    ],
)
def test_nothing_else_can_be_reached(rows, tmp_path):
    TABLE_IN_PYTHON = TABLE  # noqa: F841 - DuckDB would look for it
    (tmp_path / "other.csv").write_text("a\n1\n")
    pq.write_table(TABLE, tmp_path / "people.parquet")
    with DuckDBConnection({"people": tmp_path / "people.parquet"}) as engine:
        with pytest.raises(DataError):
            run_on(engine, rows.format(tmp_path))
        good = engine.aggregate(COUNT)
        assert good.reveal_without_noise()["cell_0"].to_pylist() == [3 * WEIGHT_STEPS]
    assert not (tmp_path / "out.csv").exists()


def test_a_file_that_vanished_is_an_error_without_details(tmp_path, monkeypatch):
    """Where files cannot be held open; elsewhere it is still read: tests/tables/test_refreshing."""
    monkeypatch.setattr(pinning, "_MOST", 0)
    monkeypatch.setattr(connection_module, "_PAUSES", (0,))
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path)
    with DuckDBConnection({"people": path}) as engine:
        path.unlink()
        with pytest.raises(DataError, match="are gone"):
            engine.aggregate(COUNT)


@pytest.mark.lengthy
def test_too_little_memory_names_the_settings(tmp_path):
    big = "SELECT a.range AS unit FROM range(3000000) AS a, people"
    with DuckDBConnection({"people": TABLE}, memory_limit="10MB", threads=1) as engine:
        with pytest.raises(DataError, match="memory_limit") as caught:
            run_on(engine, f"{big} ORDER BY random()")
        assert caught.value.__context__ is None
        good = engine.aggregate(COUNT)  # the next one is answered
        assert good.reveal_without_noise()["cell_0"].to_pylist() == [3 * WEIGHT_STEPS]


@pytest.mark.lengthy
def test_what_does_not_fit_is_spilled(tmp_path):
    big = "SELECT a.range AS unit FROM range(4000000) AS a"
    with DuckDBConnection(
        {"people": TABLE}, memory_limit="60MB", spill=tmp_path, threads=1
    ) as engine:
        found = run_on(engine, big)
    assert found["cell_0"].to_pylist() == [4_000_000 * WEIGHT_STEPS]


def test_the_spilling_folder_is_removed():
    engine = DuckDBConnection({"people": TABLE})
    folder = engine._folder.path
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o077 == 0
    engine.close()
    engine.close()
    assert not folder.exists()


FORGOTTEN = {
    "by an error": "raise KeyError",
    "by a thread": "threading.Thread(target=lambda: time.sleep(99) or engine, daemon=True).start()",
}


@pytest.mark.lengthy
@pytest.mark.parametrize("script", FORGOTTEN.values(), ids=FORGOTTEN)
def test_who_forgets_to_close_sees_nothing(script):
    code = f"""
import threading, time
import pyarrow as pa
from discreet.tables.model.bounds import Norm
from discreet.tables.engines import DuckDBConnection
from discreet.tables.model.query import Query
from discreet.tables.model.relation import Select
from discreet.tables.model.statements import Cells, Sums
people = Query(rows=Select.of("people", unit="user_id"), tables=("people",))
engine = DuckDBConnection({{"people": pa.table({{"user_id": [1, 2]}})}})
count = Sums(query=people, cells=(Cells(kind="rows"),), bounding=Norm(limit=1, order=1), salt="")
engine.aggregate(count)
print(engine._folder.path)
{script}
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "leaked" not in run.stdout + run.stderr
    assert not Path(run.stdout.strip()).exists()


@pytest.mark.lengthy
def test_an_engine_is_closed_when_nobody_holds_it():
    engine = DuckDBConnection({"people": TABLE})
    engine.aggregate(COUNT)
    connections, folder = engine._connections, engine._folder.path
    del engine
    gc.collect()
    assert connections == []
    assert not folder.exists()


def test_a_closed_engine_says_so():
    engine = DuckDBConnection({"people": TABLE})
    engine.close()
    with pytest.raises(DataError, match="closed"):
        engine.aggregate(COUNT)


def test_more_groups_than_can_be_ranked():
    """DuckDB finds the n-th lowest only for n below a million; fewer are kept then."""
    keys = (Key(name="text", type="text", values=None),)
    asked = replace(PEOPLE, rows=Select.of("people", unit="user_id", key_0="text"), keys=keys)
    most = 10**9
    kept = Groups(groups=most, rows=1)
    sums = Sums(query=asked, cells=(Cells(kind="rows"),), bounding=kept, salt="s")
    values = replace(
        PEOPLE,
        rows=Select.of("people", unit="user_id", value_0="text"),
        values=(Value(text="text", bounds=None),),
    )
    distinct = Distinct(query=values, value=0, most=most, salt="s")
    with DuckDBConnection({"people": TABLE}) as engine:
        for statement in (sums, distinct):
            assert f", {MOST_KEPT + 1})" in engine.sql(statement)
        assert engine.aggregate(sums).reveal_without_noise().num_rows == 3
        assert engine.aggregate(distinct).reveal_without_noise()["cell_0"].to_pylist() == [3]


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_files_that_are_damaged_inside_show_nothing(tmp_path, unit):
    """Broken pages are found when they are read: by DuckDB, or by Arrow where it reads files."""
    texts = pa.array([f"secret {i}" for i in range(3)])
    at = pa.array([0, 1, 2], pa.timestamp(unit))
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"user_id": [1, 2, 3], "text": texts, "at": at}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])
    keys = (Key(name="text", type="text", values=None),)
    asked = replace(PEOPLE, rows=Select.of("people", unit="user_id", key_0="text"), keys=keys)
    bounding = Norm(limit=9, order=1)
    statement = Sums(query=asked, cells=(Cells(kind="rows"),), bounding=bounding, salt="s")
    with DuckDBConnection({"people": path}) as engine, pytest.raises(DataError) as caught:
        engine.aggregate(statement)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_threads_share_an_engine():
    with DuckDBConnection({"people": TABLE}) as engine, ThreadPoolExecutor(4) as pool:
        statement = COUNT
        found = [pool.submit(engine.aggregate, statement) for _ in range(20)]
        totals = {f.result().reveal_without_noise()["cell_0"].to_pylist()[0] for f in found}
    assert totals == {3 * WEIGHT_STEPS}


@pytest.fixture
def interruptible():
    """Let Ctrl-C interrupt, also where the suite runs in the background and would ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.lengthy
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_stops_the_query():
    with DuckDBConnection({"people": TABLE}) as engine:
        endless = "SELECT a.range % 7 AS unit FROM range(10000000000) AS a, range(1000) AS b"
        timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run_on(engine, endless)
        timer.join()
        # The engine is still good for the next question.
        good = engine.aggregate(COUNT)
        assert good.reveal_without_noise()["cell_0"].to_pylist() == [3 * WEIGHT_STEPS]


@pytest.mark.lengthy
def test_a_long_query_shows_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown, ready = [], threading.Event()
    monkeypatch.setattr(_progress, "_PATIENCE", 0.01)
    monkeypatch.setattr(_progress.sys, "stderr", Terminal())

    def done():
        shown.append(len(shown) * 10.0)
        if len(shown) > 3:
            ready.set()
        return shown[-1]

    assert _progress.run(lambda: ready.wait(30), stop=lambda: None, done=done) is True
    assert "reading" in _progress.sys.stderr.getvalue()


def test_no_bar_without_a_terminal(monkeypatch):
    ready = threading.Timer(0.1, lambda: None)
    ready.start()
    monkeypatch.setattr(_progress, "_PATIENCE", 0.01)
    monkeypatch.setattr(_progress.sys, "stderr", io.StringIO())
    assert _progress.run(ready.join, stop=lambda: None, done=lambda: 1 / 0) is None
    assert _progress.sys.stderr.getvalue() == ""


@pytest.mark.lengthy
def test_importing_the_engine_loads_no_heavy_library():
    code = (
        "import sys, discreet.tables.engines.duckdb; "
        "print([m for m in ('duckdb', 'pyarrow', 'sqlglot', 'pandas', 'polars') "
        "if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
