"""Recipes, the rows they take, and what judging a model on private rows costs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from discreet import audit
from discreet.errors import DataError, ParameterError
from discreet.learn import recipes
from discreet.learn.recipes import (
    NO_LABEL,
    Accuracy,
    Choice,
    EncodedRows,
    Encoding,
    PrivateAccuracy,
    Scaled,
    correct,
    set_apart,
)
from discreet.privacy import Guarantee, Neighbours, Unit
from discreet.testing import temporary_account

FALSE_ALARM = 1e-9  # chance that correct code fails one of the statistical tests

ENCODING = Encoding(
    features=(Scaled(name="age", low=0, high=100), Choice(name="sex", keys=("f", "m", None))),
    target=Choice(name="rich", keys=(False, True)),
)


def columns(rows):
    age, sex, rich = zip(*rows, strict=True) if rows else ((), (), ())
    return {
        "age": np.array(age, dtype=np.float64),
        "sex": np.array([*sex, None], dtype=object)[:-1],
        "rich": np.array([*rich, None], dtype=object)[:-1],
    }


people = st.tuples(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["f", "m", "x", "", None]),
    st.sampled_from([False, True, None, "rich"]),
)


def separable(n, *, units=None):
    x = np.linspace(-1, 1, n, dtype=np.float32)[:, None]
    return EncodedRows(names=("x",), matrix=x, labels=(x[:, 0] > 0).astype(np.int64), units=units)


class TestRows:
    @pytest.mark.lengthy
    @given(rows=st.lists(people, max_size=8))
    def test_a_row_becomes_what_it_becomes_alone(self, rows):
        together = ENCODING.encode(columns(rows))
        assert together.matrix.shape == (len(rows), 4)
        assert np.isfinite(together.matrix).all()
        assert (np.abs(together.matrix) <= 1).all()
        for place, row in enumerate(rows):
            alone = ENCODING.encode(columns([row]))
            assert (alone.matrix[0] == together.matrix[place]).all()
            assert alone.labels[0] == together.labels[place]

    def test_bounds_and_keys_are_the_declared_ones(self):
        rows = ENCODING.encode(columns([(25.0, "m", True), (math.inf, "?", "?"), (0, None, False)]))
        assert rows.names == ("age", "sex=f", "sex=m", "sex=None")
        assert rows.matrix.tolist() == [[-0.5, 0, 1, 0], [1, 0, 0, 0], [-1, 0, 0, 1]]
        assert rows.labels.tolist() == [1, NO_LABEL, 0]

    @pytest.mark.parametrize(("low", "high"), [(-1e308, 1e308), (0, 1e-300), (10**15, 10**15 + 1)])
    def test_extreme_bounds_keep_their_ends(self, low, high):
        ends = Scaled(name="x", low=low, high=high).encode(np.array([low, high]))[:, 0]
        assert ends.tolist() == [-1, 1]

    def test_a_missing_number_is_a_null_key_where_that_is_declared(self):
        choice = Choice(name="n", keys=(1, 2, None))
        assert choice.places(np.array([2.0, np.nan, 3.0]), other=9).tolist() == [1, 2, 9]

    def test_an_encoding_survives_being_written_down(self):
        assert Encoding.from_dict(ENCODING.to_dict()) == ENCODING

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Scaled(name="x", low=3, high=3),
            lambda: Choice(name="x", keys=()),
            lambda: Choice(name="x", keys=("a", "a")),
            lambda: Encoding(features=(), target=ENCODING.target),
            lambda: Encoding(features=ENCODING.features, target=Choice(name="y", keys=("one",))),
            lambda: Encoding(features=(ENCODING.target,), target=ENCODING.target),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, make):
        with pytest.raises(ParameterError):
            make()

    def test_the_number_of_rows_does_not_show(self):
        assert "77" not in repr(separable(77))
        with pytest.raises(DataError):
            EncodedRows(names=(), matrix=np.zeros((2, 1), np.float32), labels=np.zeros(3, np.int64))


class TestRecipes:
    @pytest.mark.parametrize(
        ("recipe", "shape"),
        [
            (recipes.LOGISTIC, (3,)),
            (recipes.MLP, (3,)),
            (recipes.MLP, (1, 8, 8)),
            (recipes.CNN, (1, 9, 9)),
            (recipes.CNN, (3, 32, 20)),
        ],
    )
    def test_models_take_rows_of_their_shape(self, recipe, shape):
        assert recipe.model(shape, 4)(torch.zeros(5, *shape)).shape == (5, 4)

    def test_a_cnn_needs_images(self):
        for shape in ((3,), (1, 8, 8)):
            with pytest.raises(ParameterError, match="images"):
                recipes.CNN.model(shape, 2)

    def test_a_row_without_a_label_has_no_gradient(self):
        model = recipes.LOGISTIC.model((1,), 2)
        batch = {"(row)": torch.ones(1, 1), "(label)": torch.tensor([NO_LABEL])}
        recipes.loss(model, batch).sum().backward()
        assert all((p.grad == 0).all() for p in model.parameters())

    @pytest.mark.lengthy
    @pytest.mark.parametrize("recipe", [recipes.LOGISTIC, recipes.MLP])
    def test_privately_it_learns_what_is_easy(self, recipe):
        # A step's noise has a deviation of 0.64 / 500 in each weight, and the gradient of the
        # logistic model starts at about 0.25, 200 times that. In 40 runs of each recipe the
        # accuracy was never below 0.96.
        rows = separable(2000)
        private = recipe.prepare(
            rows, classes=2, epsilon=20, delta=1e-5, epochs=6, batch_size=500, learning_rate=0.05
        )
        model = recipes.finish(private)
        assert private.steps_taken == private.steps_planned == 24
        assert private.spent.epsilon <= 20
        assert not private.is_open
        assert correct(model, rows).mean() > 0.8

    def test_the_twin_learns_it_too_and_leaves_rows_without_label_out(self):
        rows = separable(1000)
        rows.labels[::2] = NO_LABEL
        twin = recipes.train_without_privacy(
            recipes.LOGISTIC, rows, classes=2, epochs=20, batch_size=100
        )
        assert correct(twin, separable(1000)).mean() > 0.9

    @pytest.mark.lengthy
    @pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
    def test_batches_fit_the_relation_of_the_account(self, neighbours):
        with temporary_account(epsilon=30, delta=1e-4) as other:
            account = other.ledger.create(
                "rows", unit=Unit.record(), neighbours=neighbours,
                guarantee=Guarantee(epsilon=9, delta=1e-4),
            )  # fmt: skip
            private = recipes.LOGISTIC.prepare(
                separable(100), classes=2, epsilon=4, delta=1e-5, epochs=1, batch_size=50,
                account=account,
            )  # fmt: skip
            recipes.finish(private)
            assert private.spent.neighbours == neighbours
            assert 0 < account.used < 1

    @pytest.mark.lengthy
    def test_units_are_drawn_by_their_name(self):
        with temporary_account(epsilon=30, delta=1e-4) as other:
            account = other.ledger.create(
                "users", unit=Unit.column("user"), neighbours="add_remove",
                guarantee=Guarantee(epsilon=9, delta=1e-4),
            )  # fmt: skip
            rows = separable(200, units=np.repeat(np.arange(50), 4))
            settings = {"classes": 2, "epsilon": 4, "delta": 1e-5, "epochs": 1, "batch_size": 25}
            private = recipes.LOGISTIC.prepare(
                rows, **settings, account=account, unit="user", rows_per_unit=2
            )
            recipes.finish(private)
            assert private.spent.unit == "all records of one user"
            with pytest.raises(ParameterError, match="Drawing single rows"):
                recipes.LOGISTIC.prepare(separable(200), **settings, account=account)

    def test_a_saved_model_answers_as_before(self, tmp_path):
        model = recipes.MLP.model((4,), 2)
        facts = {"shape": (4,), "classes": 2, "privacy": {"epsilon": 1.0}, "encoding": ENCODING}
        recipes.save(tmp_path / "m.pt", model, recipes.MLP, **facts)
        found = recipes.load(tmp_path / "m.pt")
        row = torch.rand(3, 4)
        assert torch.equal(found.model(row), model(row))
        assert found.encoding == ENCODING
        assert found.privacy == {"epsilon": 1.0}

    def test_another_file_is_no_model(self, tmp_path):
        (tmp_path / "text.pt").write_text("hello")
        torch.save({"recipe": "transformer"}, tmp_path / "other.pt")
        for name in ("text.pt", "other.pt", "none.pt"):
            with pytest.raises(DataError, match="no model"):
                recipes.load(tmp_path / name)
        with pytest.raises(ParameterError, match="cannot be written"):
            recipes.save(
                tmp_path / "no" / "m.pt", nn.Linear(1, 2), recipes.MLP, shape=(1,), classes=2,
                privacy={},
            )  # fmt: skip


class TestJudging:
    def test_a_unit_is_in_one_part_with_all_its_rows(self):
        units = np.repeat(np.arange(300), 3)
        train, test = set_apart(separable(900, units=units), share=0.3)
        assert not set(train.units) & set(test.units)
        assert sorted([*train.units, *test.units]) == units.tolist()

    def test_the_share_is_the_one_asked_for_and_another_would_show(self):
        n = 200_000
        _, test = set_apart(separable(n), share=0.1)
        # Hoeffding: a correct share is off by more with a chance of at most FALSE_ALARM.
        band = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))
        found = len(test.labels) / n
        assert abs(found - 0.1) <= band
        assert abs(found - 0.12) > band
        assert abs(found - 0.08) > band

    @pytest.mark.lengthy
    @settings(max_examples=30)
    @given(
        units=st.lists(st.integers(0, 5), min_size=1, max_size=30),
        changed=st.integers(0, 5),
        seed=st.integers(0, 2**32),
    )
    def test_one_unit_has_one_vote_however_many_rows(self, units, changed, seed):
        ids = np.array(units)
        right = np.random.default_rng(seed).random(len(ids)) < 0.5
        generous = PrivateAccuracy(epsilon=10**6, neighbours=Neighbours.add_remove)  # no noise
        # All other units agree with themselves, so that their choice of a row makes no difference.
        right = np.where(ids == changed, right, ids % 2 == 0)
        voters = [one for one in set(units) if one != changed]
        sure = sum(one % 2 == 0 for one in voters)
        found = generous.release(right, units=ids)
        total = len(set(units))
        assert found.value is not None
        low, high = sure, sure + (changed in set(units))
        assert low <= round(found.value * total, 6) <= high

    @pytest.mark.parametrize(
        ("neighbours", "pair"),
        [
            (Neighbours.add_remove, ([True] * 4 + [False] * 2, [True] * 5 + [False] * 2)),
            (Neighbours.replace_one, ([True] * 4 + [False] * 2, [True] * 3 + [False] * 3)),
        ],
    )
    def test_an_audit_finds_no_more_than_it_costs_and_finds_out_a_lie(self, neighbours, pair):
        mechanism = PrivateAccuracy(epsilon=1, neighbours=neighbours)

        def difference(answers, n):
            # What tells the two apart best: both counts move, or only the first.
            counts = [sum(answers), len(answers) - sum(answers)]
            right, wrong = mechanism._histogram.release([counts] * n).T
            return right - wrong if neighbours is Neighbours.replace_one else right

        settled = {"pair": pair, "delta": 0, "samples": 100_000, "batch": True}
        sure = 1 - FALSE_ALARM
        assert audit.mechanism(difference, epsilon=1, confidence=sure, **settled).passed
        assert not audit.mechanism(difference, epsilon=0.5, confidence=0.999, **settled).passed
        assert float(mechanism.loss.epsilon_pure) <= 1

    def test_the_error_bar_holds(self):
        answers = np.arange(1000) % 4 > 0
        mechanism = PrivateAccuracy(epsilon=0.1, neighbours=Neighbours.add_remove, confidence=0.9)
        draws = [mechanism.release(answers) for _ in range(500)]
        assert all(one.value is not None and one.error is not None for one in draws)
        inside = np.mean([abs(one.value - 0.75) <= one.error for one in draws])
        # Hoeffding again: at 90% or more, fewer than 75% of 500 is rarer than FALSE_ALARM.
        assert math.exp(-2 * 500 * 0.15**2) < FALSE_ALARM
        assert inside >= 0.75

    def test_of_a_handful_nothing_is_told(self):
        tiny = PrivateAccuracy(epsilon=0.01, neighbours=Neighbours.add_remove)
        # 3 examples against noise of scale 100: the total must pass 2 * 369.
        shown = [tiny.release(np.array([True, False, True])).value for _ in range(20)]
        assert shown.count(None) >= 10
        assert str(Accuracy(value=None)) == "too few to tell"

    @pytest.mark.parametrize("bad", [0, -1, float("nan")])
    def test_bad_prices_are_refused(self, bad):
        with pytest.raises(ParameterError):
            PrivateAccuracy(epsilon=bad, neighbours=Neighbours.add_remove)
