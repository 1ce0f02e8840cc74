"""An account that was opened by mistake is taken back, once and only while nothing was charged."""

import pytest

from discreet.accounting import PureLoss
from discreet.errors import AccountNotFound, LedgerError, ParameterError
from discreet.ledger import Ledger, withdraw
from discreet.ledger.rules import withdrawal
from discreet.ledger.writing.request import new_key
from discreet.privacy import Guarantee, Unit
from support.ledger_requests import submit

WHY = {"who": "ana", "reason": "wrong unit"}
ASKED = {"who": "ana", "purpose": "report"}
HALF = PureLoss(epsilon=0.5)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as book:
        yield book


def opened(ledger, name="people", *, unit="usr", place="/data/people", **more):
    source = {"name": "people", "version": "1", "identities": [place]}
    return ledger.create(
        name, unit=Unit.column(unit), neighbours="add_remove", guarantee=Guarantee(epsilon=1),
        sources=[source], **more,
    )  # fmt: skip


def test_the_data_of_a_withdrawn_account_gets_another_one(ledger):
    account = opened(ledger)
    account.register("visits", version="1", identities=["/data/visits"])
    account.limit(Guarantee(epsilon=0.5), analyst="ana")
    with pytest.raises(LedgerError, match="belongs to account 'people'"):
        opened(ledger, "persons", unit="user")
    receipt = withdraw(account, **WHY)
    assert receipt.entries[0]["reason"] == "wrong unit"
    assert "people" not in ledger
    again = opened(ledger, "persons", unit="user")
    again.register("visits", version="1", identities=["/data/visits"])
    assert again.unit == Unit.column("user")
    again.charge(HALF, **ASKED)
    ledger.verify()
    assert "withdraw" in [entry["kind"] for entry in ledger.history()]


def test_whoever_still_has_it_open_can_charge_nothing(ledger):
    stale = opened(ledger)
    stale.quote(HALF)  # remembers what the account was
    withdraw(ledger["people"], **WHY)
    opened(ledger, "persons")
    with pytest.raises(AccountNotFound):
        stale.charge(HALF, **ASKED)
    for name in ("people", "People"):
        with pytest.raises(ParameterError, match="a name is never used again"):
            opened(ledger, name, place="/data/others")
    ledger.verify()


@pytest.mark.parametrize("pay", ["charge", "reserve"])
def test_what_was_charged_is_never_taken_back(ledger, pay):
    account = opened(ledger)
    getattr(account, pay)(HALF, **ASKED)
    with pytest.raises(LedgerError, match="was charged, so it cannot be withdrawn"):
        withdraw(account, **WHY)
    assert account.used == 0.5
    ledger.verify()


def test_a_request_cannot_begin_to_look_after_the_charge(ledger):
    account = opened(ledger)
    other = opened(ledger, "others", place="/data/others")
    paid = account.charge(HALF, **ASKED).index
    entry = {"kind": "withdraw", "account": "people", **WHY}
    for start in (0, 2, paid, paid + 1, 99):
        with pytest.raises(LedgerError):
            submit(ledger, {**entry, "key": new_key(), "opened": start})
    withdraw(other, **WHY)  # that of others is no obstacle
    with pytest.raises(AccountNotFound):
        submit(ledger, {**entry, "account": "others", "key": new_key(), "opened": 2})
    assert account.used == 0.5


def test_an_old_account_stays(ledger, monkeypatch):
    account = opened(ledger)
    opened(ledger, "others", place="/data/others")
    monkeypatch.setattr(withdrawal, "SOON", 1)
    with pytest.raises(LedgerError, match="too old"):
        withdraw(account, **WHY)


def test_accounts_that_were_told_apart_forget_a_withdrawn_one(ledger):
    opened(ledger)
    second = opened(ledger, "second", override="other people")
    withdraw(second, **WHY)
    with pytest.raises(LedgerError, match="belongs to account 'people'"):
        opened(ledger, "third")
    withdraw(ledger["people"], **WHY)
    opened(ledger, "third")
    ledger.verify()


def test_a_withdrawal_survives_an_export(ledger, tmp_path):
    withdraw(opened(ledger), **WHY)
    opened(ledger, "persons", unit="user")
    ledger.export(tmp_path / "all.jsonl")
    from discreet.ledger import Export

    assert Export(tmp_path / "all.jsonl").verify().size == ledger.size
