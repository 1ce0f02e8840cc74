"""The ledger compares contents in every store, and in the transaction that registers them."""

import random
import sqlite3
from contextlib import closing
from hashlib import sha256
from threading import Barrier, Thread

import pytest

from discreet import Guarantee, Ledger, Unit
from discreet.errors import LedgerError, ParameterError, TamperingFound
from discreet.ledger import ColumnSample, TableContent

TERMS = {
    "unit": Unit.column("person"),
    "neighbours": "add_remove",
    "guarantee": Guarantee(epsilon=1),
}


def content(seed: int, *, columns: int = 2) -> TableContent:
    """Five hundred people whose numbers are counted through."""
    dice = random.Random(seed)
    people = sorted((sha256(f"salt{i}.0".encode()).hexdigest()[:16], f"{i}.0") for i in range(500))
    return TableContent(
        samples=[
            ColumnSample(
                hashes=[one for one, _ in people],
                limit=None,
                values=[one for _, one in people],
                times=[1] * 500,
                beside=[[str(dice.randrange(50)) for _ in people] for _ in range(columns)],
                is_unit=True,
            )
        ]
    )


def source(name: str, of: TableContent) -> list[dict]:
    return [{"name": name, "version": "1", "identities": [f"/data/{name}"], "content": of}]


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request, tmp_path):
    where = tmp_path / "budget.db"
    if request.param == "postgres":
        where = request.getfixturevalue("server").new_database()
    with Ledger.open(where, key=tmp_path / "ledger.key") as opened:
        yield opened


@pytest.mark.lengthy
def test_a_copy_is_refused_in_every_store(ledger):
    wide = content(1, columns=32)  # with a sketch that no mailbox has room for
    ledger.create("a", **TERMS, sources=source("a", wide))
    ledger.create("b", **TERMS, sources=source("b", content(2)))
    with pytest.raises(LedgerError, match="that of account 'a'"):
        ledger.create("c", **TERMS, sources=source("c", wide))
    with pytest.raises(LedgerError, match="that of account 'a'"):
        ledger["b"].register(**source("c", wide)[0])
    ledger["b"].register(**source("c", wide)[0], override="twins")
    assert {n for n, one in ledger["b"].registered().items() if one.is_sketched} == {"b", "c"}
    ledger.verify()


@pytest.mark.lengthy
def test_of_copies_in_one_transaction_one_is_taken(ledger):
    names = [f"copy {i}" for i in range(8)]
    start, won, said = Barrier(len(names)), [], []

    def race(name: str) -> None:
        start.wait()
        try:
            ledger.create(name, **TERMS, sources=source(name, content(1)))
            won.append(name)
        except LedgerError as refusal:
            said.append(str(refusal))

    threads = [Thread(target=race, args=(name,)) for name in names]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.name for one in ledger] == won
    assert len(won) == 1
    assert all(f"this data is that of account {won[0]!r}" in one for one in said)
    ledger.verify()


def test_a_content_that_is_too_large_is_refused(tmp_path):
    one = content(1).samples[0]
    with Ledger.open(tmp_path / "budget.db") as ledger:
        for wrong in (
            TableContent(samples=[one] * 4),
            TableContent(rows=[["a"]] * 1001),
            content(1, columns=33),
            TableContent(
                samples=[ColumnSample(hashes=["0"], limit=None, values=[], times=[], beside=[])]
            ),
        ):
            with pytest.raises(ParameterError, match="at most"):
                ledger.create("a", **TERMS, sources=source("a", wrong))
        assert list(ledger) == []


@pytest.mark.lengthy
@pytest.mark.parametrize("gone", ["sketch/a/a", "sketch/b/b", "contents"])
def test_what_contents_are_compared_with_cannot_be_taken_away(tmp_path, gone):
    where = tmp_path / "budget.db"
    with Ledger.open(where) as ledger:
        ledger.create("a", **TERMS, sources=source("a", content(1)))
        ledger.create("b", **TERMS, sources=source("b", content(2)))
    with closing(sqlite3.connect(where)) as file:
        assert file.execute("DELETE FROM facts WHERE name = ?", (gone,)).rowcount == 1
        file.commit()
    for said in ({}, {"override": "other people"}):
        with Ledger.open(where) as ledger, pytest.raises(TamperingFound, match="Nothing was writ"):
            ledger.create("c", **TERMS, sources=source("c", content(1)), **said)
