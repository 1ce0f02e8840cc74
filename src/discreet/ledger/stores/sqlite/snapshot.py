"""Read and write the tables of a ledger through one connection to SQLite."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import LedgerUnavailable, TamperingFound
from discreet.ledger.stores.protocol import Head, Row
from discreet.ledger.stores.sqlite.errors import fail

__all__ = ["SqliteConnection", "SqliteSnapshot", "SqliteTransaction"]

PAGE = 500  # rows fetched at a time when going through many
MOST_ROWS = 128  # in one statement
MOST_NAMES = 512  # in one question; older SQLite takes 999 parameters at most
_INDEX = "SELECT idx FROM entries "
_ROW = "SELECT idx, account, key, body, hashes FROM entries "
_INSERT = "INSERT INTO entries (idx, account, key, body, hashes) VALUES "
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


class SqliteConnection(Protocol):
    """What is used of a connection; those of ``sqlite3`` and of ``apsw`` have it."""

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any: ...
    def close(self) -> None: ...


_as_row = functools.partial(tuple.__new__, Row)  # as Row(*found), without a detour


class SqliteSnapshot:
    """One consistent snapshot through one connection."""

    def __init__(self, connection: SqliteConnection, path: Path) -> None:
        self._connection: SqliteConnection | None = connection
        self._path = path

    def _end(self) -> None:
        self._connection = None

    @property
    def _db(self) -> SqliteConnection:
        if self._connection is None:
            raise LedgerUnavailable(
                "this view of the ledger is closed. Use it inside its with block."
            )
        return self._connection

    def _all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(sql, parameters).fetchall()
        except Exception as error:
            if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
                raise TamperingFound("a stored text is not one any more.") from None
            fail(error, self._path)

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
        where = f"WHERE {which}idx >= ? AND idx < ? ORDER BY idx"
        first: tuple[str, ...] = () if account is None else (account,)
        limit = PAGE
        while True:
            bounds = (*first, start, stop)
            try:
                page = self._all(f"{_ROW}{where} LIMIT ?", (*bounds, limit))
            except TamperingFound as error:
                if limit == 1:
                    ((index,),) = self._all(f"{_INDEX}{where} LIMIT 1", bounds)
                    raise TamperingFound(f"entry {index}: {error}", entry=index) from error
                limit = 1  # one by one now, to find out which of them it is
                continue
            if not page:
                return
            yield from map(_as_row, page)
            start = page[-1][0] + 1

    def last_rows(self, stop: int, count: int, /, *, account: str | None = None) -> list[Row]:
        which = "" if account is None else "account = ? AND "
        sql = f"{_ROW}WHERE {which}idx < ? ORDER BY idx DESC LIMIT ?"
        first = () if account is None else (account,)
        found = self._all(sql, (*first, stop, min(count, stop)))
        return [_as_row(one) for one in reversed(found)]

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

    def counts(self) -> tuple[int, int]:
        sql = "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM answers)"
        entries, answers = self._all(sql)[0]
        return entries, answers

    def check(self) -> None:
        # An index that lacks a key would let a request be carried out twice.
        ((said,),) = self._all("PRAGMA integrity_check(1)")
        if said != "ok":
            raise TamperingFound(f"the file contradicts itself: {said}.")

    def _among(self, sql: str, names: Sequence[str]) -> Iterator[Any]:
        """Go through the rows that are ``IN`` names, asking for at most so many at once."""
        for start in range(0, len(names), MOST_NAMES):
            some = tuple(names[start : start + MOST_NAMES])
            # Filled up to a power of two, so that SQLite has few different statements to prepare.
            room = 1 << (len(some) - 1).bit_length()
            some += some[-1:] * (room - len(some))
            yield from self._all(f"{sql}({','.join('?' * room)})", some)


class SqliteTransaction(SqliteSnapshot):
    """A snapshot that also writes."""

    put: Head | None = None

    def append(self, rows: Sequence[Row], /) -> None:
        # Many rows in one statement: at every step SQLite lets other threads run, and getting back
        # in costs more than the row. In powers of two, so that few statements must be prepared.
        start = 0
        while start < len(rows):
            count = min(1 << (len(rows) - start).bit_length() - 1, MOST_ROWS)
            values = ",".join(["(?,?,?,?,?)"] * count)
            some = rows[start : start + count]
            self._each(f"{_INSERT}{values}", [tuple(chain.from_iterable(some))])
            start += count

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
            fail(error, self._path)
