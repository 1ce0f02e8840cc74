"""What a step does, what a batch is, how a run ends and what it reports."""

import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from private_runs import (
    begin,
    clipped_sum,
    gradient_of,
    loss_fn,
    make_data,
    make_model,
    nothing,
    tolerance,
    train,
    weights,
)
from scipy.stats import chi2
from torch import nn

from discreet.errors import (
    DataError,
    NotCopyable,
    ParameterError,
    SensitiveValue,
    SessionOver,
)
from discreet.learn.gradients.engine import GradientEngine
from discreet.testing import SeededSource

FALSE_ALARM = 1e-9


class TestStep:
    @pytest.mark.lengthy
    @pytest.mark.parametrize("sampling", ["poisson", "truncated", "without_replacement", "full"])
    @pytest.mark.parametrize("micro", [None, 7])
    def test_the_sum_is_that_of_one_example_at_a_time(self, sampling, micro):
        clip, data = 0.4, make_data(100)
        options = {} if sampling != "full" else {"batch_size": None}
        options |= {"sampling": sampling, "micro_batch_size": micro}
        found = gradient_of(clip=clip, data=data, **options)
        private = begin(clip=clip, data=data, **options)
        drawn = private._promise.sampling.draw(100, source=SeededSource(7))
        wanted = clipped_sum(make_model(), [[i] for i in drawn], data, clip)
        assert (found - wanted).abs().max() < tolerance(clip)
        # What the usual mistakes give is far away: the batch clipped as one, the sum divided by
        # the realised size, no clipping at all.
        scale = wanted.norm()
        as_one = clipped_sum(make_model(), [drawn.tolist()], data, clip)
        assert (as_one - wanted).norm() > 0.5 * scale
        if sampling == "poisson":
            realised = wanted * 20 / len(drawn)
            assert len(drawn) != 20
            assert (realised - wanted).abs().max() > 2 * tolerance(clip)

    @pytest.mark.lengthy
    def test_micro_batches_do_not_change_the_result(self):
        ends = []
        for micro in (None, 1, 3, 3.0, 1000):
            private = train(begin(micro_batch_size=micro))
            ends.append(weights(private.model))
        for end in ends[1:]:
            torch.testing.assert_close(end, ends[0], rtol=0, atol=1e-4)

    def test_an_empty_batch_is_a_step_of_noise(self, monkeypatch):
        private = begin(data=make_data(3), batch_size=1, population=10**7, seed=None, steps=2)
        start = weights(private.model)
        monkeypatch.setattr(
            GradientEngine, "accumulate", lambda *_, **__: pytest.fail("nobody is there")
        )
        train(private)
        assert private.steps_taken == 2
        assert private.spent.steps == 2
        moved = weights(private.model) - start  # by two Gaussians of variance 1 in each entry
        law = chi2(len(moved))
        assert law.ppf(FALSE_ALARM / 2) < float(moved.square().sum()) / 2 < law.isf(FALSE_ALARM / 2)

    def test_steps_get_fresh_noise_from_the_system(self):
        model = make_model()
        ends = [
            weights(train(begin(copy.deepcopy(model), seed=None, steps=1), nothing).model)
            for _ in range(2)
        ]
        assert (ends[0] != ends[1]).any()

    @pytest.mark.lengthy
    def test_it_learns(self):
        data = make_data(4_000)
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
        with begin(
            model, data, seed=None, optimizer=optimizer, epsilon=4, batch_size=400, epochs=4
        ) as run:
            train(run)
        features, labels = make_data(2_000, seed=1)
        assert (model(features).argmax(1) == labels).float().mean() > 0.85

    def test_gradients_are_gone_after_a_step(self):
        private = train(begin(), steps=1)
        assert all(p.grad is None for p in private.model.parameters())

    def test_a_step_that_fails_stays_paid_and_leaves_nothing_behind(self):
        private = begin(micro_batch_size=5)
        start = weights(private.model)
        left = [10**9]

        def failing_later(model, batch):
            left[0] -= 1
            if left[0] < 0:
                raise RuntimeError("out of memory")
            return loss_fn(model, batch)

        pay = private._pay

        def paid(noise):
            left[0] = 2  # micro-batches, from now on
            return pay(noise)

        private._pay = paid
        with pytest.raises(DataError, match="stays paid for"):
            private.step(next(private.batches()), failing_later)
        assert torch.equal(weights(private.model), start)
        assert not private._stepping.engine.flat.buffer.any()
        assert (private.steps_taken, private.spent.steps) == (0, 1)
        assert private.spent.epsilon > 0
        assert len(list(private.batches())) == 2  # the plan has one step less

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda model, batch: loss_fn(model, batch).mean(),
            lambda model, batch: loss_fn(model, batch)[:, None],
            lambda model, batch: 0.0,
        ],
    )
    def test_a_loss_that_is_not_one_per_row_is_refused_with_the_fix(self, wrong):
        private = begin()
        with pytest.raises(ParameterError, match="reduction='none'"):
            private.step(next(private.batches()), wrong)
        assert private.spent.steps == 0  # found on made-up rows, before it was paid

    def test_the_optimiser_is_told_the_noise_of_the_mean_gradient(self):
        class Told(torch.optim.SGD):
            def tell_noise(self, std: float) -> None:
                self.std = std

        model = make_model()
        optimizer = Told(model.parameters(), lr=1.0)
        begin(model, optimizer=optimizer, clip=3.0, noise_multiplier=2.0)
        assert optimizer.std == pytest.approx(2.0 * 3.0 / 20)

    def test_normalisation_that_is_switched_on_later_is_refused_before_paying(self):
        norm = nn.BatchNorm1d(4).eval().requires_grad_(False)
        model = nn.Sequential(norm, make_model())
        private = train(begin(model), steps=1)
        model.train()
        with pytest.raises(ParameterError, match="BatchNorm"):
            private.step(next(private.batches()), loss_fn)
        assert private.spent.steps == 1


class TestBatches:
    def test_a_batch_shows_nothing(self):
        batch = next(begin().batches())
        assert repr(batch) == str(batch) == "Batch(<redacted>)"
        for look in (len, list, lambda b: b[0], pickle.dumps, copy.copy):
            with pytest.raises(SensitiveValue):
                look(batch)

    def test_what_is_no_batch_is_refused_with_the_reason(self):
        private = begin()
        for foreign in (make_data(5), torch.zeros(3), None, [0, 1]):
            with pytest.raises(ParameterError, match="not the batch that is accounted") as caught:
                private.step(foreign, loss_fn)
            assert caught.value.parameter == "batch"
        assert private.spent.steps == 0

    def test_each_batch_is_for_one_step_of_its_run(self):
        one, other = begin(), begin()
        batches = one.batches()
        first = next(batches)
        one.step(first, loss_fn)
        with pytest.raises(ParameterError, match="each batch is for one step"):
            one.step(first, loss_fn)
        second = next(batches)
        with pytest.raises(ParameterError, match="belongs to another run"):
            other.step(second, loss_fn)
        next(batches)
        with pytest.raises(ParameterError, match="each batch is for one step"):
            one.step(second, loss_fn)
        assert one.spent.steps == 1

    def test_there_are_as_many_as_steps_are_left(self):
        private = begin(steps=5)
        train(private, steps=2)
        assert len(list(private.batches())) == 3
        train(private)
        assert list(private.batches()) == []
        assert not private.is_open

    def test_nothing_is_drawn_before_the_step(self, no_randomness):
        private = begin(seed=None, source=no_randomness)
        assert len(list(private.batches())) == 3

    def test_a_bar_tells_epsilon_and_diagnostics_only_where_asked_for(self, capsys):
        train(begin(progress=True, steps=2))
        shown = capsys.readouterr().err
        assert "epsilon" in shown
        assert "loss" not in shown
        train(begin(progress=True, steps=2, diagnostics=True))
        assert "NOT PRIVATE: loss" in capsys.readouterr().err
        train(begin(progress=None, steps=2))
        assert capsys.readouterr().err == ""


class TestOptimiser:
    def test_only_private_steps_use_it(self):
        private = begin()
        before = weights(private.model)
        loss_fn(private.model, make_data(5)).sum().backward()
        with pytest.raises(ParameterError, match="not in its account"):
            private.optimizer.step()
        assert torch.equal(weights(private.model), before)
        train(private, steps=1)
        private.close()
        loss_fn(private.model, make_data(5)).sum().backward()
        private.optimizer.step()

    def test_gradients_of_somebody_else_do_not_get_in(self):
        clean, tampered = begin(), begin()
        train(clean, steps=1)
        for parameter in tampered.model.parameters():
            parameter.grad = torch.full_like(parameter, 100.0)
        train(tampered, steps=1)
        assert torch.equal(weights(clean.model), weights(tampered.model))

    def test_the_last_run_prepared_has_it(self):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        first = begin(model, optimizer=optimizer)
        second = begin(model, optimizer=optimizer)
        with pytest.raises(SessionOver, match="another run"):
            next(first.batches())
        train(second)

    def test_a_schedule_of_learning_rates_goes_on_working(self):
        private = begin()
        schedule = torch.optim.lr_scheduler.StepLR(private.optimizer, 1, gamma=0.5)
        for batch in private.batches():
            private.step(batch, loss_fn)
            schedule.step()
        assert private.optimizer.param_groups[0]["lr"] == 0.125

    @pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.RMSprop, torch.optim.AdamW])
    def test_any_optimiser_will_do(self, kind):
        model = make_model()
        private = begin(model, optimizer=kind(model.parameters(), lr=0.01))
        before = weights(model)
        train(private)
        assert (weights(model) != before).all()


class TestEnding:
    def test_a_closed_run_makes_no_steps(self):
        private = begin()
        batch = next(private.batches())
        private.close()
        private.close()
        with pytest.raises(SessionOver, match="closed"):
            private.step(batch, loss_fn)
        with pytest.raises(SessionOver):
            next(private.batches())
        assert not private.is_open

    def test_it_cannot_be_copied(self):
        private = begin()
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(NotCopyable):
                make(private)


class TestReports:
    def test_it_tells_the_settings_and_the_price(self):
        private = train(begin(epsilon=2, epochs=3), steps=2)
        told = str(private.report())
        for part in ("Poisson(rate=Fraction(1, 5), population=100)", "[ZDW22", "Flat(norm=1.0)"):
            assert part in told
        assert f"epsilon={private.spent.epsilon:.4g}" in told
        assert "SEEDED" in told
        assert "NOT PRIVATE" not in told
        html = private.report()._repr_html_()
        assert html.startswith("<table>")
        assert "Fraction(1, 5)" in html

    @pytest.mark.lengthy
    def test_it_is_a_table_and_a_plot(self, tmp_path):
        from rich.console import Console

        report = train(begin(), steps=2).report()
        console = Console(width=120, record=True, file=open(tmp_path / "out", "w"))  # noqa: SIM115
        console.print(report)
        assert "Poisson" in console.export_text()
        console.file.close()
        figure = report.plot(tmp_path / "epsilon.png")
        assert (tmp_path / "epsilon.png").stat().st_size > 1000
        planned, spent, last = figure.axes[0].lines
        assert last.get_xydata().tolist() == [[2, report.spent.epsilon]]
        assert planned.get_xdata()[-1] == 3
        assert spent.get_xdata()[-1] == 2
        assert spent.get_ydata()[-1] == report.spent.epsilon

    def test_diagnostics_are_off_and_marked(self):
        with pytest.raises(ParameterError, match="not private"):
            _ = begin().diagnostics
        private = begin(diagnostics=True, clip=1e-3, sampling="full", batch_size=None)
        model = copy.deepcopy(private.model)
        train(private, steps=1)
        seen = private.diagnostics
        assert str(seen).startswith("NOT PRIVATE")
        assert (seen.clipped, seen.units) == (1.0, 100)
        assert seen.loss == pytest.approx(loss_fn(model, make_data(100)).mean().item(), rel=1e-4)
        assert "NOT PRIVATE" in str(private.report())

    def test_secure_noise_is_told_from_seeded(self):
        assert begin(seed=None).spent.is_secure
        assert "protects nobody" in str(begin().spent)


@pytest.mark.lengthy
@settings(max_examples=10)
@given(steps=st.integers(1, 6), stop=st.integers(0, 6))
def test_spent_counts_what_was_begun(steps, stop):
    private = train(begin(steps=steps), nothing, steps=stop)
    begun = min(steps, stop)
    assert (private.steps_taken, private.spent.steps) == (begun, begun)
    assert (private.spent.epsilon > 0) == (begun > 0)
