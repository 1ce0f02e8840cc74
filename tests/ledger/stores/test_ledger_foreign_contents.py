"""A database that holds something else than a ledger wrote."""

import sqlite3
from pathlib import Path

import pytest
from ledger_requests import ASKED, LITTLE, copied, make_account, sql

from discreet.errors import (
    DiscreetError,
    LedgerUnavailable,
    TamperingFound,
)
from discreet.ledger import Ledger, Witness
from discreet.privacy import Guarantee

pytestmark = pytest.mark.lengthy

COLUMNS = {
    "entries": ("account", "key", "body", "hashes"),
    "facts": ("name", "value"),
    "head": ("size", "time", "last", "frontier", "note"),
    "answers": ("body",),
    "meta": ("value",),
}


NAMED_BY = {"entries": "idx", "facts": "name", "head": "one", "answers": "idx", "meta": "name"}


STRANGE = (b"\xff\xfe", "junk", -1, 1.5, "[]", "null", "{}", '"x"', "[1]", "\ud7ff")


DONE = {
    "verify": lambda ledger: ledger.verify(),
    "look": lambda ledger: (ledger.origin, ledger.vkey, ledger.size, ledger.is_testing),
    "used": lambda ledger: (ledger["a"].used, ledger["a"].budgets(), list(ledger)),
    "quote": lambda ledger: ledger["a"].quote(LITTLE, **ASKED),
    "charge": lambda ledger: ledger["a"].charge(LITTLE, **ASKED),
    "again": lambda ledger: ledger["a"].charge(LITTLE, key="k", **ASKED),
    "resume": lambda ledger: ledger["a"].resume(4).close(),
    "recall": lambda ledger: ledger["a"].recall("q", **ASKED),
    "recall by another": lambda ledger: ledger["a"].recall("q", who="bo", purpose="x"),
    "release": lambda ledger: ledger["a"].release(ledger.prove(3), b"x"),
    "answer_of": lambda ledger: ledger.answer_of(6),
    "history": lambda ledger: (ledger.history(), ledger.history("a", last=2)),
    "prove": lambda ledger: (ledger.prove(6), ledger.prove(5, witnessed=True)),
    "witnessed": lambda ledger: ledger.witnessed(),
    "consistency": lambda ledger: ledger.consistency(2),
    "export": lambda ledger: ledger.export(f"{ledger._session.store._path}.ndjson"),
    "rotate": lambda ledger: ledger.rotate(),
}


@pytest.fixture(scope="module")
def rich(tmp_path_factory) -> Path:
    """A ledger with an open job, a kept answer and a witness."""
    folder = tmp_path_factory.mktemp("rich")
    with Ledger.open(folder / "budget.db") as ledger:
        account = make_account(ledger, epsilon=5)
        account.limit(Guarantee(epsilon=5), analyst="*")
        account.charge(LITTLE, key="k", **ASKED)
        account.reserve(LITTLE * 3, **ASKED)
        receipt = account.charge(LITTLE, query="q", **ASKED)
        account.release(receipt, b'{"value":1,"error":1,"confidence":0.5}')
        ledger.witness(Witness.create(folder / "w", name="w.example/1"))
    return folder / "budget.db"


def raw_errors(place: Path, expected: tuple[type[Exception], ...]) -> list[str]:
    """Do everything with a ledger; return what failed in another way than expected."""
    found = []
    try:
        ledger = Ledger.open(place)
    except expected:
        return found
    except Exception as error:
        return [f"open: {type(error).__name__}: {error}"]
    with ledger:
        for name, do in DONE.items():
            try:
                do(ledger)
            except expected:
                continue
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {error}")
    return found


class TestADatabaseThatHoldsSomethingElse:
    def test_a_sound_one_fails_nowhere(self, rich, tmp_path):
        """Otherwise the tests below would show nothing."""
        assert raw_errors(copied(rich, tmp_path / "budget.db"), ()) == []

    @pytest.mark.parametrize(
        ("table", "column"), [(table, one) for table, all_ in COLUMNS.items() for one in all_]
    )
    def test_every_step_tells_so(self, rich, tmp_path, table, column):
        name = NAMED_BY[table]
        rows = [key for (key,) in sql(rich, f"SELECT {name} FROM {table} ORDER BY {name}")]
        place, found = tmp_path / "budget.db", []
        for row in rows:
            for value in STRANGE if column in ("body", "value", "time") else STRANGE[:4]:
                for file in tmp_path.iterdir():
                    file.unlink()
                copied(rich, place)
                try:
                    sql(place, f"UPDATE {table} SET {column} = ? WHERE {name} = ?", value, row)
                except sqlite3.Error:
                    continue  # the database itself refuses it
                errors = raw_errors(place, (DiscreetError,))
                found += [f"{row!r} is {value!r}: {error}" for error in errors]
        assert not found, "\n".join(found)

    @pytest.mark.parametrize("fact", ["ledger", "account/a", "budget/a/total"])
    @pytest.mark.parametrize("value", ["junk", "[]", "null", b"\xff\xfe", "{}"])
    def test_a_charge_on_such_state_says_what_to_do(self, rich, tmp_path, fact, value):
        place = copied(rich, tmp_path / "budget.db")
        sql(place, "UPDATE facts SET value = ? WHERE name = ?", value, fact)
        with pytest.raises((TamperingFound, LedgerUnavailable)), Ledger.open(place) as ledger:
            ledger["a"].charge(LITTLE, **ASKED)
