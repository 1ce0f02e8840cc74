"""A store in a PostgreSQL database, for any number of threads, processes and hosts.

A commit waits for the disk of the server, and costs the same for one charge as for thirty. So
clients that wait for each other share commits. Who holds an advisory lock may write. Who finds it
taken posts its requests into the table ``mailbox``, which is unlogged, so that posting waits for
no disk, and queues up for the lock. The holder carries out its own requests and all posted ones in
one transaction, which also writes the answers. Who gets the lock and finds its answer passes the
lock on at once, within the server; who finds none carries out the next batch. This is flat
combining [HIST10] with a lock that the server takes back from the dead.

The mailbox is not needed for correctness: a request that is carried out twice is recognised by its
key. After a crash of the server it is empty, and all that was acknowledged is in the other tables.

Locks and prepared statements belong to a session, so a connection pooler between the ledger and
the server must pool sessions, not transactions.
"""

import contextlib
import os
import secrets
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from typing import NoReturn, final

from discreet.errors import LedgerError, LedgerUnavailable, PrivacyWarning
from discreet.ledger.stores.packing import join, split
from discreet.ledger.stores.postgres import statements as sql
from discreet.ledger.stores.postgres.address import Address, split_schema
from discreet.ledger.stores.postgres.errors import (
    ADVICE,
    LOCK_NOT_AVAILABLE,
    NO_PRIVILEGE,
    READ_ONLY,
    ConnectionLost,
    ServerError,
    explained,
    unavailable,
)
from discreet.ledger.stores.postgres.posts import Post, replies, some
from discreet.ledger.stores.postgres.snapshot import (
    PostgresSnapshot,
    PostgresTransaction,
    head_of,
)
from discreet.ledger.stores.postgres.values import number, text, texts
from discreet.ledger.stores.postgres.wire import BoundStatement, Session, Statement
from discreet.ledger.stores.protocol import Head, Snapshot, Work
from discreet.ledger.stores.schema import VERSION, VERSION_QUERY, check_version, migrations

__all__ = ["PostgresStore"]

PATIENCE = 30.0  # seconds to wait for a server that went away
IDLE_READERS = 4  # connections kept for the next reader
MOST_POSTS = 256  # looked at by one leader
LARGEST_POST = 64 * 1024  # bytes; larger batches have enough in them to pay for a commit
MOST_HOT = 200  # facts fetched along with the head because they were asked for lately


@final
class PostgresStore:
    """Keep a ledger in one schema of a PostgreSQL database.

    ``create`` makes the tables where there are none. The schema is ``discreet_ledger``, or the
    one that the address names: ``postgresql://host/database?schema=name``. A ledger that is only
    read may lie on a standby server.

    >>> PostgresStore("postgresql://ana:secret@localhost/db?schema=Drop", create=False)
    Traceback (most recent call last):
    discreet.errors.ParameterError: a schema is named by small letters, digits and _, at most 63, \
and begins with a letter, but not with pg_.
    """

    def __init__(self, url: str, *, create: bool, read_only: bool = False) -> None:
        url, self._schema = split_schema(url)
        self._address = Address(url)
        self._read_only = read_only
        # Locks are numbers, one space per database.
        self._key = sha256(f"discreet ledger {self._schema}".encode()).digest()[:8]
        self._is_closed = False
        self._has_warned = False
        self._hot: list[str] = []  # facts that the last batch asked for
        self._reset()
        try:
            self._check_tables(create=create)
        except ConnectionLost as lost:
            raise self._went_away(lost) from None
        except ServerError as refused:
            raise explained(refused, self._where) from None

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._writing = threading.Lock()
        self._pooling = threading.Lock()
        self._writer: Session | None = None
        self._idle: list[Session] = []

    @property
    def _where(self) -> str:
        return f"schema {self._schema} of database {self._address}"

    # The protocol

    def commit_together(self, requests: Sequence[bytes], work: Work, /) -> list[bytes]:
        """Carry out requests in one durable transaction, with those other clients wait for."""
        self._leave_parent()
        with self._writing:
            self._check_open()
            if self._read_only:
                raise unavailable(
                    "it was opened to be read only. Open it for writing.", self._where
                )
            if not requests:
                return []
            return self._insist(list(requests), work)

    @contextmanager
    def read(self) -> Iterator[Snapshot]:
        """Open a consistent snapshot. Any thread may, at any time."""
        self._leave_parent()
        self._check_open()
        session, head = self._borrow()
        snapshot = PostgresSnapshot(session, self._where, head)
        try:
            yield snapshot
        finally:
            snapshot._end()
            self._give_back(session)

    def backup(self, path: str | os.PathLike[str], /) -> NoReturn:
        """Refuse: a server has its own way."""
        raise LedgerError("back up a server's database with pg_dump, or export the ledger.")

    def close(self) -> None:
        """Let go of everything. Calling it twice does no harm."""
        self._leave_parent()
        with self._writing:
            self._is_closed = True
            with self._pooling:
                sessions, self._idle = self._idle, []
            for session in sessions:
                session.close()
            if self._writer is not None:
                with contextlib.suppress(ConnectionLost, ServerError):
                    self._writer.ask((sql.LEAVE, ()))
                self._writer.close()
                self._writer = None

    # Writing

    def _insist(self, requests: list[bytes], work: Work) -> list[bytes]:
        """Combine; where the connection breaks, find the server again and ask again."""
        patience, may_be_recorded = _Patience(), False
        while True:
            try:
                if self._writer is None:
                    self._writer = self._connect()
                return self._commit_together(self._writer, requests, work)
            except ConnectionLost as lost:
                # Perhaps the commit came through and only its answer was lost. The requests carry
                # keys, so the next attempt finds out.
                may_be_recorded |= lost.sent
                if not patience.wait():
                    raise self._went_away(lost, may_be_recorded=may_be_recorded) from None
            except ServerError as refused:
                raise explained(refused, self._where) from None
            except BaseException as error:
                if self._writer is not None and not isinstance(error, Exception):
                    self._writer.close()  # wherever Ctrl-C struck, the lock is free now
                raise
            finally:
                if self._writer is not None and not self._writer.is_usable:
                    self._writer = None

    def _commit_together(self, session: Session, requests: list[bytes], work: Work) -> list[bytes]:
        """Return the answers that somebody else gave, or give them."""
        post, key = join(requests), self._key
        ticket = number(secrets.randbits(62))
        try:
            if len(post) > LARGEST_POST:
                session.ask((sql.LOCK, [key]))
                return self._lead(session, requests, work, has_posted=False)
            ((has_posted, answer),) = session.ask((sql.TURN, [key, ticket, post]))[0]
            if answer is not None:
                answers = split(answer) or []
                # Whoever can write the table can write anything: seals tell, numbers must fit.
                return (answers + [b""] * len(requests))[: len(requests)]
            return self._lead(session, requests, work, has_posted=has_posted)
        except ServerError as refused:
            if refused.code != LOCK_NOT_AVAILABLE:
                raise
            raise self._locked_out(session, may_be_recorded=len(post) <= LARGEST_POST) from None

    def _lead(
        self, session: Session, requests: list[bytes], work: Work, *, has_posted: bool
    ) -> list[bytes]:
        """Carry out a batch: we hold the lock. If it fails, try again without what others want."""
        own: list[BoundStatement] = [(sql.WITHDRAW, ())] if has_posted else []
        try:
            heads, found, hot = session.ask(
                (sql.HEAD, ()), (sql.POSTED, [number(MOST_POSTS)]), (sql.FACTS, [texts(self._hot)])
            )
            state = head_of(heads), {**dict.fromkeys(self._hot), **dict(hot)}
            posts = some([Post(slot, ticket, split(post) or []) for slot, ticket, post in found])
            try:
                return self._carry_out(session, state, requests, posts, work, own)
            except ConnectionLost:
                raise
            except Exception:
                if not posts:
                    raise
            # What cannot be done together is left to whom it belongs, and taken off the table,
            # so that it does not spoil the next batch as well.
            declined = replies((post, None) for post in posts)
            return self._carry_out(session, state, requests, [], work, [*own, declined])
        except BaseException:
            if session.is_usable:
                with session.closed_on_error():
                    session.ask(*own, (sql.UNLOCK, ()))
            raise

    def _carry_out(
        self,
        session: Session,
        state: tuple[Head | None, Mapping[str, str | None]],
        requests: list[bytes],
        posts: list[Post],
        work: Work,
        closing: list[BoundStatement],
    ) -> list[bytes]:
        """Carry out requests and posts in one transaction, and let go of the lock."""
        transaction = PostgresTransaction(session, self._where, *state)
        batch = [*requests, *(request for post in posts for request in post.requests)]
        try:
            answers = work(transaction, batch)
            if len(answers) != len(batch):
                raise RuntimeError(f"{len(batch)} requests got {len(answers)} answers")
            rest = iter(answers)
            mine = list(islice(rest, len(requests)))
            theirs = [(post, list(islice(rest, len(post.requests)))) for post in posts]
            if theirs:
                closing = [*closing, replies((post, join(each)) for post, each in theirs)]
            transaction.commit(*closing)
        except BaseException:
            transaction.roll_back()
            raise
        self._hot = list(dict.fromkeys(transaction.asked))[:MOST_HOT]
        return mine

    def _locked_out(self, session: Session, *, may_be_recorded: bool) -> LedgerUnavailable:
        with session.closed_on_error():
            _, holders = session.ask((sql.WITHDRAW, ()), (sql.HOLDER, [self._key]))
            who = f"the server process {holders[0][0]}" if holders else "another client"
            return unavailable(
                f"{who} has kept it locked for too long. If that client hangs, end it, or let the "
                "administrator end its connection with pg_terminate_backend.",
                self._where,
                may_be_recorded=may_be_recorded,
            )

    # Reading

    def _borrow(self) -> tuple[Session, Head | None]:
        """Return a session that has begun to read, and where the log ends in its view."""
        patience = _Patience()
        while True:
            try:
                with self._pooling:
                    session = self._idle.pop() if self._idle else None
                if session is None:
                    session = self._connect()
                with session.closed_on_error():
                    _, heads = session.ask((sql.BEGIN_READING, ()), (sql.HEAD, ()))
                return session, head_of(heads)
            except ServerError as refused:
                raise explained(refused, self._where) from None
            except ConnectionLost as lost:
                if not patience.wait():
                    raise self._went_away(lost) from None

    def _give_back(self, session: Session) -> None:
        if session.is_usable:
            with contextlib.suppress(ConnectionLost, ServerError), session.closed_on_error():
                session.ask((sql.ROLLBACK, ()))
        with self._pooling:
            if session.is_usable and len(self._idle) < IDLE_READERS and not self._is_closed:
                self._idle.append(session)
                return
        session.close()

    # Opening

    def _connect(self) -> Session:
        """Open a session, on a server that keeps what it says it keeps."""
        session = self._address.connect(sql.SETTINGS | {"search_path": self._schema})
        with session.closed_on_error():
            ((is_standby, is_read_only, is_synced, encoding, _),) = session.ask((sql.SERVER, ()))[0]
            if encoding != "UTF8":
                raise unavailable(
                    f"the database has the encoding {encoding}. Make one with ENCODING 'UTF8'.",
                    self._where,
                )
            if not self._read_only:
                if is_standby or is_read_only:
                    raise unavailable(ADVICE[READ_ONLY], self._where)
                if not is_synced and not self._has_warned:
                    self._has_warned = True
                    warnings.warn(
                        f"the server of {self._address} has fsync off: after a power cut charges "
                        "may be missing from the ledger, and what they paid for could be spent "
                        "again. Set fsync = on in postgresql.conf.",
                        PrivacyWarning,
                        stacklevel=2,
                    )
        return session

    def _check_tables(self, *, create: bool) -> None:
        """Make sure that there are tables of the right version."""
        session = self._connect()
        with session.closed_on_error():
            found = self._version(session)
            if not found and (self._read_only or not create):
                raise LedgerUnavailable(
                    f"there is no ledger in {self._where}. Make one with: discreet ledger init"
                )
            if found < VERSION:
                self._migrate(session)
            if self._read_only:
                self._idle.append(session)
            else:
                session.ask((sql.SWEEP, ()))
                self._writer = session

    def _version(self, session: Session) -> int:
        may_look = session.ask((sql.HAS_TABLES, [text(self._schema)]))[0]
        if not may_look:
            return 0
        if not may_look[0][0]:
            raise unavailable(ADVICE[NO_PRIVILEGE], self._where)
        found = session.ask((Statement("", VERSION_QUERY), ()))[0]
        return check_version(found[0][0] if found else "", read_only=self._read_only)

    def _migrate(self, session: Session) -> None:
        """Bring the tables up to date in one transaction, while nobody else writes."""
        session.ask((sql.LOCK, [self._key]))
        # A new transaction, for only at its beginning the server hears of tables made meanwhile.
        session.ask((sql.BEGIN, ()))
        found = self._version(session)  # somebody may have been faster
        steps = [step for _, steps in migrations("postgresql", found=found) for step in steps]
        if not session.ask((sql.HAS_SCHEMA, [text(self._schema)]))[0]:
            steps.insert(0, f"CREATE SCHEMA {self._schema}")
        questions: list[BoundStatement] = [(Statement("", step), ()) for step in steps]
        session.ask(*questions, (sql.COMMIT, ()), (sql.UNLOCK, ()))

    # Odds and ends

    def _went_away(
        self, lost: ConnectionLost, *, may_be_recorded: bool = False
    ) -> LedgerUnavailable:
        return unavailable(
            f"the server cannot be reached ({lost.reason}). Check that it runs, and the address, "
            "user and password.",
            self._where,
            may_be_recorded=may_be_recorded,
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise LedgerUnavailable("this ledger is closed. Open it again.")

    def _leave_parent(self) -> None:
        """After a fork: connections and locks that are held belong to the parent."""
        if self._pid != os.getpid():
            for session in (*self._idle, *([self._writer] if self._writer else [])):
                session.close()
            self._reset()


class _Patience:
    """Wait a little longer each time, but not forever."""

    def __init__(self) -> None:
        self._end = time.monotonic() + PATIENCE
        self._pause = 0.0  # a server that was restarted long ago is there at once

    def wait(self) -> bool:
        """Wait before the next attempt; false if there should be none."""
        if time.monotonic() + self._pause > self._end:
            return False
        time.sleep(self._pause)
        self._pause = min(1.0, 2 * self._pause or 0.02)
        return True
