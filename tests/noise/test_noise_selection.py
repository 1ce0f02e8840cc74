"""Selection follows its law, with and without multiplicities, by doubles and by integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.noise import SYSTEM, _selection, exponential_race, permute_and_flip
from discreet.testing import cdf_gap, dkw_band

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


def test_race_follows_its_law_and_a_wrong_rate_would_show():
    law = race_law(SCORES, 0.25)
    draws = [exponential_race(SCORES, rate=Fraction(1, 4)) for _ in range(SAMPLES)]
    assert gap(draws, law) <= BAND
    for wrong in (race_law(SCORES, 0.2), race_law(SCORES, 0.3)):
        assert is_clearly_apart(law, wrong)
        assert gap(draws, wrong) > BAND


COUNTS = np.array([9, 1, 0, 2], dtype=np.int64)


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


def test_permute_and_flip_follows_its_law_and_a_wrong_rate_would_show():
    law = flip_law(SCORES, 0.25)
    draws = [permute_and_flip(SCORES, rate=Fraction(1, 4)) for _ in range(SAMPLES)]
    assert gap(draws, law) <= BAND
    for wrong in (flip_law(SCORES, 0.2), flip_law(SCORES, 0.3)):
        assert is_clearly_apart(law, wrong)
        assert gap(draws, wrong) > BAND
