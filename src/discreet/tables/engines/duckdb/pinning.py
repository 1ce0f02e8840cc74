"""Files as they were when they were opened, whatever others put in their places."""

import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from discreet.tables.engines.duckdb.folders import PrivateFolder

__all__ = ["PinnedFiles"]

_OPENED: Final = Path("/proc/self/fd")  # Linux: names of open files, also of those without any
_MOST: Final = 100  # as a process may have only so many open


@final
class PinnedFiles:
    """Files, and ``names`` by which just these files are read as long as this object is held.

    DuckDB opens a file by its name again and again: once for what is in it, once for each part of
    it. Were another file moved there in between, a question would fail after it was paid for. So
    the files are held open, and read by names that lead to what is open. Elsewhere than on Linux,
    and of very many files, the names are the paths; so it is not sure then.

    A file that is overwritten in its place changes for those who read it, too: ``has_changed``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("before")
    ...     files = PinnedFiles([str(path)])
    ...     path.unlink()
    ...     Path(files.names[0]).read_text()
    'before'
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.names = tuple(paths)
        self.folder: PrivateFolder | None = None  # of the names, where they are not the paths
        opened: list[int] = []
        self._close = weakref.finalize(self, _closed, opened)
        if _OPENED.is_dir() and len(paths) <= _MOST:
            with suppress(OSError):  # too many are open already
                for path in paths:
                    opened.append(os.open(path, os.O_RDONLY))
        if len(opened) == len(paths):
            self.folder = PrivateFolder()
            self.names = tuple(
                _name(self.folder.path, number, path)
                for number, path in zip(opened, paths, strict=True)
            )
            self._opened = tuple(opened)
            self.restore()
        self._states = [_state(name) for name in self.names]
        self._places = [os.path.realpath(name) for name in self.names]

    def restore(self) -> None:
        """Make the names that are missing: somebody may have cleaned up the folder they are in."""
        if self.folder is None:
            return
        self.folder.path.mkdir(mode=0o700, exist_ok=True)
        for number, name in zip(self._opened, self.names, strict=True):
            if not os.path.lexists(name):
                os.symlink(_OPENED / str(number), name)

    def has_changed(self) -> bool:
        """Say whether a file is not what it was, or was moved; removing it changes nothing."""
        pairs = zip(self.names, self._states, self._places, strict=True)
        return any(_state(name) != state or _is_elsewhere(name, at) for name, state, at in pairs)


def _name(folder: Path, number: int, path: str) -> str:
    """Name an open file, with the endings of its path, which tell how it is read."""
    return str(folder / f"{number}{''.join(Path(path).suffixes)}")


def _state(name: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_elsewhere(name: str, place: str) -> bool:
    now = os.path.realpath(name)
    return now != place and os.path.exists(now)


def _closed(opened: list[int]) -> None:
    while opened:
        os.close(opened.pop())
