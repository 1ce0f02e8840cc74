"""The state's file: private, whole or not at all, and without what was deleted."""

import os
import stat

import pytest

from discreet.errors import LedgerUnavailable, ParameterError
from discreet.shuffle.state.state_file import StateFile

SECRET = b"a secret that must not stay on the disk"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "state.db"


@pytest.fixture
def state(place):
    tables = ["CREATE TABLE t (n BLOB)"]
    with StateFile.make(place, kind="a test", tables=tables, about={"colour": "blue"}) as made:
        yield made


def test_only_its_owner_may_open_it(state, place):
    with state.write() as database:
        database.execute("INSERT INTO t VALUES (1)")
    for file in place.parent.iterdir():
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600, file


def test_a_transaction_is_whole_or_not_at_all(state):
    with pytest.raises(LedgerUnavailable), state.write() as database:
        database.execute("INSERT INTO t VALUES (1)") and database.execute("nonsense")
    assert state.rows("SELECT * FROM t") == []
    with state.write() as database:
        database.execute("INSERT INTO t VALUES (2)")
    assert state.rows("SELECT * FROM t") == [(2,)]


def test_what_is_deleted_is_gone_from_the_disk(state, place):
    with state.write() as database:
        database.executemany("INSERT INTO t VALUES (?)", [(SECRET * 100,)] * 50)
    before = b"".join(file.read_bytes() for file in place.parent.iterdir())
    assert SECRET in before
    with state.write() as database:
        database.execute("DELETE FROM t")
    state.forget()
    after = b"".join(file.read_bytes() for file in place.parent.iterdir())
    assert SECRET not in after


def test_it_opens_as_what_it_was_made_for_and_is_made_once(state, place, tmp_path):
    with StateFile.open(place, kind="a test") as again:
        assert again.about("colour") == "blue"
    with pytest.raises(ParameterError, match="not the state of a shuffler"):
        StateFile.open(place, kind="a shuffler")
    with pytest.raises(ParameterError, match="in use already"):
        StateFile.make(place, kind="a test", tables=[], about={})
    with pytest.raises(ParameterError, match="there is no file"):
        StateFile.open(tmp_path / "none.db", kind="a test")


def test_a_file_that_is_no_database_is_told(tmp_path):
    (tmp_path / "text.db").write_text("hello " * 100)
    with pytest.raises(LedgerUnavailable, match="file is not a database"):
        StateFile.open(tmp_path / "text.db", kind="a test")
