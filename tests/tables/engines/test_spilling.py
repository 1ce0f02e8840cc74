"""What is spilled to disk: where, in which form, and what is left of it."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.errors import ParameterError
from discreet.tables.engines import DuckDBConnection
from discreet.tables.engines.duckdb import folders
from discreet.tables.engines.duckdb.folders import PrivateFolder

TABLE = pa.table({"user_id": [1, 2, 2]})
MARK = b"SECRETMARKER"
SPILLING = f"""
import sys
import pyarrow as pa
from discreet.tables.engines import DuckDBConnection
engine = DuckDBConnection(
    {{"people": pa.table({{"x": [1]}})}}, memory_limit="60MB", threads=1, spill=sys.argv[1]
)
print("ready", flush=True)
engine._run("SELECT COUNT(*) AS n FROM (SELECT '{MARK.decode()}' || (range * 7919 % 40000003) AS s"
            " FROM range(40000000) GROUP BY s)", "")
"""


@pytest.fixture
def others(monkeypatch):
    """Look at what killed processes left as a process does that has not looked yet."""
    monkeypatch.setattr(folders, "_SWEPT", set())


def _spilled(place):
    return [path for path in place.rglob("*") if path.is_file() and path.stat().st_size]


def _wait_for(what):
    end = time.monotonic() + 60
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.mark.lengthy
@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_spill_of_a_killed_process_is_unreadable_and_removed_by_the_next(tmp_path, how):
    command = [sys.executable, "-c", SPILLING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        assert _wait_for(lambda: sum(p.stat().st_size for p in _spilled(tmp_path)) > 10_000_000)
        with DuckDBConnection({"people": TABLE}, spill=tmp_path):
            assert _spilled(tmp_path)  # of a process that lives
        child.send_signal(how)
        child.wait()
    (left,) = tmp_path.iterdir()
    assert left.stat().st_mode & 0o077 == 0
    assert _spilled(tmp_path)
    assert not any(MARK in path.read_bytes() for path in _spilled(tmp_path))
    folders._SWEPT.clear()
    with DuckDBConnection({"people": TABLE}, spill=tmp_path) as engine:
        assert list(tmp_path.iterdir()) == [Path(engine._folder.path)]
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("others")
def test_only_folders_that_nobody_holds_are_removed(tmp_path):
    held = PrivateFolder(tmp_path)
    for name in ("discreet-engine-dead", "discreet-foreign", "other"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").touch()
    (tmp_path / "discreet-engine-dead" / "link").symlink_to(tmp_path / "other")
    (tmp_path / "discreet-engine-link").symlink_to(tmp_path / "other")
    (tmp_path / "discreet-engine-file").touch()
    (held.path / "file").touch()
    folders._SWEPT.clear()
    PrivateFolder(tmp_path).remove()
    left = {path.name for path in tmp_path.iterdir()}
    odd = {"discreet-foreign", "discreet-engine-link", "discreet-engine-file", "other"}
    assert left == {held.path.name, *odd}
    assert (tmp_path / "other" / "deep" / "file").exists()
    held.remove()
    held.remove()
    assert not held.path.exists()


def test_a_place_without_locks_will_do(tmp_path, monkeypatch):
    def refuse(*given):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    folder = PrivateFolder(tmp_path / "new")
    folders._SWEPT.clear()
    PrivateFolder(tmp_path / "new").remove()
    assert folder.path.is_dir()
    folder.remove()
    assert not folder.path.exists()


@pytest.mark.parametrize("step", [(os, "open"), (fcntl, "flock")], ids=["opened", "locked"])
def test_another_process_may_sweep_while_a_folder_is_made(tmp_path, monkeypatch, step):
    module, name = step
    real, swept = getattr(module, name), []

    def after_a_sweep(*given, **more):
        if not swept and (found := list(tmp_path.iterdir())):
            swept.extend(found)
            found[0].rmdir()
        return real(*given, **more)

    monkeypatch.setattr(module, name, after_a_sweep)
    folder = PrivateFolder(tmp_path)
    assert folder.path.is_dir()
    assert swept
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="spill must be a folder"):
        DuckDBConnection({"people": TABLE}, spill=tmp_path / "file")


def test_a_folder_outlives_a_fork(tmp_path):
    folder = PrivateFolder(tmp_path)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.is_dir()
    folder.remove()


@pytest.mark.lengthy
def test_what_is_spilled_comes_back_as_it_was(tmp_path):
    with DuckDBConnection(
        {"people": TABLE}, memory_limit="60MB", spill=tmp_path, threads=1
    ) as engine:
        asked = (
            "SELECT COUNT(*) AS n, SUM(x) AS x FROM (SELECT range AS x FROM range({}) GROUP BY x)"
        )
        found = engine._run(asked.format(4_000_000), "").to_pylist()
    assert found == [{"n": 4_000_000, "x": 4_000_000 * 3_999_999 // 2}]


FULL = """
import resource, sys
import numpy as np
from discreet import Guarantee
from discreet.errors import DataError
from discreet.tables import DuckDBEngine, protect
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.RLIM_INFINITY))  # bytes of a file
n = 3_000_000
with protect(
    {"person": np.arange(n) * 7919 % n}, name="people", unit="person", rows=1,
    guarantee=Guarantee(epsilon=3, delta=1e-6), ledger=sys.argv[1] + "/budget.db",
    engine=DuckDBEngine(memory_limit="40MB", threads=1, spill=sys.argv[1]),
) as T:
    try:
        T.sql("SELECT COUNT(DISTINCT person) AS n FROM people WHERE person >= 0", epsilon=1)
    except DataError as error:
        print(error, error.__context__)
    print(T.sql("SELECT COUNT(*) AS n FROM people WHERE person < 9", epsilon=1).value < 1000)
    print([entry["kind"] for entry in T.account.history()].count("charge"))
"""


@pytest.mark.lengthy
def test_a_question_that_finds_no_room_says_so_and_the_next_is_answered(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    message, is_answered, charges = run.stdout.splitlines()
    assert "more memory or disk" in message
    assert "memory_limit" in message
    assert message.endswith("The charge stands, since data may have been read. None")
    assert (is_answered, charges) == ("True", "2")
