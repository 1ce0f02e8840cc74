"""What SQLite reports, as errors that say what happened, what was written and what to do."""

import shutil
from pathlib import Path
from typing import NoReturn

from discreet.errors import LedgerError, LedgerUnavailable

__all__ = [
    "ADVICE",
    "BUSY",
    "CANTOPEN",
    "DISTRUSTED",
    "FULL",
    "NOTADB",
    "READONLY",
    "code_of",
    "explained",
    "fail",
]

BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL = 5, 6, 8, 10, 11, 13
CANTOPEN, PROTOCOL, CONSTRAINT, NOTADB = 14, 15, 19, 26
ADVICE = {
    1: "is not as this program left it ({error}). Restore it from a backup",
    3: "may not be opened. Ask its owner for permission",
    BUSY: "was kept locked by another program for too long. Close that program and try again",
    READONLY: "may only be read. Make the file and its folder writable, or open it read_only",
    IOERR: "could not be read or written ({error}). Check the disk, and whether a quota or a limit "
    "on the size of files is reached, then try again",
    CORRUPT: "is damaged ({error}). Restore it from a backup and verify it",
    FULL: "has no room left. Free some space on its disk and try again",
    CANTOPEN: "could not be opened. Check that the path is a file, and that it and its folder "
    "may be read and written",
    NOTADB: "is not a database. Give the path of a ledger, or of a file that does not exist yet",
}
ADVICE |= {LOCKED: ADVICE[BUSY], PROTOCOL: ADVICE[BUSY], 23: ADVICE[3]}
LITTLE = 1 << 20  # bytes left on a disk that counts as full once something failed
# After these a connection may remember what is no longer so.
DISTRUSTED = {IOERR, CORRUPT, CANTOPEN, NOTADB}


# A file system written in Python for apsw raises these by name, without a number.
_BY_NAME = {"IOError": IOERR, "FullError": FULL, "ReadOnlyError": READONLY, "BusyError": BUSY}


def code_of(error: BaseException) -> int | None:
    """Return the primary result code of a database error, of either library."""
    code = getattr(error, "sqlite_errorcode", None)  # sqlite3
    if type(error).__module__ == "apsw":
        code = getattr(error, "result", _BY_NAME.get(type(error).__name__))
    return code & 0xFF if isinstance(code, int) else None


def explained(error: Exception, path: Path, *, may_be_recorded: bool = False) -> Exception:
    """Return the error that a user should see: the same one, if the database is not at fault."""
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        # Said without quoting it: the text may be anything.
        return LedgerUnavailable(f"the ledger {path} is damaged. Restore it from a backup.")
    if code_of(error) == CONSTRAINT:
        return LedgerError("this would write an entry twice. Nothing was written.")
    code = code_of(error) or 0
    # A full disk shows in many ways: files that cannot be made, grown or mapped.
    advice = ADVICE.get(FULL if code in (IOERR, CANTOPEN) and _is_full(path) else code)
    if advice is None:
        return error
    outcome = (
        "Whether the last step was written is not known; ask again with the same key"
        if may_be_recorded
        else "Nothing was written"
    )
    # What SQLite says of these errors names tables and files, never values.
    return LedgerUnavailable(
        f"the ledger {path} {advice.format(error=error)}. {outcome}.",
        may_be_recorded=may_be_recorded,
    )


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < LITTLE
    except OSError:
        return False


def fail(error: Exception, path: Path) -> NoReturn:
    told = explained(error, path)
    if told is error:
        raise error
    raise told from error
