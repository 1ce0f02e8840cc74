"""What a session of PostgreSQL shows of a ledger, and how it changes it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.postgres import statements as sql
from discreet.ledger.stores.postgres.errors import (
    ConnectionLost,
    ServerError,
    explained,
    unavailable,
)
from discreet.ledger.stores.postgres.values import Parameter, number, numbers, text, texts, values
from discreet.ledger.stores.postgres.wire import BoundStatement, Session, Statement
from discreet.ledger.stores.protocol import Head, Row

__all__ = ["PostgresSnapshot", "PostgresTransaction", "head_of"]

PAGE = 500  # rows fetched at a time when going through many


class PostgresSnapshot:
    """One consistent snapshot through one session."""

    def __init__(self, session: Session, where: object, head: Head | None) -> None:
        self._session: Session | None = session
        self._where = where
        self._head = head

    def _end(self) -> None:
        self._session = None

    @property
    def _open(self) -> Session:
        if self._session is None:
            raise LedgerUnavailable(
                "this view of the ledger is closed. Use it inside its with block."
            )
        return self._session

    def _all(self, statement: Statement, *parameters: Parameter) -> list[tuple[Any, ...]]:
        try:
            return self._open.ask((statement, parameters))[0]
        except ServerError as refused:
            raise explained(refused, self._where) from None
        except ConnectionLost as lost:
            raise unavailable(f"the server went away ({lost.reason}).", self._where) from None

    def head(self) -> Head | None:
        self._open  # noqa: B018
        return self._head

    def facts(self, names: Sequence[str], /) -> dict[str, str]:
        return dict(self._all(sql.FACTS, texts(names))) if names else {}

    def facts_under(self, prefix: str, /) -> Iterator[tuple[str, str]]:
        # Page by page, each from where the last one ended: an iterator that is left half way
        # keeps no cursor open, and the facts may change meanwhile.
        page = self._all(sql.FACTS_FROM, text(prefix), number(PAGE))
        while page:
            for name, value in page:
                if not name.startswith(prefix):
                    return
                yield name, value
            page = (
                self._all(sql.FACTS_AFTER, text(page[-1][0]), number(PAGE))
                if len(page) == PAGE
                else []
            )

    def rows(self, start: int, stop: int, /, *, account: str | None = None) -> Iterator[Row]:
        of = () if account is None else (text(account),)
        statement = sql.ROWS if account is None else sql.ROWS_OF
        while page := self._all(statement, number(start), number(stop), number(PAGE), *of):
            yield from starmap(Row, page)
            if len(page) < PAGE:
                return
            start = page[-1][0] + 1

    def last_rows(self, stop: int, count: int, /, *, account: str | None = None) -> list[Row]:
        of = () if account is None else (text(account),)
        statement = sql.LAST_ROWS if account is None else sql.LAST_ROWS_OF
        found = self._all(statement, number(stop), number(min(count, stop)), *of)
        return [Row(*one) for one in reversed(found)]

    def row(self, index: int, /) -> Row | None:
        found = self._all(sql.ROW, number(index))
        return Row(*found[0]) if found else None

    def by_keys(self, keys: Sequence[str], /) -> dict[str, Row]:
        if not keys:
            return {}
        return {found[2]: Row(*found) for found in self._all(sql.BY_KEYS, texts(keys))}

    def answer(self, index: int, /) -> bytes | None:
        found = self._all(sql.ANSWER, number(index))
        return found[0][0] if found else None

    def answers(self) -> Iterator[tuple[int, bytes]]:
        last = -1
        while page := self._all(sql.ANSWERS, number(last)):
            yield from ((index, body) for index, body in page)
            last = page[-1][0]

    def counts(self) -> tuple[int, int]:
        entries, answers = self._all(sql.COUNTS)[0]
        return entries, answers

    def check(self) -> None:
        """A server looks after its own pages: data_checksums, amcheck."""


class PostgresTransaction(PostgresSnapshot):
    """A snapshot that also writes: at the commit, or before it must show what it wrote.

    Nobody else writes while we hold the lock, so what was read before BEGIN still holds after it.
    """

    def __init__(
        self, session: Session, where: object, head: Head | None, facts: Mapping[str, str | None]
    ) -> None:
        super().__init__(session, where, head)
        self._known = dict(facts)
        self._pending: list[BoundStatement] = []
        self._has_begun = False
        self.asked: list[str] = []  # which facts were of interest

    def _all(self, statement: Statement, *parameters: Parameter) -> list[tuple[Any, ...]]:
        if self._pending:
            pending, self._pending = self._pending, []
            self._open.ask(*self._begun(), *pending)
        return self._open.ask((statement, parameters))[0]

    def _begun(self) -> list[BoundStatement]:
        if self._has_begun:
            return []
        self._has_begun = True
        return [(sql.BEGIN, ())]

    def facts(self, names: Sequence[str], /) -> dict[str, str]:
        self.asked += names
        missing = [name for name in names if name not in self._known]
        if missing:
            found = dict(self._open.ask((sql.FACTS, [texts(missing)]))[0])
            self._known.update((name, found.get(name)) for name in missing)
        known = {name: self._known[name] for name in names}
        return {name: value for name, value in known.items() if value is not None}

    def append(self, rows: Sequence[Row], /) -> None:
        if rows:
            index, account, key, body, hashes = zip(*rows, strict=True)
            columns = [numbers(index), texts(account), texts(key), texts(body), values(hashes)]
            self._pending.append((sql.APPEND, columns))

    def put_facts(self, facts: Mapping[str, str | None], /) -> None:
        kept = {name: value for name, value in facts.items() if value is not None}
        gone = [name for name, value in facts.items() if value is None]
        if kept:
            self._pending.append((sql.PUT_FACTS, [texts(kept), texts(kept.values())]))
        if gone:
            self._pending.append((sql.DROP_FACTS, [texts(gone)]))
        self._known |= facts

    def put_head(self, head: Head, /) -> None:
        columns = [number(head.size), text(head.time), head.last, head.frontier, text(head.note)]
        self._pending.append((sql.PUT_HEAD, columns))
        self._head = head

    def put_answers(self, answers: Iterable[tuple[int, bytes]], /) -> None:
        kept = dict(answers)
        if kept:
            self._pending.append((sql.PUT_ANSWERS, [numbers(kept), values(kept.values())]))

    def commit(self, *then: BoundStatement) -> None:
        """Make everything durable, together with what comes ``then``, and let go of the lock."""
        last = [*self._pending, *then]
        if last or self._has_begun:
            last = [*self._begun(), *last, (sql.COMMIT, ())]
        # After an error the server leaves out the rest, so the lock stays ours.
        self._open.ask(*last, (sql.UNLOCK, ()))
        self._end()

    def roll_back(self) -> None:
        """Forget everything that was written."""
        session, self._session = self._session, None
        if session is not None and session.is_usable and self._has_begun:
            with session.closed_on_error():
                session.ask((sql.ROLLBACK, ()))


def head_of(found: list[tuple[Any, ...]]) -> Head | None:
    """Read the row that says where the log ends."""
    for size, clock, last, frontier, note in found:
        return Head(size=size, time=clock, last=last, frontier=frontier, note=note)
    return None
