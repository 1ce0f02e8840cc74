"""Samplers follow the laws they are accounted by.

Tests of laws are unseeded; each states FALSE_ALARM, the chance that a right sampler fails it, and
shows that samplers which are wrong in the usual ways do fail it.
"""

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from discreet.accounting import (
    GaussianLoss,
    SampledGroupLoss,
    SampledLoss,
    TruncatedPoissonLoss,
    WithoutReplacementLoss,
)
from discreet.errors import ParameterError
from discreet.learn import (
    FullBatch,
    Poisson,
    Sampling,
    TruncatedPoisson,
    WithoutReplacement,
)
from discreet.learn.choices import draws
from discreet.testing import SeededSource, cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # of each test of a law

Draw = Callable[[], np.ndarray]

UNITS, RATE, DRAWS = 300, Fraction(1, 6), 3_000


def membership(draw: Draw, *, units: int, draws: int) -> np.ndarray:
    """Return who was in which batch: (draws, units)."""
    members = np.zeros((draws, units), dtype=bool)
    for row in members:
        row[draw()] = True
    return members


def is_plausible(counts: np.ndarray, trials: int, chance: float) -> bool:
    """Say whether counts, each binomial, are all within what chance allows, by a union bound."""
    tail = FALSE_ALARM / (2 * counts.size)
    return bool(
        (binom.cdf(counts, trials, chance) > tail).all()
        and (binom.sf(counts - 1, trials, chance) > tail).all()
    )


def follows_size_law(members: np.ndarray, law: Callable[[np.ndarray], np.ndarray]) -> bool:
    band = dkw_band(len(members), false_alarm=FALSE_ALARM)
    return cdf_gap(members.sum(1), law) <= band


def poisson_sizes(k: np.ndarray) -> np.ndarray:
    return binom.cdf(k, UNITS, float(RATE))


def shuffled(size: int) -> Draw:
    """Return the sampler of an ordinary loader: a shuffled epoch, cut into batches of one size."""
    rng = np.random.default_rng()
    state: list[np.ndarray] = []

    def draw() -> np.ndarray:
        if not state:
            state.extend(rng.permutation(UNITS).reshape(-1, size))
        return state.pop()

    return draw


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    poisson = Poisson(rate=RATE, population=UNITS)
    return membership(lambda: poisson.draw(UNITS), units=UNITS, draws=DRAWS)


class TestPoisson:
    def test_everybody_takes_part_at_the_rate(self, drawn):
        assert is_plausible(drawn.sum(0), DRAWS, float(RATE))
        total = np.array([drawn.sum()])
        assert is_plausible(total, DRAWS * UNITS, float(RATE))
        # A rate that is wrong by 20% would show, already in the sum over everybody.
        assert not is_plausible(total, DRAWS * UNITS, 0.8 * float(RATE))
        assert not is_plausible(total, DRAWS * UNITS, 1.2 * float(RATE))

    def test_any_two_take_part_independently(self, drawn):
        def together(members: np.ndarray) -> np.ndarray:
            whole = members.astype(np.float64)
            return (whole.T @ whole)[np.triu_indices(members.shape[1], 1)]

        assert is_plausible(together(drawn), DRAWS, float(RATE) ** 2)
        coupled = drawn.copy()
        coupled[:, 1::2] = coupled[:, ::2]  # each one takes a neighbour along
        assert is_plausible(coupled.sum(0), DRAWS, float(RATE))
        assert not is_plausible(together(coupled), DRAWS, float(RATE) ** 2)

    def test_batches_are_independent_of_the_batch_before(self, drawn):
        # Consecutive pairs overlap, so the even and the odd ones are tested by themselves.
        for half in (drawn[0::2] & drawn[1::2], drawn[1:-1:2] & drawn[2::2]):
            assert is_plausible(half.sum(0), len(half), float(RATE) ** 2)
        draw = shuffled(UNITS // 6)
        epoch = membership(draw, units=UNITS, draws=DRAWS)
        never_twice = (epoch[0::2] & epoch[1::2]).sum(0)
        assert not is_plausible(never_twice, DRAWS // 2, float(RATE) ** 2)

    @pytest.mark.lengthy
    def test_the_batch_size_is_binomial_and_shuffling_would_show(self, drawn):
        assert follows_size_law(drawn, poisson_sizes)
        fixed = membership(shuffled(UNITS // 6), units=UNITS, draws=DRAWS)
        assert is_plausible(fixed.sum(0), DRAWS, float(RATE))  # rates alone would not tell
        assert not follows_size_law(fixed, poisson_sizes)
        without = WithoutReplacement(size=50, population=UNITS)
        also_fixed = membership(lambda: without.draw(UNITS), units=UNITS, draws=300)
        assert not follows_size_law(also_fixed, poisson_sizes)
        for wrong in (Fraction(2, 15), Fraction(1, 5)):  # 20% off
            other = Poisson(rate=wrong, population=UNITS)
            assert not follows_size_law(
                membership(lambda other=other: other.draw(UNITS), units=UNITS, draws=DRAWS),
                poisson_sizes,
            )

    def test_long_draws_follow_the_same_law_across_blocks(self):
        n = 3 * draws._BLOCK + 17
        members = np.zeros(n, dtype=bool)
        members[Poisson(rate=Fraction(1, 700), population=n).draw(n)] = True
        parts = np.array([part.sum() for part in np.array_split(members[: n - n % 64], 64)])
        assert is_plausible(parts, (n - n % 64) // 64, 1 / 700)

    @pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 256), Fraction(1, 10**6), 0.4])
    def test_a_coin_is_decided_by_its_first_byte_unless_that_is_a_tie(self, rate):
        exact = Fraction(rate)
        threshold = int(exact * 256)

        class Scripted:
            is_secure = False

            def __init__(self) -> None:
                self.asked: list[int] = []

            def read(self, n: int, /) -> bytes:
                self.asked.append(n)
                if len(self.asked) == 1:
                    return bytes(range(256))[:n]
                return SeededSource(1).read(n)

        source = Scripted()
        heads = set(Poisson(rate=rate, population=256).draw(256, source=source).tolist())
        sure = set(range(threshold))
        assert sure <= heads <= sure | {threshold}
        assert source.asked[0] == 256

    def test_nobody_and_everybody(self, no_randomness):
        assert Poisson(rate=0.5, population=10).draw(0).size == 0
        assert Poisson(rate=1, population=10).draw(4, source=no_randomness).tolist() == [0, 1, 2, 3]

    @pytest.mark.lengthy
    @given(n=st.integers(0, 400), rate=st.fractions(Fraction(1, 1000), 1), seed=st.integers(0, 99))
    def test_units_are_ascending_and_different(self, n, rate, seed):
        drawn = Poisson(rate=rate, population=100).draw(n, source=SeededSource(seed))
        assert drawn.dtype == np.int64
        assert (np.diff(drawn) > 0).all()
        assert not drawn.size or (drawn[0] >= 0 and drawn[-1] < n)


class TestWithoutReplacement:
    @pytest.mark.lengthy
    @pytest.mark.parametrize(("n", "size"), [(5, 2), (6, 4), (7, 1)])
    def test_every_set_is_equally_likely(self, n, size):
        draws = 6_000
        sampler = WithoutReplacement(size=size, population=n)
        sets = list(itertools.combinations(range(n), size))
        found = [sets.index(tuple(sampler.draw(n).tolist())) for _ in range(draws)]
        counts = np.bincount(found, minlength=len(sets))
        assert is_plausible(counts, draws, 1 / len(sets))
        biased = np.bincount([*found, *[0] * (draws // 5)], minlength=len(sets))
        assert not is_plausible(biased, draws, 1 / len(sets))

    @given(n=st.integers(1, 300), share=st.floats(0, 1), seed=st.integers(0, 99))
    def test_a_batch_has_exactly_its_size(self, n, share, seed):
        size = max(1, int(n * share))
        drawn = WithoutReplacement(size=size, population=n).draw(n, source=SeededSource(seed))
        assert drawn.size == size
        assert (np.diff(drawn) > 0).all()
        assert drawn[0] >= 0
        assert drawn[-1] < n

    def test_the_number_of_units_is_the_declared_one(self, no_randomness):
        sampler = WithoutReplacement(size=2, population=10)
        with pytest.raises(ParameterError, match="does not have the 10 units"):
            sampler.draw(11, source=no_randomness)

    def test_replacing_somebody_moves_a_sum_twice_as_far(self):
        loss = WithoutReplacement(size=5, population=50).loss(noise_multiplier=3)
        inner = GaussianLoss(noise_multiplier=Fraction(3, 2))
        assert loss == WithoutReplacementLoss(inner=inner, batch=5, population=50)


class TestTruncatedPoisson:
    def test_sizes_are_cut_and_nobody_is_favoured(self):
        capacity = 51
        sampler = TruncatedPoisson(rate=RATE, capacity=capacity, population=UNITS)
        members = membership(lambda: sampler.draw(UNITS), units=UNITS, draws=DRAWS)

        def law(k: np.ndarray) -> np.ndarray:
            return np.where(k >= capacity, 1.0, poisson_sizes(k))

        assert follows_size_law(members, law)
        assert not follows_size_law(members, poisson_sizes)
        sizes = np.arange(UNITS + 1)
        mean = np.minimum(sizes, capacity) @ binom.pmf(sizes, UNITS, float(RATE))
        assert is_plausible(members.sum(0), DRAWS, mean / UNITS)

    def test_a_larger_population_is_refused_before_anything_is_drawn(self, no_randomness):
        sampler = TruncatedPoisson(rate=0.1, capacity=9, population=10)
        with pytest.raises(ParameterError, match="more units than the declared population"):
            sampler.draw(11, source=no_randomness)

    def test_its_loss_counts_the_cut(self):
        sampler = TruncatedPoisson(rate=0.1, capacity=90, population=500)
        inner = GaussianLoss(noise_multiplier=2)
        assert sampler.loss(noise_multiplier=2) == TruncatedPoissonLoss(
            inner=inner, rate=0.1, batch=90, population=500, uniform=True
        )


class TestPoissonForOthers:
    def test_one_unit_that_is_added_costs_what_it_always_did(self):
        one = Poisson(rate=0.1, population=100)
        assert one.loss(noise_multiplier=2) == GaussianLoss(noise_multiplier=2).sampled(rate=0.1)
        assert repr(one) == "Poisson(rate=0.1, population=100)"

    def test_groups_and_zeroed_units_have_a_loss_of_their_own(self):
        zeroed = Poisson(rate=0.1, population=100, neighbours="zero_out")
        assert zeroed.loss(noise_multiplier=2) == SampledGroupLoss(
            noise_multiplier=2, rate=0.1, size=1
        )
        three = Poisson(rate=0.1, population=100, neighbours="zero_out", together=3)
        assert three.loss(noise_multiplier=2).size == 3
        assert eval(repr(three)) == three
        assert "sampled_groups" in three.proof

    def test_a_size_that_is_public_is_exact(self, no_randomness):
        Poisson(rate=0.1, population=100).check(7)
        zeroed = Poisson(rate=0.1, population=100, neighbours="zero_out")
        with pytest.raises(ParameterError, match="under zero_out their number is public"):
            zeroed.draw(99, source=no_randomness)

    def test_replacement_is_refused(self):
        with pytest.raises(ParameterError, match="without_replacement"):
            Poisson(rate=0.1, population=100, neighbours="replace_one")


class TestFullBatch:
    def test_everybody_takes_part_and_nothing_is_drawn(self, no_randomness):
        assert FullBatch(population=9).draw(7, source=no_randomness).tolist() == list(range(7))

    def test_the_relation_decides_the_sensitivity(self):
        assert FullBatch(population=9).loss(noise_multiplier=3).noise_multiplier == 3
        zeroed = FullBatch(population=9, neighbours="zero_out")
        assert zeroed.loss(noise_multiplier=3).noise_multiplier == 3  # its C becomes 0
        with pytest.raises(ParameterError):
            zeroed.check(8)  # the size is public, and said to be another
        for relation, alone in (("add_remove", 12), ("zero_out", 12), ("replace_one", 6)):
            three = FullBatch(population=9, neighbours=relation, together=3)
            assert three.loss(noise_multiplier=12).noise_multiplier == alone / 3
        replaced = FullBatch(population=9, neighbours="replace_one")
        assert replaced.loss(noise_multiplier=3).noise_multiplier == Fraction(3, 2)
        with pytest.raises(ParameterError, match="does not have the 9 units"):
            replaced.draw(8)


EVERY_KIND = [
    Poisson(rate=0.1, population=100),
    TruncatedPoisson(rate=0.1, capacity=50, population=100),
    WithoutReplacement(size=10, population=100),
    FullBatch(population=100),
]


@pytest.mark.parametrize("kind", EVERY_KIND, ids=lambda kind: type(kind).__name__)
def test_every_kind_keeps_the_protocol(kind):
    assert isinstance(kind, Sampling)
    loss = kind.loss(noise_multiplier=2.0)
    assert loss.neighbours in (None, kind.neighbours)
    assert kind.expected == (100 if isinstance(kind, FullBatch) else 10)
    assert "[" in kind.proof


def test_poisson_is_accounted_as_poisson():
    loss = Poisson(rate=0.1, population=100).loss(noise_multiplier=2)
    assert loss == SampledLoss(inner=GaussianLoss(noise_multiplier=2), rate=0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Poisson(rate=0, population=10),
        lambda: Poisson(rate=1.5, population=10),
        lambda: Poisson(rate=float("nan"), population=10),
        lambda: Poisson(rate=0.5, population=0),
        lambda: TruncatedPoisson(rate=0.5, capacity=0, population=10),
        lambda: WithoutReplacement(size=11, population=10),
        lambda: WithoutReplacement(size=0, population=10),
        lambda: FullBatch(population=10, neighbours="nobody"),
        lambda: FullBatch(population=10, together=0),
        lambda: FullBatch(population=2.5),
        lambda: WithoutReplacement(size=1, population=10).loss(noise_multiplier=0),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(ParameterError):
        make()
