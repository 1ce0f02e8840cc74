"""What custodians do that changes no budget is on record, and changes nothing else."""

import json

import pytest
from ledger_requests import ASKED, make_account, resigned

from discreet.accounting import PureLoss
from discreet.errors import AccountNotFound, TamperingFound
from discreet.ledger import Export, Ledger
from discreet.ledger.verifier import check_receipt

TOLD = {"who": "chris", "subject": "ana-1"}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def book(request, path):
    """A ledger with an account, in either store."""
    location, key = str(path), None
    if request.param == "postgres":
        location, key = request.getfixturevalue("server").new_database(), path.with_suffix(".key")
    with Ledger.open(location, key=key) as ledger:
        make_account(ledger)
        yield ledger


def test_an_act_is_history_and_changes_no_fact(book):
    before = book.verify()
    first = book.act("key.created", **TOLD)
    second = book.act("dataset.reopened", who="dee", subject="a", reason="slow disk", account="a")
    assert [receipt.index for receipt in (first, second)] == [2, 3]
    assert first.entries[0].keys() == {
        *("act", "index", "key", "kind", "previous", "subject", "time", "who")
    }
    assert [entry["kind"] for entry in book.history()] == ["ledger", "account", "act", "act"]
    assert book["a"].history(last=1) == [second.entries[0]]
    assert second.entries[0]["reason"] == "slow disk"
    after = book.verify(since=before)
    assert after.size == 4
    assert dict(after.facts) == dict(before.facts) == dict(book.verify().facts)
    book["a"].charge(PureLoss(epsilon=1), **ASKED)


def test_it_can_be_proved_and_exported(book, tmp_path):
    receipt = book.act("key.revoked", **TOLD, reason="a lost laptop")
    proved = check_receipt(book.prove(receipt).to_json(), book.vkey)
    assert "entry 2, act: act key.revoked, subject ana-1, who chris" in str(proved)
    book.export(tmp_path / "all.jsonl")
    assert Export(tmp_path / "all.jsonl").verify().size == 3
    with Ledger.imported(tmp_path / "all.jsonl", tmp_path / "copy.db") as copy:
        assert copy.history() == book.history()
        assert copy.verify().size == 3


def test_it_is_refused_for_an_account_that_is_not(book):
    with pytest.raises(AccountNotFound):
        book.act("dataset.reopened", **TOLD, account="nobody")
    assert book.size == 2


@pytest.mark.parametrize(
    "change",
    [
        {"act": "key.Revoked"},
        {"subject": "x" * 129},
        {"who": None},
        {"reason": " "},
        {"account": "nobody"},
        {"after": {}},
    ],
)
def test_an_act_signed_anew_is_not_verified(ledger, account, path, change):
    ledger.act("key.revoked", **TOLD)
    ledger.close()
    resigned(path, lambda bodies: bodies[2].update(change))
    with Ledger.open(path, read_only=True) as found, pytest.raises(TamperingFound) as error:
        found.verify()
    assert error.value.entry == 2


def test_no_log_line_names_anybody(ledger, caplog):
    with caplog.at_level("INFO", logger="discreet.ledger"):
        ledger.act("key.revoked", **TOLD)
    assert json.loads(caplog.messages[-1]) == {"event": "act", "entry": 1}
