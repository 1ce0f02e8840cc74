import multiprocessing
import os
import signal
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from discreet.errors import LedgerUnavailable, ParameterError
from discreet.service.records import JobState, Records
from discreet.service.records.jobs import (
    create_job,
    expire_jobs,
    find_job,
    keep_latest_jobs,
    update_job,
)
from discreet.service.records.misses import add_miss, count_misses, reopen
from discreet.service.records.shared import shared_secret
from discreet.testing import PostgresServer

spawning = multiprocessing.get_context("spawn")


def add_many(location, barrier, found, times):
    barrier.wait()
    with Records.open(location) as records:
        found.put((shared_secret(records, "x"), [add_miss(records, "d") for _ in range(times)]))


# Jobs


def test_a_job_goes_its_way_and_ends_once(records):
    job = create_job(records, who="ana", dataset="visits")
    assert find_job(records, job.id) == job
    assert update_job(records, job.id, JobState.RUNNING)
    assert find_job(records, job.id).state is JobState.RUNNING
    outcome = bytes(range(256))
    assert update_job(records, job.id, JobState.DONE, outcome)
    assert not update_job(records, job.id, JobState.FAILED, b"late")
    found = find_job(records, job.id)
    assert (found.state, found.outcome, found.who) == (JobState.DONE, outcome, "ana")
    assert "outcome" not in repr(found)


def test_a_job_whose_worker_died_reads_as_lost_and_one_that_is_over_does_not(records):
    dead, done = (create_job(records, who="ana", dataset="visits") for _ in range(2))
    update_job(records, dead.id, JobState.RUNNING)
    update_job(records, done.id, JobState.DONE, b"")
    time.sleep(0.02)
    assert find_job(records, dead.id, lost_after=0.01).state is JobState.LOST
    assert find_job(records, done.id, lost_after=0.01).state is JobState.DONE
    assert update_job(records, dead.id, JobState.RUNNING)  # it was only slow
    assert find_job(records, dead.id).state is JobState.RUNNING


def test_old_jobs_are_forgotten(records):
    old = create_job(records, who="ana", dataset="visits")
    records.run("UPDATE jobs SET updated = updated - 4000")
    new = create_job(records, who="ana", dataset="visits")
    assert expire_jobs(records, older_than=3600) == 1
    assert expire_jobs(records, older_than=3600) == 0
    assert find_job(records, old.id) is None
    assert find_job(records, new.id) == new


def test_of_each_login_the_latest_jobs_are_kept_and_what_is_under_way(records):
    made = [create_job(records, who="ana", dataset="visits") for _ in range(6)]
    other = create_job(records, who="ben", dataset="visits")
    for one in [*made[1:], other]:
        update_job(records, one.id, JobState.DONE, b"42")
    assert keep_latest_jobs(records, who="ana", most=3) == 2
    assert keep_latest_jobs(records, who="ana", most=3) == 0
    kept = [one for one in [*made, other] if find_job(records, one.id) is not None]
    assert kept == [made[0], *made[3:], other]


def test_there_is_no_job_of_an_odd_id(records):
    odd = ["", "x", "\0" * 32, "\ud800" * 32, "ä" * 32, "' OR 1=1 --", 32 * "a"]
    assert [find_job(records, each) for each in odd] == [None] * len(odd)


# Misses


def test_misses_count_from_the_last_reopening(records):
    assert [add_miss(records, "d") for _ in range(3)] == [1, 2, 3]
    assert (count_misses(records, "d"), count_misses(records, "e")) == (3, 0)
    reopen(records, "d")
    assert count_misses(records, "d") == 0
    assert add_miss(records, "d") == 1


def test_threads_get_numbers_of_their_own(records):
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: add_miss(records, "d"), range(64)))
    assert sorted(counts) == list(range(1, 65))


@pytest.mark.lengthy
def test_processes_that_open_at_once_make_one_set_of_tables_and_count_together(location):
    barrier, found = spawning.Barrier(3), spawning.Queue()
    workers = [
        spawning.Process(target=add_many, args=(location, barrier, found, 20)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    told = [found.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert len({secret for secret, _ in told}) == 1
    assert sorted(count for _, counts in told for count in counts) == list(range(1, 61))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_leaves_its_parents_connections_alone(records):
    add_miss(records, "d")
    child = os.fork()
    if not child:
        signal.alarm(30)
        ok = add_miss(records, "d") == 2
        records.close()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert add_miss(records, "d") == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_may_fork_while_a_thread_of_its_parent_is_busy(records):
    records._pooling.acquire()  # as a thread would that is gone in the child
    child = os.fork()
    if not child:
        signal.alarm(30)  # it must not wait forever
        os._exit(0 if add_miss(records, "d") == 1 else 1)
    records._pooling.release()
    assert os.waitpid(child, 0)[1] == 0


# Opening and closing


def test_closed_records_say_so(location):
    records = Records.open(location)
    records.close()
    records.close()
    with pytest.raises(LedgerUnavailable, match="are closed"):
        records.run("SELECT 1")


def test_records_of_a_newer_version_are_left_alone(location):
    with Records.open(location) as records:
        records.run("UPDATE shared SET value = '9' WHERE name = 'version'")
    with pytest.raises(LedgerUnavailable, match="newer version"):
        Records.open(location)


def test_nobody_else_may_open_the_files(tmp_path):
    path = tmp_path / "gateway.db"
    old = os.umask(0)
    try:
        with Records.open(str(path)) as records:
            add_miss(records, "d")
            modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert modes == dict.fromkeys(["gateway.db", "gateway.db-wal", "gateway.db-shm"], 0o600)


def test_another_programs_database_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match="another program's"):
        Records.open(str(path))
    assert path.read_bytes() == before
    path.write_text("this is no database at all" * 99)
    with pytest.raises(LedgerUnavailable, match="not a database"):
        Records.open(str(path))


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(LedgerUnavailable, match="No such file"):
        Records.open(str(tmp_path / "nowhere" / "gateway.db"))


# When the database does not answer


def test_a_full_disk_is_told_and_nothing_is_written(tmp_path):
    with Records.open(str(tmp_path / "gateway.db")) as records:
        job = create_job(records, who="ana", dataset="visits")
        records.run("PRAGMA max_page_count = 12")
        with pytest.raises(LedgerUnavailable, match="full") as caught:
            update_job(records, job.id, JobState.DONE, bytes(1 << 20))
        assert not caught.value.may_be_recorded
        assert find_job(records, job.id) == job


def test_a_locked_database_is_told(tmp_path, monkeypatch):
    path = tmp_path / "gateway.db"
    monkeypatch.setattr("discreet.service.records.sqlite.PATIENCE", 0.05)
    with Records.open(str(path)) as records:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match="locked"):
            add_miss(records, "d")
        assert count_misses(records, "d") == 0  # readers wait for nobody
        other.execute("ROLLBACK")
        assert add_miss(records, "d") == 1
        other.close()


def test_a_file_that_is_gone_does_not_come_back_empty(tmp_path):
    path = tmp_path / "gateway.db"
    with Records.open(str(path)) as records:
        held = records._idle.pop()
        held.close()
        path.unlink()
        with pytest.raises(LedgerUnavailable, match="unable to open"):
            count_misses(records, "d")
    assert not path.exists()


@pytest.mark.needs("postgres")
@pytest.mark.lengthy
def test_a_server_that_comes_back_is_found_again_and_no_password_is_shown():
    with PostgresServer() as server:
        url = server.new_database()
        with Records.open(url) as records:
            assert add_miss(records, "d") == 1
            server.stop(mode="immediate")
            with pytest.raises(LedgerUnavailable) as caught:
                add_miss(records, "d")
            password = psycopg.conninfo.conninfo_to_dict(url)["password"]
            assert password not in f"{caught.value!r} {caught.value} {caught.value.__context__}"
            server.start()
            assert add_miss(records, "d") == 2


@pytest.mark.needs("postgres")
@pytest.mark.lengthy
def test_a_connection_lost_under_way_says_that_the_outcome_is_not_known(records_server):
    url = records_server.new_database()
    with Records.open(url) as records, psycopg.connect(url, autocommit=True) as other:
        other.execute("BEGIN")
        other.execute("LOCK discreet_gateway.misses")
        pid = records._idle[0].info.backend_pid
        caught = []

        def ask():
            try:
                add_miss(records, "d")
            except LedgerUnavailable as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        while not other.execute(waits, (pid,)).fetchall():
            time.sleep(0.01)
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        thread.join()
        assert caught[0].may_be_recorded
        other.execute("ROLLBACK")
        assert add_miss(records, "d") == 1


@pytest.mark.needs("postgres")
@pytest.mark.lengthy
def test_a_wrong_password_and_a_schema(records_server):
    url = records_server.new_database()
    with pytest.raises(LedgerUnavailable, match="authentication failed") as caught:
        Records.open(url.replace("owner:", "owner:wrong"))
    assert "wrong" not in str(caught.value)
    with Records.open(f"{url}?schema=one") as one, Records.open(f"{url}?schema=two") as two:
        add_miss(one, "d")
        assert (count_misses(one, "d"), count_misses(two, "d")) == (1, 0)
    with pytest.raises(ParameterError, match="schema"):
        Records.open(f"{url}?schema=pg_x")


@pytest.mark.needs("postgres")
@pytest.mark.lengthy
def test_whoever_may_only_use_the_schema_needs_no_more(records_server):
    url = records_server.new_database()
    Records.open(url).close()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE ROLE worker LOGIN PASSWORD 'pw'")
        owner.execute("GRANT USAGE ON SCHEMA discreet_gateway TO worker")
        owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA discreet_gateway TO worker")
    told = psycopg.conninfo.conninfo_to_dict(url)
    theirs = f"postgresql://worker:pw@{told['host']}:{told['port']}/{told['dbname']}"
    with Records.open(theirs) as records:
        assert add_miss(records, "d") == 1
