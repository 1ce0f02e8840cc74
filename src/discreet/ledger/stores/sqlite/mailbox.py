"""Let many processes share one commit: whoever holds the lock also does what the others wait for.

A commit waits for the disk, and costs the same for one charge as for thirty. Threads can hand
their requests to each other; processes that share nothing but a file cannot. So beside the
database lie two more files. Who holds an exclusive ``flock`` on ``<database>-lock`` may write.
Who finds it taken posts its requests into ``<database>-mailbox`` and sleeps; the holder carries
out its own requests and all posted ones in one transaction, posts the answers, unlocks and wakes
everybody. This is flat combining [HIST10], with a lock that the kernel takes back from the dead.

Nothing here is needed for correctness. The database has its own lock, and a request that is
carried out twice is recognised by its key, so a post may be lost, torn, stale, taken by somebody
who then dies, or never made at all (too large, no slot left). A post therefore has a random ticket
and a checksum, and an answer is believed only if it repeats the ticket and its checksum fits. Both
files may be deleted while nobody has the ledger open.
"""

import contextlib
import errno
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, final
from zlib import crc32

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.packing import join, split
from discreet.ledger.stores.sqlite.futex import Sleeper

if sys.platform != "win32":
    import fcntl

__all__ = ["Mailbox", "Transact"]

Transact = Callable[[Sequence[bytes]], list[bytes]]

SLOTS = 64
AREA = 64 * 1024  # bytes for the requests of a slot, and as many for the answers
MOST_REQUESTS = 2_000  # of others in one transaction: a bound on how long one commit keeps all
# How long, in nanoseconds, whoever holds the lock goes on serving others after serving itself.
LONGEST_SERVICE = 5_000_000

# The first page: what the file is; a word that changes whenever sleepers have a reason to look;
# for each slot a byte that its owner changes with every post, a byte that the holder of the lock
# makes equal to it when the post is dealt with, and the owner's pid.
_MAGIC = b"discreet mailbox 1\n"
_TURN, _POSTED, _DONE, _PIDS, _PAGE = 60, 64, 128, 192, 4096
_AREA_HEAD = struct.Struct("<16sII")  # ticket, checksum, length of what follows
_WORD = struct.Struct("<I")


class _Post(NamedTuple):
    slot: int
    number: int
    ticket: bytes
    requests: list[bytes]


@final
class Mailbox:
    """The two files beside a database, for one process and one thread at a time.

    ``like`` is the file whose owner and permissions the new ones get, so that everybody who may
    write the database may also wait for it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "budget.db"
    >>> path.touch()
    >>> box = Mailbox(path)
    >>> box.commit_together([b"one", b"two"], lambda requests: [each.upper() for each in requests])
    [b'ONE', b'TWO']
    >>> box.close()
    """

    def __init__(self, like: Path) -> None:
        self._like = like
        self._pid = os.getpid()
        self._may_hold = False
        self._lock = -1 if sys.platform == "win32" else _open_beside(like, "-lock")
        self._file = -1
        self._page: mmap.mmap | None = None
        self._sleeper: Sleeper | None = None
        self._slot: int | None = None
        self._number = 0  # of the last post
        self._turns = 0
        self._try_again = 0.0

    def commit_together(self, requests: Sequence[bytes], transact: Transact) -> list[bytes]:
        """Return the answers to these requests, given by ``transact`` here or elsewhere.

        ``transact`` carries out any number of requests durably, or raises and leaves nothing.
        """
        if sys.platform == "win32":  # the database's own lock has to do
            return transact(requests)
        is_answered = False
        try:
            if not self._try_lock():
                ticket = self._post(requests)
                answers = self._wait(ticket, len(requests))
                if answers is not None:
                    is_answered = True
                    return answers
            return self._lead(requests, transact)
        finally:
            # Also when Ctrl-C came between getting the lock and knowing it: unlocking what is not
            # locked does nothing. A post that is withdrawn may still be under way elsewhere.
            if not is_answered:
                self._withdraw()
            if self._may_hold:
                self._unlock()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock alone for something that is not a request."""
        if sys.platform == "win32":
            yield
            return
        try:
            self._lock_patiently()
            yield
        finally:
            self._unlock()

    def close(self) -> None:
        """Give the slot back and close both files. After a fork this only closes."""
        if self._slot is not None and self._pid == os.getpid():
            self._withdraw()
            self._store(bytes(4), _PIDS + 4 * self._slot)
        self._slot = None
        self._sleeper = None  # lets go of the page
        if self._page is not None:
            # A thread that a fork left behind may still have been looking at it.
            with contextlib.suppress(BufferError):
                self._page.close()
            self._page = None
        for file in (self._file, self._lock):
            if file >= 0:
                os.close(file)
        self._file = self._lock = -1

    # Holding the lock

    def _lead(self, requests: Sequence[bytes], transact: Transact) -> list[bytes]:
        if self._slot is None and time.monotonic() >= self._try_again:
            self._claim()
        posts = self._pending()
        answers = self._serve(posts, requests, transact) if posts else None
        if answers is None:
            answers = transact(requests)
        # Meanwhile others have posted. Whoever has just written does it best: all it needs is
        # still in the caches of processor and database, and nobody must be woken up first.
        until = time.monotonic_ns() + LONGEST_SERVICE
        while (posts := self._pending()) and time.monotonic_ns() < until:
            with contextlib.suppress(LedgerUnavailable):  # they will see for themselves
                if self._serve(posts, (), transact) is not None:
                    continue
            break
        return answers

    def _serve(
        self, posts: list[_Post], requests: Sequence[bytes], transact: Transact
    ) -> list[bytes] | None:
        """Carry out requests and posts together; return the answers to the requests.

        None says that one of them cannot be carried out. If it is not one of ours it is none of
        our business; and if nobody else tries the posts again, each harms only who posted it.
        """
        batch = [*requests, *(each for post in posts for each in post.requests)]
        try:
            answers = transact(batch)
        except LedgerUnavailable:
            raise  # not a matter of what was asked
        except Exception:
            self._tell(posts)
            return None
        at = len(requests)
        for post in posts:
            mine = answers[at : at + len(post.requests)]
            at += len(post.requests)
            # Too long for the slot: the owner will ask again, and be told what was written.
            self._write_area(post.slot, AREA, post.ticket, mine)
        self._tell(posts)
        return answers[: len(requests)]

    def _pending(self) -> list[_Post]:
        """Return what others have posted, beginning behind the own slot so that all get a turn."""
        posts: list[_Post] = []
        if self._page is None:
            return posts
        posted, done = self._page[_POSTED : _POSTED + SLOTS], self._page[_DONE : _DONE + SLOTS]
        if posted == done:
            return posts
        room, own = MOST_REQUESTS, -1 if self._slot is None else self._slot
        for slot in (*range(own + 1, SLOTS), *range(own)):
            if posted[slot] != done[slot]:
                # What cannot be read is dealt with by answering nothing under no ticket.
                ticket, requests = self._read_area(slot, 0) or (bytes(16), [])
                if len(requests) <= room:
                    posts.append(_Post(slot, posted[slot], ticket, requests))
                    room -= len(requests)
        return posts

    def _tell(self, posts: list[_Post]) -> None:
        """Mark posts as dealt with, and wake those who made them."""
        assert self._page is not None
        done = bytearray(self._page[_DONE : _DONE + SLOTS])
        bits = 0
        for post in posts:
            done[post.slot] = post.number
            bits |= 1 << post.slot % 32
        # At once, and only ever under the lock: no mark of anybody else is lost.
        self._store(done, _DONE)
        if self._sleeper is not None:
            self._next_turn()
            self._sleeper.wake(bits)

    # The lock, and waiting for it

    def _try_lock(self) -> bool:
        self._may_hold = True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._may_hold = False
        except OSError:
            pass  # a file system without such locks: the database's own has to do
        return self._may_hold

    def _lock_patiently(self) -> None:
        self._may_hold = True
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def _unlock(self) -> None:
        """Unlock, and wake one of those whose posts are open, to serve them all.

        In this order: who posts later than we look finds the lock free, or held by somebody who
        will look in turn.
        """
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        self._may_hold = False
        if self._sleeper is None or self._page is None:
            return
        self._next_turn()
        posted, done = self._page[_POSTED : _POSTED + SLOTS], self._page[_DONE : _DONE + SLOTS]
        if posted != done:
            heir = next(slot for slot in range(SLOTS) if posted[slot] != done[slot])
            self._sleeper.wake(1 << heir % 32)

    def _next_turn(self) -> None:
        # A value that nobody else writes, so that two who unlock in quick succession cannot undo
        # each other's change.
        self._turns = (self._turns + 1) % (1 << 25)
        own = SLOTS if self._slot is None else self._slot
        self._store(_WORD.pack(own << 25 | self._turns), _TURN)

    def _post(self, requests: Sequence[bytes]) -> bytes | None:
        """Offer requests to whoever holds the lock; return the ticket, or None if it cannot be."""
        if self._slot is None or len(requests) > MOST_REQUESTS:
            return None
        ticket = os.urandom(16)
        if not self._write_area(self._slot, 0, ticket, requests):
            return None
        self._number = self._number % 255 + 1
        return ticket if self._store(bytes((self._number,)), _POSTED + self._slot) else None

    def _withdraw(self) -> None:
        if self._page is None or self._slot is None:
            return
        self._number = self._page[_DONE + self._slot]
        if self._page[_POSTED + self._slot] != self._number:
            self._store(bytes((self._number,)), _POSTED + self._slot)

    def _wait(self, ticket: bytes | None, count: int) -> list[bytes] | None:
        """Return the answers that somebody gave, or None as soon as the lock is ours."""
        sleeper = self._sleeper
        while ticket is not None and sleeper is not None and self._slot is not None:
            turn = sleeper.value()
            if self._is_done():
                answers = self._collect(ticket, count)
                if answers is not None:
                    return answers
                break  # dealt with by leaving it to us: nobody will wake us for it again
            if self._try_lock():
                # Somebody may have answered and unlocked since.
                return self._collect(ticket, count)
            # The lock was held after the turn was read, so an unlock that changes it will follow.
            sleeper.sleep(turn, self._slot)
        self._lock_patiently()
        return self._collect(ticket, count)

    def _is_done(self) -> bool:
        assert self._page is not None
        assert self._slot is not None
        return self._page[_DONE + self._slot] == self._number

    def _collect(self, ticket: bytes | None, count: int) -> list[bytes] | None:
        """Return the answers to the post of this ticket, if they are there."""
        if ticket is None or self._slot is None or not self._is_done():
            return None
        given, answers = self._read_area(self._slot, AREA) or (b"", [])
        return answers if given == ticket and len(answers) == count else None

    # The file

    def _claim(self) -> None:
        """Take a slot that is free or whose owner is dead. Only while holding the lock."""
        self._try_again = time.monotonic() + 1.0
        try:
            if self._page is None:
                self._attach()
        except OSError:
            return  # a full disk, a foreign file: then without
        assert self._page is not None
        pids = struct.unpack_from(f"<{SLOTS}I", self._page, _PIDS)
        for slot, pid in enumerate(pids):
            if not pid or not _is_alive(pid):
                if self._store(_WORD.pack(self._pid), _PIDS + 4 * slot):
                    self._slot = slot
                    self._withdraw()  # what the dead left behind
                return

    def _attach(self) -> None:
        file = _open_beside(self._like, "-mailbox")
        try:
            # Everyone attached keeps a shared lock. Where nobody does, what is left in the file
            # is of the dead, perhaps of another history of this database: forget it.
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                os.pwrite(file, _MAGIC.ljust(_PAGE, b"\x00"), 0)
                os.ftruncate(file, _PAGE + SLOTS * 2 * AREA)
            fcntl.flock(file, fcntl.LOCK_SH)
            if os.pread(file, len(_MAGIC), 0) != _MAGIC:
                raise OSError(errno.EINVAL, "not a mailbox of this version")
            # Only this page is mapped, and only read through the map; all is written by system
            # calls. Storing into a map when the disk is full kills the process.
            self._page = mmap.mmap(file, _PAGE)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        self._sleeper = Sleeper.over(self._page, _TURN)

    def _store(self, data: bytes | bytearray, at: int) -> bool:
        try:
            os.pwrite(self._file, data, at)
        except OSError:  # a full disk, say: no reason to fail, only to wait for the lock
            return False
        return True

    def _write_area(self, slot: int, shift: int, ticket: bytes, items: Sequence[bytes]) -> bool:
        text = join(items)
        if len(text) > AREA - _AREA_HEAD.size:
            return False
        head = _AREA_HEAD.pack(ticket, _checksum(ticket, text), len(text))
        return self._store(head + text, _PAGE + slot * 2 * AREA + shift)

    def _read_area(self, slot: int, shift: int) -> tuple[bytes, list[bytes]] | None:
        place = _PAGE + slot * 2 * AREA + shift
        start = os.pread(self._file, 2048, place)  # most fit in here
        if len(start) < _AREA_HEAD.size:
            return None
        ticket, checksum, length = _AREA_HEAD.unpack_from(start)
        end = _AREA_HEAD.size + length
        if end > AREA:
            return None
        if end > len(start):
            start = os.pread(self._file, end, place)
        text = start[_AREA_HEAD.size : end]
        if len(text) != length or _checksum(ticket, text) != checksum:
            return None  # torn: its owner is still writing, or somebody writes who should not
        items = split(text)
        return None if items is None else (ticket, items)


def _checksum(ticket: bytes, text: bytes) -> int:
    # Against accidents only: who may write this file may write the database.
    return crc32(text, crc32(ticket))


def _is_alive(pid: int) -> bool:
    # A process of another container may seem dead and lose its slot to us. Tickets keep the two
    # apart, and both get their answers by holding the lock.
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _open_beside(like: Path, suffix: str) -> int:
    """Open or create a file beside another, for the same people."""
    path = f"{like}{suffix}"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        file = os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags, 0o600)
    with contextlib.suppress(OSError):
        same = os.stat(like)
        os.fchmod(file, same.st_mode & 0o666 | 0o600)  # a file made read-only may be freed again
        if os.geteuid() == 0:
            os.fchown(file, same.st_uid, same.st_gid)
    return file
