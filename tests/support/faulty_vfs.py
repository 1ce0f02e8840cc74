"""A file system for SQLite that fails when it is told to, and remembers what a power cut leaves.

It stands between apsw's SQLite and the real file system. Every write, sync, truncation and
deletion is an *operation* and has a number. ``Disk.fail`` makes one of them fail, or all from one
on. Besides, ``Disk`` keeps for every file what is certainly on the disk, which is what was there at
its last sync, and what was done since. ``Disk.cut`` writes one of the states that a power cut at
this moment may leave: of what was done since the last sync any part may have arrived, in any
order, down to single sectors.

The model of a disk is the one SQLite asks for: a sync is kept, and a write within a sector does
not harm its other bytes. Names are a folder's business: a file that was never synced may not be
there, and a deleted one may be back, until the folder is synced, which SQLite does together with
the first sync of a new journal or log. A write that fails arrives half. A sync that fails may have
done anything, and the next one that succeeds does not make up for it, as on Linux.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

SECTOR = 512


class Done(NamedTuple):
    """Something that was done to a file since its last sync."""

    at: int
    data: bytes | None  # None for a truncation to ``at``


class _Durable:
    """One file: what is certain, and what is not."""

    def __init__(self, image: bytes, *, is_named: bool) -> None:
        self.image = bytearray(image)
        self.pending: list[Done] = []
        self.is_named = is_named  # whether its name survives

    def sync(self) -> None:
        for done in self.pending:
            _apply(self.image, done)
        self.pending.clear()

    def lose(self, rng: random.Random) -> None:
        """Keep some of what was not synced, and forget for ever that there was more."""
        share = rng.choice([0.0, 0.5, 1.0])
        for done in self.pending:
            _apply_some(self.image, done, rng, share)
        self.pending.clear()

    def after_cut(self, rng: random.Random, share: float) -> bytes:
        """Return what may be left."""
        image = bytearray(self.image)
        if rng.random() < 0.3:
            for done in self.pending[: rng.randrange(len(self.pending) + 1)]:
                _apply(image, done)
        else:
            for done in self.pending:
                _apply_some(image, done, rng, share)
        return bytes(image)


class Operation(NamedTuple):
    """What was about to happen."""

    number: int
    kind: str
    file: str


class Disk:
    """The files of a folder, as SQLite uses them, one test at a time.

    ``before`` is called with every operation just before it happens. With ``reads``, reading is an
    operation, too.
    """

    def __init__(self, rng: random.Random, *, reads: bool = False) -> None:
        self._rng = rng
        self.reads = reads
        self.operations: list[Operation] = []
        self.before: Callable[[Operation], None] = lambda operation: None
        self._files: dict[str, _Durable] = {}
        self._deleted: dict[str, bytes] = {}  # files that may be back
        self._fails: Callable[[Operation], int | None] = lambda operation: None
        self.failures = 0
        self._lock = threading.RLock()
        self._name = f"faulty-{id(self)}"
        self._vfs = _Vfs(self, self._name)

    def close(self) -> None:
        """Take the file system out of SQLite, once all its connections are closed."""
        self._vfs.unregister()

    def connect(self, uri: str) -> apsw.Connection:
        """Open a connection whose file system this is; for ``SqliteStore(connect=...)``."""
        flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        return apsw.Connection(uri, flags=flags, vfs=self._name)

    @contextmanager
    def fail(self, code: int, *, at: int, lasting: bool = False) -> Iterator[None]:
        """Let the operation that is ``at`` operations ahead fail, or all from it on."""
        first = len(self.operations) + at

        def fails(operation: Operation) -> int | None:
            is_hit = operation.number >= first if lasting else operation.number == first
            return code if is_hit else None

        self._fails = fails
        try:
            yield
        finally:
            self._fails = lambda operation: None

    def operate(self, kind: str, file: str) -> None:
        """Count an operation, and let it fail if it should."""
        with self._lock:
            operation = Operation(len(self.operations), kind, file)
            self.operations.append(operation)
            self.before(operation)
            code = self._fails(operation)
            if code is None:
                return
            self.failures += 1
        # Only a write says that a disk is full; a sync that finds out says that it failed.
        if code == apsw.SQLITE_IOERR or kind != "write":
            by_kind = {"read": 1, "sync": 4, "write": 3, "truncate": 6, "delete": 10}
            code = apsw.SQLITE_IOERR | by_kind[kind] << 8
        raise apsw.exception_for(code)

    def note(self, file: str, done: Done) -> None:
        """Remember a write or a truncation that was passed on."""
        with self._lock:
            self._files[file].pending.append(done)

    def synced(self, file: str) -> None:
        """Remember a sync."""
        with self._lock:
            self._files[file].sync()
            if not self._files[file].is_named:
                self.folder_synced()

    def sync_failed(self, file: str) -> None:
        """Remember a sync that failed."""
        with self._lock:
            self._files[file].lose(self._rng)

    def folder_synced(self) -> None:
        """Remember that all names are durable now."""
        with self._lock:
            self._deleted.clear()
            for durable in self._files.values():
                durable.is_named = True

    def deleted(self, file: str) -> None:
        """Remember a deletion."""
        with self._lock:
            durable = self._files.pop(file, None)
            if durable is not None and durable.is_named:
                self._deleted[file] = durable.after_cut(self._rng, self._rng.random())

    def opened(self, file: str) -> None:
        """Look at a file that was not used before."""
        with self._lock:
            if file not in self._files:
                path = Path(file)
                is_there = path.exists()
                image = path.read_bytes() if is_there else b""
                self._files[file] = _Durable(image, is_named=is_there)

    def cut(self, target: Path) -> None:
        """Write what a power cut at this moment may leave into another folder."""
        rng = self._rng
        with self._lock:
            share = rng.choice([0.0, 1.0, 0.5, rng.random()])
            for file, image in self._deleted.items():
                if rng.random() < 0.5:
                    (target / Path(file).name).write_bytes(image)
            for file, durable in self._files.items():
                if durable.is_named or rng.random() < 0.5:
                    image = durable.after_cut(rng, share)
                    (target / Path(file).name).write_bytes(image)


def _apply(image: bytearray, done: Done) -> None:
    if done.data is None:
        del image[done.at :]
        return
    if len(image) < done.at:
        image.extend(bytes(done.at - len(image)))
    image[done.at : done.at + len(done.data)] = done.data


def _apply_some(image: bytearray, done: Done, rng: random.Random, share: float) -> None:
    """Apply some of the sectors that a write touches."""
    if done.data is None:
        if rng.random() < share:
            _apply(image, done)
        return
    start = done.at
    while start < done.at + len(done.data):
        stop = min((start // SECTOR + 1) * SECTOR, done.at + len(done.data))
        if rng.random() < share:
            _apply(image, Done(start, done.data[start - done.at : stop - done.at]))
        start = stop


class _File(apsw.VFSFile):
    """One open file. Shared memory is not on the disk, and passed on by apsw itself."""

    def __init__(self, disk: Disk, name, flags) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        disk.opened(self._path)
        super().__init__("", name, flags)

    def xRead(self, amount, offset):
        if self._disk.reads:
            self._disk.operate("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):
        try:
            self._disk.operate("write", self._path)
        except apsw.Error:
            half = bytes(data)[: len(data) // 2]
            if half:
                self._write(half, offset)
            raise
        self._write(bytes(data), offset)

    def _write(self, data, offset):
        super().xWrite(data, offset)
        self._disk.note(self._path, Done(offset, data))

    def xTruncate(self, newsize):
        self._disk.operate("truncate", self._path)
        super().xTruncate(newsize)
        self._disk.note(self._path, Done(newsize, None))

    def xSync(self, flags):
        try:
            self._disk.operate("sync", self._path)
        except apsw.Error:
            self._disk.sync_failed(self._path)
            raise
        super().xSync(flags)
        self._disk.synced(self._path)


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name, flags):
        if name is None:  # a temporary file, which no cut leaves anything of
            return super().xOpen(name, flags)
        return _File(self._disk, name, flags)

    def xDelete(self, filename, syncdir):
        self._disk.operate("delete", filename)
        super().xDelete(filename, syncdir)
        self._disk.deleted(filename)
