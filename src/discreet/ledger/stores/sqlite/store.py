"""A store in one SQLite file, for any number of threads and processes of one machine.

The write-ahead log is synced at every commit (``synchronous=FULL``), so what ``commit_together``
returned is on the disk. Readers look at a snapshot and neither wait for writers nor hold them up.
Writers of all processes share their commits through the mailbox beside the file.
"""

import contextlib
import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import final

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.protocol import Head, Snapshot, Work
from discreet.ledger.stores.schema import (
    VERSION,
    VERSION_QUERY,
    check_version,
    definitions,
    migrations,
)
from discreet.ledger.stores.sqlite import files
from discreet.ledger.stores.sqlite.errors import (
    ADVICE,
    BUSY,
    CANTOPEN,
    DISTRUSTED,
    FULL,
    NOTADB,
    READONLY,
    code_of,
    explained,
    fail,
)
from discreet.ledger.stores.sqlite.mailbox import Mailbox
from discreet.ledger.stores.sqlite.snapshot import (
    SqliteConnection,
    SqliteSnapshot,
    SqliteTransaction,
)

__all__ = ["SqliteStore", "connect_sqlite"]

PATIENCE = 60.0  # seconds that another program may keep the database locked
IDLE_READERS = 8  # connections kept for the next reader
SMALLEST = 512  # bytes of a database; SQLite takes a shorter file for an empty one

Connect = Callable[[str], SqliteConnection]


def connect_sqlite(uri: str) -> SqliteConnection:
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


# Stores that a fork would leave with connections of their parent.
_open_stores: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()


def _abandon(connection: SqliteConnection) -> None:
    # One reference that nobody gives back: if the child closed it, even on its way out, it could
    # take the parent's write-ahead log for its own and delete it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _after_fork() -> None:
    for store in list(_open_stores):
        store._forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@final
class SqliteStore:
    """Keep a ledger in one SQLite file.

    ``create`` makes the file where there is none. ``connect`` opens a connection to a URI, for
    tests that watch the file system; it must not begin transactions by itself.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "budget.db"
    >>> store = SqliteStore(path, create=True)
    >>> store.commit_together([b"x"], lambda tx, requests: tx.put_facts({"a": "1"}) or [b"done"])
    [b'done']
    >>> with store.read() as snapshot:
    ...     snapshot.facts(["a", "b"])
    {'a': '1'}
    >>> store.close()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        read_only: bool = False,
        connect: Connect | None = None,
    ) -> None:
        self._path = Path(path).absolute()
        self._read_only = read_only
        self._connect = connect_sqlite if connect is None else connect
        self._is_closed = False
        self._is_frozen = False  # read without any lock, since none can be taken
        self._mailbox: Mailbox | None = None
        self._reset()
        try:
            self._open(create=create)
        except BaseException:
            self.close()
            raise
        _open_stores.add(self)

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._writing = threading.Lock()
        self._pooling = threading.Lock()
        self._writer: SqliteConnection | None = None
        self._idle: list[SqliteConnection] = []

    # The protocol

    def commit_together(self, requests: Sequence[bytes], work: Work, /) -> list[bytes]:
        """Carry out requests in one durable transaction, with those other processes wait for."""
        if self._pid != os.getpid():
            self._forget_parent()
        with self._writing:
            self._check_open()
            if self._read_only:
                raise LedgerUnavailable(
                    f"the ledger {self._path} was opened to be read only. Nothing was written. "
                    "Open it again for writing."
                )
            if self._mailbox is None:
                self._mailbox = self._open_mailbox()
            return self._mailbox.commit_together(
                requests, lambda batch: self._transact(batch, work)
            )

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a consistent snapshot. Any thread may, at any time."""
        if self._pid != os.getpid():
            self._forget_parent()
        self._check_open()
        self._check_same_file()
        stamp = files.stamp(self._path) if self._is_frozen else None
        connection = self._borrow()
        snapshot = SqliteSnapshot(connection, self._path)
        is_sound = False
        try:
            snapshot._all("BEGIN")
            snapshot.head()  # the first look fixes it
            yield snapshot
            if stamp is not None and files.stamp(self._path) != stamp:
                raise LedgerUnavailable(
                    f"the ledger {self._path} was written by somebody else while it was being "
                    "read without a lock. Read it again from a folder you may write, or copy it."
                )
            is_sound = not self._is_frozen
        except BaseException as error:
            is_sound = not isinstance(error, LedgerUnavailable)
            raise
        finally:
            snapshot._end()
            self._give_back(connection, is_sound=is_sound)

    def close(self) -> None:
        """Let go of everything. Calling it twice does no harm."""
        if self._pid != os.getpid():
            self._forget_parent()
        with self._writing:
            self._is_closed = True
            with self._pooling:
                idle, self._idle = self._idle, []
            for connection in idle:
                _close(connection)
            self._drop_writer()
            if self._mailbox is not None:
                self._mailbox.close()
                self._mailbox = None

    def backup(self, target: str | os.PathLike[str], /) -> None:
        """Copy the ledger, as it is at this moment, into a new file.

        Others may go on writing meanwhile. The copy is on the disk when this returns, and is
        removed again if it fails.
        """
        path = Path(target).absolute()
        with files.new_file(path), self.read() as snapshot:
            source = snapshot._db if isinstance(snapshot, SqliteSnapshot) else None
            if not isinstance(source, sqlite3.Connection):
                raise TypeError("a backup needs the connections of sqlite3")
            files.copy_database(source, path)

    # Writing

    def _transact(self, requests: Sequence[bytes], work: Work) -> list[bytes]:
        """Carry out requests in one transaction; if anything fails, nothing is written."""
        self._check_same_file()
        connection = self._writer or self._open_writer()
        transaction = SqliteTransaction(connection, self._path)
        is_committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            answers = work(transaction, requests)
            if len(answers) != len(requests):
                raise RuntimeError(f"{len(requests)} requests got {len(answers)} answers")
            is_committing = True
            connection.execute("COMMIT")
        except BaseException as error:
            transaction._end()
            self._roll_back(connection)
            if not isinstance(error, Exception):
                raise
            if is_committing and code_of(error) not in (FULL, BUSY, READONLY):
                raise self._after_failed_commit(error, transaction.put) from error
            if code_of(error.__cause__ or error) in DISTRUSTED:
                self._drop_writer()
            fail(error, self._path)
        transaction._end()
        return answers

    def _roll_back(self, connection: SqliteConnection) -> None:
        try:
            connection.execute("ROLLBACK")
        except Exception:
            self._drop_writer()  # rolled back already, or in a state nobody should build on

    def _drop_writer(self) -> None:
        if self._writer is not None:
            _close(self._writer)
            self._writer = None

    def _after_failed_commit(self, error: Exception, put: Head | None) -> Exception:
        """Find out what became of a commit that failed, and see to it that it stays that way.

        A commit whose last sync failed is undone in memory, but its frames may lie in the
        write-ahead log, where recovery after a crash would find them. The next commit overwrites
        them. So make one now: when it succeeds, what failed can never come back.
        """
        may_be_recorded = True
        with contextlib.suppress(Exception):
            self._drop_writer()
            connection = self._open_writer()
            if put is not None and SqliteSnapshot(connection, self._path).head() != put:
                (number,) = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version = {(number + 1) % 1_000_000}")
                may_be_recorded = False
        return explained(error, self._path, may_be_recorded=may_be_recorded)

    # Opening

    def _open(self, *, create: bool) -> None:
        is_there = self._path.exists()
        if not is_there and (self._read_only or not create):
            raise LedgerUnavailable(
                f"there is no ledger at {self._path}. Check the path, or create a ledger there."
            )
        if not is_there and not self._path.parent.is_dir():
            raise LedgerUnavailable(
                f"the folder {self._path.parent} does not exist. Create it, then the ledger."
            )
        # Looked at before anything is opened for writing: a file that is something else must
        # stay as it is.
        if is_there and not self._read_only:
            files.share_mode(self._path)
        found = self._found_version() if is_there else 0
        if not found and is_there and 0 < files.stamp(self._path)[1] < SMALLEST:
            raise LedgerUnavailable(f"the file {self._path} {ADVICE[NOTADB]}.")
        if not found and not create:
            raise LedgerUnavailable(f"the file {self._path} is empty. It is not a ledger.")
        if not self._read_only:
            self._mailbox = self._open_mailbox(create=create)
            if found < VERSION:
                self._migrate()
        self._identity = files.identity(self._path)

    def _found_version(self) -> int:
        # For writing where that is allowed: a power cut may have left work to be undone first.
        connection = self._open_connection("ro" if self._read_only else "rw")
        try:
            return _version(connection, self._path, read_only=self._read_only)
        except LedgerUnavailable as error:
            # On a read-only medium the files that coordinate readers and writers cannot be made.
            # There are no writers either, unless they have a log.
            was_refused = code_of(error.__cause__ or error) in (CANTOPEN, READONLY)
            if (
                self._is_frozen
                or not (was_refused and self._read_only)
                or files.stamp(self._path)[2]
            ):
                raise
            self._is_frozen = True
        finally:
            _close(connection)
        return self._found_version()

    def _migrate(self) -> None:
        assert self._mailbox is not None
        with self._mailbox.locked():
            connection = self._open_connection("rwc")
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("BEGIN IMMEDIATE")
                # Somebody else may have done it since.
                found = _version(connection, self._path, read_only=False)
                for _, statements in migrations("sqlite", found=found):
                    for statement in statements:
                        connection.execute(statement)
                connection.execute("COMMIT")
            except Exception as error:
                fail(error, self._path)
            finally:
                _close(connection)
            files.sync(self._path.parent)

    def _open_mailbox(self, *, create: bool = False) -> Mailbox:
        try:
            if create:
                self._path.touch(mode=0o600)  # answers are in it; the files beside it follow
            return Mailbox(self._path)
        except OSError as error:
            raise LedgerUnavailable(
                f"the ledger {self._path} cannot be written ({error.strerror}). Nothing was "
                "written. Make the file and its folder writable, or open it read_only."
            ) from error

    def _open_connection(self, mode: str) -> SqliteConnection:
        try:
            frozen = "&immutable=1" if self._is_frozen else ""
            connection = self._connect(f"{self._path.as_uri()}?mode={mode}{frozen}")
            connection.execute(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}")
        except Exception as error:
            fail(error, self._path)
        return connection

    def _open_writer(self) -> SqliteConnection:
        connection = self._open_connection("rw")
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=1")  # macOS: through the disk's own cache
            connection.execute("PRAGMA checkpoint_fullfsync=1")
            connection.execute("PRAGMA cache_size=-65536")
            # A long reader lets the write-ahead log grow; shrink it when the reader is gone.
            connection.execute("PRAGMA journal_size_limit=16777216")
        except Exception as error:
            _close(connection)
            fail(error, self._path)
        self._writer = connection
        return connection

    def _borrow(self) -> SqliteConnection:
        with self._pooling:
            if self._idle:
                return self._idle.pop()
        connection = self._open_connection("ro" if self._read_only else "rw")
        try:
            connection.execute("PRAGMA query_only=1")
            connection.execute("PRAGMA cache_size=-16384")
        except Exception as error:
            _close(connection)
            fail(error, self._path)
        return connection

    def _give_back(self, connection: SqliteConnection, *, is_sound: bool) -> None:
        if self._pid != os.getpid():  # the block began before a fork: it is the parent's
            _abandon(connection)
            return
        try:
            connection.execute("ROLLBACK")
        except Exception:
            is_sound = False
        with self._pooling:
            if is_sound and not self._is_closed and len(self._idle) < IDLE_READERS:
                self._idle.append(connection)
                return
        _close(connection)

    def _forget_parent(self) -> None:
        """Drop what a fork copied: a child must neither use nor close it."""
        for connection in (*self._idle, self._writer):
            if connection is not None:
                _abandon(connection)
        if self._mailbox is not None:
            # Its lock belongs to parent and child together and outlives either: let go of it.
            self._mailbox.close()
            self._mailbox = None
        self._reset()

    # Checks

    def _check_open(self) -> None:
        if self._is_closed:
            raise LedgerUnavailable(
                f"the ledger {self._path} is closed. Nothing was written. Open it again."
            )

    def _check_same_file(self) -> None:
        # Whoever writes to a file that was moved away, or replaced by a backup, spends from a
        # budget that nobody else sees.
        if files.identity(self._path) != self._identity:
            raise LedgerUnavailable(
                f"the ledger {self._path} was moved or replaced while it was open. Nothing was "
                "written. Open it again."
            )


def _version(connection: SqliteConnection, path: Path, *, read_only: bool) -> int:
    """Return the version of the tables, 0 where there are none, unless this is no ledger."""
    try:
        kinds = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
        if not kinds:
            return 0
        found = None
        if ("table", "meta") in kinds:
            with contextlib.suppress(Exception):  # somebody else's table of that name
                found = connection.execute(VERSION_QUERY).fetchone()
        # After the version, since another process may bring it up to date meanwhile; as bytes,
        # since a damaged text may be none.
        made = connection.execute("SELECT CAST(sql AS BLOB) FROM sqlite_master").fetchall()
    except Exception as error:
        fail(error, path)
    if found is None or any(kind not in ("table", "index") for kind, _ in kinds):
        raise LedgerUnavailable(
            f"the file {path} is a database, but not one that a ledger wrote. Nothing was "
            "changed. Give the path of a ledger, or of a file that does not exist yet."
        )
    version = check_version(str(found[0]), read_only=read_only)
    if not {(one.encode(),) for one in definitions("sqlite", version=version)} <= set(made):
        raise LedgerUnavailable(
            f"the tables of the ledger {path} are not as this program made them, so the file was "
            "damaged or altered. Nothing was changed. Restore it from a backup."
        )
    return version


def _close(connection: SqliteConnection) -> None:
    # Closing only tidies up; what it could report was reported when it mattered.
    with contextlib.suppress(Exception):
        connection.close()
