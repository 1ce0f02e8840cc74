"""Damage to the file itself: flipped bytes, overwritten pages, indices, another schema."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ledger_attacks import COLUMNS, look

from discreet.accounting import LaplaceLoss
from discreet.errors import (
    LedgerUnavailable,
    TamperingFound,
)
from discreet.ledger import Ledger
from discreet.ledger.stores.schema import VERSION

pytestmark = pytest.mark.lengthy


def content(path: object) -> object:
    """Return all that a ledger says, or why it cannot be read. Its version is no part of that."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        try:
            return {
                table: db.execute(f"SELECT * FROM {table} NOT INDEXED").fetchall()
                for table in COLUMNS
            }
        except (sqlite3.Error, UnicodeDecodeError) as error:  # its message quotes the file
            return type(error).__name__


def is_noticed_by_the_next_charge(site, original) -> bool:
    """Whether the owner of the key finds what nobody else can: the code that seals the state."""
    try:
        with Ledger.open(site.location, key=original.key) as ledger:
            ledger["salaries"].charge(LaplaceLoss(noise_multiplier=1e6), who="ana", purpose="x")
    except TamperingFound:
        return True
    return False


def test_a_flipped_byte_in_the_file_is_found_or_changes_nothing(sqlite_site, original, rng):
    sound = content(original.path)
    data = original.path.read_bytes()
    wrong, changes = [], 0
    for _ in range(250):
        at = rng.randrange(len(data))
        new = rng.choice([byte for byte in range(256) if byte != data[at]])
        sqlite_site.reset()
        with open(sqlite_site.location, "r+b") as file:
            file.seek(at)
            file.write(bytes([new]))
        is_same = content(sqlite_site.location) == sound
        changes += not is_same
        try:
            look(sqlite_site.location)
        except (TamperingFound, LedgerUnavailable):
            continue
        except Exception as error:
            wrong.append(f"byte {at} -> {new}: {type(error).__name__}: {error}")
        else:
            if not is_same and not is_noticed_by_the_next_charge(sqlite_site, original):
                wrong.append(f"byte {at}: {data[at]} -> {new}: not found")
    assert not wrong, "\n".join(wrong)
    assert changes > 20, "most flips fell into unused space: this showed little"


def test_overwritten_pages_are_found_or_change_nothing(sqlite_site, original, rng):
    sound = content(original.path)
    data = original.path.read_bytes()
    page = int.from_bytes(data[16:18])
    wrong = []
    for number in range(len(data) // page):
        for fill in (bytes(page), rng.randbytes(page), data[-page:]):
            sqlite_site.reset()
            with open(sqlite_site.location, "r+b") as file:
                file.seek(number * page)
                file.write(fill)
            is_same = content(sqlite_site.location) == sound
            try:
                look(sqlite_site.location)
            except (TamperingFound, LedgerUnavailable):
                continue
            except Exception as error:
                wrong.append(f"page {number}: {type(error).__name__}: {error}")
            else:
                wrong += [] if is_same else [f"page {number}: not found"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("word", [b"PRIMARY KEY CHECK", b"one = 1", b"key TEXT", b"(account, idx)"])
def test_a_flipped_byte_in_the_schema_is_found(sqlite_site, original, word):
    """SQLite reads most of what comes out of it as something else: a constraint less."""
    data = bytearray(original.path.read_bytes())
    at = data.index(word)
    wrong = []
    for place in range(at, at + len(word)):
        for new in (ord("3"), ord("z"), 0xF0, data[place] ^ 1):
            sqlite_site.reset()
            damaged = data[:place] + bytes([new]) + data[place + 1 :]
            Path(sqlite_site.location).write_bytes(damaged)
            try:
                look(sqlite_site.location)
            except (TamperingFound, LedgerUnavailable):
                continue
            wrong += [f"{data[place]} -> {new} at {place}"] if damaged != data else []
    assert not wrong, wrong


def test_a_damaged_index_is_found(sqlite_site, original):
    """The table is whole, but a key is not found again where it is looked up."""
    data = bytearray(original.path.read_bytes())
    size = int.from_bytes(data[16:18])
    key = b"key/salaries/ana-3"
    for start in range(size, len(data), size):
        is_index = data[start] in (2, 10)
        at = data.find(key, start, start + size)
        if is_index and at >= 0:
            data[at : at + len(key)] = b"key/salaries/ana-?"
    assert data != original.path.read_bytes()
    Path(sqlite_site.location).write_bytes(data)
    assert content(sqlite_site.location) == content(original.path)
    with pytest.raises((TamperingFound, LedgerUnavailable)):
        look(sqlite_site.location)


def charge_and_verify(location: str) -> None:
    with Ledger.open(location) as ledger:
        ledger["salaries"].charge(LaplaceLoss(noise_multiplier=40), who="ana", purpose="x")
        ledger.verify()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM meta",
        "UPDATE meta SET value = '1'",
        f"UPDATE meta SET value = '{VERSION + 1}'",
        "UPDATE meta SET value = ''",
        "UPDATE meta SET value = 'two'",
        "UPDATE meta SET name = 'another'",
        "DROP TABLE meta",
        "DROP TABLE facts",
        "DROP TABLE answers",
        "ALTER TABLE entries RENAME TO old",
        "ALTER TABLE entries RENAME COLUMN hashes TO digest",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM facts; END",
        "CREATE VIEW v AS SELECT * FROM facts",
    ],
)
def test_a_changed_schema_is_refused(sqlite_site, original, sql):
    sqlite_site.execute(sql)
    before = Path(sqlite_site.location).read_bytes()
    with pytest.raises(LedgerUnavailable):
        look(sqlite_site.location)
    shutil.copy2(original.key, f"{sqlite_site.location}.key")
    with pytest.raises(LedgerUnavailable):
        charge_and_verify(sqlite_site.location)
    if "meta" in sql:
        assert Path(sqlite_site.location).read_bytes() == before


def test_a_flipped_byte_of_the_seal_is_noticed_by_the_next_charge(sqlite_site, original):
    data = original.path.read_bytes()
    with closing(sqlite3.connect(original.path)) as db:
        (seal,) = db.execute("SELECT value FROM facts WHERE name = 'seal'").fetchone()
    start = data.index(seal.encode())
    for at in range(start, start + len(seal), 7):
        sqlite_site.reset()
        with open(sqlite_site.location, "r+b") as file:
            file.seek(at)
            file.write(bytes([data[at] ^ 1]))
        assert is_noticed_by_the_next_charge(sqlite_site, original), at
