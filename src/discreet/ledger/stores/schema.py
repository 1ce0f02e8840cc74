"""The tables of a ledger, and how the tables of an older version become those of this one.

A migration is a list of statements that leads from one version to the next. It is never edited
once released: the next change is the next migration. A store runs all that are missing in one
transaction under its exclusive lock, so a ledger is of one version or of another, never between.
"""

from collections.abc import Iterator
from typing import Literal

from discreet.errors import LedgerUnavailable

__all__ = ["VERSION", "VERSION_QUERY", "Dialect", "check_version", "definitions", "migrations"]

_TYPES = {
    "sqlite": {"number": "INTEGER", "bytes": "BLOB", "name": "TEXT", "facts_end": "WITHOUT ROWID"},
    # Names are compared by code point in either database: SQLite compares UTF-8 bytes, which is
    # the same order, and so does the collation "C".
    "postgresql": {
        "number": "BIGINT",
        "bytes": "BYTEA",
        "name": 'TEXT COLLATE "C"',
        # Room for the next version of a fact beside this one, so that no index has to change.
        "facts_end": "WITH (fillfactor = 70)",
    },
}

Dialect = Literal["sqlite", "postgresql"]

_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE meta (name {name} PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE entries (idx {number} PRIMARY KEY, account {name}, key {name} UNIQUE, "
        "body TEXT NOT NULL, hashes {bytes} NOT NULL)",
        "CREATE TABLE facts (name {name} PRIMARY KEY, value TEXT NOT NULL) {facts_end}",
        "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), size {number} NOT NULL, "
        "time TEXT NOT NULL, last {bytes} NOT NULL, frontier {bytes} NOT NULL, "
        "note TEXT NOT NULL)",
        "CREATE TABLE answers (idx {number} PRIMARY KEY, body {bytes} NOT NULL)",
    ),
    # The history of one account in a long ledger of many.
    ("CREATE INDEX entries_by_account ON entries (account, idx)",),
    # The same tables, in which the state is sealed: who does not know of it must not write.
    (),
)

# What only one of them has. The mailbox is unlogged: posting in it waits for no disk, and it is
# empty after a crash. Each slot is written again and again, within its page.
_ALSO: dict[tuple[Dialect, int], tuple[str, ...]] = {
    ("postgresql", 1): (
        "CREATE UNLOGGED TABLE mailbox (slot BIGINT PRIMARY KEY, ticket BIGINT NOT NULL, "
        "request BYTEA, answer BYTEA) WITH (fillfactor = 40)",
        """CREATE PROCEDURE take_turn(
            its_lock BIGINT, its_ticket BIGINT, its_request BYTEA,
            INOUT has_posted BOOLEAN, INOUT its_answer BYTEA
        ) LANGUAGE plpgsql AS $$
        BEGIN
            has_posted := NOT pg_try_advisory_lock(its_lock);
            IF has_posted THEN
                UPDATE mailbox SET ticket = its_ticket, request = its_request, answer = NULL
                WHERE slot = pg_backend_pid();
                IF NOT FOUND THEN
                    INSERT INTO mailbox VALUES (pg_backend_pid(), its_ticket, its_request);
                END IF;
                COMMIT;
                PERFORM pg_advisory_lock(its_lock);
                SELECT answer INTO its_answer FROM mailbox
                WHERE slot = pg_backend_pid() AND ticket = its_ticket;
                IF its_answer IS NOT NULL THEN
                    PERFORM pg_advisory_unlock_all();
                END IF;
            END IF;
        END $$""",
    ),
}

VERSION = len(_MIGRATIONS)  # of the tables that this program reads and writes
_READABLE = 2  # the first whose tables can be read as they are
VERSION_QUERY = "SELECT value FROM meta WHERE name = 'discreet-ledger schema'"
_SET_VERSION = (
    "INSERT INTO meta (name, value) VALUES ('discreet-ledger schema', '{version}') "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def migrations(dialect: Dialect, *, found: int) -> Iterator[tuple[int, list[str]]]:
    """Go through the versions after ``found`` (0: no tables yet), each with its statements.

    The last statement of each writes the version down, where ``VERSION_QUERY`` finds it.

    >>> [version for version, _ in migrations("sqlite", found=0)]
    [1, 2, 3]
    >>> next(migrations("postgresql", found=1))[1][0]
    'CREATE INDEX entries_by_account ON entries (account, idx)'
    """
    for version, statements in enumerate(_MIGRATIONS, 1):
        if version > found:
            ready = [each.format(**_TYPES[dialect]).rstrip() for each in statements]
            ready += _ALSO.get((dialect, version), ())
            yield version, [*ready, _SET_VERSION.format(version=version)]


def definitions(dialect: Dialect, *, version: int) -> set[str]:
    """Return the statements that have made the tables of a version.

    >>> len(definitions("sqlite", version=1)), len(definitions("sqlite", version=2))
    (5, 6)
    """
    made = (each for at, each in migrations(dialect, found=0) if at <= version)
    return {one for statements in made for one in statements if one.startswith("CREATE ")}


def check_version(found: str, *, read_only: bool) -> int:
    """Return the version that ``VERSION_QUERY`` found, unless this program cannot go on with it.

    >>> check_version("1", read_only=False)
    1
    >>> check_version("1", read_only=True)
    Traceback (most recent call last):
    discreet.errors.LedgerUnavailable: this ledger has tables of version 1, and this program \
reads version 3. Nothing was changed. Open it once for writing, which brings it up to date, and \
then read it.
    """
    version = int(found) if found.isascii() and found.isdigit() else 0
    if not version:
        raise LedgerUnavailable(
            "this ledger does not say of which version its tables are, so it was not written by "
            "this program alone. Nothing was changed. Restore it from a backup."
        )
    if version > VERSION:
        raise LedgerUnavailable(
            f"this ledger has tables of version {version}, and this program knows versions up to "
            f"{VERSION}. Nothing was changed. Use the newer release of discreet that wrote it."
        )
    if version < _READABLE and read_only:
        raise LedgerUnavailable(
            f"this ledger has tables of version {version}, and this program reads version "
            f"{VERSION}. Nothing was changed. Open it once for writing, which brings it up to "
            "date, and then read it."
        )
    return version
