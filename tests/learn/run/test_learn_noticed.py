"""What costs and is easily overlooked: a second run, a second optimiser, one that cannot step."""

import gc
import warnings

import numpy as np
import pytest
import torch
from private_runs import begin, loss_fn, make_data, make_model, train, weights
from torch import nn
from torch.utils.data import Subset, TensorDataset

from discreet.errors import ParameterError, PrivacyWarning
from discreet.learn import prepare
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit

pytestmark = pytest.mark.filterwarnings("error::discreet.errors.PrivacyWarning")


class TestSecondRun:
    def test_runs_on_the_same_data_are_added_up(self):
        data = make_data(100)
        first = begin(data=data, epsilon=1)
        train(first)
        with pytest.warns(PrivacyWarning, match=r"1 other runs\. .*epsilon 3 at delta 2e-05"):
            second = begin(data=data, epsilon=2)
        assert any("epsilon 3 at" in note for note in second.notes)
        assert "epsilon 3 at" in str(second.report())
        with pytest.warns(PrivacyWarning, match=r"2 other runs\. .*epsilon 6 at delta 3e-05"):
            begin(data=data, epsilon=3)

    def test_only_what_was_begun_counts_once_a_run_is_over(self):
        data = make_data(100)
        with begin(data=data, steps=50) as first:
            train(first, steps=2)
        spent = first.spent.epsilon
        with pytest.warns(PrivacyWarning) as caught:
            second = begin(data=data, steps=3)
        total = spent + second._promise.epsilon_after(3)
        assert f"epsilon {total:.4g}" in str(caught[0].message)

    def test_a_run_that_was_extended_counts_as_a_whole(self):
        data = make_data(100)
        first = begin(data=data, steps=3)
        first.extend(steps=47)
        with pytest.warns(PrivacyWarning) as caught:
            second = begin(data=data, steps=3)
        total = sum(run._promise.epsilon_after(run.steps_planned) for run in (first, second))
        assert f"epsilon {total:.4g}" in str(caught[0].message)

    def test_a_run_that_did_nothing_costs_nothing(self):
        data = make_data(100)
        begin(data=data).close()
        begin(data=data)
        gc.collect()  # as when a cell of a notebook is run again
        begin(data=data)

    @pytest.mark.parametrize(
        ("one", "other", "is_same"),
        [
            (lambda x, y: (x, y), lambda x, y: (x, y), True),
            (lambda x, y: (x, y), lambda x, y: {"x": x, "y": y}, True),
            (lambda x, y: (x, y), lambda x, y: TensorDataset(x, y), True),
            (lambda x, y: (x, y), lambda x, y: Subset(TensorDataset(x, y), range(50)), True),
            (lambda x, y: (x, y), lambda x, y: (x.numpy(), y.numpy()), True),
            (lambda x, y: (x[:60], y[:60]), lambda x, y: (x[40:], y[40:]), True),
            (lambda x, y: (x[:50], y[:50]), lambda x, y: (x[50:], y[50:]), False),
            (lambda x, y: (x, y), lambda x, y: make_data(100), False),
            (lambda x, y: list(zip(x, y, strict=True)), lambda x, y: (x.numpy(), y.numpy()), False),
        ],
    )
    def test_data_is_known_by_its_memory(self, one, other, is_same):
        x, y = make_data(100)
        first = begin(data=one(x, y))
        train(first, steps=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            begin(data=other(x, y))
        told = [w for w in caught if "trained on before" in str(w.message)]
        assert bool(told) == is_same

    def test_lists_are_known_too(self):
        rows = [(torch.randn(4), 1) for _ in range(100)]
        first = begin(data=rows)
        with pytest.warns(PrivacyWarning, match="trained on before"):
            begin(data=rows)
        assert first.is_open

    def test_a_ledger_adds_up_itself(self, tmp_path):
        data = make_data(100)
        with Ledger.open(tmp_path / "budget.db") as ledger:
            account = ledger.create(
                "people",
                unit=Unit.record(),
                neighbours="add_remove",
                guarantee=Guarantee(epsilon=100, delta=1e-3),
            )
            for _ in range(2):
                train(begin(data=data, account=account, seed=None))

    def test_a_resumed_run_is_no_second_one(self, tmp_path):
        from discreet.learn import resume

        data, model = make_data(100), make_model()
        first = begin(model, data=data)
        train(first, steps=1)
        first.save(tmp_path / "run.pt")
        resume(tmp_path / "run.pt", model, first.optimizer, data, progress=False)

    def test_another_unit_is_said_to_be_another(self):
        data = make_data(100)
        train(begin(data=data), steps=1)
        with pytest.warns(PrivacyWarning, match="0 other runs, and 1 that protect something else"):
            begin(data=data, units=np.arange(100) // 2, batch_size=5)


class TestSecondOptimiser:
    def test_another_optimiser_on_the_same_weights_is_refused(self):
        private = begin()
        other = torch.optim.Adam(private.model[0].parameters(), lr=0.1)
        before = weights(private.model)
        loss_fn(private.model, make_data(5)).sum().backward()
        with pytest.raises(ParameterError, match="by this optimiser or another one"):
            other.step()
        assert torch.equal(weights(private.model), before)
        train(private, steps=1)
        private.close()
        loss_fn(private.model, make_data(5)).sum().backward()
        other.step()

    def test_other_weights_are_free(self):
        private, head = begin(), nn.Linear(2, 2)
        other = torch.optim.Adam(head.parameters(), lr=0.1)
        head(torch.ones(1, 2)).sum().backward()
        other.step()
        train(private)

    def test_a_run_that_nobody_has_any_more_holds_nothing(self):
        private = begin()
        model = private.model
        del private
        gc.collect()
        loss_fn(model, make_data(5)).sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()

    def test_another_run_may_train_the_model_too(self):
        first = begin()
        second = begin(first.model)  # with an optimiser of its own
        train(second, steps=1)
        train(first, steps=1)


class Sulking(torch.optim.SGD):
    """Refuse to step."""

    def step(self, closure=None):
        raise RuntimeError("not today")


class WithClosure(torch.optim.SGD):
    """Evaluate the loss again."""

    def step(self, closure):
        closure()


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (torch.optim.SparseAdam, "noise in all of them"),
        (torch.optim.LBFGS, "several times"),
        (Sulking, "not today"),
        (WithClosure, "closure"),
    ],
)
def test_an_optimiser_that_cannot_step_is_refused_before_anything_is_paid(kind, word):
    model = make_model()
    options = {} if kind is torch.optim.LBFGS else {"lr": 0.1}
    before = weights(model)
    with pytest.raises(ParameterError, match=word):
        prepare(
            model, kind(model.parameters(), **options), make_data(100), clip=1.0, epsilon=1,
            delta=1e-5, steps=1, batch_size=20,
        )  # fmt: skip
    assert torch.equal(weights(model), before)


def test_a_backward_hook_is_refused():
    model = make_model()
    handle = model[0].register_full_backward_hook(lambda module, taken, given: None)
    with pytest.raises(ParameterError, match="backward hook"):
        begin(model)
    handle.remove()
    begin(model)
    handle = model.register_full_backward_pre_hook(lambda module, given: None)
    with pytest.raises(ParameterError, match="backward hook"):
        begin(model)
