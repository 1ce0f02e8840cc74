"""Names that look alike are one name, so that limits cannot be got around by spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_requests import charge_of, make_account, submit

from discreet.accounting import PureLoss
from discreet.errors import BudgetExceeded, LedgerError, ParameterError
from discreet.ledger import Ledger
from discreet.ledger.rules.definition import Definition
from discreet.ledger.rules.entry import fold
from discreet.privacy import Guarantee

HALF = PureLoss(epsilon=0.25)
ALIKE = [("ben", "Ben"), ("Ben", "BEN"), ("ben", "\uff42en"), ("straße", "STRASSE"), ("Ⅳ", "iv")]


def charge(account, who="ana", purpose="report"):
    return account.charge(HALF, who=who, purpose=purpose)


@pytest.mark.parametrize(("one", "other"), ALIKE)
@pytest.mark.parametrize("place", ["analyst", "purpose"])
@pytest.mark.parametrize("is_named", [True, False])
def test_limits_hold_however_a_name_is_spelt(ledger, account, one, other, place, is_named):
    account.limit(Guarantee(epsilon=0.25), **{place: one if is_named else "*"})
    names = {"analyst": "who", "purpose": "purpose"}
    charge(account, **{names[place]: one})
    with pytest.raises(BudgetExceeded):
        charge(account, **{names[place]: other})
    assert not account.quote(HALF, **{"who": "a", "purpose": "b", names[place]: other})
    assert account.used == pytest.approx(0.25)
    ledger.verify()


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_accounts_with_names_alike_are_one(ledger, one, other):
    make_account(ledger, one)
    with pytest.raises(ParameterError, match=f"already has an account '{one}'"):
        make_account(ledger, other)
    ledger.verify()


def test_a_limit_is_set_and_widened_by_any_spelling(ledger, account):
    account.limit(Guarantee(epsilon=0.25), analyst="Ben")
    with pytest.raises(ParameterError, match="already has the limit"):
        account.limit(Guarantee(epsilon=0.25), analyst="ben")
    account.grant(Guarantee(epsilon=0.5), who="chris", reason="board", line="analyst=BEN")
    charge(account, who="ben")
    charge(account, who="Ben")
    with pytest.raises(BudgetExceeded, match="analyst=ben"):
        charge(account, who="BEN")
    ledger.verify()


def test_no_spelling_of_a_star_means_everybody(account):
    with pytest.raises(ParameterError, match="analyst"):
        account.limit(Guarantee(epsilon=0.25), analyst="\N{FULLWIDTH ASTERISK}")


def test_a_limit_that_no_request_can_meet_is_not_written(ledger, account):
    settings = ledger._session.definition("a").total.settings
    entry = {"kind": "budget", "account": "a", "key": "k", "line": "analyst=Ben"}
    with pytest.raises(LedgerError, match="folded"):
        submit(ledger, {**entry, "filter": settings})


def test_an_account_of_an_earlier_version_compares_as_it_did(path):
    with Ledger.open(path) as ledger:
        make_account(ledger, "new")
        made = {**ledger.history()[-1], "name": "a", "key": "a"}
        for member in ("index", "time", "previous", "names"):
            del made[member]
        submit(ledger, made)
        account = ledger["a"]
        account.limit(Guarantee(epsilon=0.25), analyst="Ben")
        charge(account, who="Ben")
        charge(account, who="ben")
        with pytest.raises(BudgetExceeded):
            charge(account, who="Ben")
        submit(ledger, charge_of("a", who="BEN"))
        ledger.verify()
        text = ledger._session.definition("a").text()
        assert "names" not in text
        assert not Definition.read(text).is_folded
        with pytest.raises(ParameterError, match="already has an account 'a'"):
            make_account(ledger, "A")


@given(st.text())
def test_folding_twice_changes_nothing(name):
    assert fold(fold(name)) == fold(name)
