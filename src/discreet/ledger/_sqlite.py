"""A store in one SQLite file, for any number of threads and processes of one machine.

The write-ahead log is synced at every commit (``synchronous=FULL``), so what ``combine`` returned
is on the disk. Readers look at a snapshot and neither wait for writers nor hold them up. Writers
of all processes share their commits through the mailbox beside the file.
"""

import contextlib
import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import Any, NoReturn, Protocol, final

from discreet.errors import LedgerUnavailable
from discreet.ledger._mailbox import Mailbox
from discreet.ledger._schema import VERSION, VERSION_QUERY, check_version, migrations
from discreet.ledger._store import Head, Row, Snapshot, Work

__all__ = ["SqliteStore"]

PATIENCE = 60.0  # seconds that another program may keep the database locked
IDLE_READERS = 8  # connections kept for the next reader
PAGE = 500  # rows fetched at a time when going through many
SMALLEST = 512  # bytes of a database; SQLite takes a shorter file for an empty one
MOST_NAMES = 512  # in one question; older SQLite takes 999 parameters at most

_ROW = "SELECT idx, account, key, body, hashes FROM entries "
_UPSERT_FACT = (
    "INSERT INTO facts (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_HEAD = "SELECT size, time, last, frontier, note FROM head"
_PUT_HEAD = (
    "INSERT OR REPLACE INTO head (one, size, time, last, frontier, note) VALUES (1, ?, ?, ?, ?, ?)"
)


class Cursor(Protocol):
    """What is used of a cursor."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What is used of a connection; those of ``sqlite3`` and of ``apsw`` have it."""

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any: ...
    def close(self) -> None: ...


Connect = Callable[[str], Connection]


def _connect(uri: str) -> Connection:
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


# Errors: what happened, whether anything was written, what to do.

_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL = 5, 6, 8, 10, 11, 13
_CANTOPEN, _PROTOCOL, _NOTADB = 14, 15, 26
_ADVICE = {
    1: "is not as this program left it ({error}). Restore it from a backup",
    3: "may not be opened. Ask its owner for permission",
    _BUSY: "was kept locked by another program for too long. Close that program and try again",
    _READONLY: "may only be read. Make the file and its folder writable, or open it read_only",
    _IOERR: "could not be read or written ({error}). Check the disk, then try again",
    _CORRUPT: "is damaged ({error}). Restore it from a backup and verify it",
    _FULL: "has no room left. Free some space on its disk and try again",
    _CANTOPEN: "could not be opened. Check that the path is a file, and that it and its folder "
    "may be read and written",
    _NOTADB: "is not a database. Give the path of a ledger, or of a file that does not exist yet",
}
_ADVICE |= {_LOCKED: _ADVICE[_BUSY], _PROTOCOL: _ADVICE[_BUSY], 23: _ADVICE[3]}
# After these a connection may remember what is no longer so.
_DISTRUSTED = {_IOERR, _CORRUPT, _CANTOPEN, _NOTADB}


# A file system written in Python for apsw raises these by name, without a number.
_BY_NAME = {"IOError": _IOERR, "FullError": _FULL, "ReadOnlyError": _READONLY, "BusyError": _BUSY}


def _code(error: BaseException) -> int | None:
    """Return the primary result code of a database error, of either library."""
    code = getattr(error, "sqlite_errorcode", None)  # sqlite3
    if type(error).__module__ == "apsw":
        code = getattr(error, "result", _BY_NAME.get(type(error).__name__))
    return code & 0xFF if isinstance(code, int) else None


def _explained(error: Exception, path: Path, *, may_be_recorded: bool = False) -> Exception:
    """Return the error that a user should see: the same one, if the database is not at fault."""
    advice = _ADVICE.get(_code(error) or 0)
    if advice is None:
        return error
    outcome = (
        "Whether the last step was written is not known; ask again with the same key"
        if may_be_recorded
        else "Nothing was written"
    )
    # What SQLite says of these errors names tables and files, never values.
    return LedgerUnavailable(
        f"the ledger {path} {advice.format(error=error)}. {outcome}.",
        may_be_recorded=may_be_recorded,
    )


def _fail(error: Exception, path: Path) -> NoReturn:
    explained = _explained(error, path)
    if explained is error:
        raise error
    raise explained from error


class _View:
    """One consistent view through one connection."""

    def __init__(self, connection: Connection, path: Path) -> None:
        self._connection: Connection | None = connection
        self._path = path

    def _end(self) -> None:
        self._connection = None

    @property
    def _db(self) -> Connection:
        if self._connection is None:
            raise LedgerUnavailable(
                "this view of the ledger is closed. Use it inside its with block."
            )
        return self._connection

    def _all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(sql, parameters).fetchall()
        except Exception as error:
            _fail(error, self._path)

    def head(self) -> Head | None:
        found = self._all(_HEAD)
        if not found:
            return None
        size, time, last, frontier, note = found[0]
        return Head(size=size, time=time, last=last, frontier=frontier, note=note)

    def facts(self, names: Sequence[str], /) -> dict[str, str]:
        return dict(self._among("SELECT name, value FROM facts WHERE name IN ", names))

    def facts_under(self, prefix: str, /) -> Iterator[tuple[str, str]]:
        # Page by page, each from where the last one ended: an iterator that is left half way
        # keeps no statement open, and the facts may change meanwhile.
        sql = "SELECT name, value FROM facts WHERE name {} ? ORDER BY name LIMIT ?"
        page = self._all(sql.format(">="), (prefix, PAGE))
        while page:
            for name, value in page:
                if not name.startswith(prefix):
                    return
                yield name, value
            page = self._all(sql.format(">"), (page[-1][0], PAGE))

    def rows(self, start: int, stop: int, /, *, account: str | None = None) -> Iterator[Row]:
        which = "" if account is None else "account = ? AND "
        sql = f"{_ROW}WHERE {which}idx >= ? AND idx < ? ORDER BY idx LIMIT ?"
        first: tuple[str, ...] = () if account is None else (account,)
        while page := self._all(sql, (*first, start, stop, PAGE)):
            yield from starmap(Row, page)
            start = page[-1][0] + 1

    def row(self, index: int, /) -> Row | None:
        found = self._all(f"{_ROW}WHERE idx = ?", (index,))
        return Row(*found[0]) if found else None

    def by_keys(self, keys: Sequence[str], /) -> dict[str, Row]:
        return {found[2]: Row(*found) for found in self._among(f"{_ROW}WHERE key IN ", keys)}

    def answer(self, index: int, /) -> bytes | None:
        found = self._all("SELECT body FROM answers WHERE idx = ?", (index,))
        return found[0][0] if found else None

    def answers(self) -> Iterator[tuple[int, bytes]]:
        last = -1
        sql = "SELECT idx, body FROM answers WHERE idx > ? ORDER BY idx LIMIT 16"
        while page := self._all(sql, (last,)):
            yield from page
            last = page[-1][0]

    def _among(self, sql: str, names: Sequence[str]) -> Iterator[Any]:
        """Go through the rows that are ``IN`` names, asking for at most so many at once."""
        for start in range(0, len(names), MOST_NAMES):
            some = tuple(names[start : start + MOST_NAMES])
            # Filled up to a power of two, so that SQLite has few different statements to prepare.
            room = 1 << (len(some) - 1).bit_length()
            some += some[-1:] * (room - len(some))
            yield from self._all(f"{sql}({','.join('?' * room)})", some)


class _Changes(_View):
    """A view that also writes."""

    put: Head | None = None

    def append(self, rows: Sequence[Row], /) -> None:
        sql = "INSERT INTO entries (idx, account, key, body, hashes) VALUES (?, ?, ?, ?, ?)"
        self._each(sql, rows)

    def put_facts(self, facts: Mapping[str, str | None], /) -> None:
        self._each(_UPSERT_FACT, [item for item in facts.items() if item[1] is not None])
        gone = [(name,) for name, value in facts.items() if value is None]
        if gone:
            self._each("DELETE FROM facts WHERE name = ?", gone)

    def put_head(self, head: Head, /) -> None:
        self.put = head
        self._each(_PUT_HEAD, [(head.size, head.time, head.last, head.frontier, head.note)])

    def put_answers(self, answers: Iterable[tuple[int, bytes]], /) -> None:
        self._each("INSERT OR REPLACE INTO answers (idx, body) VALUES (?, ?)", answers)

    def _each(self, sql: str, parameters: Iterable[Any]) -> None:
        try:
            self._db.executemany(sql, parameters)
        except Exception as error:
            _fail(error, self._path)


# Stores that a fork would leave with connections of their parent.
_open_stores: "weakref.WeakSet[SqliteStore]" = weakref.WeakSet()


def _abandon(connection: Connection) -> None:
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
    >>> store.combine([b"x"], lambda tx, requests: tx.put_facts({"a": "1"}) or [b"done"])
    [b'done']
    >>> with store.read() as view:
    ...     view.facts(["a", "b"])
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
        self._connect = _connect if connect is None else connect
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
        self._writer: Connection | None = None
        self._idle: list[Connection] = []

    # The protocol

    def combine(self, requests: Sequence[bytes], work: Work, /) -> list[bytes]:
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
            return self._mailbox.combine(requests, lambda batch: self._transact(batch, work))

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a consistent view. Any thread may, at any time."""
        if self._pid != os.getpid():
            self._forget_parent()
        self._check_open()
        self._check_same_file()
        stamp = self._stamp() if self._is_frozen else None
        connection = self._borrow()
        view = _View(connection, self._path)
        is_sound = False
        try:
            view._all("BEGIN")
            view.head()  # the first look fixes the view
            yield view
            if stamp is not None and self._stamp() != stamp:
                raise LedgerUnavailable(
                    f"the ledger {self._path} was written by somebody else while it was being "
                    "read without a lock. Read it again from a folder you may write, or copy it."
                )
            is_sound = not self._is_frozen
        except BaseException as error:
            is_sound = not isinstance(error, LedgerUnavailable)
            raise
        finally:
            view._end()
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

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the ledger, as it is at this moment, into a new file.

        Others may go on writing meanwhile. The copy is on the disk when this returns, and is
        removed again if it fails.
        """
        path = Path(target).absolute()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise LedgerUnavailable(
                f"the backup {path} could not be made ({error.strerror}). "
                "Give the path of a file that does not exist yet, in a folder you may write."
            ) from error
        try:
            with self.read() as view:
                source = view._db if isinstance(view, _View) else None
                if not isinstance(source, sqlite3.Connection):
                    raise TypeError("a backup needs the connections of sqlite3")
                copy = sqlite3.connect(path.as_uri(), uri=True, isolation_level=None)
                try:
                    copy.execute("PRAGMA synchronous=FULL")
                    source.backup(copy)
                except sqlite3.Error as error:
                    _fail(error, path)
                finally:
                    copy.close()
            _sync(path)
            _sync(path.parent)
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise

    # Writing

    def _transact(self, requests: Sequence[bytes], work: Work) -> list[bytes]:
        """Carry out requests in one transaction; if anything fails, nothing is written."""
        self._check_same_file()
        connection = self._writer or self._open_writer()
        changes = _Changes(connection, self._path)
        is_committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            answers = work(changes, requests)
            if len(answers) != len(requests):
                raise RuntimeError(f"{len(requests)} requests got {len(answers)} answers")
            is_committing = True
            connection.execute("COMMIT")
        except BaseException as error:
            changes._end()
            self._roll_back(connection)
            if not isinstance(error, Exception):
                raise
            if is_committing and _code(error) not in (_FULL, _BUSY, _READONLY):
                raise self._after_failed_commit(error, changes.put) from error
            if _code(error.__cause__ or error) in _DISTRUSTED:
                self._drop_writer()
            _fail(error, self._path)
        changes._end()
        return answers

    def _roll_back(self, connection: Connection) -> None:
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
            if put is not None and _View(connection, self._path).head() != put:
                (number,) = connection.execute("PRAGMA user_version").fetchone()
                connection.execute(f"PRAGMA user_version = {(number + 1) % 1_000_000}")
                may_be_recorded = False
        return _explained(error, self._path, may_be_recorded=may_be_recorded)

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
        found = self._found_version() if is_there else 0
        if not found and is_there and 0 < self._stamp()[1] < SMALLEST:
            raise LedgerUnavailable(f"the file {self._path} {_ADVICE[_NOTADB]}.")
        if not found and not create:
            raise LedgerUnavailable(f"the file {self._path} is empty. It is not a ledger.")
        if not self._read_only:
            self._mailbox = self._open_mailbox(create=create)
            if found < VERSION:
                self._migrate()
        self._identity = self._identify()

    def _found_version(self) -> int:
        connection = self._open_connection("ro")
        try:
            return _version(connection, self._path, read_only=self._read_only)
        except LedgerUnavailable as error:
            # On a read-only medium the files that coordinate readers and writers cannot be made.
            # There are no writers either, unless they have a log.
            was_refused = _code(error.__cause__ or error) in (_CANTOPEN, _READONLY)
            if self._is_frozen or not (was_refused and self._read_only) or self._stamp()[2]:
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
                _fail(error, self._path)
            finally:
                _close(connection)
            _sync(self._path.parent)

    def _open_mailbox(self, *, create: bool = False) -> Mailbox:
        try:
            if create:
                self._path.touch()  # the files beside it take after it
            return Mailbox(self._path)
        except OSError as error:
            raise LedgerUnavailable(
                f"the ledger {self._path} cannot be written ({error.strerror}). Nothing was "
                "written. Make the file and its folder writable, or open it read_only."
            ) from error

    def _open_connection(self, mode: str) -> Connection:
        try:
            frozen = "&immutable=1" if self._is_frozen else ""
            connection = self._connect(f"{self._path.as_uri()}?mode={mode}{frozen}")
            connection.execute(f"PRAGMA busy_timeout={int(PATIENCE * 1000)}")
        except Exception as error:
            _fail(error, self._path)
        return connection

    def _open_writer(self) -> Connection:
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
            _fail(error, self._path)
        self._writer = connection
        return connection

    def _borrow(self) -> Connection:
        with self._pooling:
            if self._idle:
                return self._idle.pop()
        connection = self._open_connection("ro" if self._read_only else "rw")
        connection.execute("PRAGMA query_only=1")
        connection.execute("PRAGMA cache_size=-16384")
        return connection

    def _give_back(self, connection: Connection, *, is_sound: bool) -> None:
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

    def _identify(self) -> tuple[int, int]:
        try:
            found = os.stat(self._path)
        except OSError:
            return (0, 0)
        return (found.st_dev, found.st_ino)

    def _stamp(self) -> tuple[int, int, int]:
        """Return what changes when somebody writes: time and size of the file, size of the log."""
        found = os.stat(self._path)
        try:
            log = os.stat(f"{self._path}-wal").st_size
        except OSError:
            log = 0
        return found.st_mtime_ns, found.st_size, log

    def _check_same_file(self) -> None:
        # Whoever writes to a file that was moved away, or replaced by a backup, spends from a
        # budget that nobody else sees.
        if self._identify() != self._identity:
            raise LedgerUnavailable(
                f"the ledger {self._path} was moved or replaced while it was open. Nothing was "
                "written. Open it again."
            )


def _version(connection: Connection, path: Path, *, read_only: bool) -> int:
    """Return the version of the tables, 0 where there are none, unless this is no ledger."""
    try:
        kinds = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
        if not kinds:
            return 0
        found = None
        if ("table", "meta") in kinds:
            with contextlib.suppress(Exception):  # somebody else's table of that name
                found = connection.execute(VERSION_QUERY).fetchone()
    except Exception as error:
        _fail(error, path)
    if found is None or any(kind not in ("table", "index") for kind, _ in kinds):
        raise LedgerUnavailable(
            f"the file {path} is a database, but not one that a ledger wrote. Nothing was "
            "changed. Give the path of a ledger, or of a file that does not exist yet."
        )
    return check_version(str(found[0]), read_only=read_only)


def _close(connection: Connection) -> None:
    # Closing only tidies up; what it could report was reported when it mattered.
    with contextlib.suppress(Exception):
        connection.close()


def _sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    with contextlib.suppress(PermissionError):  # folders of Windows cannot be opened
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
