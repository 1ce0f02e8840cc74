import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.schema import VERSION, VERSION_QUERY, migrations
from discreet.ledger.stores.sqlite import store as _sqlite
from discreet.ledger.stores.sqlite.store import SqliteStore
from discreet.testing import StoreConformance
from discreet.testing.stores.made_up import head, note_down, put, row, size_of, write

LONG = 30.0  # seconds after which something that should happen will not
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks of POSIX")


@pytest.mark.lengthy
class TestSqliteStore(StoreConformance):
    def make_store(self, folder):
        return SqliteStore(folder / "ledger.db", create=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path):
    with closing(SqliteStore(path, create=True)) as made:
        yield made


def run(script, *arguments, **options):
    """Start a program of its own, which finds these helpers."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        **options,
    )


def finish(program, given=""):
    out, _ = program.communicate(given, timeout=LONG)
    return out


def check(path):
    """Say that nothing is missing, doubled or damaged; return all keys."""
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(SqliteStore(path, create=False)) as store, store.read() as view:
        rows = list(view.rows(0, 1_000_000))
        assert [each.index for each in rows] == list(range(size_of(view)))
        for each in rows:
            assert view.facts([f"at/{each.key}"]) == {f"at/{each.key}": str(each.index)}
    return [each.key for each in rows]


# Many processes


def race(path, number, turns, start):
    store = SqliteStore(path, create=True)
    start.wait()
    for turn in range(turns):
        # Every tenth request is made by all processes.
        key = f"all-{turn}" if turn % 10 == 0 else f"{number}-{turn}"
        (given,) = store.commit_together([key.encode()], note_down)
        with store.read() as view:
            assert view.row(int(given)).key == key
    store.close()


@pytest.mark.lengthy
def test_racing_processes_lose_and_double_nothing(path):
    processes, turns = 8, 200
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(processes)
    racing = [
        context.Process(target=race, args=(path, number, turns, start))
        for number in range(processes)
    ]
    for each in racing:
        each.start()
    for each in racing:
        each.join(10 * LONG)  # eight processes on a busy machine; only a hang fails
        assert each.exitcode == 0
        each.close()
    shared, own = turns // 10, turns - turns // 10
    keys = check(path)
    assert len(keys) == len(set(keys)) == shared + processes * own


KILLED = """
import os, sys, time
from pathlib import Path
from discreet.testing.stores.made_up import note_down
from discreet.ledger.stores.sqlite import mailbox as _mailbox
from discreet.ledger.stores.sqlite.mailbox import Mailbox
from discreet.ledger.stores.sqlite.store import SqliteStore

point = sys.argv[2]
store = SqliteStore(sys.argv[1], create=False)
store.commit_together([b"child first"], note_down)
box = store._mailbox

def die(at):
    if at == point:
        os.kill(os.getpid(), 9)

def work(tx, requests):
    theirs = b"parent" in requests
    if not theirs:
        print("holding", flush=True)
        while not box._pending():
            time.sleep(0.001)
    if theirs:
        die("begun")
    answers = note_down(tx, requests)
    if theirs:
        die("written")
    return answers

write_area, tell, unlock = Mailbox._write_area, Mailbox._tell, Mailbox._unlock
def _write_area(self, slot, shift, *rest):
    if shift:
        die("committed")
    return write_area(self, slot, shift, *rest)
def _tell(self, posts):
    die("answered")
    tell(self, posts)
def _unlock(self):
    die("told")
    unlock(self)
Mailbox._write_area, Mailbox._tell, Mailbox._unlock = _write_area, _tell, _unlock
store.commit_together([b"child"], work)
"""


@pytest.mark.lengthy
@ON_POSIX
@pytest.mark.parametrize("point", ["begun", "written", "committed", "answered", "told"])
def test_whoever_serves_us_may_die_at_any_point(store, path, point):
    store.commit_together([b"parent first"], note_down)
    child = run(KILLED, path, point)
    assert child.stdout.readline() == "holding\n"
    (place,) = store.commit_together([b"parent"], note_down)
    finish(child)
    assert child.returncode == -signal.SIGKILL
    with store.read() as view:
        assert view.row(int(place)).key == "parent"
    store.close()
    assert sorted(check(path)) == ["child", "child first", "parent", "parent first"]


FORKED = """
import os, sys
from discreet.testing.stores.made_up import note_down, size_of
from discreet.ledger.stores.sqlite.store import SqliteStore

store = SqliteStore(sys.argv[1], create=True)
store.commit_together([b"before"], note_down)
with store.read() as view:
    size_of(view)
children = []
for number in range(4):
    child = os.fork()
    if not child:
        for turn in range(50):
            store.commit_together([b"child %d %d" % (number, turn)], note_down)
            with store.read() as view:
                assert size_of(view) > turn
        if number % 2:
            store.close()
        sys.exit()  # which tidies up what it believes to own
    children.append(child)
for turn in range(50):
    store.commit_together([b"parent %d" % turn], note_down)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
# A fork in the middle of a view: the child drops it.
with store.read() as view:
    child = os.fork()
    size = size_of(view) if child else 251
    assert size == 251
if not child:
    store.commit_together([b"late child"], note_down)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
store.commit_together([b"after"], note_down)
store.close()
print("well")
"""


@ON_POSIX
@pytest.mark.lengthy
def test_a_fork_shares_nothing_but_the_file(path):
    program = run(FORKED, path)
    assert finish(program) == "well\n"
    keys = check(path)
    assert len(keys) == len(set(keys)) == 1 + 4 * 50 + 50 + 2


IDLE_CHILD = """
import os, sys
from discreet.testing.stores.made_up import note_down
from discreet.ledger.stores.sqlite.store import SqliteStore

store = SqliteStore(sys.argv[1], create=True)
def work(tx, requests):
    if not os.fork():
        print("child", flush=True)
        sys.stdin.readline()
        os._exit(0)
    os.kill(os.getpid(), 9)
store.commit_together([b"x"], work)
"""


@pytest.mark.lengthy
@ON_POSIX
def test_a_child_that_does_nothing_keeps_no_lock(path):
    program = run(IDLE_CHILD, path)
    assert program.stdout.readline() == "child\n"
    program.wait(LONG)
    with closing(SqliteStore(path, create=False)) as store:
        assert store.commit_together([b"y"], note_down) == [b"0"]
    finish(program, "\n")


# Versions


def old_ledger(path, *, version=1):
    """Write a ledger as the first release did, with one entry."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for number, statements in migrations("sqlite", found=0):
            if number <= 1:
                for statement in statements:
                    database.execute(statement)
        database.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row(0, key="old"))
        database.execute("INSERT INTO facts VALUES ('at/old', '0')")
        old = head(1)
        numbers = (old.size, old.time, old.last, old.frontier, old.note)
        database.execute("INSERT INTO head VALUES (1, ?, ?, ?, ?, ?)", numbers)
        database.execute("UPDATE meta SET value = ?", (str(version),))


def version_of(path):
    with closing(sqlite3.connect(path)) as database:
        indexes = database.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
        return database.execute(VERSION_QUERY).fetchone()[0], ("entries_by_account",) in indexes


def test_an_old_ledger_is_brought_up_to_date(path):
    old_ledger(path)
    assert version_of(path) == ("1", False)
    with closing(SqliteStore(path, create=False)) as store:
        with store.read() as view:
            assert view.head() == head(1)
            assert view.row(0) == row(0, key="old")
        assert store.commit_together([b"new", b"old"], note_down) == [b"1", b"0"]
    assert version_of(path) == (str(VERSION), True)
    assert check(path) == ["old", "new"]


def test_the_history_of_an_account_is_read_from_an_index(store):
    with store.read() as view:
        sql = "EXPLAIN QUERY PLAN SELECT * FROM entries WHERE account = ? ORDER BY idx"
        plan = " ".join(str(step) for step in view._all(sql, ("a",)))
    assert "entries_by_account" in plan
    assert "TEMP B-TREE" not in plan


CRASHING = """
import os, sys
from discreet.ledger.stores.sqlite import store as _sqlite
class Dying:
    def __init__(self, uri):
        self.real = _sqlite.connect_sqlite(uri)
    def execute(self, sql, *parameters):
        if sys.argv[2] in sql:
            os.kill(os.getpid(), 9)
        return self.real.execute(sql, *parameters)
    def __getattr__(self, name):
        return getattr(self.real, name)
_sqlite.SqliteStore(sys.argv[1], create=True, connect=Dying)
"""


@ON_POSIX
@pytest.mark.parametrize("at", ["CREATE INDEX", "INSERT INTO meta", "COMMIT"])
def test_a_crash_while_migrating_leaves_the_old_version_whole(path, at):
    old_ledger(path)
    program = run(CRASHING, path, at)
    finish(program)
    assert program.returncode == -signal.SIGKILL
    assert version_of(path) == ("1", False)
    assert check(path) == ["old"]
    assert version_of(path) == (str(VERSION), True)


@pytest.mark.lengthy
@ON_POSIX
@pytest.mark.parametrize("at", ["journal_mode", "CREATE TABLE facts", "COMMIT"])
def test_a_crash_while_creating_can_be_repeated(path, at):
    program = run(CRASHING, path, at)
    finish(program)
    assert program.returncode == -signal.SIGKILL
    with pytest.raises(LedgerUnavailable, match="empty"):
        SqliteStore(path, create=False)
    SqliteStore(path, create=True).close()
    assert check(path) == []


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("create", [True, False])
def test_a_newer_version_is_refused_and_left_alone(path, create, read_only):
    old_ledger(path, version=99)
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match=f"99.*{VERSION}") as caught:
        SqliteStore(path, create=create, read_only=read_only)
    assert not caught.value.may_be_recorded
    assert path.read_bytes() == before


def test_an_old_version_must_be_opened_for_writing_once(path):
    old_ledger(path)
    with pytest.raises(LedgerUnavailable, match="once for writing"):
        SqliteStore(path, create=False, read_only=True)
    assert version_of(path) == ("1", False)
    SqliteStore(path, create=False).close()
    with closing(SqliteStore(path, create=False, read_only=True)) as store, store.read() as view:
        assert size_of(view) == 1


# What is no ledger


@pytest.mark.parametrize("content", [b"x", b"name,salary\n" * 1_000, b"\x89PNG" + bytes(5_000)])
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_database_is_left_alone(path, content, create):
    path.write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="not a database"):
        SqliteStore(path, create=create)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE meta (a)",
        "CREATE TABLE meta (name, value)",
        "CREATE TABLE salaries (name, salary)",
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_database_of_somebody_else_is_left_alone(path, sql, create):
    with closing(sqlite3.connect(path)) as database:
        database.execute(sql)
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match="not one that a ledger wrote"):
        SqliteStore(path, create=create)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_ledger_with_a_trigger_is_refused(path):
    SqliteStore(path, create=True).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM facts; END")
    with pytest.raises(LedgerUnavailable, match="not one that a ledger wrote"):
        SqliteStore(path, create=False)


def test_an_unreadable_version_is_refused(path):
    old_ledger(path, version="one")
    with pytest.raises(LedgerUnavailable, match="does not say"):
        SqliteStore(path, create=False)


def test_a_missing_file_is_created_only_when_asked(path):
    for options in ({"create": False}, {"create": True, "read_only": True}):
        with pytest.raises(LedgerUnavailable, match="no ledger"):
            SqliteStore(path, **options)
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        SqliteStore(path / "nowhere" / "ledger.db", create=True)
    with pytest.raises(LedgerUnavailable):
        SqliteStore(path.parent, create=True)
    assert os.listdir(path.parent) == []
    path.touch()
    with pytest.raises(LedgerUnavailable, match="empty"):
        SqliteStore(path, create=False)
    SqliteStore(path, create=True).close()
    SqliteStore(path, create=True).close()


def test_a_path_with_awkward_signs_is_taken_literally(tmp_path):
    path = tmp_path / "100% #1? & caf\u00e9 mode=ro.db"
    with closing(SqliteStore(path, create=True)) as store:
        store.commit_together([b"x"], note_down)
    assert check(path) == ["x"]


# Storage that fails


def test_a_full_file_is_reported_and_nothing_is_written(path):
    full = {"is": False}

    class Limited:
        def __init__(self, uri):
            self.real = _sqlite.connect_sqlite(uri)

        def execute(self, sql, *parameters):
            if sql == "BEGIN IMMEDIATE" and full["is"]:
                (pages,) = self.real.execute("PRAGMA page_count").fetchone()
                self.real.execute(f"PRAGMA max_page_count={pages + 10}")
            return self.real.execute(sql, *parameters)

        def __getattr__(self, name):
            return getattr(self.real, name)

    with closing(SqliteStore(path, create=True, connect=Limited)) as store:
        store.commit_together([b"small"], note_down)
        full["is"] = True
        with pytest.raises(LedgerUnavailable, match=r"no room left.*Nothing was written") as caught:
            write(store, row(1, body="x" * 1_000_000), fact="x")
        assert not caught.value.may_be_recorded
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        with store.read() as view:
            assert view.facts(["fact"]) == {}
        assert store.commit_together([b"small", b"other"], note_down) == [b"0", b"1"]
    assert check(path) == ["small", "other"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a small disk")
def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]).returncode:
        pytest.skip("may not mount a small disk")
    try:
        path, stored = place / "ledger.db", []
        with closing(SqliteStore(path, create=True)) as store:

            def fill():
                for turn in range(10_000):
                    key = f"{turn} {'x' * 1_000}"
                    store.commit_together([key.encode()], note_down)
                    stored.append(key)

            with pytest.raises(LedgerUnavailable, match="Nothing was written") as caught:
                fill()
            assert not caught.value.may_be_recorded
            assert len(stored) > 10
            with store.read() as view:
                assert [each.key for each in view.rows(0, 10_000)] == stored
            with pytest.raises(LedgerUnavailable):
                store.backup(place / "backup.db")
            assert not (place / "backup.db").exists()
        copy = tmp_path / "copy.db"
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
        assert check(copy) == stored
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_lock_held_too_long_is_reported(path, monkeypatch):
    monkeypatch.setattr(_sqlite, "PATIENCE", 0.05)
    with closing(SqliteStore(path, create=True)) as store:
        store.commit_together([b"x"], note_down)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable, match=r"locked.*Nothing was written"):
                store.commit_together([b"y"], note_down)
            with store.read() as view:
                assert size_of(view) == 1
            other.execute("ROLLBACK")
        assert store.commit_together([b"y"], note_down) == [b"1"]


READ_ONLY = """
import os, sys
from discreet.testing.stores.made_up import note_down, size_of
from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.sqlite.store import SqliteStore

if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
path = sys.argv[1]
for create in (False, True):
    try:
        SqliteStore(path, create=create).commit_together([b"x"], note_down)
    except LedgerUnavailable as error:
        assert "writable" in str(error) and "Nothing was written" in str(error), error
        assert not error.may_be_recorded
    else:
        raise SystemExit("wrote")
try:
    SqliteStore(path + "-new", create=True)
except LedgerUnavailable as error:
    print(error)
store = SqliteStore(path, create=False, read_only=True)
with store.read() as view:
    print(size_of(view), store._is_frozen, flush=True)
sys.stdin.readline()
try:
    with store.read() as view:
        print(size_of(view))
        sys.stdin.readline()
except LedgerUnavailable as error:
    print("noticed" if "while it was being read" in str(error) else error)
"""


@pytest.mark.lengthy
@ON_POSIX
@pytest.mark.parametrize("is_in_use", [True, False])
def test_a_read_only_folder_can_still_be_read(is_in_use):
    # Not below the folder of this test, which other users may not enter.
    folder = Path(tempfile.mkdtemp())
    path = folder / "ledger.db"
    store = SqliteStore(path, create=True)
    try:
        store.commit_together([b"x"], note_down)
        if not is_in_use:
            store.close()
        for each in folder.iterdir():
            each.chmod(0o444)
        folder.chmod(0o555)
        program = run(READ_ONLY, path, cwd=folder)
        assert "cannot be written" in program.stdout.readline()
        assert program.stdout.readline() == f"1 {not is_in_use}\n"
        if is_in_use:
            store.commit_together([b"y"], note_down)
            assert finish(program, "\n\n") == "2\n"
        elif os.geteuid() == 0:
            # Somebody who may write here does so while it is read without any lock.
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "1\n"
            with closing(SqliteStore(path, create=False)) as other:
                other.commit_together([b"y"], note_down)
            assert finish(program, "\n") == "noticed\n"
        else:
            assert finish(program, "\n\n") == "1\n"
        assert program.returncode == 0
    finally:
        folder.chmod(0o755)
        store.close()
        shutil.rmtree(folder)


def test_a_store_opened_to_read_does_not_write(store, path):
    store.commit_together([b"x"], note_down)
    with closing(SqliteStore(path, create=False, read_only=True)) as reader:
        with pytest.raises(LedgerUnavailable, match="read only"):
            reader.commit_together([b"y"], note_down)
        store.commit_together([b"y"], note_down)
        with reader.read() as view:
            assert size_of(view) == 2


@ON_POSIX
@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_file_that_was_moved_or_replaced_is_noticed(store, path, how):
    store.commit_together([b"x"], note_down)
    path.rename(path.with_name("elsewhere.db"))
    if how == "replaced":
        path.write_bytes(b"")
    with pytest.raises(LedgerUnavailable, match="moved or replaced"):
        store.commit_together([b"y"], note_down)
    with pytest.raises(LedgerUnavailable, match="moved or replaced"), store.read():
        pass


def test_a_view_is_over_when_its_block_is(store):
    store.commit_together([b"x"], note_down)
    with store.read() as view:
        walk = view.rows(0, 10)
    with pytest.raises(LedgerUnavailable, match="view"):
        view.head()
    with pytest.raises(LedgerUnavailable, match="view"):
        next(walk)


def test_a_transaction_is_over_when_its_work_is(store):
    kept = []
    store.commit_together([b"x"], lambda tx, requests: kept.append(tx) or [b""])
    with pytest.raises(LedgerUnavailable, match="view"):
        kept[0].put_facts({"a": "1"})


# Faults below SQLite, in a file system of apsw


@pytest.fixture
def faulty(path):
    """A store on a file system that fails to sync when told to, and a way to tell it."""
    import apsw

    fail = {"times": 0}

    class File(apsw.VFSFile):
        def xSync(self, flags):
            if fail["times"] > 0:
                fail["times"] -= 1
                raise apsw.IOError("no sync")
            return super().xSync(flags)

    class System(apsw.VFS):
        def __init__(self):
            super().__init__("faulty", "")

        def xOpen(self, name, flags):
            return File("", name, flags)

    system = System()
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI

    def connect(uri):
        return apsw.Connection(uri, flags=flags, vfs="faulty")

    with closing(SqliteStore(path, create=True, connect=connect)) as store:
        yield store, fail
        fail["times"] = 0
    system.unregister()


def test_a_store_works_with_other_connections(faulty, path):
    store, _ = faulty
    assert store.commit_together([b"x", b"y"], note_down) == [b"0", b"1"]
    put(store, {"fact": "1"})
    with store.read() as view:
        assert view.head() == head(2)
        assert dict(view.facts_under("f")) == {"fact": "1"}
    with pytest.raises(TypeError, match="sqlite3"):
        store.backup(path.with_name("copy.db"))
    assert not path.with_name("copy.db").exists()


def test_a_commit_that_failed_and_was_undone_is_said_to_be(faulty):
    store, fail = faulty
    store.commit_together([b"x"], note_down)
    fail["times"] = 1
    with pytest.raises(LedgerUnavailable, match=r"read or written.*Nothing was written") as caught:
        store.commit_together([b"y"], note_down)
    assert not caught.value.may_be_recorded
    with store.read() as view:
        assert size_of(view) == 1
    assert store.commit_together([b"z", b"x"], note_down) == [b"1", b"0"]


def test_a_commit_that_failed_and_cannot_be_undone_is_said_to_be(faulty):
    store, fail = faulty
    store.commit_together([b"x"], note_down)
    fail["times"] = 1_000
    with pytest.raises(LedgerUnavailable, match="same key") as caught:
        store.commit_together([b"y"], note_down)
    assert caught.value.may_be_recorded
    fail["times"] = 0
    assert store.commit_together([b"y"], note_down) == [b"1"]
    with store.read() as view:
        assert [each.key for each in view.rows(0, 9)] == ["x", "y"]


def test_a_failed_commit_does_not_come_back_after_a_crash(faulty, path):
    store, fail = faulty
    store.commit_together([b"x"], note_down)
    fail["times"] = 1
    copy = path.with_name("copy.db")
    with store.read():  # somebody keeps the log open, so that it is not simply deleted
        with pytest.raises(LedgerUnavailable):
            store.commit_together([b"y"], note_down)
        # What a crash would leave: the files as they are, without the index of the log.
        for suffix in ("", "-wal"):
            subprocess.run(["cp", f"{path}{suffix}", f"{copy}{suffix}"], check=True)
    keys = subprocess.check_output(
        [sys.executable, "-c", "import json, sqlite3, sys\n"
         "rows = sqlite3.connect(sys.argv[1]).execute('SELECT key FROM entries').fetchall()\n"
         "print(json.dumps(rows))", str(copy)]
    )  # fmt: skip
    assert json.loads(keys) == [["x"]]


# The write-ahead log


@pytest.mark.lengthy
def test_the_log_stays_small_and_shrinks_again_after_a_long_view(store, path):
    log = path.with_name("ledger.db-wal")

    def fill(rounds):
        for turn in range(rounds):
            put(store, {f"f/{index}": f"{turn}" * 1_500 for index in range(20)})

    fill(150)
    small = log.stat().st_size
    assert small < 8_000_000
    with store.read() as view:
        assert dict(view.facts_under("f/"))
        fill(300)
        grown = log.stat().st_size
        assert grown > 2 * small
        assert view.facts(["f/1"]) == {"f/1": "149" * 1_500}
    fill(300)
    assert log.stat().st_size < 20_000_000 < grown


# Backups


def test_a_backup_is_a_ledger_of_one_moment(store, path):
    for turn in range(50):
        store.commit_together([b"%d" % turn], note_down)
    stop = threading.Event()

    def go_on():
        with closing(SqliteStore(path, create=False)) as other:
            turn = 50
            while not stop.is_set():
                other.commit_together([b"%d" % turn], note_down)
                turn += 1

    writer = threading.Thread(target=go_on)
    writer.start()
    time.sleep(0.02)
    copy = path.with_name("copy.db")
    store.backup(copy)
    stop.set()
    writer.join()
    keys = check(copy)
    assert len(keys) >= 50
    assert keys == [str(turn) for turn in range(len(keys))]
    assert copy.stat().st_mode & 0o077 == 0 or sys.platform == "win32"


def test_a_backup_overwrites_nothing(store, path):
    target = path.with_name("precious")
    target.write_text("keep")
    with pytest.raises(LedgerUnavailable, match="does not exist yet"):
        store.backup(target)
    assert target.read_text() == "keep"
    with pytest.raises(LedgerUnavailable):
        store.backup(path)
    with pytest.raises(LedgerUnavailable):
        store.backup(path.parent / "nowhere" / "copy.db")


def test_a_restored_backup_goes_on(store, path):
    store.commit_together([b"x"], note_down)
    copy = path.with_name("copy.db")
    store.backup(copy)
    store.commit_together([b"lost"], note_down)
    store.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(f"ledger.db{suffix}").unlink(missing_ok=True)
    os.replace(copy, path)
    with closing(SqliteStore(path, create=False)) as restored:
        assert restored.commit_together([b"y"], note_down) == [b"1"]
    assert check(path) == ["x", "y"]


def test_closing_while_somebody_reads_lets_them_finish(store):
    store.commit_together([b"x"], note_down)
    with store.read() as view:
        store.close()
        assert size_of(view) == 1
