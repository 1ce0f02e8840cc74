"""What a device must not forget: one document in a file, changed whole or not at all."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from discreet._json import read_json
from discreet.errors import DataError

__all__ = ["changing", "reading"]

Document = dict[str, Any]

_PATIENCE: Final = 30.0  # seconds that one process waits for another


@contextmanager
def changing(path: Path) -> Iterator[Document]:
    """Give the document, empty at first, and keep what the block makes of it.

    Claim: after the block it is on the disk; if the block or the process ends before, the old one
    is. Two processes or threads never change it at once.

    Why: SQLite's rollback journal with synchronous=EXTRA, and a write lock from before the reading.
    """
    with _opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS device (document TEXT NOT NULL)")
        found = _document(connection, path)
        yield found
        connection.execute("DELETE FROM device")
        connection.execute("INSERT INTO device VALUES (?)", [json.dumps(found)])
        connection.execute("COMMIT")


def reading(path: Path) -> Document:
    """Return the document as it is."""
    with _opened(path) as connection:
        return _document(connection, path)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        path.touch(mode=0o600)  # true values are in it
        with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=EXTRA")
            connection.execute("PRAGMA fullfsync=1")  # macOS: through the disk's own cache
            yield connection
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(
            f"the device's state {path} cannot be used ({reason}). Nothing was reported. Mend it, "
            "or give up this device's answers: one with a new state is a new device, with a new "
            "budget."
        ) from error


def _document(connection: sqlite3.Connection, path: Path) -> Document:
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'device'").fetchone():
        return {}
    row = connection.execute("SELECT document FROM device").fetchone()
    try:
        return dict(read_json(row[0])) if row else {}
    except (ValueError, TypeError) as error:
        raise DataError(f"the device's state {path} is damaged. Nothing was reported.") from error
