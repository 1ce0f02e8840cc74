import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from discreet.errors import (
    LedgerError,
    LedgerUnavailable,
    MissingExtra,
    ParameterError,
    PrivacyWarning,
)
from discreet.ledger.stores.postgres import posts as _posts
from discreet.ledger.stores.postgres import statements as _postgres_statements
from discreet.ledger.stores.postgres import store as _postgres
from discreet.ledger.stores.postgres.errors import ConnectionLost, ServerError, explained
from discreet.ledger.stores.postgres.store import PostgresStore
from discreet.ledger.stores.schema import VERSION, migrations
from discreet.testing import PostgresServer, StoreConformance
from discreet.testing.stores.made_up import head, note_down, row, size_of, write

pytestmark = [pytest.mark.needs("postgres"), pytest.mark.lengthy]

spawning = multiprocessing.get_context("spawn")
PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def fragile():
    """Return a server that may crash; with few databases it is soon up again."""
    with PostgresServer() as running:
        yield running


@pytest.fixture
def url(server):
    return server.new_database()


@pytest.fixture
def store(url):
    made = PostgresStore(url, create=True)
    yield made
    made.close()


class TestPostgresStore(StoreConformance):
    @pytest.fixture(autouse=True)
    def _address(self, server):
        self._url = server.url

    def make_store(self, folder):
        schema = f"t_{sha256(bytes(folder)).hexdigest()[:16]}"
        return PostgresStore(f"{self._url}?schema={schema}", create=True)


def contents(url):
    """Return the keys in the log, after checking that log, facts and head fit together."""
    store = PostgresStore(url, create=False, read_only=True)
    try:
        with store.read() as view:
            rows = list(view.rows(0, 1_000_000))
            assert [each.index for each in rows] == list(range(size_of(view)))
            facts = {"size": str(len(rows))} | {f"at/{each.key}": str(each.index) for each in rows}
            assert dict(view.facts_under("")) == (facts if rows else {})
            return {each.key: str(each.index).encode() for each in rows}
    finally:
        store.close()


def sql(url, statement, *parameters):
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement, parameters)
        return found.fetchall() if found.description else []


def lock_of(store):
    return int.from_bytes(store._key, "big", signed=True)


@contextlib.contextmanager
def locked(store, url):
    """Keep the ledger locked by a client that does nothing."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (lock_of(store),))
        yield connection.info.backend_pid


def eventually(is_so):
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def posts(url):
    return sql(url, "SELECT count(*) FROM discreet_ledger.mailbox WHERE request IS NOT NULL")[0][0]


# Sharing commits


def test_those_who_wait_share_one_commit(store, url):
    others = [PostgresStore(url, create=False) for _ in range(6)]
    batches = []

    def work(tx, requests):
        batches.append(len(requests))
        return note_down(tx, requests)

    with ThreadPoolExecutor(6) as pool:
        with locked(store, url):
            asked = [
                pool.submit(other.commit_together, [f"{n}-a".encode(), f"{n}-b".encode()], work)
                for n, other in enumerate(others)
            ]
            eventually(lambda: posts(url) == 6)
        answers = [each.result() for each in asked]
    assert batches == [12]
    assert contents(url) == {
        f"{n}-{which}": answer
        for n, pair in enumerate(answers)
        for which, answer in zip("ab", pair, strict=True)
    }
    for other in others:
        other.close()
    assert sql(url, "SELECT * FROM discreet_ledger.mailbox") == []


def test_what_is_too_large_to_post_waits_for_its_turn(store, url):
    large = [b"x" * 40_000, b"y" * 40_000]
    with ThreadPoolExecutor(1) as pool:
        with locked(store, url):
            waiting = pool.submit(store.commit_together, large, lambda _, requests: list(requests))
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
            assert posts(url) == 0
        assert waiting.result() == large


def test_one_leader_carries_out_so_many_and_leaves_the_rest(store, url, monkeypatch):
    monkeypatch.setattr(_posts, "MOST_REQUESTS", 3)
    others = [PostgresStore(url, create=False) for _ in range(6)]
    batches = []

    def work(tx, requests):
        batches.append(len(requests))
        return note_down(tx, requests)

    with ThreadPoolExecutor(6) as pool:
        with locked(store, url):
            asked = [
                pool.submit(other.commit_together, [str(n).encode()], work)
                for n, other in enumerate(others)
            ]
            eventually(lambda: posts(url) == 6)
        for each in asked:
            each.result()
    assert batches == [4, 2]
    assert len(contents(url)) == 6
    for other in others:
        other.close()


def race(url, writer, rounds, start, answers):
    store = PostgresStore(url, create=True)
    start.wait()
    given = {}
    for turn in range(rounds):
        keys = [f"{writer}-{turn}", f"both-{writer // 2}-{turn}"]
        given.update(
            zip(keys, store.commit_together([key.encode() for key in keys], note_down), strict=True)
        )
    store.close()
    answers.put(given)


def test_racing_processes_lose_and_double_nothing(url):
    start, answers = spawning.Barrier(8), spawning.Queue()
    racers = [spawning.Process(target=race, args=(url, n, 25, start, answers)) for n in range(8)]
    for racer in racers:
        racer.start()
    given = [answers.get(timeout=30) for _ in racers]
    for racer in racers:
        racer.join()
    places = contents(url)
    assert all(each.items() <= places.items() for each in given)
    assert set(places) == {key for each in given for key in each}
    assert len(places) == 8 * 25 + 4 * 25  # every second request was made by two


# Clients that die


def hang(url, is_reached, request):
    def work(tx, requests):
        answers = note_down(tx, requests)
        assert tx.row(0) is not None  # so that it was sent
        is_reached.set()
        time.sleep(60)
        return answers

    PostgresStore(url, create=False).commit_together([request], work)


def wait_in_line(url, request):
    PostgresStore(url, create=False).commit_together([request], note_down)


def test_a_client_killed_with_the_lock_leaves_nothing_and_stops_nobody(store, url):
    is_reached = spawning.Event()
    victim = spawning.Process(target=hang, args=(url, is_reached, b"victim"))
    other = PostgresStore(url, create=False)
    with ThreadPoolExecutor(2) as pool:
        with locked(store, url):
            # It waits in line first, so that its request is posted, and it takes that of others.
            victim.start()
            eventually(lambda: posts(url) == 1)
            waiting = pool.submit(store.commit_together, [b"patient"], note_down)
            eventually(lambda: posts(url) == 2)
        assert is_reached.wait(20)
        late = pool.submit(other.commit_together, [b"late"], note_down)
        eventually(lambda: posts(url) == 3)
        victim.kill()
        victim.join()
        answers = {"patient": waiting.result(20)[0], "late": late.result(20)[0]}
    # The dead one's request is still posted, so a leader may have carried it out as well.
    found = contents(url)
    assert answers.items() <= found.items()
    assert set(found) - set(answers) <= {"victim"}
    other.close()


def test_a_client_killed_in_line_is_swept_away(store, url):
    victim = spawning.Process(target=wait_in_line, args=(url, b"victim"))
    with locked(store, url):
        victim.start()
        eventually(lambda: posts(url) == 1)
        victim.kill()
        victim.join()
    assert store.commit_together([b"next"], note_down)[0] in (b"0", b"1")
    assert store.commit_together([b"last"], note_down)[0] in (b"1", b"2")
    eventually(
        lambda: (
            sql(url, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'")
            == [(0,)]
        )
    )
    PostgresStore(url, create=False).close()
    # Nobody but the living store, if it ever had to post, is left in the mailbox.
    assert sql(
        url,
        "SELECT count(*) FROM discreet_ledger.mailbox "
        "WHERE slot NOT IN (SELECT pid FROM pg_stat_activity)",
    ) == [(0,)]
    assert {"next", "last"} <= set(contents(url)) <= {"next", "last", "victim"}


def test_ctrl_c_while_waiting_leaves_the_store_usable(store, url):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with locked(store, url):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                store.commit_together([b"x"], note_down)
    finally:
        signal.signal(signal.SIGALRM, before)
    store.commit_together([b"y"], note_down)
    other = PostgresStore(url, create=False)
    other.commit_together([b"z"], note_down)
    other.close()
    assert {"y", "z"} <= set(contents(url)) <= {"x", "y", "z"}


def test_a_ledger_locked_for_too_long_names_who_holds_it(url, monkeypatch):
    monkeypatch.setitem(_postgres_statements.SETTINGS, "lock_timeout", "'100ms'")
    store = PostgresStore(url, create=True)
    with locked(store, url) as holder:
        with pytest.raises(LedgerUnavailable, match=f"process {holder} has kept it locked") as told:
            store.commit_together([b"x"], note_down)
        assert told.value.may_be_recorded
        with pytest.raises(LedgerUnavailable, match="Nothing was written") as told:
            store.commit_together([b"x" * 100_000], note_down)
        assert not told.value.may_be_recorded
    # Who gave up is not carried out later.
    assert store.commit_together([b"y"], note_down) == [b"0"]
    assert contents(url) == {"y": b"0"}
    store.close()


def test_a_fork_leaves_the_parents_connections_alone(store, url):
    store.commit_together([b"before"], note_down)
    with store.read() as view, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on threads, in newer Pythons
        child = os.fork()
        if not child:
            code = 1
            try:
                with pytest.raises(LedgerUnavailable, match="parent"):
                    view.row(0)
                assert store.commit_together([b"child"], note_down) == [b"1"]
                with store.read() as own:
                    assert size_of(own) == 2
                store.close()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert view.row(0).key == "before"
        assert size_of(view) == 1
    assert store.commit_together([b"after"], note_down) == [b"2"]
    assert set(contents(url)) == {"before", "child", "after"}


# Servers that die


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
def test_a_server_may_restart_between_two_requests(fragile, mode):
    store = PostgresStore(fragile.new_database(), create=True)
    assert store.commit_together([b"x"], note_down) == [b"0"]
    with store.read() as view:
        fragile.kill() if mode == "kill" else fragile.stop(mode=mode)
        fragile.start()
        with pytest.raises(LedgerUnavailable, match="went away"):
            view.row(0)
    assert store.commit_together([b"y", b"x"], note_down) == [b"1", b"0"]
    with store.read() as view:
        assert size_of(view) == 2
    store.close()


def test_no_acknowledged_entry_is_lost_when_the_server_crashes(fragile, monkeypatch):
    monkeypatch.setattr(_postgres, "PATIENCE", 600)  # a busy disk may take minutes to recover
    url = fragile.new_database()
    PostgresStore(url, create=True).close()
    is_over = threading.Event()

    def write_on(writer):
        mine, given, turn = PostgresStore(url, create=False), {}, 0
        while not is_over.is_set() or len(given) <= 10:
            keys = [f"{writer}-{turn}-{part}" for part in range(writer)]
            given.update(
                zip(keys, mine.commit_together([k.encode() for k in keys], note_down), strict=True)
            )
            turn += 1
        mine.close()
        return given

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write_on, writer) for writer in (1, 2, 3, 4)]
        for turn in range(6):
            time.sleep(0.15)
            fragile.kill() if turn % 2 else fragile.stop(mode="immediate")
            fragile.start()
        time.sleep(0.1)
        is_over.set()
        given = [writer.result(600) for writer in writers]
    places = contents(url)
    assert all(len(each) > 10 for each in given)
    # Every request was repeated until it was acknowledged, so the log is what was acknowledged.
    assert places == {key: place for each in given for key, place in each.items()}


def test_a_server_that_stays_away_is_given_up(fragile, monkeypatch):
    monkeypatch.setattr(_postgres, "PATIENCE", 0.3)
    store = PostgresStore(fragile.new_database(), create=True)
    store.commit_together([b"x"], note_down)
    fragile.stop()
    with pytest.raises(LedgerUnavailable, match="ask again with the same key") as told:
        store.commit_together([b"y"], note_down)
    assert told.value.may_be_recorded
    with pytest.raises(LedgerUnavailable, match="Nothing was written") as told:
        store.commit_together([b"y"], note_down)  # it never came to sending anything
    assert not told.value.may_be_recorded
    with pytest.raises(LedgerUnavailable, match="cannot be reached"), store.read():
        pass
    fragile.start()
    assert store.commit_together([b"y"], note_down) == [b"1"]
    store.close()


def test_a_connection_that_was_ended_is_made_again(store, url):
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with store.read() as view:
        size_of(view)
    sql(url, end_all)
    with store.read() as view:
        assert size_of(view) == 0
    assert store.commit_together([b"x"], note_down) == [b"0"]
    attempts = []

    def work(tx, requests):
        attempts.append(requests)
        if len(attempts) == 1:
            sql(url, end_all)
        return note_down(tx, requests)

    assert store.commit_together([b"y"], work) == [b"1"]
    assert attempts == [[b"y"], [b"y"]]
    assert contents(url) == {"x": b"0", "y": b"1"}


def test_a_commit_whose_answer_was_lost_is_found_again(store, url):
    session, ask = store._writer, store._writer.ask

    def ask_and_lose(*questions):
        answers = ask(*questions)
        if any(question[0].name == "commit" for question in questions):
            session.close()
            raise ConnectionLost("the cable was cut", sent=True)
        return answers

    session.ask = ask_and_lose
    assert store.commit_together([b"x"], note_down) == [b"0"]
    assert store._writer is not session
    assert contents(url) == {"x": b"0"}


def test_only_a_server_that_may_write_is_written_to(url):
    PostgresStore(url, create=True).close()
    database = url.rpartition("/")[2]
    sql(url, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    with pytest.raises(LedgerUnavailable, match="only read"):
        PostgresStore(url, create=False)
    reader = PostgresStore(url, create=False, read_only=True)
    with reader.read() as view:
        assert view.head() is None
    with pytest.raises(LedgerUnavailable, match="opened to be read only"):
        reader.commit_together([b"x"], note_down)
    reader.close()


def test_a_standby_is_read_only_and_a_server_without_fsync_is_pointed_out():
    with PostgresServer(settings={"fsync": "off"}) as server:
        url = server.new_database()
        with pytest.warns(PrivacyWarning, match="fsync off"):
            store = PostgresStore(url, create=True)
        write(store, row(0))
        store.close()
        server.stop()
        (server._folder / "data" / "standby.signal").touch()
        server.start()
        with pytest.raises(LedgerUnavailable, match="Connect to the primary"):
            PostgresStore(url, create=False)
        reader = PostgresStore(url, create=False, read_only=True)
        with reader.read() as view:
            assert view.head() == head(1)
        reader.close()


def test_a_commit_waits_for_the_disk_whatever_the_default_is(url):
    PostgresStore(url, create=True).close()
    database = url.rpartition("/")[2]
    for default, used in {"off": "on", "local": "on", "remote_apply": "remote_apply"}.items():
        sql(url, f"ALTER DATABASE {database} SET synchronous_commit = {default}")
        store = PostgresStore(url, create=False)
        (found,) = store._writer._connection.execute("SHOW synchronous_commit").fetchone()
        store.close()
        assert found == used


# Getting in


def bad_addresses(url):
    good = url.replace("owner:", f"owner:{PASSWORD.replace(' ', '%20')}-")
    yield "password", good
    yield "cannot be reached", good.replace(url.rpartition("/")[0].rpartition(":")[2], "1")
    yield "no address", good.replace("127.0.0.1:", "127.0.0.1:x")
    yield "no address", f"{good}?nonsense=1"
    yield "no address", good.replace("@", "%zz@")


def test_no_message_shows_the_password(url, server):
    for said, address in bad_addresses(url):
        with pytest.raises((LedgerUnavailable, ParameterError), match=said) as told:
            PostgresStore(address, create=True)
        shown = "".join(traceback.format_exception(told.value))
        assert PASSWORD not in shown
        assert PASSWORD.replace(" ", "%20") not in shown
        assert server._password not in shown
    with pytest.raises(LedgerUnavailable, match='"nowhere" does not exist') as told:
        PostgresStore(url.rpartition("/")[0] + "/nowhere", create=True)
    assert server._password not in "".join(traceback.format_exception(told.value))


def test_a_ledger_that_is_not_there_is_not_made_by_accident(url):
    for read_only in (False, True):
        with pytest.raises(LedgerUnavailable, match="there is no ledger in schema discreet_ledger"):
            PostgresStore(url, create=False, read_only=read_only)
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        PostgresStore(url, create=True, read_only=True)
    assert sql(url, "SELECT FROM pg_namespace WHERE nspname = 'discreet_ledger'") == []


def test_a_database_in_another_encoding_is_refused(server):
    name = "latin"
    sql(server.url, f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(LedgerUnavailable, match="LATIN1"):
        PostgresStore(server.url.rpartition("/")[0] + f"/{name}", create=True)


def test_a_user_without_rights_is_told_so(store, url):
    database = url.rpartition("/")[2]
    sql(url, f"CREATE USER guest_{database} PASSWORD 'guest'")
    address = f"postgresql://guest_{database}:guest@{url.rpartition('@')[2]}"
    with pytest.raises(LedgerUnavailable, match="GRANT"):
        PostgresStore(address, create=False)


def test_two_schemas_do_not_disturb_each_other(store, url):
    other = PostgresStore(f"{url}?schema=other", create=True)
    with locked(store, url):
        assert other.commit_together([b"theirs"], note_down) == [b"0"]
    assert store.commit_together([b"ours"], note_down) == [b"0"]
    assert set(contents(url)) == {"ours"}
    assert set(contents(f"{url}?schema=other")) == {"theirs"}
    other.close()
    for bad in ("", "Other", "pg_catalog", "a;b", 'a"b', "x" * 64):
        with pytest.raises(ParameterError, match="schema"):
            PostgresStore(f"{url}?schema={bad}", create=True)


def test_creating_at_once_makes_one_ledger(url):
    with ThreadPoolExecutor(5) as pool:
        stores = list(pool.map(lambda _: PostgresStore(url, create=True), range(5)))
    assert sorted(
        store.commit_together([b"%d" % n], note_down)[0] for n, store in enumerate(stores)
    ) == [b"%d" % n for n in range(5)]
    for store in stores:
        store.close()


def test_older_tables_are_brought_up_to_date(url):
    version, statements = next(migrations("postgresql", found=0))
    assert version < VERSION
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA discreet_ledger")
        connection.execute("SET search_path = discreet_ledger")
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO entries VALUES (0, 'a', 'k', 'body', '\\x00')")
    with pytest.raises(LedgerUnavailable, match="Open it once for writing"):
        PostgresStore(url, create=False, read_only=True)
    store = PostgresStore(url, create=False)
    with store.read() as view:
        assert view.row(0).body == "body"
    store.close()
    found = sql(url, "SELECT value FROM discreet_ledger.meta")
    assert found == [(str(VERSION),)]
    sql(url, "UPDATE discreet_ledger.meta SET value = '999'")
    with pytest.raises(LedgerUnavailable, match="newer release"):
        PostgresStore(url, create=True)


def test_what_the_server_refuses_is_explained():
    full = explained(ServerError("53100", "could not extend file"), "schema s of database d")
    assert isinstance(full, LedgerUnavailable)
    assert str(full) == (
        "the ledger in schema s of database d: the server's disk is full. Free some space there "
        "and try again. Nothing was written."
    )


def test_text_that_postgresql_cannot_keep_is_refused(store, url):
    with pytest.raises(LedgerError, match="U\\+0000"):
        write(store, row(0, key="a\x00b"))
    write(store, row(0))


def test_a_missing_driver_is_announced(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match="discreet\\[postgres\\]"):
        PostgresStore("postgresql://localhost/db", create=True)


def test_a_question_larger_than_all_buffers_gets_through(store):
    # Both sides have so much to say that neither may insist on speaking first.
    big = "x" * 3_000_000
    write(store, *(row(index, key=str(index), body=big) for index in range(4)))
    with store.read() as view:
        keys = [*map(str, range(4)), *(f"{index}{big}" for index in range(4))]
        assert {found.index for found in view.by_keys(keys).values()} == {0, 1, 2, 3}


# The server of the tests


def test_the_private_server_is_private_and_leaves_nothing():
    with PostgresServer() as server:
        folder, process = server._folder, server._process
        assert sql(server.url, "SHOW listen_addresses") == [("127.0.0.1",)]
        assert sql(server.url, "SHOW unix_socket_directories") == [("",)]
        assert sql(server.url, "SHOW fsync") == [("on",)]
        if sys.platform == "linux" and os.getuid() == 0:
            assert Path(f"/proc/{process.pid}").stat().st_uid != 0
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.url.replace(server._password, "guess"))
        assert repr(server) == f"PostgresServer(port {server._port})"
        assert server._password not in repr(server)
    assert not folder.exists()
    assert process.poll() is not None
    assert repr(server) == "PostgresServer(not running)"
