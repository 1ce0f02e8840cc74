"""Folders of this process alone, which a later one removes if this one could not."""

import importlib.util
import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import final

__all__ = ["PrivateFolder"]

_PREFIX = "discreet-"
_LOCK = ".discreet-lock"
# Not on Windows: there, what a killed process leaves behind stays.
_HAS_LOCKS = importlib.util.find_spec("fcntl") is not None
_SWEPT: set[Path] = set()


@final
class PrivateFolder:
    """A folder that only this user can read; it goes when nobody holds it, or at exit.

    A process that is killed cannot remove it. So each folder has a lock, which ends with its
    process however that ends, and whoever makes the next one removes those that are not locked. (A
    process number would be no sign: it may be another process's by then.)

    >>> folder = PrivateFolder()
    >>> folder.path.is_dir(), oct(folder.path.stat().st_mode)[-3:]
    (True, '700')
    >>> folder.remove()
    >>> folder.path.exists()
    False
    """

    def __init__(self, parent: str | os.PathLike[str] | None = None) -> None:
        place = Path(parent if parent is not None else tempfile.gettempdir()).resolve()
        _sweep(place)
        lock = None
        while lock is None:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
            lock = _locked(self.path, os.O_CREAT | os.O_EXCL)
        self._remove = weakref.finalize(self, _removed, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove the folder and what is in it. Calling it twice does no harm."""
        self._remove()


def _locked(folder: Path, flags: int = 0) -> int | None:
    """Take a folder's lock; None where another process has it, or the folder is gone."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | flags, 0o600)
    except OSError:
        return None
    try:
        if _HAS_LOCKS:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Someone may have removed it between the two steps: then this is the lock of nothing.
        if os.path.samestat(os.fstat(lock), os.stat(folder / _LOCK)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _removed(folder: Path, lock: int, owner: int) -> None:
    """Remove a folder that is locked here: the lock last, so that the rest can be tried again."""
    if owner != os.getpid():  # a fork, whose parent still needs it
        return
    with suppress(OSError):
        for inside in folder.iterdir():
            if inside.name != _LOCK:
                shutil.rmtree(inside) if _is_folder(inside) else inside.unlink()
        (folder / _LOCK).unlink()
        folder.rmdir()
    os.close(lock)


def _sweep(place: Path) -> None:
    """Remove the folders of processes that were killed: once in each process and place."""
    if not _HAS_LOCKS or place in _SWEPT:
        return
    _SWEPT.add(place)
    with suppress(OSError):
        for folder in place.glob(f"{_PREFIX}*"):
            if _is_folder(folder) and folder.lstat().st_uid == os.getuid():
                lock = _locked(folder)
                if lock is not None:
                    _removed(folder, lock, os.getpid())


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)
