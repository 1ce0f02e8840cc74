"""Folders of this process alone, which a later one removes if this one could not."""

import importlib.util
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import final

from discreet.errors import ParameterError

__all__ = ["PrivateFolder"]

_PREFIX = "discreet-engine-"
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# Not on Windows: there, what a killed process leaves behind stays.
_HAS_LOCKS = importlib.util.find_spec("fcntl") is not None
_SWEPT: set[Path] = set()


@final
class PrivateFolder:
    """A folder that only this user can read; it goes when nobody holds it, or at exit.

    A process that is killed cannot remove it. So each folder is locked, which ends with its process
    however that ends, and whoever makes the next one removes those that are not locked. (A process
    number would be no sign: it may be another process's by then.) Services that clean up temporary
    files respect such locks, too.

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
        try:
            place.mkdir(exist_ok=True)
            self.path, lock = _made(place)
        except OSError as error:
            raise ParameterError(
                f"spill must be a folder where files can be made, got {str(place)!r}: "
                f"{error.strerror}.",
                parameter="spill",
            ) from None
        self._remove = weakref.finalize(self, _removed, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove the folder and what is in it. Calling it twice does no harm."""
        self._remove()


def _made(place: Path) -> tuple[Path, int | None]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        if not _HAS_LOCKS:
            return folder, None
        try:
            lock = os.open(folder, _FOLDER)
        except FileNotFoundError:
            continue  # someone thought that it was left behind
        # A file system without locks has nobody who takes them, either.
        if _is_taken(lock, folder) is not False:
            return folder, lock
        os.close(lock)  # likewise, but a moment later


def _is_taken(lock: int, folder: Path) -> bool | None:
    """Take a lock: False where another process has it or the folder went, None without locks."""
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock), os.stat(folder))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:
        return None


def _removed(folder: Path, lock: int | None, owner: int) -> None:
    """Remove a folder that is locked here."""
    if owner != os.getpid():  # a fork, whose parent still needs it
        return
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _sweep(place: Path) -> None:
    """Remove the folders of processes that were killed: once in each process and place."""
    if not _HAS_LOCKS or place in _SWEPT:
        return
    _SWEPT.add(place)
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it is another user's, no folder, or just went
            lock = os.open(folder, _FOLDER)
            if os.fstat(lock).st_uid == os.getuid() and _is_taken(lock, folder):
                _removed(folder, lock, os.getpid())
            else:
                os.close(lock)
