"""Training past the plan, epochs, and epsilon at another delta."""

import pytest
from private_runs import begin, loss_fn, make_data, train

from discreet.accounting import GaussianLoss, epsilon
from discreet.errors import BudgetExceeded, ParameterError, SessionOver
from discreet.learn import resume
from discreet.testing import temporary_account


def spends(account):
    return sum(sum(e["steps"]) for e in account.history() if e["kind"] == "spend")


class TestExtending:
    @pytest.mark.parametrize("done", [0, 1, 3])
    def test_the_ledger_is_charged_for_all_steps(self, done):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            private = begin(account=account, steps=3)
            for _, batch in zip(range(done), private.batches(), strict=False):
                private.step(batch, loss_fn)
            private.extend(steps=2)
            train(private)
            assert (private.steps_taken, private.spent.steps, spends(account)) == (5, 5, 5)
            wanted = GaussianLoss(noise_multiplier=1.0).sampled(rate=private._promise.sampling.rate)
            assert private.spent.epsilon == epsilon(wanted * 5, delta=1e-5)

    def test_what_the_budget_does_not_hold_is_refused_and_changes_nothing(self):
        with temporary_account(epsilon=3, delta=1e-5) as account:
            private = begin(account=account, steps=3, noise_multiplier=2.0)
            with pytest.raises(BudgetExceeded):
                private.extend(steps=10_000)
            assert private.steps_planned == 3
            assert train(private).spent.steps == 3

    def test_a_target_epsilon_does_not_hide_what_was_added(self):
        private = begin(epsilon=2, noise_multiplier=None, steps=3)
        train(private)
        assert private.spent.epsilon <= 2
        private.extend(steps=3)
        train(private)
        assert private.spent.epsilon > 2

    def test_a_checkpoint_remembers_the_new_plan(self, tmp_path):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            private = begin(account=account, steps=3)
            private.extend(steps=2)
            private.step(next(private.batches()), loss_fn)
            private.save(tmp_path / "run.pt")
            again = resume(
                tmp_path / "run.pt",
                private.model,
                private.optimizer,
                make_data(100),
                account=account,
                progress=False,
            )
            assert again.steps_planned == 5
            assert train(again).spent.steps == 5

    @pytest.mark.parametrize("steps", [0, -1, 1.5, None])
    def test_nonsense_is_refused(self, steps):
        with pytest.raises(ParameterError, match="steps"):
            begin().extend(steps=steps)

    def test_a_closed_run_is_over(self):
        private = begin()
        private.close()
        with pytest.raises(SessionOver):
            private.extend(steps=1)


class TestEpochs:
    @pytest.mark.parametrize("before", [0, 2])
    def test_they_hold_all_batches_from_where_the_run_is(self, before):
        private = begin(steps=12)  # of 20 out of 100 rows
        for _, batch in zip(range(before), private.batches(), strict=False):
            private.step(batch, loss_fn)
        seen = []
        for epoch in private.epochs():
            for batch in epoch:
                private.step(batch, loss_fn)
            seen.append(private.steps_taken)
        assert seen == [5, 10, 12]

    def test_they_end_even_if_nobody_makes_a_step(self):
        assert sum(len(list(epoch)) for epoch in begin(steps=12).epochs()) == 12


def test_epsilon_at_another_delta_is_that_of_the_accounting():
    private = train(begin(steps=3))
    step = private._promise.loss({1.0: 1})
    for delta in (1e-9, 1e-5, 1e-2):
        assert private.epsilon(delta=delta) == epsilon(step * 3, delta=delta)
    assert begin().epsilon(delta=1e-9) == 0
    with pytest.raises(ParameterError, match="delta"):
        private.epsilon(delta=2)
