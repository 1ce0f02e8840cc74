"""Randomised reports in one SQLite file, with nothing of who sent them or when.

A report is stored under its token, which its device drew by chance. So rows are read in an order
that tells nothing (SQLite's log and its pages may still show which came later), and a report that
comes twice has its place taken. What a transaction adds and what it counts are one commit, which is
on the disk before it returns (``synchronous=FULL``).
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, final

from discreet._json import read_json
from discreet.errors import DataError, LedgerUnavailable, ParameterError

__all__ = ["REJECTS", "Kept", "ReportFile"]

REJECTS: Final = ("malformed", "foreign", "out_of_range", "replayed")
_TABLES: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE reports (token BLOB PRIMARY KEY, payload BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE counts (what TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE charges (period TEXT PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE publications"
    " (number INTEGER PRIMARY KEY, n INTEGER NOT NULL, document BLOB NOT NULL, entries TEXT)",
)
_PATIENCE: Final = 30.0  # seconds that another process may keep the file locked
_AT_ONCE: Final = 100_000  # rows
_CACHE: Final = -131_072  # KiB of pages in memory: tokens fall anywhere


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A publication as the file has it; ``entries`` once the ledger has it, too."""

    number: int
    n: int
    document: bytes
    entries: tuple[str, ...] | None


@final
class ReportFile:
    """Keep one collection. Threads and processes may use it together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection = self._connect()
        try:
            with _told(path):
                if self._connection.execute("PRAGMA user_version").fetchone() != (1,):
                    raise DataError(f"{path} is no collection. Name the file that was made for it.")
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def create(cls, path: Path, terms: str) -> "ReportFile":
        """Make a new file, whole or not at all, that nobody but its owner may open."""
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            os.close(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            with _told(path), closing(sqlite3.connect(beside, isolation_level=None)) as made:
                made.execute("BEGIN")
                for statement in _TABLES:
                    made.execute(statement)
                made.execute("INSERT INTO facts VALUES ('terms', ?)", (terms,))
                zeros = [(what,) for what in ("accepted", *REJECTS)]
                made.executemany("INSERT INTO counts VALUES (?, 0)", zeros)
                made.execute("PRAGMA user_version=1")
                made.execute("COMMIT")
                made.execute("PRAGMA journal_mode=WAL")  # which the file remembers
            os.link(beside, path)  # fails where somebody was faster
            _sync(path.parent)
        except FileExistsError:
            raise ParameterError(f"{path} exists already.", parameter="path") from None
        except OSError as error:
            raise _unavailable(path, error.strerror or "no file") from None
        finally:
            beside.unlink(missing_ok=True)
        return cls(path)

    @property
    def terms(self) -> str:
        """The terms, as they were written."""
        (found,) = self._read("SELECT value FROM facts WHERE name = 'terms'")
        return str(found[0])

    @property
    def counts(self) -> dict[str, int]:
        """How many reports are stored, and how many came and were not, for each reason."""
        found = dict(self._read("SELECT what, n FROM counts"))
        return {what: int(found[what]) for what in ("accepted", *REJECTS)}

    def add(
        self, reports: Iterable[tuple[bytes, bytes]], *, rejects: Mapping[str, int]
    ) -> dict[str, int]:
        """Store tokens and payloads, durably, and count; return what was counted.

        A token that is there already is that of a replay: it is counted, and the first one stays.
        """
        rows = sorted(reports)  # neighbours in the tree come one after the other
        with self._writing() as connection:
            stored = connection.executemany("INSERT OR IGNORE INTO reports VALUES (?, ?)", rows)
            fresh = max(0, stored.rowcount)
            counted = {"accepted": fresh, **rejects}
            counted["replayed"] += len(rows) - fresh
            connection.executemany(
                "UPDATE counts SET n = n + ? WHERE what = ?",
                [(n, what) for what, n in counted.items() if n],
            )
        return counted

    def payloads(self) -> tuple[int, bytes]:
        """Return how many reports there are, and their payloads one after the other."""
        parts: list[bytes] = []
        with _told(self.path), closing(self._connect()) as connection:
            found = connection.execute("SELECT payload FROM reports")
            n = 0
            while rows := found.fetchmany(_AT_ONCE):
                n += len(rows)
                parts.append(b"".join(map(itemgetter(0), rows)))
        return n, b"".join(parts)

    @property
    def charges(self) -> dict[str, str]:
        """The ledger's entries that paid, by the period they paid for."""
        return dict(self._read("SELECT period, entry FROM charges ORDER BY period"))

    def add_charge(self, period: str, entry: str) -> None:
        """Remember an entry that paid."""
        with self._writing() as connection:
            connection.execute("INSERT OR IGNORE INTO charges VALUES (?, ?)", (period, entry))

    @property
    def last_publication(self) -> Kept | None:
        """What was published last, if something was."""
        sql = "SELECT number, n, document, entries FROM publications ORDER BY number DESC LIMIT 1"
        for number, n, document, entries in self._read(sql):
            told = None if entries is None else tuple(read_json(entries))
            return Kept(number=number, n=n, document=document, entries=told)
        return None

    def add_publication(self, number: int, *, n: int, document: bytes) -> None:
        """Remember what is going to be published, unless somebody was faster with another."""
        with self._writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO publications VALUES (?, ?, ?, NULL)", (number, n, document)
            )

    def settle_publication(self, number: int, entries: str) -> None:
        """Remember the ledger's entries of a publication."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE publications SET entries = ? WHERE number = ?", (entries, number)
            )

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _read(self, sql: str) -> list[tuple[Any, ...]]:
        with self._lock, _told(self.path):
            return self._connection.execute(sql).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _told(self.path):
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        with _told(self.path):
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",  # one that is gone must not come back
                uri=True,
                timeout=_PATIENCE,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(f"PRAGMA cache_size={_CACHE}")
            except BaseException:
                connection.close()
                raise
            return connection


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        # What SQLite says names tables and columns, never values.
        raise _unavailable(path, str(error)) from None


def _unavailable(path: Path, reason: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"the collection in {path} did not answer ({reason}). Nothing was stored. Check that the "
        "file is there, has room and may be written, then try again."
    )


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # or a power cut could take the name of the new file away
    finally:
        os.close(handle)
