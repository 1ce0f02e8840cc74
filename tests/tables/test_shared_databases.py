"""A DuckDB file that others write to: open for reading while a question runs, and only then."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import duckdb
import pytest

from discreet import Guarantee
from discreet.errors import DataError
from discreet.tables import protect
from discreet.tables.engines.duckdb import databases

COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "people.duckdb"
    _write(path, "CREATE TABLE people AS SELECT range AS person FROM range(1000)")
    return path


@pytest.fixture
def tables(place):
    with protect(
        f"{place}::people", name="people", unit="person", rows=1,
        guarantee=Guarantee(epsilon=3000, delta=1e-6), ledger=place.with_name("budget.db"),
    ) as opened:  # fmt: skip
        yield opened


def _write(path, statement):
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)


@contextmanager
def _held_elsewhere(path):
    """Let another process have the file open for writing."""
    code = f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as child:
        assert child.stdout.readline()
        yield
        child.communicate(b"\n")


def test_others_write_between_questions(place, tables):
    assert tables.sql(COUNT, epsilon=5).value == pytest.approx(1000, abs=20)
    _write(place, "INSERT INTO people SELECT range + 1000 FROM range(500)")
    assert tables.sql(COUNT, epsilon=5).value == pytest.approx(1500, abs=20)
    _write(place, "DELETE FROM people WHERE person < 700; CHECKPOINT")
    assert tables.sql(COUNT, epsilon=5).value == pytest.approx(800, abs=20)


@pytest.mark.lengthy
def test_while_another_process_has_it_open_nothing_is_spent(place, tables, monkeypatch):
    pauses = []
    monkeypatch.setattr(databases.time, "sleep", pauses.append)
    with _held_elsewhere(place), pytest.raises(DataError, match=r"open for writing.*Nothing was"):
        tables.sql(COUNT, epsilon=5)
    assert pauses == list(databases._PAUSES)
    assert tables.remaining == 1
    assert tables.sql(COUNT, epsilon=5).value == pytest.approx(1000, abs=20)


def test_a_short_writer_is_waited_for(place, tables, monkeypatch):
    with duckdb.connect(str(place)) as writer:
        writer.execute("SELECT 1")
        monkeypatch.setattr(databases.time, "sleep", lambda pause: writer.close())
        assert tables.sql(COUNT, epsilon=5).value == pytest.approx(1000, abs=20)


def test_a_short_writer_is_waited_for_when_its_work_is_found(place, tables, monkeypatch):
    with duckdb.connect(str(place)) as writer:
        writer.execute("INSERT INTO people SELECT range + 1000 FROM range(500); CHECKPOINT")
        monkeypatch.setattr(databases.time, "sleep", lambda pause: writer.close())
        assert tables.sql(COUNT, epsilon=5).value == pytest.approx(1500, abs=20)


def test_a_plan_for_data_that_changed_costs_nothing(place, tables):
    workload = tables.plan([COUNT], epsilon=5)
    time.sleep(0.01)  # for clocks of files that are coarse
    _write(place, "INSERT INTO people SELECT range + 1000 FROM range(50000)")
    with pytest.raises(DataError, match=r"was written to.*Nothing was spent"):
        workload.release()
    assert tables.remaining == 1


@pytest.mark.lengthy
def test_threads_share_what_is_open(place, tables):
    asked = [f"{COUNT} WHERE person >= 0 OR person = {i}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: tables.sql(one, epsilon=5), asked))
    assert all(one.value == pytest.approx(1000, abs=20) for one in found)
    _write(place, "INSERT INTO people VALUES (7)")  # nobody holds it any more
