"""Steps are paid for before anything is drawn, and by an account that fits."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from private_runs import (
    Items,
    begin,
    failing,
    ids,
    loss_fn,
    make_data,
    make_model,
    train,
)

from discreet.accounting import GaussianLoss, epsilon
from discreet.errors import (
    BudgetExceeded,
    DataError,
    ParameterError,
)
from discreet.learn import FullBatch, TruncatedPoisson
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.run.payment import Charges
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.testing import SeededSource, temporary_account, temporary_ledger


def spends(account) -> int:
    return sum(sum(e["steps"]) for e in account.history() if e["kind"] == "spend")


class TestAccount:
    def test_each_step_is_on_record_before_anything_is_drawn_or_read(self, monkeypatch):
        monkeypatch.setattr(GradientEngine, "try_again", lambda self: None)
        with temporary_account(epsilon=10, delta=1e-5) as account:
            log = []

            class Watched:
                """A source that notes what was paid when it is read."""

                is_secure = False
                inner = SeededSource(3)

                def read(self, n, /):
                    log.append(("drawn", spends(account)))
                    return self.inner.read(n)

            class Rows(Items):
                def __getitem__(self, index):
                    log.append(("read", spends(account)))
                    return super().__getitem__(index)

            private = begin(
                data=Rows(*make_data(100)), account=account, seed=None, source=Watched()
            )
            assert log == []
            private._stepping.try_out(loss_fn)  # reads shapes, after the reservation
            for step, batch in enumerate(private.batches(), 1):
                log.clear()
                private.step(batch, loss_fn)
                assert {paid for _, paid in log} == {step}
                assert {kind for kind, _ in log} == {"drawn", "read"}

    def test_what_is_reserved_comes_back_when_it_is_not_used(self):
        with temporary_account(epsilon=10, delta=1e-5) as account:
            with begin(account=account, steps=20, who="ana", purpose="model") as private:
                held = account.used
                train(private, steps=2)
            assert spends(account) == 2
            assert account.used == pytest.approx(held / 10, rel=1e-6)
            entry = next(e for e in account.history() if e["kind"] == "reserve")
            assert (entry["who"], entry["purpose"], entry["noise"]) == ("ana", "model", "seeded")
            account.ledger.verify()

    @pytest.mark.lengthy
    def test_a_room_for_batches_costs_nothing(self):
        """As much as plain Poisson batches, and what is not used comes back, step by step."""
        used = []
        for sampling in ("poisson", "truncated"):
            with temporary_account(epsilon=3, delta=1e-6) as account:
                options = {"noise_multiplier": 4, "steps": 20, "sampling": sampling}
                with begin(account=account, data=make_data(2_000), batch_size=50, **options) as run:
                    held = account.used
                    train(run, steps=2)
                assert account.used == pytest.approx(held / 10, rel=1e-6)
                account.ledger.verify()
            used.append(held)
        assert used[1] == pytest.approx(used[0], rel=1e-3)

    def test_a_run_that_was_reserved_before_the_cut_was_told_goes_on(self):
        sampling = TruncatedPoisson(rate=0.1, capacity=120, population=500)
        step = sampling.loss(noise_multiplier=4)
        promise = begin(data=make_data(500), sampling=sampling, batch_size=None)._promise
        with temporary_account(epsilon=3, delta=1e-6) as account:
            job = account.reserve(replace(step, uniform=False) * 3, who="ana", purpose="model")
            charges = Charges(account, promise, [job], {})
            charges.begin(4)
            assert (charges.begun, job.left) == ({4: 1}, 2)
            account.ledger.verify()

    def test_nothing_comes_back_by_an_exception(self):
        with temporary_account(epsilon=10, delta=1e-5) as account:
            with pytest.raises(DataError), begin(account=account, steps=9) as private:
                train(private, lambda model, batch: 1 / 0)
            assert not [e for e in account.history() if e["kind"] == "settle"]
            assert not private.is_open

    def test_a_run_that_made_all_its_steps_is_settled(self):
        with temporary_account(epsilon=10, delta=1e-5) as account:
            train(begin(account=account))
            assert [e["kind"] for e in account.history()][-4:] == ["spend"] * 3 + ["settle"]

    def test_too_little_left_is_refused_before_the_data_is_touched(self, no_randomness):
        class Untouched(Items):
            def __getitem__(self, index):
                raise AssertionError("data was read")

        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        with temporary_account(epsilon=0.5, delta=1e-6) as account:
            with pytest.raises(BudgetExceeded):
                begin(
                    model,
                    Untouched(*make_data(100)),
                    optimizer=optimizer,
                    account=account,
                    seed=None,
                    noise_multiplier=0.5,
                    steps=1_000,
                )
            assert account.used == 0
        optimizer.step()  # nobody holds it

    def test_a_failed_step_is_on_record(self):
        with temporary_account(epsilon=10, delta=1e-5) as account:
            private = begin(account=account)
            with pytest.raises(DataError, match="stays paid for"):
                private.step(next(private.batches()), failing())
            assert spends(account) == private.spent.steps == 1

    def test_seeded_noise_is_refused_by_a_real_ledger(self, tmp_path):
        from discreet.errors import LedgerError
        from discreet.ledger import Ledger

        with Ledger.open(tmp_path / "budget.db") as ledger:
            account = ledger.create(
                "people",
                unit=Unit.record(),
                neighbours="add_remove",
                guarantee=Guarantee(epsilon=5, delta=1e-5),
            )
            with pytest.raises(LedgerError, match="seeded"):
                begin(account=account)
            train(begin(account=account, seed=None))

    @pytest.mark.parametrize(
        ("unit", "neighbours", "options", "reason"),
        [
            (Unit.column("user"), "add_remove", {}, "pass units='user'"),
            (Unit.record(), "add_remove", {"units": np.arange(100)}, "leave units= out"),
            (Unit.column("user").per("day"), "add_remove", {}, "all periods"),
            (
                Unit.record().group(2),
                "add_remove",
                {"sampling": "truncated"},
                "use sampling='poisson'",
            ),
            (
                Unit.record().group(2),
                "add_remove",
                {"sampling": FullBatch(population=100), "batch_size": None},
                "with together=2",
            ),
            (Unit.record(), "zero_out", {"sampling": "truncated"}, "sampling='full' fits all"),
            (Unit.record(), "replace_one", {}, "without_replacement"),
            (Unit.record(), "add_remove", {"sampling": "without_replacement"}, "add_remove"),
        ],
    )
    def test_an_account_that_promises_something_else_is_refused(
        self, unit, neighbours, options, reason
    ):
        with temporary_ledger() as ledger:
            guarantee = Guarantee(epsilon=5, delta=1e-5)
            account = ledger.create("people", unit=unit, neighbours=neighbours, guarantee=guarantee)
            with pytest.raises(ParameterError, match=reason):
                begin(account=account, **options)
            assert not [e for e in account.history() if e["kind"] == "reserve"]

    @pytest.mark.lengthy
    @pytest.mark.parametrize("neighbours", ["add_remove", "zero_out", "replace_one"])
    def test_groups_and_zeroed_units_pay_for_full_batches(self, neighbours):
        noise = {}
        for size in (1, 3):
            with temporary_ledger() as ledger:
                account = ledger.create(
                    "people",
                    unit=Unit.record().group(size),
                    neighbours=neighbours,
                    guarantee=Guarantee(epsilon=20, delta=1e-5),
                )
                private = begin(
                    account=account, sampling="full", batch_size=None,
                    noise_multiplier=None, epsilon=5,
                )  # fmt: skip
                train(private)
                ledger.verify()
                noise[size] = private.noise_multiplier
                assert private.spent.epsilon <= 5
                assert private._promise.sampling == FullBatch(
                    population=100, neighbours=neighbours, together=size
                )
                assert any("any 3" in note for note in private.notes) == (size == 3)
        # Three units move the sum three times as far: the same epsilon takes three times the noise.
        assert noise[3] == pytest.approx(3 * noise[1], rel=1e-6)

    @pytest.mark.lengthy
    @pytest.mark.parametrize("neighbours", ["add_remove", "zero_out"])
    def test_groups_and_zeroed_units_pay_for_sampled_batches(self, neighbours):
        noise = {}
        for size in (1, 2):
            with temporary_ledger() as ledger:
                account = ledger.create(
                    "people",
                    unit=Unit.record().group(size),
                    neighbours=neighbours,
                    guarantee=Guarantee(epsilon=20, delta=1e-5),
                )
                private = begin(account=account, noise_multiplier=None, epsilon=3)
                train(private)
                ledger.verify()
                noise[size] = private.noise_multiplier
                assert private.spent.epsilon <= 3
                sampling = private._promise.sampling
                assert (sampling.neighbours, sampling.together) == (neighbours, size)
                step = sampling.loss(noise_multiplier=private.noise_multiplier)
                assert epsilon(step * 3, delta=private.spent.delta) <= 3.0001
                assert any("any 2" in note for note in private.notes) == (size == 2)
        at, share = private.spent.delta, sampling.rate
        alone = GaussianLoss(noise_multiplier=noise[1]).sampled(rate=share)
        assert epsilon(alone * 3, delta=at) == pytest.approx(3, rel=1e-3)
        # More than one unit needs, and less than if both were drawn by one coin.
        one_coin = GaussianLoss(noise_multiplier=noise[2] / 2).sampled(rate=1 - (1 - share) ** 2)
        assert noise[1] < noise[2]
        assert epsilon(one_coin * 3, delta=at) > 3

    @pytest.mark.lengthy
    def test_accounts_of_users_and_of_replacement_fit_what_they_promise(self):
        with temporary_ledger() as ledger:
            guarantee = Guarantee(epsilon=20, delta=1e-5)
            users = ledger.create(
                "users", unit=Unit.column("user"), neighbours="add_remove", guarantee=guarantee
            )
            train(begin(account=users, units=ids(100, users=30), batch_size=5))
            replaced = ledger.create(
                "replaced", unit=Unit.record(), neighbours="replace_one", guarantee=guarantee
            )
            train(begin(account=replaced, sampling="without_replacement", noise_multiplier=4))
            private = begin(account=replaced, sampling="full", batch_size=None, noise_multiplier=40)
            assert private._promise.sampling == FullBatch(
                population=100, neighbours=Neighbours.replace_one
            )
            train(private)
            ledger.verify()
