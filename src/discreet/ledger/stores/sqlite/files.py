"""The files of a ledger in SQLite: which they are, whether they changed, and a copy of them."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

from discreet.errors import LedgerUnavailable
from discreet.ledger.stores.sqlite.errors import fail

__all__ = ["copy_database", "identity", "new_file", "share_mode", "stamp", "sync"]


def identity(path: Path) -> tuple[int, int]:
    """Return what tells this file from another one of the same name."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def stamp(path: Path) -> tuple[int, int, int]:
    """Return what changes when somebody writes: time and size of the file, size of the log."""
    found = os.stat(path)
    try:
        log = os.stat(f"{path}-wal").st_size
    except OSError:
        log = 0
    return found.st_mtime_ns, found.st_size, log


def share_mode(path: Path) -> None:
    """Open the files beside a ledger to whom it is open, and to nobody else.

    They may be from a time when it was read-only, or open to more people.
    """
    mode = os.stat(path).st_mode & 0o666
    for suffix in ("-wal", "-shm", "-lock", "-mailbox"):
        with suppress(OSError):  # somebody else's, who opens the ledger too
            beside = os.lstat(f"{path}{suffix}").st_mode
            if mode & 0o200 and S_ISREG(beside) and beside & 0o777 != mode:
                os.chmod(f"{path}{suffix}", mode)


@contextmanager
def new_file(path: Path) -> Iterator[None]:
    """Make a file for the block to fill: on the disk afterwards, or gone if the block fails."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise LedgerUnavailable(
            f"the backup {path} could not be made ({error.strerror}). "
            "Give the path of a file that does not exist yet, in a folder you may write."
        ) from error
    try:
        yield
        sync(path)
        sync(path.parent)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def copy_database(source: sqlite3.Connection, path: Path) -> None:
    """Copy what a connection sees into a file."""
    copy = sqlite3.connect(path.as_uri(), uri=True, isolation_level=None)
    try:
        copy.execute("PRAGMA synchronous=FULL")
        source.backup(copy)
    except sqlite3.Error as error:
        fail(error, path)
    finally:
        copy.close()


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk."""
    with suppress(PermissionError):  # folders of Windows cannot be opened
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
