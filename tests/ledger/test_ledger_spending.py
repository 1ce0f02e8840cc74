"""Who spent what: shares that add up to what is used, whoever charged, reserved or gave back."""

import random

import pytest

from discreet.accounting import LaplaceLoss, PureLoss
from discreet.ledger import shares, spending
from discreet.privacy import Guarantee
from discreet.testing import temporary_account


def test_shares_add_up_whatever_was_asked():
    dice = random.Random(5)
    with temporary_account(epsilon=8, delta=1e-6) as account:
        for _ in range(60):
            loss = dice.choice([PureLoss(epsilon=0.05), LaplaceLoss(noise_multiplier=20)])
            account.charge(loss, who=dice.choice("abc"), purpose=dice.choice("xy"))
        found = spending(account)
        assert sum(one.used for one in found) == pytest.approx(account.used)
        assert sum(one.charges for one in found) == 60
        assert len({(one.who, one.purpose) for one in found}) == len(found)


def test_a_job_is_its_owners_and_what_it_gives_back_counts_for_nobody():
    with temporary_account(epsilon=1) as account:
        account.charge(PureLoss(epsilon=0.25), who="ben", purpose="report")
        with account.reserve(PureLoss(epsilon=0.125) * 4, who="ana", purpose="model") as job:
            job.spend(PureLoss(epsilon=0.125))
            held = {one.who: one.used for one in spending(account)}
        assert held == {"ana": pytest.approx(0.5), "ben": pytest.approx(0.25)}
        found = {one.who: (one.used, one.charges) for one in spending(account)}
        assert found["ana"] == (pytest.approx(0.125), 1)
        assert found["ben"] == (pytest.approx(0.25), 1)


def test_a_grant_keeps_the_sum_and_charges_nobody():
    with temporary_account(epsilon=1) as account:
        account.charge(PureLoss(epsilon=0.5), who="ana", purpose="report")
        account.grant(Guarantee(epsilon=2), who="chris", reason="board")
        (found,) = spending(account)
        assert found.used == pytest.approx(account.used) == pytest.approx(0.25)


def test_of_the_last_entries_nobody_pays_for_what_went_before():
    with temporary_account(epsilon=1) as account:
        for who in ("ana", "ben", "ben"):
            account.charge(PureLoss(epsilon=0.25), who=who, purpose="report")
        (found,) = spending(account, last=2)  # what the first of them moved cannot be known
        assert (found.who, found.used) == ("ben", pytest.approx(0.25))


def test_limits_of_others_move_nobodys_share():
    with temporary_account(epsilon=1) as account:
        account.limit(Guarantee(epsilon=0.5), analyst="ana")
        account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        (found,) = spending(account)
        assert found.used == pytest.approx(0.25)  # of the total, and not half of ana's own
        assert [point.used for point in found.points] == [pytest.approx(0.25)]


def test_shares_of_an_entry_are_those_of_the_budget_as_it_is():
    with temporary_account(epsilon=1) as account:
        account.charge(PureLoss(epsilon=0.25), who="ana", purpose="report")
        account.limit(Guarantee(epsilon=0.5), analyst="*")
        account.grant(Guarantee(epsilon=2), who="chris", reason="more people")
        receipt = account.charge(PureLoss(epsilon=0.25), who="ben", purpose="report")
        assert shares(account, receipt.entries[0]) == {"total": 0.25, "analyst=*:ben": 0.5}
