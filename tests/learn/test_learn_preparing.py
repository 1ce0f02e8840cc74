"""What prepare chooses, what it refuses, and clipping that adapts on the way."""

import copy
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from private_runs import (
    Items,
    begin,
    loss_fn,
    make_data,
    make_model,
    nothing,
    train,
)

from discreet.accounting import GaussianLoss, epsilon
from discreet.errors import (
    ParameterError,
)
from discreet.learn import (
    Adaptive,
    PerLayer,
    Poisson,
    TruncatedPoisson,
    WithoutReplacement,
    prepare,
)
from discreet.learn.choices.adaptive import AdaptiveState
from discreet.learn.run.units import rounded


class TestPreparing:
    @pytest.mark.lengthy
    def test_noise_is_just_enough_for_epsilon(self):
        private = begin(epsilon=2, epochs=3, batch_size=10)
        assert private.steps_planned == 30
        step = GaussianLoss(noise_multiplier=private.noise_multiplier).sampled(rate=0.1)
        assert epsilon(step * 30, delta=1e-5) == pytest.approx(2, rel=1e-4)
        assert private.spent.epsilon == 0
        train(private)
        assert private.spent.epsilon <= 2
        assert private.spent.epsilon == pytest.approx(2, rel=1e-4)

    @pytest.mark.lengthy
    @pytest.mark.parametrize("sampling", ["truncated", "without_replacement", "full"])
    def test_every_sampling_is_calibrated(self, sampling):
        size = {} if sampling != "full" else {"batch_size": None}
        private = train(begin(epsilon=3, epochs=2, sampling=sampling, **size), nothing)
        assert private.spent.epsilon == pytest.approx(3, rel=1e-3)
        assert private.spent.neighbours == (
            "replace_one" if sampling == "without_replacement" else "add_remove"
        )
        assert private.steps_planned == (2 if sampling == "full" else 10)

    @pytest.mark.lengthy
    def test_less_is_spent_by_fewer_steps(self):
        private = train(begin(epsilon=2, epochs=3), steps=4)
        step = GaussianLoss(noise_multiplier=private.noise_multiplier).sampled(rate=0.2)
        assert private.spent.epsilon == pytest.approx(epsilon(step * 4, delta=1e-5))
        assert str(private.spent).startswith(f"epsilon={private.spent.epsilon:.4g} at delta=1e-05")

    def test_the_population_is_rounded_and_says_so(self, caplog):
        with caplog.at_level("INFO", logger="discreet.learn"):
            private = begin(data=make_data(1_234), batch_size=130)
        assert private._promise.sampling == Poisson(rate=Fraction(1, 10), population=1_300)
        assert "1300" in private.notes[0]
        assert "taken as public" in caplog.text
        assert private.notes[0] in repr(private)
        assert "1234" not in f"{private!r}{private.report()}{private.notes}{caplog.text}"

    def test_a_declared_population_is_taken_as_it_is(self):
        private = begin(data=make_data(1_234), population=2_000, batch_size=100)
        assert private._promise.sampling == Poisson(rate=Fraction(1, 20), population=2_000)
        assert not [note for note in private.notes if "population" in note]

    @given(n=st.integers(1, 10**9))
    def test_rounding_goes_up_by_a_tenth_at_most(self, n):
        assert n <= rounded(n) <= n * 1.1
        assert rounded(rounded(n)) == rounded(n)
        assert len(str(rounded(n)).rstrip("0")) <= 2

    def test_a_truncated_batch_almost_never_is(self):
        private = begin(data=make_data(2_000), batch_size=100, sampling="truncated")
        sampling = private._promise.sampling
        assert isinstance(sampling, TruncatedPoisson)
        assert 130 < sampling.capacity < 200
        assert sampling.loss(noise_multiplier=1).overflow * 3 < 1e-10

    def test_a_sampling_of_ones_own_is_used(self):
        own = Poisson(rate=0.25, population=100)
        assert begin(sampling=own, batch_size=None)._promise.sampling is own
        assert begin(sampling=own, batch_size=25).steps_planned == 3
        with pytest.raises(ParameterError, match="batch_size is 25 by sampling"):
            begin(sampling=own, batch_size=20)
        with pytest.raises(ParameterError, match="population is 100 by sampling"):
            begin(sampling=own, batch_size=None, population=90)

    def test_replace_one_tells_what_is_public(self):
        private = begin(sampling="without_replacement")
        assert private._promise.sampling == WithoutReplacement(size=20, population=100)
        assert "100 units is public" in private.notes[0]

    @pytest.mark.parametrize(
        ("options", "parameter"),
        [
            ({"epsilon": 1, "noise_multiplier": 1}, "epsilon"),
            ({"noise_multiplier": None}, "epsilon"),
            ({"epochs": 1, "steps": 1}, "epochs"),
            ({"steps": None}, "epochs"),
            ({"steps": 0}, "steps"),
            ({"steps": 2.5}, "steps"),
            ({"epochs": -1}, "epochs"),
            ({"epsilon": 0}, "epsilon"),
            ({"epsilon": float("nan")}, "epsilon"),
            ({"noise_multiplier": 0}, "noise_multiplier"),
            ({"noise_multiplier": 1e-9}, "noise_multiplier"),
            ({"delta": 0}, "delta"),
            ({"delta": 1}, "delta"),
            ({"batch_size": 0}, "batch_size"),
            ({"batch_size": None}, "batch_size"),
            ({"batch_size": 101}, "batch_size"),
            ({"batch_size": 20, "sampling": "full"}, "batch_size"),
            ({"population": 0}, "population"),
            ({"population": 50, "sampling": "truncated"}, "population"),
            ({"population": 50, "sampling": "without_replacement"}, "population"),
            ({"sampling": "shuffle"}, "sampling"),
            ({"sampling": 3}, "sampling"),
            ({"sampling": Poisson}, "sampling"),
            ({"clip": 0}, "norm"),
            ({"clip": "flat"}, "clip"),
            ({"micro_batch_size": 0}, "micro_batch_size"),
            ({"rows_per_unit": 0, "units": np.zeros(100)}, "rows_per_unit"),
            ({"collate": 3}, "collate"),
            ({"account": "people"}, "account"),
        ],
    )
    def test_bad_parameters_are_refused_before_randomness(self, options, parameter, no_randomness):
        with pytest.raises(ParameterError) as caught:
            begin(seed=None, source=no_randomness, **options)
        assert caught.value.parameter == parameter

    def test_an_optimiser_that_trains_something_else_is_refused(self):
        model, data = make_model(), make_data(100)
        usual = {"noise_multiplier": 1, "delta": 1e-5, "steps": 1, "batch_size": 5, "clip": 1}
        for optimizer, reason in (
            (torch.optim.SGD(make_model().parameters(), lr=1), "not the model's"),
            (torch.optim.SGD(model[0].parameters(), lr=1), "2.weight"),
            (torch.optim.LBFGS(model.parameters()), "several times"),
            (model, "torch optimizer"),
        ):
            with pytest.raises(ParameterError, match=reason):
                prepare(model, optimizer, data, **usual)
        with pytest.raises(ParameterError, match="torch module"):
            prepare(loss_fn, torch.optim.SGD(model.parameters(), lr=1), data, **usual)

    def test_frozen_parts_stay_as_they_are(self):
        model = make_model()
        model[0].requires_grad_(False)
        before = copy.deepcopy(model[0].state_dict())
        train(begin(model))
        assert all(
            torch.equal(value, before[name]) for name, value in model[0].state_dict().items()
        )

    def test_clipping_by_layer(self):
        private = begin(clip=PerLayer(norms={"0": 3, "2": 4}))
        assert private.clip == 5
        train(private)
        assert private.steps_taken == 3


class TestAdaptive:
    def test_the_norm_moves_and_both_are_paid_for(self):
        adaptive = Adaptive(initial=50.0, count_noise=2.0, quantile=0.5)
        private = begin(clip=adaptive, steps=5)
        assert private.clip == 50
        assert private._promise.gradient_noise(0) > private.noise_multiplier == 1
        train(private)
        assert private.clip < 50  # nobody was clipped
        assert private._stepping.clipping.tally is None

    def test_who_is_computed_again_is_counted_once(self, monkeypatch):
        reads, tallies = [], []

        class Failing(Items):
            def __getitem__(self, index):
                reads.append(index)
                if len(reads) == 20:  # thirteen of them to learn the shapes, before the step
                    raise ConnectionError("the disk is gone")
                return super().__getitem__(index)

        release = AdaptiveState.release

        def look(state, **options):
            tallies.append(int(state.tally))
            return release(state, **options)

        monkeypatch.setattr(AdaptiveState, "release", look)
        private = begin(
            data=Failing(*make_data(10)),
            clip=Adaptive(initial=1000, count_noise=2.0),
            sampling="full",
            batch_size=None,
            micro_batch_size=2,
        )
        private.step(next(private.batches()), loss_fn)
        assert len(reads) > 9 + 10  # it failed, and was made again
        assert tallies == [10]  # nobody was clipped, and nobody counted twice

    def test_a_count_that_costs_too_much_is_refused(self):
        with pytest.raises(ParameterError, match="count_noise"):
            begin(clip=Adaptive(initial=1.0, count_noise=0.4))
