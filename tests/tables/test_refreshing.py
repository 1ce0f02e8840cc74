"""Data that is replaced while questions run: what is paid for is answered."""

import gzip
import io
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from discreet import Guarantee
from discreet.errors import DataError
from discreet.tables import Protected, protect
from discreet.tables.engines.duckdb import connection, pinning
from discreet.tables.release import answer as answering

COUNT = "SELECT COUNT(*) AS n FROM people"


def _write(place: Path, n: int) -> None:
    pq.write_table(pa.table({"person": np.arange(n), "age": np.arange(n) % 80}), place)


@pytest.mark.lengthy
def test_questions_and_plans_under_way_outlive_a_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, run = tmp_path / "people.parquet", answering.run
    _write(place, 1000)
    with protect(
        place, name="people", unit="person", rows=1, guarantee=Guarantee(epsilon=30, delta=1e-6),
        ledger=tmp_path / "budget.db",
    ) as T:  # fmt: skip

        def run_late(*given: Any, **named: Any) -> Any:
            """Let others refresh after the charge, and before the data is read."""
            _write(place, 2000)
            others = [Thread(target=T.refresh) for _ in range(4)]
            for one in others:
                one.start()
            for one in others:
                one.join()
            return run(*given, **named)

        workload = T.plan([COUNT + " WHERE age > 1"], epsilon=5)
        monkeypatch.setattr(answering, "run", run_late)
        assert T.sql(COUNT, epsilon=5).value > 900
        monkeypatch.undo()
        assert not T.refresh()
        assert T.sql(COUNT, epsilon=5).value == pytest.approx(2000, abs=20)
        assert workload.release()[0].value > 900


FORMATS = {
    "parquet": lambda table, place: pq.write_table(table, place),
    "csv": lambda table, place: csv.write_csv(table, place),
    "csv.gz": lambda table, place: place.write_bytes(gzip.compress(_csv(table))),
}


def _csv(table: pa.Table) -> bytes:
    made = io.BytesIO()
    csv.write_csv(table, made)
    return made.getvalue()


def _replace(place: Path, n: int) -> None:
    """Put another version in the place of a file, whole, as writers should."""
    table = pa.table({"person": np.arange(n), "age": np.arange(n) % 80})
    beside = place.with_name("beside")
    FORMATS[place.name.partition(".")[2]](table, beside)
    beside.replace(place)


def _protected(place: Path, **more: Any) -> Protected:
    guarantee = Guarantee(epsilon=3000, delta=1e-6)
    return protect(
        place, name="people", unit="person", rows=1, guarantee=guarantee,
        ledger=place.with_name("budget.db"), **more,
    )  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("how", ["replaced", "gone", "moved", "moved and replaced"])
def test_an_open_table_keeps_the_version_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, how: str
) -> None:
    place, run = tmp_path / f"people.{ending}", answering.run
    _replace(place, 1000)
    with _protected(place) as T:

        def run_late(*given: Any, **named: Any) -> Any:
            """Exchange the file after the charge, and before the data is read."""
            if how == "gone":
                place.unlink()
            if "moved" in how:
                place.rename(place.with_name("old"))
            if "replaced" in how:
                _replace(place, 5000)
            return run(*given, **named)

        monkeypatch.setattr(answering, "run", run_late)
        assert T.sql(COUNT, epsilon=5).value == pytest.approx(1000, abs=20)


@pytest.mark.lengthy
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_no_question_is_lost_where_files_are_replaced_all_the_time(
    tmp_path: Path, ending: str
) -> None:
    place, over = tmp_path / f"people.{ending}", Event()
    _replace(place, 1000)

    def keep_replacing() -> None:
        n = 1000
        while not over.wait(0.02):
            n = 3000 - n
            _replace(place, n)

    writer = Thread(target=keep_replacing)
    with _protected(place) as T, ThreadPoolExecutor(8) as pool:
        writer.start()
        try:
            asked = [COUNT + f" WHERE age >= 0 OR age = {i}" for i in range(60)]
            found = list(pool.map(lambda one: T.sql(one, epsilon=5), asked))
        finally:
            over.set()
            writer.join()
        assert all(min(abs(one.value - n) for n in (1000, 2000)) < 20 for one in found)
        kinds = Counter(entry["kind"] for entry in T.account.history())
    assert kinds["charge"] == kinds["release"] == len(asked)


@pytest.mark.lengthy
@pytest.mark.parametrize("is_pinned", [True, False])
@pytest.mark.parametrize("is_mended", [True, False])
def test_a_file_written_in_its_place_is_read_again_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_pinned: bool, is_mended: bool
) -> None:
    place, run, pauses = tmp_path / "people.parquet", answering.run, []
    _replace(place, 1000)
    whole = place.read_bytes()
    if not is_pinned:  # as on other systems than Linux
        monkeypatch.setattr(pinning, "_OPENED", tmp_path / "nowhere")

    def run_late(*given: Any, **named: Any) -> Any:
        """Cut the file after the charge, and before the data is read."""
        place.write_bytes(whole[:100])
        return run(*given, **named)

    mine, sleep = threading.get_ident(), time.sleep

    def mend(pause: float) -> None:
        if threading.get_ident() != mine:  # of somebody else's thread: there is one clock for all
            sleep(pause)
            return
        pauses.append(pause)
        if is_mended and len(pauses) == 2:
            place.write_bytes(whole)

    with _protected(place) as T:
        monkeypatch.setattr(answering, "run", run_late)
        monkeypatch.setattr(connection.time, "sleep", mend)
        if is_mended:
            assert T.sql(COUNT, epsilon=5).value == pytest.approx(1000, abs=20)
        else:
            with pytest.raises(DataError, match=r"written to while they were .*charge stands"):
                T.sql(COUNT, epsilon=5)
        kinds = Counter(entry["kind"] for entry in T.account.history())
    assert len(pauses) == (2 if is_mended else 3)
    assert kinds["charge"] == 1


def test_a_file_that_is_cut_is_noticed_before_the_charge(tmp_path: Path) -> None:
    place = tmp_path / "people.parquet"
    _replace(place, 1000)
    with _protected(place) as T:
        place.write_bytes(place.read_bytes()[:100])
        with pytest.raises(DataError, match="cannot be read as parquet"):
            T.sql(COUNT, epsilon=5)
        assert T.remaining == 1


@pytest.mark.lengthy
def test_more_files_than_can_be_held_open_are_read_by_their_paths(tmp_path: Path) -> None:
    for i in range(pinning._MOST + 1):
        pq.write_table(pa.table({"person": [i], "age": [3]}), tmp_path / f"{i}.parquet")
    with _protected(tmp_path) as T:
        assert T.sql(COUNT, epsilon=5).value == pytest.approx(pinning._MOST + 1, abs=20)


def test_tables_are_read_though_somebody_cleans_up_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PAUSES", (0,))
    place = tmp_path / "people.parquet"
    _replace(place, 1000)
    with _protected(place) as T:
        for folder in (T._opened.connection._folder, T._opened.connection._files[0].folder):  # type: ignore[attr-defined]
            shutil.rmtree(folder.path)
        assert T.sql(COUNT, epsilon=5).value == pytest.approx(1000, abs=20)
