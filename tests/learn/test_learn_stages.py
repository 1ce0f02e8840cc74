"""Noise and clip that change on the way: what is added, what is charged, what is told."""

import json
from collections import Counter
from fractions import Fraction
from itertools import count

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from private_runs import (
    Items,
    begin,
    clipped_sum,
    failing,
    loss_fn,
    make_data,
    make_model,
    nothing,
    tolerance,
    train,
    weights,
)

from discreet.accounting import GaussianLoss, SampledLoss, epsilon, from_json
from discreet.errors import BudgetExceeded, DataError, ParameterError
from discreet.learn import (
    AdamBC,
    Adaptive,
    Automatic,
    Flat,
    FullBatch,
    PerLayer,
    Poisson,
    Stages,
    TruncatedPoisson,
    WithoutReplacement,
    resume,
)
from discreet.learn.noise.grid_noise import FLOAT_SLACK
from discreet.learn.run import step as stepping
from discreet.privacy import Guarantee, Unit
from discreet.testing import SeededSource, temporary_account, temporary_ledger

pytestmark = pytest.mark.lengthy

NOISE = Stages((2, 4.0), (3, 2.5), then=3.0)
PLANNED = {4.0: 2, 2.5: 3, 3.0: 2}
RATE = Fraction(1, 5)


def composed(noises, *, rate=RATE):
    """Compose steps by hand."""
    first, *others = [
        SampledLoss(inner=GaussianLoss(noise_multiplier=z), rate=rate) * n
        for z, n in noises.items()
    ]
    return sum(others, first)


def peers(noises, *, delta):
    """Return what another accountant says about the same steps."""
    accounting = pytest.importorskip("dp_accounting")
    accountant = accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    for noise, steps in noises.items():
        event = accounting.PoissonSampledDpEvent(float(RATE), accounting.GaussianDpEvent(noise))
        accountant.compose(accounting.SelfComposedDpEvent(event, steps))
    return accountant.get_epsilon(delta)


def on_record(account):
    """Return the noise multipliers of all steps that a ledger has."""
    found, parts = Counter(), {}
    for entry in account.history():
        if entry["kind"] == "reserve":
            loss = from_json(json.dumps(entry["loss"]))
            parts[entry["index"]] = [part.inner.noise_multiplier for part, _ in loss.parts]
        elif entry["kind"] == "spend":
            for noise, steps in zip(parts[entry["job"]], entry["steps"], strict=True):
                found[noise] += steps
    return {noise: steps for noise, steps in found.items() if steps}


def again(private, path, **options):
    private.save(path)
    model = make_model(seed=1)
    optimizer = type(private.optimizer)(model.parameters(), lr=1.0)
    return resume(path, model, optimizer, make_data(100), progress=False, **options)


@given(
    lengths=st.lists(st.integers(1, 9), max_size=5),
    start=st.integers(0, 60),
    steps=st.integers(0, 60),
)
def test_spans_are_what_each_step_has(lengths, start, steps):
    stages = Stages(*((n, i) for i, n in enumerate(lengths)), then=99)
    spans = [value for value, n in stages.spans(start, start + steps) for _ in range(n)]
    assert spans == [stages.at(number) for number in range(start, start + steps)]
    by_hand = [i for i, n in enumerate(lengths) for _ in range(n)] + [99] * 200
    assert spans == by_hand[start : start + steps]


class TestWhatItCosts:
    def test_the_plan_is_the_composition_of_its_steps_by_hand_and_by_another_accountant(self):
        private = train(begin(noise_multiplier=NOISE, steps=7))
        assert private.spent.epsilon == epsilon(composed(PLANNED), delta=1e-5)
        assert private.epsilon(delta=1e-7) == epsilon(composed(PLANNED), delta=1e-7)
        assert private.spent.epsilon == pytest.approx(peers(PLANNED, delta=1e-5), rel=2e-3)
        for wrong in ({3.0: 7}, {4.0: 7}, {2.5: 7}):  # the test could tell
            assert private.spent.epsilon != pytest.approx(peers(wrong, delta=1e-5), rel=2e-2)

    def test_each_step_is_charged_as_its_stage_says(self):
        private, seen = begin(noise_multiplier=NOISE, steps=7), []
        noises = [4.0, 4.0, 2.5, 2.5, 2.5, 3.0, 3.0]
        for batch in private.batches():
            seen.append(private.noise_multiplier)
            private.step(batch, loss_fn)
            begun = Counter(noises[: len(seen)])
            assert private.spent.epsilon == epsilon(composed(begun), delta=1e-5)
        assert seen == noises
        assert private.noise_multiplier == 3.0  # when the plan is over, the last

    def test_the_ledger_has_the_stages(self):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            private = begin(noise_multiplier=NOISE, steps=7, account=account)
            held = account.used
            train(private, steps=3)
            assert on_record(account) == {4.0: 2, 2.5: 1}
            private.close()
            assert account.used < held
            once = account.used
            account.ledger.verify()
        with temporary_account(epsilon=30, delta=1e-5) as account:
            account.charge(composed({4.0: 2, 2.5: 1}), who="ana", purpose="by hand")
            assert account.used == pytest.approx(once, rel=1e-9)

    def test_a_budget_for_the_last_stage_alone_is_not_enough(self):
        with temporary_account(epsilon=3, delta=1e-5) as account:
            with pytest.raises(BudgetExceeded):
                begin(noise_multiplier=Stages((5, 0.3), then=50), steps=7, account=account)
            begin(noise_multiplier=50, steps=7, account=account)

    def test_stages_of_one_noise_that_come_back_are_one(self):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            there = Stages((2, 3.0), (2, 5.0), then=3.0)
            private = train(begin(noise_multiplier=there, steps=6, account=account))
            assert on_record(account) == {3.0: 4, 5.0: 2}
            assert private.spent.epsilon == epsilon(composed({3.0: 4, 5.0: 2}), delta=1e-5)

    def test_a_run_with_equal_stages_is_a_run_without(self):
        same = [begin(noise_multiplier=noise) for noise in (1.5, Stages((2, 1.5), then=1.5))]
        first, second = (train(private) for private in same)
        assert first.spent == second.spent
        assert torch.equal(weights(first.model), weights(second.model))  # of one seed

    def test_clip_stages_cost_nothing(self):
        spent = [train(begin(clip=clip)).spent for clip in (1.0, Stages((1, 2.0), then=0.5))]
        assert spent[0] == spent[1]

    def test_a_step_that_fails_is_one_of_its_stage(self):
        private, wrong = begin(noise_multiplier=NOISE, steps=7), failing()
        for batch, number in zip(private.batches(), count(), strict=False):
            if number == 1:
                with pytest.raises(DataError):
                    private.step(batch, wrong)
            else:
                private.step(batch, loss_fn)
        assert private.steps_taken == 6
        assert private.spent.epsilon == epsilon(composed(PLANNED), delta=1e-5)

    def test_what_is_drawn_ahead_is_paid_by_its_own_stage(self):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            items = Items(*make_data(100))
            private = begin(data=items, noise_multiplier=NOISE, steps=7, workers=1, account=account)
            train(private, steps=2)
            assert on_record(account) == {4.0: 2, 2.5: 1}  # the third is being read
            assert private.spent.epsilon == epsilon(composed({4.0: 2, 2.5: 1}), delta=1e-5)
            train(private)
            assert on_record(account) == PLANNED

    def test_an_extended_run_goes_on_with_the_last_stage(self):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            private = begin(noise_multiplier=NOISE, steps=6, account=account)
            private.extend(steps=4)
            train(private)
            assert on_record(account) == {4.0: 2, 2.5: 3, 3.0: 5}
            assert private.spent.epsilon == epsilon(composed({4.0: 2, 2.5: 3, 3.0: 5}), delta=1e-5)

    def test_runs_on_the_same_data_are_added_up_by_their_stages(self):
        data = make_data(100)
        first = begin(data=data, noise_multiplier=NOISE, steps=7)
        with pytest.warns(UserWarning, match="trained on before"):
            second = begin(data=data, noise_multiplier=NOISE, steps=6)
        each = epsilon(composed(PLANNED), delta=1e-5)
        less = epsilon(composed(PLANNED | {3.0: 1}), delta=1e-5)
        assert f"epsilon {each + less:.4g}" in second.notes[-1]
        assert first.is_open


class TestATargetEpsilon:
    def test_the_stages_are_relative_and_their_level_is_the_least(self):
        private = begin(epsilon=2, noise_multiplier=Stages((2, 2), (3, 1.25), then=1.5), steps=7)
        promised = private._promise.noise_multiplier
        level = promised.at(0) / 2
        assert promised.values == pytest.approx([2 * level, 1.25 * level, 1.5 * level], rel=1e-12)
        noises = private._promise.noises(0, 7)
        assert 1.999 < epsilon(composed(noises), delta=1e-5) <= 2
        assert peers(noises, delta=1e-5) == pytest.approx(2, rel=2e-3)
        assert train(private).spent.epsilon <= 2

    def test_equal_stages_find_what_one_number_does(self):
        one = begin(epsilon=2).noise_multiplier
        assert begin(epsilon=2, noise_multiplier=Stages((1, 7), then=7)).noise_multiplier == (
            pytest.approx(one, rel=1e-5)
        )

    @pytest.mark.parametrize("noise", [1e-300, 1e-30, 1e300, 1e30])
    def test_stages_that_are_worlds_apart_are_refused(self, noise):
        with pytest.raises(ParameterError, match="within"):
            begin(epsilon=2, noise_multiplier=Stages((1, noise), then=1))

    def test_only_the_ratios_matter(self):
        found = [
            begin(epsilon=2, noise_multiplier=Stages((1, 2 * unit), then=unit))
            for unit in (1, 1e-200, 1e200)
        ]
        first, *others = (private._promise.noise_multiplier.values for private in found)
        assert all(other == pytest.approx(first, rel=1e-12) for other in others)

    def test_lost_steps_are_told_although_they_exceed_the_target(self, tmp_path):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            stages = Stages((1, 1), then=3)
            private = begin(epsilon=2, noise_multiplier=stages, steps=3, account=account)
            path = tmp_path / "run.pt"
            private.save(path)
            train(private, steps=1)  # lost
            other = resume(path, private.model, private.optimizer, make_data(100), account=account)
            train(other, steps=1)
            first = private._promise.noise_multiplier.at(0)
            # Two steps of three, but two of a stage that has one.
            assert other.spent.epsilon == epsilon(composed({first: 2}), delta=1e-5)


class TestWhatIsAdded:
    def test_noise_and_clip_of_each_step_are_those_of_its_stage(self, monkeypatch):
        seen, real = [], stepping.add_noise_

        def look(buffer, *, sensitivity, noise_multiplier, **named):
            seen.append((sensitivity, noise_multiplier))
            real(buffer, sensitivity=sensitivity, noise_multiplier=noise_multiplier, **named)

        monkeypatch.setattr(stepping, "add_noise_", look)
        clip = Stages((1, 0.5), (3, Automatic(norm=2)), then=PerLayer(norm=3))
        private, told = begin(noise_multiplier=NOISE, clip=clip, steps=7), []
        for batch in private.batches():
            told.append((private.clip, private.noise_multiplier))
            private.step(batch, loss_fn)
        clips, noises = [0.5, 2, 2, 2, 3, 3, 3], [4.0, 4.0, 2.5, 2.5, 2.5, 3.0, 3.0]
        assert seen == told == list(zip(clips, noises, strict=True))

    @pytest.mark.parametrize("workers", [0, 1])
    def test_the_noise_is_as_wide_as_its_stage_says(self, workers):
        """Chi-squared: 3,000 entries a stage, and a scale a fifth off would show."""
        size, expected, lr = 3_000, 20, 1.0
        data = torch.zeros(100, size)
        model = torch.nn.Linear(size, 1, bias=False)
        private = begin(
            model,
            Items(data, torch.zeros(100)),
            seed=None,
            noise_multiplier=Stages((1, 4.0), (1, 2.0), then=1.0),
            clip=Stages((2, 1.0), then=3.0),
            steps=4,
            workers=workers,
        )
        before, spreads = weights(model), []
        for batch in private.batches():
            private.step(batch, lambda model, rows: model(rows[0]).squeeze(1))
            spreads.append(float((weights(model) - before).std()) * expected / lr)
            before = weights(model)
        for found, wanted in zip(spreads, [4.0, 2.0, 3.0, 3.0], strict=True):
            assert found == pytest.approx(wanted * (1 + FLOAT_SLACK), rel=0.1)  # 7.7 deviations

    def test_gradients_are_clipped_to_the_norm_of_the_stage(self):
        data, everybody = make_data(40), [[i] for i in range(40)]
        for number, clip in enumerate([0.05, 0.4]):
            steps = []
            for function in (loss_fn, nothing):  # the same noise, which cancels
                private = begin(
                    data=data,
                    clip=Stages((1, 0.05), then=0.4),
                    steps=2,
                    sampling=FullBatch(population=40),
                    batch_size=None,
                )
                train(private, nothing, steps=number)
                with torch.no_grad():  # the same weights, whatever noise there was
                    for own, first in zip(
                        private.model.parameters(), make_model().parameters(), strict=True
                    ):
                        own.copy_(first)
                before = weights(private.model)
                train(private, function, steps=1)
                steps.append(before - weights(private.model))
            found = (steps[0] - steps[1]) * 40
            wanted = clipped_sum(make_model(), everybody, data, clip)
            assert torch.allclose(found, wanted, rtol=0, atol=40 * tolerance(clip))

    def test_an_optimiser_that_knows_its_noise_is_told_the_stage(self):
        model = make_model()
        private = begin(
            model,
            optimizer=AdamBC(model.parameters()),
            noise_multiplier=Stages((1, 4.0), then=2.0),
            clip=Stages((2, 1.0), then=3.0),
            steps=3,
        )
        seen = []
        private.optimizer.register_step_pre_hook(
            lambda optimizer, *_: seen.append(optimizer.noise_std * 20)
        )
        train(private)
        assert seen == pytest.approx([4.0, 2.0, 6.0])

    def test_a_count_goes_with_stages_of_noise(self):
        adaptive = Adaptive(initial=1, count_noise=5)
        private = begin(noise_multiplier=NOISE, clip=adaptive, steps=7)
        for number, noise in [(0, 4.0), (2, 2.5), (6, 3.0)]:
            assert private._promise.gradient_noise(number) == adaptive.gradient_noise(noise)
        assert train(private).spent.epsilon == epsilon(composed(PLANNED), delta=1e-5)


class TestCheckpoints:
    @pytest.mark.parametrize("paid", [False, True])
    @pytest.mark.parametrize("done", [0, 1, 2, 4, 6])
    def test_a_run_goes_on_in_its_stage(self, tmp_path, done, paid):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            given = {"account": account} if paid else {}
            clip = Stages((3, 1.0), then=0.25)
            private = train(begin(noise_multiplier=NOISE, clip=clip, steps=7, **given), steps=done)
            private = again(private, tmp_path / "run.pt", source=SeededSource(7), **given)
            assert private.noise_multiplier == NOISE.at(done)
            assert private.clip == (1.0 if done < 3 else 0.25)
            train(private)
            assert private.spent.epsilon == epsilon(composed(PLANNED), delta=1e-5)
            assert not paid or on_record(account) == PLANNED

    def test_steps_lost_in_a_crash_are_paid_by_their_stage_and_repeated(self, tmp_path):
        with temporary_account(epsilon=30, delta=1e-5) as account:
            private = begin(noise_multiplier=NOISE, steps=7, account=account)
            train(private, steps=1)
            private.save(tmp_path / "run.pt")
            train(private, steps=3)  # of 4.0, 2.5, 2.5: lost
            model = make_model(seed=1)
            other = resume(
                tmp_path / "run.pt",
                model,
                torch.optim.SGD(model.parameters(), lr=1.0),
                make_data(100),
                account=account,
            )
            assert other.spent.steps == 4
            assert other.noise_multiplier == 4.0
            train(other)
            twice = {4.0: 3, 2.5: 5, 3.0: 2}
            assert on_record(account) == twice
            assert other.spent.epsilon == epsilon(composed(twice), delta=1e-5)
            account.ledger.verify()

    def test_a_checkpoint_of_one_noise_is_written_as_before(self, tmp_path):
        private = train(begin(), steps=2)
        private.save(tmp_path / "run.pt")
        document = torch.load(tmp_path / "run.pt", weights_only=True)
        assert document["state"] == {"taken": 2, "done": 2, "begun": 2, "norm": None}
        assert '"noise_multiplier": 1.0' in document["settings"]
        assert '"clipping": {"kind": "Flat", "norm": 1.0}' in document["settings"]

    def test_stages_of_ones_own_clippings_are_given_again(self, tmp_path):
        class Own:
            sensitivity = 1.0

            def __repr__(self):
                return "Own()"

            def groups(self, names):
                return (0,) * len(names)

            def factors(self, norms):
                return Flat(norm=1).factors(norms)

        clip = Stages((1, Flat(norm=2)), then=Own())
        private = train(begin(clip=clip), steps=1)
        with pytest.raises(ParameterError, match="cannot bring back"):
            again(private, tmp_path / "run.pt")
        with pytest.raises(ParameterError, match="other stages"):
            again(private, tmp_path / "run.pt", clip=Stages((2, Flat(norm=2)), then=Own()))
        with pytest.raises(ParameterError, match="other stages"):
            again(private, tmp_path / "run.pt", clip=Own())
        assert train(again(private, tmp_path / "run.pt", clip=clip)).steps_taken == 3


class TestRefusals:
    @pytest.mark.parametrize(
        ("noise", "told"),
        [
            (Stages((2, 0), then=1), "noise_multiplier must be"),
            (Stages((2, 1), then=-1), "noise_multiplier must be"),
            (Stages((2, float("nan")), then=1), "noise_multiplier must be"),
            (Stages((2, float("inf")), then=1), "noise_multiplier must be"),
            (Stages((2, "1"), then=1), "noise_multiplier must be"),
            (Stages((2, None), then=1), "noise_multiplier must be"),
            (Stages((2, Stages(then=1)), then=1), "noise_multiplier must be"),
            (Stages((2, 1e-9), then=1), "noise_multiplier must be between"),
            (Stages((2, 1), then=1e9), "noise_multiplier must be between"),
            (Stages((4, 1), then=2), "take 4 steps, but the run has 3"),
        ],
    )
    def test_bad_noise_is_refused_before_anything_is_paid(self, noise, told):
        with temporary_account(epsilon=1e6, delta=1e-5) as account:
            with pytest.raises(ParameterError, match=told):
                begin(noise_multiplier=noise, account=account)
            assert not [e for e in account.history() if e["kind"] == "reserve"]

    @pytest.mark.parametrize(
        ("clip", "told"),
        [
            (Stages((2, 0), then=1), "norm must be"),
            (Stages((2, 1), then="1"), "clip must be"),
            (Stages((2, 1), then=Adaptive(initial=1, count_noise=5)), "has no stages"),
            (Stages((2, 1), then=PerLayer(norms={"head": 1})), "norms must name every layer"),
            (Stages((2, 1), then=Stages(then=1)), "clip must be"),
            (Stages((4, 1), then=2), "take 4 steps, but the run has 3"),
        ],
    )
    def test_a_bad_clip_is_refused_before_anything_is_paid(self, clip, told):
        with temporary_account(epsilon=1e6, delta=1e-5) as account:
            with pytest.raises(ParameterError, match=told):
                begin(clip=clip, account=account)
            assert not [e for e in account.history() if e["kind"] == "reserve"]

    def test_a_count_that_a_later_stage_cannot_pay_is_refused_before_anything_is_paid(self):
        with temporary_account(epsilon=1e6, delta=1e-5) as account:
            adaptive = Adaptive(initial=1, count_noise=1)
            with pytest.raises(ParameterError, match="count_noise must be above"):
                begin(noise_multiplier=Stages((2, 1), then=3), clip=adaptive, account=account)
            assert not [e for e in account.history() if e["kind"] == "reserve"]

    @pytest.mark.parametrize(
        "pairs", [(5,), ((5,),), ((1, 2, 3),), ((0, 1),), ((-1, 1),), ((1.5, 1),), (("1", 1),)]
    )
    def test_what_is_no_pair_of_steps_and_a_value_is_refused(self, pairs):
        with pytest.raises(ParameterError, match="stage"):
            Stages(*pairs, then=1)

    def test_too_many_stages_are_refused(self):
        with pytest.raises(ParameterError, match="at most 100"):
            Stages(*[(1, 1.0)] * 101, then=1)

    def test_one_number_and_an_epsilon_are_refused_as_before(self):
        with pytest.raises(ParameterError, match="either epsilon="):
            begin(epsilon=1, noise_multiplier=2.0)


def test_a_report_tells_the_stages():
    private = begin(noise_multiplier=NOISE, clip=Stages((2, 1), then=2), steps=7)
    told = str(private.report())
    assert "4 for 2 steps, 2.5 for 3 steps, then 3 times the clip" in told
    assert "Flat(norm=1) for 2 steps, then Flat(norm=2)" in told
    assert "clip now    1" in told
    assert "3 x SampledLoss(inner=GaussianLoss(noise_multiplier=2.5)" in told
    curve = private.report().curve
    assert curve(3) == epsilon(composed({4.0: 2, 2.5: 1}), delta=1e-5)


@pytest.mark.parametrize(
    "sampling",
    [
        FullBatch(population=100),
        FullBatch(population=100, neighbours="replace_one"),
        Poisson(rate=0.2, population=100),
        TruncatedPoisson(rate=0.2, capacity=60, population=100),
        WithoutReplacement(size=20, population=100),
    ],
    ids=lambda sampling: f"{type(sampling).__name__}, {sampling.neighbours}",
)
def test_the_schedule_is_the_same_with_any_sampling_and_found_again(sampling, tmp_path):
    with temporary_ledger() as ledger:
        account = ledger.create(
            "people",
            unit=Unit.record(),
            neighbours=sampling.neighbours,
            guarantee=Guarantee(epsilon=200, delta=1e-5),
        )
        private = begin(
            noise_multiplier=NOISE, steps=7, sampling=sampling, batch_size=None, account=account
        )
        train(private, steps=1)
        private.save(tmp_path / "run.pt")
        train(private, steps=2)  # lost
        other = resume(
            tmp_path / "run.pt",
            private.model,
            private.optimizer,
            make_data(100),
            account=account,
            progress=False,
        )
        twice = {4.0: 3, 2.5: 4, 3.0: 2}
        losses = [sampling.loss(noise_multiplier=z) * n for z, n in twice.items()]
        assert train(other).spent.epsilon == epsilon(sum(losses[1:], losses[0]), delta=1e-5)
        account.ledger.verify()
