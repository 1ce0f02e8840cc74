"""Private training: what a step does, who takes part, what it costs, and what is refused."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from private_runs import (
    begin,
    clipped_sum,
    failing,
    gradient_of,
    ids,
    loss_fn,
    make_data,
    make_model,
    nothing,
    tolerance,
    train,
    weights,
)
from scipy.stats import binom, chi2
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from discreet.accounting import GaussianLoss, epsilon
from discreet.errors import (
    BudgetExceeded,
    DataError,
    NotCopyable,
    ParameterError,
    SensitiveValue,
    SessionOver,
)
from discreet.learn import (
    Adaptive,
    FullBatch,
    PerLayer,
    Poisson,
    TruncatedPoisson,
    WithoutReplacement,
    prepare,
)
from discreet.learn.choices.adaptive import AdaptiveState
from discreet.learn.gradients.engine import GradientEngine
from discreet.learn.run.units import Grouped, rounded
from discreet.noise import SYSTEM
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.testing import SeededSource, temporary_account, temporary_ledger

FALSE_ALARM = 1e-9


class TestStep:
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

    def test_micro_batches_do_not_change_the_result(self):
        ends = []
        for micro in (None, 1, 3, 1000):
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
        calls = []

        def failing_later(model, batch):
            calls.append(len(batch[0]))
            if calls.count(5) > 2:
                raise RuntimeError("out of memory")
            return loss_fn(model, batch)

        with pytest.raises(RuntimeError):
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


class TestUsers:
    def test_a_user_counts_as_one_by_the_mean_of_the_rows(self):
        clip, data, users = 0.3, make_data(90), ids(90, users=30)
        options = {"units": users, "rows_per_unit": 12, "sampling": "full", "batch_size": None}
        found = gradient_of(clip=clip, data=data, **options)
        groups = [np.flatnonzero(users == user).tolist() for user in np.unique(users)]
        assert max(map(len, groups)) <= 12
        wanted = clipped_sum(make_model(), groups, data, clip)
        assert (found - wanted).abs().max() < tolerance(clip)
        by_rows = clipped_sum(make_model(), [[i] for i in range(90)], data, clip)
        assert (by_rows - wanted).norm() > wanted.norm()

    @pytest.mark.parametrize("micro", [1, 4])
    def test_micro_batches_never_part_a_user(self, micro):
        data, users = make_data(60), ids(60, users=20)
        options = {"units": users, "rows_per_unit": 3, "batch_size": 8}
        whole = weights(train(begin(data=data, **options)).model)
        parted = weights(train(begin(data=data, micro_batch_size=micro, **options)).model)
        torch.testing.assert_close(parted, whole, rtol=0, atol=1e-4)

    @given(
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
        each=st.integers(1, 6),
        seed=st.integers(0, 10**6),
    )
    def test_a_unit_brings_its_own_rows_each_once(self, sizes, each, seed):
        rng = np.random.default_rng(seed)
        owners = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        grouped = Grouped(owners, each)
        assert grouped.count == len(sizes)
        drawn = np.flatnonzero(rng.random(len(sizes)) < 0.7)
        rows, shares = grouped.rows(drawn, SeededSource(seed))
        rows, shares = rows.reshape(-1, each), shares.reshape(-1, each)
        for unit, own, share in zip(drawn, rows, shares, strict=True):
            real = own[share > 0]
            assert (owners[own] == unit).all()
            assert len(set(real.tolist())) == len(real) == min(each, sizes[unit])
            np.testing.assert_allclose(share[share > 0], 1 / len(real))

    def test_rows_of_a_large_user_are_drawn_evenly(self):
        draws, rows, each = 3_000, 10, 3
        grouped = Grouped(np.repeat([5, 6], [rows, 2]), each)
        counts = np.zeros(rows + 2)
        for _ in range(draws):
            picked, share = grouped.rows(np.array([0, 1]), SYSTEM)
            np.add.at(counts, picked[share > 0], 1)
        tail = FALSE_ALARM / (2 * rows)
        law = binom(draws, each / rows)
        assert (law.cdf(counts[:rows]) > tail).all()
        assert (law.sf(counts[:rows] - 1) > tail).all()
        assert counts[rows:].tolist() == [draws, draws]
        wrong = binom(draws, 0.8 * each / rows)
        assert (wrong.sf(counts[:rows] - 1) < tail).any()

    def test_units_come_from_a_column_of_a_dict_or_a_table(self):
        features, labels = make_data(60)
        users = np.array([f"u{i}" for i in ids(60, users=20)])
        table = pa.table(
            {"a": features[:, 0].numpy(), "label": labels.numpy(), "user": pa.array(users)}
        )
        private = begin(data=table, units="user", rows_per_unit=2, batch_size=5)
        assert private._stepping.units.count == len(set(users))
        assert private.spent.unit == "all records of one user"
        columns = {"a": features, "label": labels, "user": torch.from_numpy(ids(60, users=20))}
        private = begin(data=columns, units="user", rows_per_unit=2, batch_size=5)
        seen = []

        def look(model, batch):
            seen.append(sorted(batch))
            return loss_fn(model, batch)

        train(private, look, steps=1)
        assert seen[0] == ["a", "label"]

    def test_population_counts_users(self):
        private = begin(data=make_data(100), units=ids(100, users=10), batch_size=5)
        assert private._promise.sampling == Poisson(rate=Fraction(1, 2), population=10)

    @pytest.mark.parametrize(
        ("units", "error"),
        [
            (np.zeros(99), DataError),
            (np.full(100, np.nan), DataError),
            ([None] * 100, DataError),
            (np.array([None] * 100), DataError),
            (["a", 1] * 50, DataError),
            (3, ParameterError),
            ("user", ParameterError),
        ],
    )
    def test_bad_units_are_refused(self, units, error):
        with pytest.raises(error):
            begin(units=units)

    def test_rows_per_unit_needs_units(self):
        with pytest.raises(ParameterError, match="units="):
            begin(rows_per_unit=2)


class Items(Dataset):
    """A map-style dataset, as people write them."""

    def __init__(self, features, labels):
        self.features, self.labels = features, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(())


class TestData:
    @pytest.mark.parametrize(
        "build",
        [
            TensorDataset,
            Items,
            lambda x, y: (x.numpy(), y.numpy()),
            lambda x, y: {"x": x, "y": y},
            lambda x, y: list(zip(x, y, strict=True)),
            lambda x, y: torch.utils.data.Subset(Items(x, y), range(len(y))),
        ],
    )
    def test_every_kind_of_dataset_trains_the_same_model(self, build):
        features, labels = make_data(100)
        wanted = weights(train(begin(data=(features, labels))).model)
        found = weights(train(begin(data=build(features, labels))).model)
        assert torch.equal(found, wanted)

    def test_items_are_collated_by_ones_own_function(self):
        features, labels = make_data(100)
        texts = [{"text": row, "label": int(label)} for row, label in Items(features, labels)]

        def collate(items):
            return {
                "text": torch.stack([item["text"] for item in items]),
                "label": torch.tensor([item["label"] for item in items]),
            }

        found = weights(train(begin(data=texts, collate=collate)).model)
        assert torch.equal(found, weights(train(begin(data=(features, labels))).model))

    @pytest.mark.parametrize(
        ("dataset", "reason"),
        [
            (DataLoader(TensorDataset(*make_data(10))), "loader.dataset"),
            (Stream(), "IterableDataset"),
            (iter([1, 2]), "__len__ and __getitem__"),
            ({"x": [1, 2]}, "maps column names"),
            ((torch.zeros(3), torch.zeros(4)), "same number of rows"),
            ((torch.zeros(()),), "same number of rows"),
            (pa.table({"x": ["a", "b"]}), "not numeric"),
        ],
    )
    def test_what_cannot_be_sampled_is_refused_with_the_remedy(self, dataset, reason):
        with pytest.raises(ParameterError, match=reason):
            begin(data=dataset)


class TestPreparing:
    def test_noise_is_just_enough_for_epsilon(self):
        private = begin(epsilon=2, epochs=3, batch_size=10)
        assert private.steps_planned == 30
        step = GaussianLoss(noise_multiplier=private.noise_multiplier).sampled(rate=0.1)
        assert epsilon(step * 30, delta=1e-5) == pytest.approx(2, rel=1e-4)
        assert private.spent.epsilon == 0
        train(private)
        assert private.spent.epsilon <= 2
        assert private.spent.epsilon == pytest.approx(2, rel=1e-4)

    @pytest.mark.parametrize("sampling", ["truncated", "without_replacement", "full"])
    def test_every_sampling_is_calibrated(self, sampling):
        size = {} if sampling != "full" else {"batch_size": None}
        private = train(begin(epsilon=3, epochs=2, sampling=sampling, **size), nothing)
        assert private.spent.epsilon == pytest.approx(3, rel=1e-3)
        assert private.spent.neighbours == (
            "replace_one" if sampling == "without_replacement" else "add_remove"
        )
        assert private.steps_planned == (2 if sampling == "full" else 10)

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
        assert private._promise.gradient_noise > private.noise_multiplier == 1
        train(private)
        assert private.clip < 50  # nobody was clipped
        assert private._stepping.clipping.tally is None

    def test_a_failed_step_is_not_counted_with_the_next(self, monkeypatch):
        reads, tallies = [], []

        class Failing(Items):
            def __getitem__(self, index):
                reads.append(index)
                if len(reads) == 16:  # nine of them to learn the shapes, before the step
                    raise RuntimeError("the disk is gone")
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
        with pytest.raises(RuntimeError):
            private.step(next(private.batches()), loss_fn)
        assert int(private._stepping.clipping.tally) == 6
        private.step(next(private.batches()), loss_fn)
        assert tallies == [10]  # nobody was clipped, and nobody counted twice

    def test_a_count_that_costs_too_much_is_refused(self):
        with pytest.raises(ParameterError, match="count_noise"):
            begin(clip=Adaptive(initial=1.0, count_noise=0.4))


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

    def test_nothing_comes_back_by_an_exception(self):
        with temporary_account(epsilon=10, delta=1e-5) as account:
            with pytest.raises(ZeroDivisionError), begin(account=account, steps=9) as private:
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
            with pytest.raises(ZeroDivisionError):
                private.step(next(private.batches()), failing)
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
            (Unit.record().group(2), "add_remove", {}, "one at a time"),
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

    def test_it_is_a_table_and_a_plot(self, tmp_path):
        from rich.console import Console

        report = train(begin(), steps=2).report()
        console = Console(width=120, record=True, file=open(tmp_path / "out", "w"))  # noqa: SIM115
        console.print(report)
        assert "Poisson" in console.export_text()
        console.file.close()
        figure = report.plot(tmp_path / "epsilon.png")
        assert (tmp_path / "epsilon.png").stat().st_size > 1000
        planned, spent = figure.axes[0].lines
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


@settings(max_examples=10)
@given(steps=st.integers(1, 6), stop=st.integers(0, 6))
def test_spent_counts_what_was_begun(steps, stop):
    private = train(begin(steps=steps), nothing, steps=stop)
    begun = min(steps, stop)
    assert (private.steps_taken, private.spent.steps) == (begun, begun)
    assert (private.spent.epsilon > 0) == (begun > 0)
