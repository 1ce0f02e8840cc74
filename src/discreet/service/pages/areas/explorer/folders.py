"""A folder for each visitor, shared by the workers of one host: few, small, and soon swept away."""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, final

from discreet._json import read_json
from discreet.errors import TryLater

__all__ = ["VisitorFolder", "VisitorFolders"]

_ABOUT: Final = "session.json"
_REVEALED: Final = "revealed"


@final
@dataclass(frozen=True, slots=True)
class VisitorFolder:
    """One session: where it is, and the seed that its people are generated from."""

    path: Path
    seed: int

    @property
    def ledger(self) -> Path:
        """The file of its ledger."""
        return self.path / "budget.db"

    @property
    def is_revealed(self) -> bool:
        """Whether its visitor has asked for the truth."""
        return (self.path / _REVEALED).exists()

    def reveal(self) -> None:
        """Show the truth from now on."""
        (self.path / _REVEALED).touch()

    def remember(self, anchor: str | None) -> None:
        """Note which file outside of the folder belongs to it, too."""
        _write(self.path / _ABOUT, {"seed": self.seed, "anchor": anchor})

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep the other workers out, while a ledger is made."""
        with (self.path / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@final
class VisitorFolders:
    """All sessions of a host. Threads and processes may share it.

    A session is gone after ``idle`` seconds in which nobody used it. Where there are ``most`` of
    them, one that was not used for ``spare`` seconds gives its place to a new one.

    >>> import tempfile
    >>> folders = VisitorFolders(Path(tempfile.mkdtemp()))
    >>> folders.find("nobody can guess this") is None
    True
    >>> made = folders.make("nobody can guess this")
    >>> folders.find("nobody can guess this") == made
    True
    """

    def __init__(
        self,
        root: Path,
        *,
        most: int = 300,
        idle: float = 3600.0,
        spare: float = 300.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._root, self._most, self._idle, self._spare = root, most, idle, spare
        self._clock = clock
        self._swept = float("-inf")

    def find(self, visitor: str) -> VisitorFolder | None:
        """Return the session of a visitor, which is in use again; None if there is none."""
        path = self._path(visitor)
        try:
            seed = read_json((path / _ABOUT).read_text())["seed"]
            now = self._clock()
            os.utime(path, (now, now))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return VisitorFolder(path, seed)

    def make(self, visitor: str) -> VisitorFolder:
        """Begin the session of a visitor: other people, and a whole budget."""
        self.sweep()
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_owner()
        draft = self._root / f".new-{secrets.token_hex(8)}"
        draft.mkdir(mode=0o700)
        _write(draft / _ABOUT, {"seed": secrets.randbelow(2**48), "anchor": None})
        try:
            draft.rename(self._path(visitor))
        except OSError:  # another worker was quicker
            shutil.rmtree(draft, ignore_errors=True)
        found = self.find(visitor)
        if found is None:
            raise TryLater("this session could not be made. Load the page again.")
        return found

    def remove(self, visitor: str) -> None:
        """End the session of a visitor."""
        self._remove(self._path(visitor))

    def sweep(self) -> None:
        """Remove what nobody uses any more, and make room for a new session or refuse it."""
        now = self._clock()
        ages = sorted(((now - at, path) for at, path in self._all()), reverse=True)
        for age, path in ages:
            if age > self._idle or (len(ages) >= self._most and age > self._spare):
                self._remove(path)
                ages = ages[1:]
        if len(ages) >= self._most:
            raise TryLater(
                f"all {self._most} places of the explorer are taken at the moment. Try again in a "
                "few minutes.",
                seconds=60,
            )

    def _all(self) -> Iterator[tuple[float, Path]]:
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._root):
                with contextlib.suppress(FileNotFoundError):
                    yield entry.stat(follow_symlinks=False).st_mtime, Path(entry.path)

    def _remove(self, path: Path) -> None:
        # Under another name first: nobody finds half a session.
        gone = self._root / f".gone-{secrets.token_hex(8)}"
        try:
            path.rename(gone)
        except OSError:  # another worker was quicker
            return
        with contextlib.suppress(OSError, ValueError):
            anchor = read_json((gone / _ABOUT).read_text())["anchor"]
            if anchor is not None:
                Path(anchor).unlink(missing_ok=True)
        shutil.rmtree(gone, ignore_errors=True)

    def _path(self, visitor: str) -> Path:
        return self._root / sha256(visitor.encode()).hexdigest()[:32]

    def _check_owner(self) -> None:
        """Refuse a folder that somebody else made: a temporary one could be."""
        found = os.stat(self._root, follow_symlinks=False)
        if found.st_uid != os.getuid():
            raise TryLater(f"the folder of the explorer, {self._root.name}, belongs to others.")


def _write(path: Path, about: dict[str, object]) -> None:
    """Write a small file at once, so that nobody reads half of it."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    draft.write_text(json.dumps(about))
    draft.replace(path)
