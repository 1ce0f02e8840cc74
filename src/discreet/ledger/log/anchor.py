"""An anchor: the last checkpoint that this host has written or met, in a file beside the key.

A copy of the database from last week is sound in itself. That it is old shows only against
something that is elsewhere. The anchor is that for every day: after each durable step it gets the
new checkpoint, and who opens a ledger that is not a continuation of it is refused. It is written
after the database, and not synced: after a power cut it may be behind, which does no harm, and
never ahead.
"""

import os
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from discreet.errors import LedgerError, LedgerUnavailable, PrivacyWarning, TamperingFound
from discreet.ledger.log.keys import write_file
from discreet.ledger.log.proofs import Log
from discreet.ledger.stores.protocol import Head, Snapshot
from discreet.ledger.verifier import Checkpoint, NotProven, check_consistency, parse_checkpoint

__all__ = ["FOLDER_VARIABLE", "Anchor"]

FOLDER_VARIABLE: Final = "DISCREET_LEDGER_ANCHORS"
_ATTEMPTS: Final = 20  # to read it while others write it
_WAY_OUT: Final = (
    "Nothing was written. Find the newest copy and put it back. If there is none, a custodian puts "
    "on record that charges were lost, with: discreet ledger rollback"
)


@final
class Anchor:
    """The file that remembers how far a log had come. Processes of one host share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_off = False  # it cannot be written, and that was said
        self._file: int | None = None
        self._length = -1  # of what was written last

    def seen(self) -> Checkpoint | None:
        """Return the checkpoint that it holds, or None where there is no anchor."""
        for attempt in range(_ATTEMPTS):
            try:
                said, gap, rest = self.path.read_text(encoding="utf-8").partition("\n\n")
                # Behind its one signature there may be the end of a longer one that was here.
                return parse_checkpoint(f"{said}{gap}{rest.partition(chr(10))[0]}\n")
            except FileNotFoundError:
                return None
            except OSError as error:
                raise LedgerUnavailable(
                    f"the anchor {self.path} cannot be read ({error.strerror}). Nothing was "
                    "written. Ask its owner for permission."
                ) from error
            except (NotProven, UnicodeDecodeError) as error:
                if attempt + 1 == _ATTEMPTS:
                    raise TamperingFound(
                        f"the anchor {self.path} holds no checkpoint, so nobody can tell whether "
                        f"this ledger is the newest copy. {_WAY_OUT}"
                    ) from error
        return None

    def check(self, snapshot: Snapshot, seen: Checkpoint | None) -> None:
        """Raise unless the log is a continuation of what was seen before the snapshot was taken.

        Not of what the anchor holds now: others may have written since.
        """
        if seen is None:
            return
        log = Log(snapshot)
        head = log.head()
        here = parse_checkpoint(head.note)
        try:
            log.extends(seen)
            proof = log.consistency(seen.size, head.size)
            check_consistency(seen.size, seen.root, here.size, here.root, proof)
        except LedgerUnavailable:
            raise
        except (LedgerError, NotProven) as error:
            raise TamperingFound(
                f"{error} That is what the anchor {self.path} remembers. {_WAY_OUT}",
                entry=getattr(error, "entry", None),
            ) from error

    def check_size(self, head: Head) -> None:
        """Raise where the log has become shorter; a look that costs next to nothing."""
        with suppress(OSError, ValueError):  # what is wrong with it is told when it is opened
            seen = _size(self.path.read_bytes())
            if seen > head.size:
                raise TamperingFound(
                    f"the ledger was rolled back: it has {head.size} entries and had at least "
                    f"{seen} when the anchor {self.path} was written. {_WAY_OUT}",
                    entry=head.size,
                )

    def write(self, note: str) -> None:
        """Remember a checkpoint that is durable.

        Whoever committed later may have been here earlier, and then it is a little behind until
        the next step: looking first would cost more than that is worth.
        """
        if self._is_off:
            return
        try:
            self._overwrite(note.encode())
        except OSError as error:
            self._is_off = True
            warnings.warn(
                f"the anchor {self.path} cannot be written ({error}). The ledger works, but this "
                "host would not notice an old copy in its place. Make the file and its folder "
                f"writable, or name a folder for anchors in {FOLDER_VARIABLE}.",
                PrivacyWarning,
                stacklevel=2,
            )

    def _overwrite(self, note: bytes) -> None:
        """Write into the file that is there: one short write, which is quicker than a new file."""
        if self._file is None:
            if not self.path.exists():
                write_file(self.path, note, replace=True)
            self._file = os.open(self.path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        if hasattr(os, "pwrite"):
            os.pwrite(self._file, note, 0)
        else:  # Windows
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, note)
        if self._length != len(note):
            os.ftruncate(self._file, len(note))
            self._length = len(note)

    def close(self) -> None:
        """Let go of the file. It may be written again."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def _size(note: bytes) -> int:
    """Return how many entries a checkpoint is of, read quickly; 0 where it is none."""
    size = note.split(b"\n", 2)[1:2]
    return int(size[0]) if size and size[0].isdigit() else 0
