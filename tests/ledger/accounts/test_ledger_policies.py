"""What happens at exhaustion may change, in the name of somebody, and everybody acts by it."""

import json
import time

import pytest
from ledger_requests import ASKED, make_account, resigned

from discreet.accounting import PureLoss
from discreet.errors import BudgetExceeded, LedgerError, ParameterError, TamperingFound
from discreet.ledger import Export, Ledger, withdraw
from discreet.ledger.accounts import creation
from discreet.privacy import Unit

WHY = {"who": "chris", "reason": "rough answers will do"}
HALF, MOST = PureLoss(epsilon=0.5), PureLoss(epsilon=0.75)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def place(request, path):
    """Where a ledger is, and its key."""
    if request.param == "sqlite":
        return str(path), None
    return request.getfixturevalue("server").new_database(), path.with_suffix(".key")


@pytest.fixture
def shared(place):
    """Two handles on one ledger, as two programs have them."""
    location, key = place
    with Ledger.open(location, key=key) as one, Ledger.open(location, key=key) as other:
        make_account(one)
        yield one, other


def refused(account):
    with pytest.raises(BudgetExceeded) as error:
        account.charge(HALF, **ASKED)
    return error.value


def test_a_change_counts_at_once_and_for_others(shared):
    ledger, other = shared
    account, theirs = ledger["a"], other["a"]
    account.charge(MOST, **ASKED)
    assert refused(account).offer is None
    assert refused(theirs).offer is None
    entry = account.set_policy("degrade", **WHY).entries[0]
    assert entry.items() >= {"kind": "policy", "policy": "degrade", "account": "a", **WHY}.items()
    assert account.policy == theirs.policy == "degrade"
    account.charge(refused(account).offer.loss, **ASKED)
    theirs.set_policy("deny", who="dee", reason="enough")
    assert account.policy == theirs.policy == "deny"
    assert refused(theirs).offer is None
    assert account.policies == theirs.policies == ("deny", "degrade")
    assert [one["kind"] for one in account.history()] == [
        *("account", "charge", "policy", "charge", "policy")
    ]
    assert ledger.verify().size == 6


def test_others_charge_by_it_within_a_second(shared, monkeypatch):
    ledger, other = shared
    theirs = other["a"]
    theirs.charge(MOST, **ASKED)
    ledger["a"].set_policy("degrade", **WHY)
    now = [time.monotonic()]
    monkeypatch.setattr("discreet.ledger.session.time.monotonic", lambda: now[0])
    assert refused(theirs).offer is None  # as it was a moment ago
    now[0] += 1.01
    assert refused(theirs).offer is not None


def test_it_is_checked_as_when_an_account_is_opened(shared):
    ledger, _ = shared
    for bad, why in (("beg", "must be one of"), ("wait", "periods add up")):
        with pytest.raises(ParameterError, match=why):
            ledger["a"].set_policy(bad, **WHY)
    days = make_account(ledger, "days", unit=Unit.column("u").per("day"))
    days.charge(PureLoss(epsilon=1), **ASKED, periods="2026-11-15")
    days.set_policy("wait", **WHY)
    with pytest.raises(BudgetExceeded, match="2026-11-16"):
        days.charge(HALF, **ASKED, periods="2026-11-15")
    assert ledger.verify().size == 5


def test_a_program_that_does_not_check_is_refused_by_the_rule(ledger, account, monkeypatch):
    monkeypatch.setattr(creation, "POLICIES", ())
    monkeypatch.setattr("discreet.ledger.accounts.limits.check_policy", lambda *given: None)
    with pytest.raises(LedgerError, match="can wait for the next one"):
        account.set_policy("wait", **WHY)
    with pytest.raises(LedgerError, match="bad 'policy'"):
        account.set_policy("beg", **WHY)
    assert account.policies == ("deny",)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "wait"},
        {"policy": "beg"},
        {"policy": "deny"},  # the stored state says otherwise
        {"who": ""},
        {"reason": None},
        {"account": "b"},
        {"more": 1},
    ],
)
def test_a_change_signed_anew_is_not_verified(ledger, account, path, change):
    account.set_policy("degrade", **WHY)
    ledger.close()
    resigned(path, lambda bodies: bodies[2].update(change))
    with Ledger.open(path, read_only=True) as found, pytest.raises(TamperingFound) as error:
        found.verify()
    assert error.value.entry == (None if change == {"policy": "deny"} else 2)


def test_it_is_replayed_between_charges_of_one_kind(ledger, account):
    """Verification has a quick way through such charges."""
    few = PureLoss(epsilon=0.01)
    for policy in ("degrade", "deny", "degrade", "degrade"):
        for _ in range(3):
            account.charge(few, **ASKED)
        account.set_policy(policy, **WHY)
    done = ledger.verify()
    account.set_policy("deny", **WHY)
    account.charge(few, **ASKED)
    assert ledger.verify(since=done).size == ledger.verify().size == 20


def test_it_survives_an_export_and_ends_with_its_account(ledger, account, tmp_path):
    account.set_policy("degrade", **WHY)
    assert account.limit(account.guarantee, analyst="ana", who="dee").entries[0]["who"] == "dee"
    ledger.export(tmp_path / "all.jsonl")
    assert Export(tmp_path / "all.jsonl").verify().size == 4
    with Ledger.imported(tmp_path / "all.jsonl", tmp_path / "new.db") as copy:
        assert copy["a"].policies == ("degrade", "deny")
    ledger.act("dataset.reopened", who="chris", subject="a", account="a")
    withdraw(account, **WHY)
    assert "policies/" not in json.dumps(ledger.verify().facts)


def test_who_did_it_is_on_record_where_it_is_said(ledger):
    source = {"name": "s", "version": "1", "identities": ["x"]}
    named = make_account(ledger, who="chris", sources=[source])
    named.limit(named.guarantee, analyst="ana", who="dee")
    named.register("s", version="2", identities=["x"], who="eve")
    bare = make_account(ledger, "b")
    bare.limit(bare.guarantee, analyst="ana")
    bare.register("t", version="1", identities=["y"])
    assert [entry.get("who") for entry in ledger.history()[1:]] == [
        *("chris", "dee", "eve", None, None, None)
    ]
    assert all("who" not in entry for entry in ledger.history()[4:])
    assert ledger.verify().size == 7
