"""Accounts as their users meet them: charges, limits, jobs, releases, sources, refusals."""

import json
import logging
import math
import threading
from datetime import date, timedelta
from fractions import Fraction

import pytest

from discreet.accounting import (
    ApproximateLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    from_json,
)
from discreet.errors import (
    AccountNotFound,
    BudgetExceeded,
    DataError,
    LedgerError,
    ParameterError,
    SessionOver,
    TamperingFound,
)
from discreet.ledger import Ledger
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit
from discreet.testing import SeededSource

TENTH = PureLoss(epsilon=Fraction(1, 10))
ASK = {"who": "ana", "purpose": "report"}


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        yield ledger


@pytest.fixture
def account(ledger):
    return pure(ledger)


def pure(ledger, name="salaries", *, epsilon=1, **more):
    return ledger.create(
        name,
        unit=Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=epsilon),
        **more,
    )


def gaussian_account(ledger, **more):
    return ledger.create(
        "photos",
        unit=Unit.record(),
        neighbours="add_remove",
        guarantee=Guarantee(epsilon=3, delta=1e-6),
        **more,
    )


def share(account, name):
    return {budget.name: budget.used for budget in account.budgets()}.get(name, 0.0)


class TestCharging:
    def test_the_budget_is_used_up_to_the_last_unit_and_no_further(self, ledger, account):
        for n in range(10):
            assert account.used == pytest.approx(n / 10)
            account.charge(TENTH, **ASK)
        assert account.used == 1
        assert account.remaining == 0
        size = ledger.size
        with pytest.raises(BudgetExceeded, match="discreet ledger grant salaries") as refusal:
            account.charge(PureLoss(epsilon=1e-300), **ASK)
        assert refusal.value.account == "salaries"
        assert refusal.value.used == 1
        assert ledger.size == size, "a refusal leaves no trace"
        ledger.verify()

    def test_small_amounts_never_vanish(self, account):
        account.charge(PureLoss(epsilon=1e-300), **ASK)
        assert account.used > 0
        for _ in range(9):
            account.charge(TENTH, **ASK)
        with pytest.raises(BudgetExceeded):
            account.charge(TENTH, **ASK)

    def test_an_entry_says_who_and_what_for(self, ledger, account):
        receipt = account.charge(LaplaceLoss(noise_multiplier=20), **ASK)
        (entry,) = receipt.entries
        assert (entry["who"], entry["purpose"], entry["account"]) == ("ana", "report", "salaries")
        assert from_json(json.dumps(entry["loss"])) == receipt.loss
        assert entry["after"].keys() == {"total"}
        assert entry["noise"] == "secure"
        assert ledger.history("salaries")[-1] == entry

    def test_quotes_charge_nothing(self, ledger, account):
        size = ledger.size
        assert account.quote(TENTH)
        assert not account.quote(PureLoss(epsilon=2))
        assert account.quote(TENTH).used_after == pytest.approx(0.1)
        assert ledger.size == size
        assert account.used == 0

    def test_a_loss_for_other_neighbours_is_refused(self, ledger, account):
        other = GaussianLoss(noise_multiplier=9).sampled(rate=0.1)
        assert other.neighbours == "add_remove"
        replaced = ledger.create(
            "replaced",
            unit=Unit.record(),
            neighbours="replace_one",
            guarantee=Guarantee(epsilon=3, delta=1e-6),
        )
        for ask in (lambda: replaced.charge(other, **ASK), lambda: replaced.quote(other)):
            with pytest.raises(ParameterError, match="replace_one"):
                ask()
        assert replaced.used == 0

    @pytest.mark.parametrize("bad", ["", " ", "*", "a\nb", "x" * 201, None, 3, " ana"])
    def test_names_that_cannot_stand_in_a_log_are_refused(self, ledger, account, bad):
        size = ledger.size
        with pytest.raises(ParameterError, match="who must be"):
            account.charge(TENTH, who=bad, purpose="report")
        with pytest.raises(ParameterError, match="purpose must be"):
            account.charge(TENTH, who="ana", purpose=bad)
        assert ledger.size == size

    @pytest.mark.parametrize("bad", [0.1, "0.1", None, object(), [], {}])
    def test_what_is_no_loss_is_refused(self, account, bad):
        with pytest.raises(ParameterError, match="loss must be"):
            account.charge(bad, **ASK)

    def test_unicode_names_work(self, ledger):
        account = pure(ledger, "løn, 给料")
        account.limit(Guarantee(epsilon=1), analyst="Ærø:=,/%")
        account.charge(TENTH, who="Ærø:=,/%", purpose="Übersicht ✓")
        assert share(account, "analyst=%C3%A6r%C3%B8%3A%3D%2C%2F%25") == pytest.approx(0.1)
        ledger.verify()


class TestKeys:
    def test_the_same_request_again_charges_once(self, ledger, account):
        first = account.charge(TENTH, **ASK, key="monday")
        size = ledger.size
        assert not first.is_repeated
        again = account.charge(TENTH, **ASK, key="monday")
        assert again == first
        assert again.is_repeated, "so that nobody draws noise twice for one charge"
        assert ledger.size == size
        assert account.used == pytest.approx(0.1)

    @pytest.mark.parametrize("key", [None, "monday"])
    def test_a_call_whose_first_answer_is_lost_is_told_that_it_was_the_first(
        self, ledger, account, monkeypatch, key
    ):
        store = ledger._session.store
        commit = store.commit_together

        def lose_the_first(batch, work):
            commit(batch, work)
            return commit(batch, work)

        monkeypatch.setattr(store, "commit_together", lose_the_first)
        size = ledger.size
        first = account.charge(TENTH, **ASK, key=key)
        job = account.reserve(TENTH * 2, **ASK, key=key and "job")
        assert not first.is_repeated, "or nobody would give the answer that is paid for"
        assert not job.receipt.is_repeated
        monkeypatch.undo()
        assert ledger.size == size + 2
        if key:
            assert account.charge(TENTH, **ASK, key=key).is_repeated
        assert account.used == pytest.approx(0.3)
        ledger.verify()

    def test_another_request_with_the_same_key_is_refused(self, account):
        account.charge(TENTH, **ASK, key="monday")
        with pytest.raises(ParameterError, match="another request"):
            account.charge(PureLoss(epsilon=Fraction(1, 5)), **ASK, key="monday")
        with pytest.raises(ParameterError, match="another request"):
            account.charge(TENTH, who="bob", purpose="report", key="monday")
        assert account.used == pytest.approx(0.1)

    def test_keys_of_accounts_do_not_meet(self, ledger, account):
        other = pure(ledger, "release")
        account.charge(TENTH, **ASK, key="3")
        other.charge(TENTH, **ASK, key="3")
        receipt = account.charge(TENTH, **ASK)
        other.charge(TENTH, **ASK, key=str(receipt.index))
        account.release(receipt, b"answer")  # its own key is release/<index>
        assert other.used == pytest.approx(0.2)
        ledger.verify()

    def test_one_key_raced_by_many_threads_charges_once(self, account):
        receipts = []

        def charge():
            receipts.append(account.charge(TENTH, **ASK, key="raced"))

        threads = [threading.Thread(target=charge) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(receipts) == 16
        assert len(set(receipts[0].bodies)) == 1
        assert all(receipt == receipts[0] for receipt in receipts)
        assert account.used == pytest.approx(0.1)


class TestLimits:
    def test_the_tightest_budget_decides_and_is_named(self, account):
        account.limit(Guarantee(epsilon=Fraction(3, 10)), analyst="ana")
        account.limit(Guarantee(epsilon=Fraction(1, 2)), purpose="report")
        for _ in range(3):
            account.charge(TENTH, **ASK)
        with pytest.raises(BudgetExceeded, match="analyst=ana"):
            account.charge(TENTH, **ASK)
        for _ in range(2):
            account.charge(TENTH, who="bob", purpose="report")
        with pytest.raises(BudgetExceeded, match="purpose=report"):
            account.charge(TENTH, who="bob", purpose="report")
        account.charge(TENTH, who="bob", purpose="other")
        assert account.used == pytest.approx(0.6)
        quote = account.quote(TENTH, **ASK)
        assert not quote
        assert [b.name for b in quote.budgets if not b.fits] == [
            "analyst=ana",
            "purpose=report",
        ]

    def test_colluding_analysts_share_the_total(self, account):
        account.limit(Guarantee(epsilon=1), analyst="*")
        for n in range(10):
            account.charge(TENTH, who=f"analyst {n}", purpose="x")
        with pytest.raises(BudgetExceeded, match="total"):
            account.charge(TENTH, who="analyst 11", purpose="x")

    def test_each_analyst_has_one_unless_named(self, account):
        account.limit(Guarantee(epsilon=Fraction(1, 10)), analyst="*")
        account.limit(Guarantee(epsilon=Fraction(3, 10)), analyst="ana")
        for who, times in (("ana", 3), ("bob", 1), ("eve", 1)):
            for _ in range(times):
                account.charge(TENTH, who=who, purpose="x")
            with pytest.raises(BudgetExceeded, match="analyst="):
                account.charge(TENTH, who=who, purpose="x")
        assert share(account, "analyst=*:bob") == 1
        assert share(account, "analyst=ana") == 1

    def test_a_limit_exists_once(self, account):
        account.limit(Guarantee(epsilon=1), analyst="ana")
        with pytest.raises(ParameterError, match="already has"):
            account.limit(Guarantee(epsilon=2), analyst="ana")
        with pytest.raises(ParameterError, match="for an analyst"):
            account.limit(Guarantee(epsilon=2))

    def test_a_grant_widens_and_keeps_what_was_counted(self, ledger, account):
        account.limit(Guarantee(epsilon=Fraction(1, 10)), analyst="ana")
        account.charge(TENTH, **ASK)
        account.grant(
            Guarantee(epsilon=Fraction(2, 10)), who="chris", reason="x", line="analyst=ana"
        )
        account.charge(TENTH, **ASK)
        with pytest.raises(BudgetExceeded, match="analyst=ana"):
            account.charge(TENTH, **ASK)
        account.grant(Guarantee(epsilon=100), who="chris", reason="board decision")
        assert account.guarantee == Guarantee(epsilon=100)
        assert account.used == pytest.approx(0.002)
        with pytest.raises(ParameterError, match="only be widened"):
            account.grant(Guarantee(epsilon=5), who="chris", reason="regret")
        with pytest.raises(ParameterError, match="no limit"):
            account.grant(Guarantee(epsilon=5), who="chris", reason="x", line="analyst=eve")
        ledger.verify()

    def test_a_grant_of_delta_opens_a_pure_account_to_gaussians(self, ledger, account):
        account.charge(TENTH, **ASK)
        with pytest.raises(BudgetExceeded, match="no finite cost"):
            account.charge(GaussianLoss(noise_multiplier=100), **ASK)
        account.grant(Guarantee(epsilon=1, delta=1e-6), who="chris", reason="Gaussians")
        account.charge(GaussianLoss(noise_multiplier=100), **ASK)
        ledger.verify()


class TestPeriods:
    def test_each_period_of_the_data_has_its_own_budget(self, ledger):
        account = ledger.create(
            "visits",
            unit=Unit.column("user").per("day"),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1),
            policy="wait",
        )
        account.charge(PureLoss(epsilon=1), **ASK, periods="2026-02-28")
        with pytest.raises(BudgetExceeded, match="2026-03-01"):
            account.charge(TENTH, **ASK, periods=["2026-02-27", date(2026, 2, 28)])
        account.charge(TENTH, **ASK, periods=[date(2026, 2, 27), "2026-03-01"])
        assert {b.name: round(b.used, 3) for b in account.budgets()} == {
            "total:2026-02-27": 0.1,
            "total:2026-02-28": 1.0,
            "total:2026-03-01": 0.1,
        }
        assert account.used == 1
        for missing in (None, [], ()):
            with pytest.raises(ParameterError, match="periods="):
                account.charge(TENTH, **ASK, periods=missing)
        for bad in ("2026-02-30", "yesterday", "2026-2", 7):
            with pytest.raises(ParameterError, match="a day is named like"):
                account.charge(TENTH, **ASK, periods=[bad])
        ledger.verify()

    def test_waiting_is_for_units_with_a_period(self, ledger, account):
        with pytest.raises(ParameterError, match="periods add up"):
            pure(ledger, "other", policy="wait")
        with pytest.raises(ParameterError, match="for all time"):
            account.charge(TENTH, **ASK, periods=["2026-01-01"])

    def test_a_clock_set_back_or_forward_frees_nothing(self, ledger):
        account = pure(ledger, epsilon=10)
        account.limit(Guarantee(epsilon=Fraction(1, 10)), analyst="*", every="month")
        here = date.fromisoformat(ledger.history()[-1]["time"][:10])
        ahead = here + timedelta(days=60)
        clock = [f"{ahead}T00:00:00.000000Z"]
        ledger._session._scribe._clock = lambda: clock[0]
        account.charge(TENTH, **ASK)
        clock[0] = f"{here - timedelta(days=300)}T00:00:00.000000Z"
        with pytest.raises(BudgetExceeded, match=f"{ahead:%Y-%m}"):  # not a fresh month
            account.charge(TENTH, **ASK)
        clock[0] = "2099-01-01T00:00:00.000000Z"
        for _ in range(2):
            with pytest.raises(LedgerError, match="discreet ledger clock"):
                account.charge(TENTH, **ASK)
        assert account.used == pytest.approx(0.01)
        ledger.accept_clock(who="chris", reason="it is 2099")
        account.charge(TENTH, **ASK)
        with pytest.raises(BudgetExceeded, match="2099-01"):
            account.charge(TENTH, **ASK)
        assert account.used == pytest.approx(0.02), "the total never begins anew"
        ledger.verify()

    def test_a_period_has_one_name(self, ledger):
        account = ledger.create(
            "visits",
            unit=Unit.column("user").per("week"),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1),
        )
        account.charge(PureLoss(epsilon=1), **ASK, periods="2026-W46")
        for again in ("2026-W46", date(2026, 11, 9), date(2026, 11, 15)):
            with pytest.raises(BudgetExceeded):
                account.charge(TENTH, **ASK, periods=again)
        for odd in ("2026-W4\uff16", "\u0662\u0660\u0662\u0666-W46", "2026-W99", "2026-W46 "):
            with pytest.raises(ParameterError, match="a week is named like"):
                account.charge(TENTH, **ASK, periods=odd)

    def test_allowances_are_no_use_where_the_unit_has_a_period(self, ledger):
        account = ledger.create(
            "visits",
            unit=Unit.column("user").per("week"),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1),
        )
        with pytest.raises(ParameterError, match="every"):
            account.limit(Guarantee(epsilon=1), analyst="*", every="month")


class TestDegrading:
    def test_the_least_noise_that_fits_is_offered_and_must_be_accepted(self, ledger):
        account = pure(ledger, policy="degrade")
        account.charge(PureLoss(epsilon=Fraction(3, 4)), **ASK)
        wanted = LaplaceLoss(noise_multiplier=2)
        quote = account.quote(wanted, error=6.0)
        assert not quote
        assert quote.offer.factor == pytest.approx(2, rel=1e-5)
        assert quote.offer.error == pytest.approx(12, rel=1e-5)
        with pytest.raises(BudgetExceeded) as refusal:
            account.charge(wanted, **ASK)
        assert account.used == 0.75, "an offer charges nothing"
        account.charge(refusal.value.offer.loss, **ASK)
        assert 0.9999 < account.used <= 1

    @pytest.mark.parametrize(
        "loss",
        [
            GaussianLoss(noise_multiplier=0.5),
            ApproximateLoss(epsilon=9, delta=1e-9),
            GaussianLoss(noise_multiplier=0.4).sampled(rate=0.01) * 100,
            PureLoss(epsilon=2) + GaussianLoss(noise_multiplier=1),
        ],
    )
    def test_every_family_can_be_made_noisier(self, ledger, loss):
        account = gaussian_account(ledger, policy="degrade")
        offer = account.quote(loss).offer
        assert offer.factor > 1
        assert account.quote(offer.loss)
        account.charge(offer.loss, **ASK)

    def test_nothing_is_offered_where_nothing_fits(self, ledger):
        account = pure(ledger, policy="degrade")
        account.charge(PureLoss(epsilon=1), **ASK)
        assert account.quote(TENTH).offer is None


class TestJobs:
    step = GaussianLoss(noise_multiplier=200)

    def test_what_never_began_comes_back_when_the_job_ends(self, ledger):
        account = gaussian_account(ledger, kind="zcdp")
        before = account.used
        with account.reserve(self.step * 1000, **ASK) as job:
            reserved = account.used
            job.spend(self.step * 10)
            assert account.used == pytest.approx(reserved), "spending moves, it adds nothing"
        assert account.used == pytest.approx(before + (reserved - before) / 100)
        ledger.verify()

    def test_an_error_keeps_everything_and_the_job_can_be_resumed(self, ledger):
        account = gaussian_account(ledger, kind="zcdp")
        job = account.reserve(self.step * 100, **ASK)
        job.spend(self.step)
        with pytest.raises(ZeroDivisionError), job:
            raise ZeroDivisionError
        reserved = account.used
        with pytest.raises(SessionOver):
            job.spend(self.step)
        again = account.resume(job.index)
        assert again.left == 99
        assert account.used == reserved
        with again:
            again.spend(self.step)
        assert account.used == pytest.approx(reserved / 50)
        with pytest.raises(LedgerError, match="no open job"):
            account.resume(job.index)
        ledger.verify()

    def test_a_bound_on_the_whole_run_is_never_returned_pro_rata(self, ledger):
        account = gaussian_account(ledger, kind="zcdp")
        with account.reserve(self.step * 100, **ASK, by_steps=False) as job:
            reserved = account.used
            job.spend(self.step)
        assert account.used == reserved
        with account.reserve(GaussianLoss(noise_multiplier=20), **ASK) as job:
            job.spend(GaussianLoss(noise_multiplier=20))
        assert account.used > reserved

    def test_a_job_that_never_began_costs_nothing(self, ledger):
        account = gaussian_account(ledger)
        with account.reserve(GaussianLoss(noise_multiplier=20), **ASK, by_steps=False):
            assert account.used > 0
        assert account.used == 0

    def test_a_joint_price_is_kept_where_the_sum_of_steps_costs_more(self, ledger):
        # By (epsilon, delta) the thousand steps together cost far less than one by one.
        account = gaussian_account(ledger, kind="basic")
        step = GaussianLoss(noise_multiplier=50).sampled(rate=0.01)
        with account.reserve(step * 1000, **ASK) as job:
            reserved = account.used
            job.spend(step)
        assert account.used == reserved < 1

    def test_only_reserved_steps_can_be_spent(self, ledger):
        account = gaussian_account(ledger)
        with account.reserve(self.step * 3 + PureLoss(epsilon=0.01), **ASK) as job:
            job.spend(self.step * 2)
            with pytest.raises(ParameterError, match="fewer steps"):
                job.spend(self.step * 2)
            with pytest.raises(ParameterError, match="not a step"):
                job.spend(GaussianLoss(noise_multiplier=1))
            job.spend(self.step + PureLoss(epsilon=0.01))
            assert job.left == 0
        with pytest.raises(SessionOver):
            job.spend(self.step)
        job.close()

    def test_a_repeated_reservation_is_the_same_job(self, ledger):
        account = pure(ledger)
        job = account.reserve(TENTH * 5, **ASK, key="nightly")
        job.spend(TENTH * 2)
        again = account.reserve(TENTH * 5, **ASK, key="nightly")
        assert (again.index, again.left) == (job.index, 3)
        again.close()
        with pytest.raises(LedgerError, match="no open job"):
            account.reserve(TENTH * 5, **ASK, key="nightly")

    def test_a_reservation_that_does_not_fit_is_refused_whole(self, ledger):
        account = gaussian_account(ledger)
        size = ledger.size
        with pytest.raises(BudgetExceeded):
            account.reserve(GaussianLoss(noise_multiplier=1) * 1000, **ASK)
        assert ledger.size == size
        assert account.used == 0

    def test_what_is_held_is_not_there_for_others(self, ledger):
        account = pure(ledger)
        job = account.reserve(TENTH * 8, **ASK)
        account.charge(TENTH, **ASK)
        account.charge(TENTH, **ASK)
        with pytest.raises(BudgetExceeded):
            account.charge(TENTH, **ASK)
        job.close()
        for _ in range(8):
            account.charge(TENTH, **ASK)

    def test_a_grant_in_the_middle_of_a_job_changes_nothing_for_it(self, ledger):
        account = gaussian_account(ledger, kind="zcdp")
        job = account.reserve(self.step * 100, **ASK)
        job.spend(self.step * 7)
        account.grant(Guarantee(epsilon=30, delta=1e-5), who="chris", reason="more")
        job.spend(self.step * 3)
        job.close()
        ten = account.used
        ledger.verify()
        account.charge(self.step * 10, **ASK)
        assert account.used == pytest.approx(2 * ten)


class TestReleases:
    mechanism = DiscreteLaplace(sensitivity=1, scale=100)

    def test_data_is_touched_only_once_the_charge_is_durable(self, ledger, account, tmp_path):
        def compute():
            with Ledger.open(tmp_path / "budget.db", read_only=True) as other:
                assert other["salaries"].used == pytest.approx(0.01)
            return 412

        release = account.answer(self.mechanism, compute, **ASK)
        assert isinstance(release.value, int)
        assert release.error > 0
        charge, answer = release.receipt.entries
        assert answer["kind"] == "release"
        assert answer["charge"] == charge["index"]
        assert answer["code"].startswith("discreet ")

    def test_the_same_question_again_is_free_and_the_same(self, ledger, account):
        first = account.answer(self.mechanism, lambda: 412, **ASK, query="count", version="1")
        size = ledger.size
        again = account.answer(self.mechanism, _never, **ASK, query="count", version="1")
        assert again.value == first.value
        assert again.is_recalled
        assert ledger.size == size
        assert account.used == pytest.approx(0.01)

    @pytest.mark.parametrize("other", [{"version": "2"}, {"query": "count "}])
    def test_another_question_or_version_pays(self, account, other):
        account.answer(self.mechanism, lambda: 412, **ASK, query="count", version="1")
        account.answer(
            self.mechanism, lambda: 412, **ASK, **{"query": "count", "version": "1", **other}
        )
        assert account.used == pytest.approx(0.02)

    def test_a_better_answer_than_the_kept_one_pays(self, account):
        account.answer(self.mechanism, lambda: 412, **ASK, query="count")
        better = DiscreteLaplace(sensitivity=1, scale=50)
        assert not account.answer(better, lambda: 412, **ASK, query="count").is_recalled
        assert account.used == pytest.approx(0.03)
        assert account.answer(self.mechanism, _never, **ASK, query="count").is_recalled

    def test_another_analyst_pays_from_the_own_budget_only(self, ledger, account):
        account.limit(Guarantee(epsilon=Fraction(1, 100)), analyst="*")
        first = account.answer(self.mechanism, lambda: 412, **ASK, query="count")
        again = account.answer(self.mechanism, _never, who="bob", purpose="p", query="count")
        assert again.value == first.value
        assert account.used == pytest.approx(0.01)
        assert share(account, "analyst=*:bob") == share(account, "analyst=*:ana") == 1
        size = ledger.size
        account.answer(self.mechanism, _never, who="bob", purpose="p", query="count")
        assert ledger.size == size, "who has paid once reads for ever"
        account.answer(self.mechanism, lambda: 3, who="eve", purpose="p", query="other")
        with pytest.raises(BudgetExceeded, match="analyst=\\*:eve"):
            account.answer(self.mechanism, _never, who="eve", purpose="p", query="count")
        ledger.verify()

    def test_a_crash_between_charge_and_release_pays_again(self, account):
        with pytest.raises(DataError):
            account.answer(self.mechanism, lambda: 1 // 0, **ASK, query="count")
        account.answer(self.mechanism, lambda: 412, **ASK, query="count")
        assert account.used == pytest.approx(0.02)

    def test_nothing_comes_out_of_a_job_that_never_began(self, ledger, account):
        job = account.reserve(TENTH * 3, **ASK)
        with pytest.raises(LedgerError, match="no step"):
            account.release(job.receipt, b"model")
        job.close()
        with pytest.raises(LedgerError, match="no step"):
            account.release(job.receipt, b"model")
        with account.reserve(TENTH * 3, **ASK) as job:
            job.spend(TENTH)
        account.release(job.receipt, b"model")
        ledger.verify()

    def test_what_others_keep_is_no_answer_of_ours(self, account):
        receipt = account.charge(TENTH, **ASK, query="count")
        account.release(receipt, b"42")
        account.limit(Guarantee(epsilon=1), analyst="bob")
        assert account.recall("count", who="bob", purpose="x") is None
        assert share(account, "analyst=bob") == 0
        assert account.answer(self.mechanism, lambda: 1, **ASK, query="count").value is not None

    def test_error_bars_are_compared_at_the_same_confidence(self, account):
        account.answer(self.mechanism, lambda: 412, **ASK, query="count", confidence=0.5)
        better = DiscreteLaplace(sensitivity=1, scale=50)
        again = account.answer(better, lambda: 412, **ASK, query="count", confidence=0.99)
        assert not again.is_recalled

    def test_a_charge_pays_for_one_answer(self, ledger, account):
        receipt = account.charge(TENTH, **ASK)
        released = account.release(receipt, b"one")
        assert account.release(receipt, b"one") == released
        with pytest.raises(LedgerError, match="another answer"):
            account.release(receipt, b"two")
        unused = account.charge(TENTH, **ASK)
        with pytest.raises(LedgerError, match="another kind or account"):
            pure(ledger, "other").release(unused, b"three")
        ledger.verify()

    def test_answers_that_cannot_be_written_down_keep_their_charge(self, account):
        with pytest.raises(DataError, match="charge stands"):
            account.answer(_Broken(), lambda: 1, **ASK)
        assert account.used > 0

    def test_query_texts_and_answers_never_show_in_the_log(self, ledger, account, tmp_path):
        account.answer(
            self.mechanism, lambda: 7, **ASK, query="WHERE name = 'Zoë'", version="secret-7"
        )
        text = "".join(json.dumps(entry) for entry in ledger.history())
        ledger.export(tmp_path / "out.ndjson")
        exported = (tmp_path / "out.ndjson").read_text()
        for word in ("name =", "Zo\\u00eb", "secret-7"):
            assert word not in text
            assert word not in exported

    def test_seeded_noise_needs_a_ledger_for_tests(self, account, tmp_path):
        with pytest.raises(LedgerError, match="seeded"):
            account.charge(TENTH, **ASK, source=SeededSource(1))
        with Ledger.open(tmp_path / "test.db", testing=True) as ledger:
            receipt = pure(ledger).charge(TENTH, **ASK, source=SeededSource(1))
            assert receipt.entries[0]["noise"] == "seeded"
            assert ledger.is_testing
        with Ledger.open(tmp_path / "test.db") as ledger:
            assert ledger.is_testing, "a test ledger stays one"
        with pytest.raises(ParameterError, match="for testing"):
            Ledger.open(tmp_path / "budget.db", testing=True)


class _Broken:
    loss = TENTH

    def error(self, *, confidence):
        return 1.0

    def release(self, value, *, source):
        return math.nan


def _never():
    raise AssertionError("the data was touched")


class TestSources:
    def test_a_source_never_gets_a_second_budget(self, ledger, account):
        account.register("people", version="1", identities=["/data/people", "sha:1"])
        account.register("people", version="2", identities=["/data/people", "sha:2"])
        other = pure(ledger, "fresh")
        for identities in (["/data/people"], ["/copy", "sha:1"], ["view", "sha:2"]):
            with pytest.raises(LedgerError, match="belongs to account 'salaries'"):
                other.register("again", version="1", identities=identities)
        with pytest.raises(LedgerError, match="belongs to account"):
            pure(ledger, "third", sources=[{"name": "x", "version": "1", "identities": ["sha:1"]}])
        assert "third" not in ledger
        other.register("again", version="1", identities=["sha:1"], override="other people")
        account.register("people", version="3", identities=["sha:1"])
        assert ledger.history("fresh")[-1]["override"] == "other people"
        text = "".join(json.dumps(entry) for entry in ledger.history())
        assert "/data/people" not in text
        assert "sha:1" not in text
        ledger.verify()

    @pytest.mark.parametrize("bad", [[], "", "text", ()])
    def test_a_source_needs_identities(self, account, bad):
        with pytest.raises(ParameterError, match="identit"):
            account.register("x", version="1", identities=bad)


class TestOpening:
    def test_accounts_are_found_and_listed(self, ledger, account):
        assert "salaries" in ledger
        assert "other" not in ledger
        assert [a.name for a in ledger] == ["salaries"]
        with pytest.raises(AccountNotFound, match="discreet ledger accounts"):
            _ = ledger["other"]
        with pytest.raises(ParameterError, match="already has an account"):
            pure(ledger)

    @pytest.mark.parametrize(
        "bad", [{"epsilon": -0.0}, {"epsilon": 1, "delta": -0.0}, {"epsilon": math.nan},
                {"epsilon": math.inf}, {"epsilon": -1}, {"epsilon": 1, "delta": 1}],
    )  # fmt: skip
    def test_budgets_that_are_none_are_refused(self, ledger, bad):
        with pytest.raises(ParameterError):
            ledger.create(
                "x", unit=Unit.record(), neighbours="add_remove", guarantee=Guarantee(**bad)
            )

    @pytest.mark.parametrize("name", ["", "a/b", "a\n", "*", None, "x" * 101])
    def test_names_of_accounts(self, ledger, name):
        with pytest.raises(ParameterError, match="name"):
            pure(ledger, name)

    def test_a_deleted_ledger_is_no_fresh_budget(self, ledger, account, tmp_path):
        ledger.close()
        for file in tmp_path.glob("budget.db*"):
            if not file.name.endswith(".key"):
                file.unlink()
        with pytest.raises(LedgerError, match="is gone, but its key"):
            Ledger.open(tmp_path / "budget.db")

    def test_without_its_key_it_can_be_read_only(self, ledger, account, tmp_path):
        account.charge(TENTH, **ASK)
        (tmp_path / "budget.db.key").rename(tmp_path / "away")
        with Ledger.open(tmp_path / "budget.db") as other:
            assert other["salaries"].used == pytest.approx(0.1)
            other.verify()
            with pytest.raises(LedgerError, match="without its key"):
                other["salaries"].charge(TENTH, **ASK)
        with Ledger.open(tmp_path / "budget.db", key=tmp_path / "away") as other:
            other["salaries"].charge(TENTH, **ASK)

    def test_another_key_is_refused(self, ledger, tmp_path):
        with Ledger.open(tmp_path / "other.db"):
            pass
        with pytest.raises(LedgerError, match="not the one this ledger is signed with"):
            Ledger.open(tmp_path / "budget.db", key=tmp_path / "other.db.key")

    def test_rotation_reaches_whoever_has_the_ledger_open(self, ledger, account, tmp_path):
        with Ledger.open(tmp_path / "budget.db") as other:
            old = other.vkey
            ledger.rotate()
            other["salaries"].charge(TENTH, **ASK)
            assert other.vkey != old
            other.rotate()
            account.charge(TENTH, **ASK)
        assert sorted(f.name for f in tmp_path.glob("*.key*")) == ["budget.db.key"]
        ledger.verify(vkey=old)

    def test_an_interrupted_rotation_loses_no_key(self, ledger, account, tmp_path, monkeypatch):
        keyring = ledger._session._keyring
        monkeypatch.setattr(type(keyring), "settle", lambda self, vkey: None)  # a crash before it
        ledger.rotate()
        ledger.close()
        monkeypatch.undo()
        with Ledger.open(tmp_path / "budget.db") as again:
            again["salaries"].charge(TENTH, **ASK)
            assert sorted(f.name for f in tmp_path.glob("*.key*")) == ["budget.db.key"]
            (tmp_path / "budget.db.key.next").write_text("somebody's key")
            with pytest.raises(LedgerError):
                again.rotate()
            (tmp_path / "budget.db.key.next").unlink()
            again.rotate()
            again.verify()

    def test_an_interrupted_founding_leaves_a_usable_key(self, tmp_path, monkeypatch):
        from discreet.ledger.log.keyring import Keyring

        monkeypatch.setattr(Keyring, "settle", lambda self, vkey: None)
        Ledger.open(tmp_path / "new.db").close()
        monkeypatch.undo()
        with Ledger.open(tmp_path / "new.db") as again:
            pure(again).charge(TENTH, **ASK)
            assert again.verify().size == 3
        assert sorted(f.name for f in tmp_path.glob("new.db.key*")) == ["new.db.key"]

    def test_a_better_price_formula_does_not_condemn_old_entries(self, ledger, monkeypatch):
        from discreet.ledger.checking import replay
        from discreet.ledger.rules import hold as _holds

        account = pure(ledger)
        account.charge(TENTH, **ASK)
        price = replay.price
        monkeypatch.setattr(_holds, "PRICING", _holds.PRICING + 1)
        cheaper = lambda loss, rules: tuple(n - n // 100 for n in price(loss, rules))  # noqa: E731
        dearer = lambda loss, rules: tuple(n + n // 100 for n in price(loss, rules))  # noqa: E731
        monkeypatch.setattr(replay, "price", cheaper)
        assert (
            ledger.verify().facts["budget/salaries/total"]
            == (ledger.history()[-1]["after"]["total"])
        )
        monkeypatch.setattr(replay, "price", dearer)
        with pytest.raises(TamperingFound, match="balance") as found:
            ledger.verify()
        assert found.value.entry == 2

    def test_logs_carry_numbers_only(self, ledger, account, caplog):
        with caplog.at_level(logging.DEBUG, logger="discreet.ledger"):
            account.charge(TENTH, who="ana.secret", purpose="confidential")
            with pytest.raises(BudgetExceeded):
                account.charge(PureLoss(epsilon=5), who="ana.secret", purpose="confidential")
        events = [json.loads(record.message) for record in caplog.records]
        assert events == [
            {"event": "charge", "entry": 2},
            {"event": "charge", "refused": "BudgetExceeded"},
        ]

    def test_the_state_can_be_pinned(self, ledger, account, tmp_path):
        (tmp_path / "pin").write_text(ledger.checkpoint())
        account.charge(TENTH, **ASK)
        Ledger.open(tmp_path / "budget.db", pinned=tmp_path / "pin").close()
        with pytest.raises(ParameterError, match="no checkpoint"):
            Ledger.open(tmp_path / "budget.db", pinned=tmp_path / "nothing")
