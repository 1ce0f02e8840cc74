"""Selection follows its law, with and without multiplicities, by doubles and by integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, ParameterError
from discreet.noise import SYSTEM, exponential_race, permute_and_flip, uniform_below_secret
from discreet.noise import selection as _selection
from discreet.testing import SeededSource, cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one of these tests
SAMPLES = 50_000
BAND = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)


def race_law(scores, rate, counts=None):
    weights = np.exp(rate * (np.asarray(scores, dtype=float) - max(scores)))
    weights = weights if counts is None else weights * counts
    return weights / weights.sum()


def gap(draws, law):
    ends = np.cumsum(law)
    return cdf_gap(draws, lambda k: np.where(k < 0, 0.0, ends[np.clip(k, 0, len(ends) - 1)]))


def is_clearly_apart(one, two):
    """Whether a sample of one law fails the test for the other, except with FALSE_ALARM."""
    return np.abs(np.cumsum(one) - np.cumsum(two)).max() > 2 * BAND


SCORES = np.array([0.0, 3.0, 6.0, 8.0])


@pytest.mark.lengthy
def test_race_follows_its_law_and_a_wrong_rate_would_show():
    law = race_law(SCORES, 0.25)
    draws = [exponential_race(SCORES, rate=Fraction(1, 4)) for _ in range(SAMPLES)]
    assert gap(draws, law) <= BAND
    for wrong in (race_law(SCORES, 0.2), race_law(SCORES, 0.3)):
        assert is_clearly_apart(law, wrong)
        assert gap(draws, wrong) > BAND


COUNTS = np.array([9, 1, 0, 2], dtype=np.int64)


@pytest.mark.lengthy
def test_race_with_multiplicity_follows_its_law_and_a_wrong_rate_would_show():
    law = race_law(SCORES, 0.25, COUNTS)
    draws = [
        exponential_race(SCORES, rate=Fraction(1, 4), multiplicity=COUNTS) for _ in range(SAMPLES)
    ]
    assert gap(draws, law) <= BAND
    ignored = race_law(SCORES, 0.25)
    for wrong in (race_law(SCORES, 0.2, COUNTS), race_law(SCORES, 0.3, COUNTS), ignored):
        assert is_clearly_apart(law, wrong)
        assert gap(draws, wrong) > BAND


@pytest.mark.lengthy
def test_integers_alone_follow_the_same_law(monkeypatch):
    monkeypatch.setattr(_selection, "_race_in_doubles", lambda *_: None)
    draws = [
        exponential_race(SCORES, rate=Fraction(1, 4), multiplicity=COUNTS) for _ in range(SAMPLES)
    ]
    assert gap(draws, race_law(SCORES, 0.25, COUNTS)) <= BAND
    assert gap(draws, race_law(SCORES, 0.2, COUNTS)) > BAND
    assert gap(draws, race_law(SCORES, 0.3, COUNTS)) > BAND


def exact_interval(scores, counts, rate, drawn):
    """The candidate whose exact interval holds drawn * 2**-64, by 60-digit arithmetic."""
    from mpmath import mp, mpf

    with mp.workdps(60):
        best = max(s for s, c in zip(scores, counts, strict=True) if c)
        ends = mpf(0)
        weights = [
            c * mp.exp(mpf(rate.numerator) / rate.denominator * (mpf(s) - mpf(best)))
            for s, c in zip(scores, counts, strict=True)
        ]
        point = mpf(drawn) / 2**64 * mp.fsum(weights)
        for i, weight in enumerate(weights):
            ends += weight
            if point < ends:
                return i
    raise AssertionError


scores_and_counts = st.lists(
    st.tuples(st.floats(-50, 50), st.integers(0, 2**40)), min_size=1, max_size=8
).filter(lambda pairs: any(count for _, count in pairs))


@pytest.mark.lengthy
@settings(max_examples=300, deadline=None)
@given(
    pairs=scores_and_counts,
    rate=st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=1000),
    drawn=st.integers(0, 2**64 - 1),
)
def test_doubles_and_integers_agree_with_exact_arithmetic(pairs, rate, drawn):
    scores = np.array([score for score, _ in pairs])
    counts = np.array([count for _, count in pairs], dtype=np.int64)
    expected = exact_interval(scores.tolist(), counts.tolist(), rate, drawn)
    fast = _selection._race_in_doubles(scores, rate, drawn, counts)
    assert fast in (expected, None)
    # A prefix of 64 bits that lies across a border is decided by the bits that follow it.
    after = drawn + 1 if drawn < 2**64 - 1 else drawn
    last = exact_interval(scores.tolist(), counts.tolist(), rate, after)
    slow = _selection._race_in_integers(scores, rate, drawn, SYSTEM, counts)
    assert expected <= slow <= last
    assert slow == fast or fast is None


def test_doubles_decide_nearly_always():
    scores, counts = np.linspace(0, 3, 1000), np.arange(1000, dtype=np.int64)
    undecided = sum(
        _selection._race_in_doubles(scores, Fraction(1), i << 44, counts) is None
        for i in range(1, 2**20, 2**10)
    )
    assert undecided == 0


def test_an_absent_candidate_above_all_others_does_not_swallow_them():
    scores = np.array([1e308, -1e308, -1e308])
    counts = np.array([0, 0, 7], dtype=np.int64)
    assert exponential_race(scores, rate=1000, multiplicity=counts) == 2
    integers = np.array([2**62, -(2**62), -(2**62)])
    assert exponential_race(integers, rate=1000, multiplicity=counts) == 2


@pytest.mark.parametrize("rate", [Fraction(10**400), Fraction(1, 10**400)])
def test_rates_beyond_doubles_are_left_to_integers(rate):
    picked = [exponential_race(np.array([0.0, 1.0]), rate=rate) for _ in range(200)]
    flipped = [permute_and_flip(np.array([0.0, 1.0]), rate=rate) for _ in range(200)]
    # Either certain, or as good as a fair coin: 200 equal tosses have probability 2**-199.
    assert set(picked) == set(flipped) == ({1} if rate > 1 else {0, 1})


@pytest.mark.parametrize(
    "counts",
    [
        np.zeros(4, dtype=np.int64),
        np.array([1, -1, 1, 1]),
        np.ones(3, dtype=np.int64),
        np.ones(4),
        [1, 1, 1, 1],
        np.ma.masked_array(np.ones(4, dtype=np.int64), mask=[1, 0, 0, 0]),
    ],
)
def test_bad_multiplicities_are_refused_before_anything_is_drawn(counts, no_randomness):
    with pytest.raises(ParameterError, match="multiplicity"):
        exponential_race(SCORES, rate=1, multiplicity=counts, source=no_randomness)


def flip_law(scores, rate):
    """Permute-and-flip by summing over who shows heads."""
    coins = np.exp(rate * (np.asarray(scores, dtype=float) - max(scores)))
    law = np.zeros(len(coins))
    for mask in range(1 << len(coins)):
        heads = np.array([bool(mask >> i & 1) for i in range(len(coins))])
        chance = math.prod(np.where(heads, coins, 1 - coins))
        if chance and heads.any():
            law += chance * heads / heads.sum()
    return law


@pytest.mark.lengthy
def test_permute_and_flip_follows_its_law_and_a_wrong_rate_would_show():
    law = flip_law(SCORES, 0.25)
    draws = [permute_and_flip(SCORES, rate=Fraction(1, 4)) for _ in range(SAMPLES)]
    assert gap(draws, law) <= BAND
    for wrong in (flip_law(SCORES, 0.2), flip_law(SCORES, 0.3)):
        assert is_clearly_apart(law, wrong)
        assert gap(draws, wrong) > BAND


# What may be passed -----------------------------------------------------------------------------

SELECTORS = [exponential_race, permute_and_flip]


@pytest.mark.parametrize("select", SELECTORS)
@pytest.mark.parametrize(
    "scores",
    [
        [],
        3.0,
        [[1.0, 2.0]],
        [1.0, math.nan],
        [1.0, math.inf],
        ["a"],
        [None],
        [True, False],
        [1j],
        [[1], [1, 2]],
        [2**70],
        np.array([2**63], dtype=np.uint64),
        np.array([1, 2], dtype=np.longdouble),
        np.ma.masked_array([1.0, 2.0], mask=[False, True]),
    ],
)
def test_bad_scores_are_refused_before_anything_is_drawn(select, scores, no_randomness):
    with pytest.raises(DataError, match="scores must be"):
        select(scores, rate=1, source=no_randomness)


@pytest.mark.parametrize("select", SELECTORS)
def test_narrow_floats_are_subtracted_exactly(select):
    # In float32 the two differ by 1, and 16777216 + 0.5 has no float32 at all: a subtraction there
    # would round. The rate makes half a unit certain to decide.
    scores = np.array([2.0**24, 2.0**24 - 1, 0.5], dtype=np.float32)
    assert select(scores, rate=10**6) == 0
    # 0.1f is 0.100000001490116..., 1.5e-9 above the double 0.1.
    spread = np.array([0.1], dtype=np.float32).astype(np.float64)[0] - 0.1
    assert select([0.1, float(np.float32(0.1))], rate=200 / Fraction(spread)) == 1
    assert select(np.array([-1, 2], dtype=np.int8), rate=10**6) == 1
    assert select(np.array([255, 0], dtype=np.uint8), rate=10**6) == 0
    assert select(np.array([2**63 - 1, 1], dtype=np.uint64), rate=10**6) == 0


def test_the_law_of_narrow_floats_is_that_of_the_numbers_they_are():
    # In float32 the difference itself would be rounded; what counts are the numbers held.
    scores = np.array([16777216.0, 3.3333333], dtype=np.float32)
    gap_32 = float(np.float32(scores[0] - scores[1]))  # what float32 would make of the difference
    exactly = float(scores[0]) - float(scores[1])
    assert abs(gap_32 - exactly) > 0.3
    rate = 1 / (Fraction(float(scores[0])) - Fraction(float(scores[1])))
    below = _selection._below_best(_selection._checked(scores))
    assert below[1] == exactly
    assert _selection._exact_exponents(_selection._checked(scores), rate) == [0, 1]


# Secret bounds ----------------------------------------------------------------------------------


@given(bound=st.integers(1, 2**70), seed=st.integers(0, 2**32))
def test_a_secret_bound_scales_a_real(bound, seed):
    first = int.from_bytes(SeededSource(seed).read(16), "little")
    drawn = uniform_below_secret(bound, source=SeededSource(seed))
    assert 0 <= drawn < bound
    assert drawn in (first * bound >> 128, ((first + 1) * bound - 1) >> 128)


def test_a_secret_bound_reads_on_when_undecided():
    # 0.0101... = 1/3 lies on the border for a bound of 3 until the zeros decide.
    parts = [b"\x55" * 16, b"\x00" * 16]

    class Script:
        is_secure = False

        def read(self, n):
            assert n == 16
            return parts.pop(0)

    assert uniform_below_secret(3, source=Script()) == 0
    assert parts == []


@pytest.mark.parametrize("bound", [3, 5])
def test_below_a_secret_bound_all_numbers_are_as_likely(bound):
    draws = [uniform_below_secret(bound) for _ in range(SAMPLES)]
    assert gap(draws, np.full(bound, 1 / bound)) <= BAND
    tilted = np.full(bound, 1.0)
    tilted[0] = 1.2
    assert is_clearly_apart(np.full(bound, 1 / bound), tilted / tilted.sum())


class Counting:
    """The system's randomness, with the sizes of the reads."""

    is_secure = True

    def __init__(self):
        self.sizes = []

    def read(self, n, /):
        self.sizes.append(n)
        return SYSTEM.read(n)


@pytest.mark.parametrize("select", SELECTORS)
def test_the_randomness_read_does_not_depend_on_the_scores(select):
    # With rejection, choosing among three of four winners would read again a quarter of the time.
    # A draw that doubles cannot decide reads more: once in 10**8 calls here.
    seen = set()
    for scores in ([0, 0, 0, -999], [0, -999, -999, -999], [0, 0, 0, 0], [5, 4, 3, 2]):
        for _ in range(200):
            source = Counting()
            select(scores, rate=1, source=source)
            seen.add(tuple(source.sizes))
    assert len(seen) == 1
