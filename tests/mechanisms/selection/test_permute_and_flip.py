"""Permute-and-flip: its law, its loss, its error and what it refuses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import PureLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection.exponential import Exponential
from discreet.mechanisms.selection.permute_and_flip import PermuteAndFlip
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct mechanism fails one of these tests
SAMPLES = 50_000
BAND = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)

score_lists = st.lists(st.integers(-20, 20), min_size=1, max_size=8)


def law_by_orders(coins):
    """Sum over all orders of visiting, straight from the definition."""
    law = np.zeros(len(coins))
    for order in itertools.permutations(range(len(coins))):
        left = 1.0
        for i in order:
            law[i] += left * coins[i]
            left *= 1 - coins[i]
    return law / math.factorial(len(coins))


@settings(deadline=None)
@given(scores=st.lists(st.integers(-6, 0), min_size=1, max_size=6))
def test_probabilities_are_those_of_the_definition(scores):
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    coins = np.exp(0.5 * (np.array(scores) - max(scores)))
    assert np.allclose(mechanism.probabilities(scores), law_by_orders(coins), atol=1e-12)


def gap(draws, law):
    ends = np.cumsum(law)
    return cdf_gap(draws, lambda k: np.where(k < 0, 0.0, ends[np.clip(k, 0, len(ends) - 1)]))


@pytest.mark.lengthy
@pytest.mark.parametrize("monotone", [False, True])
def test_choices_follow_the_law_and_a_wrong_epsilon_would_show(monotone):
    def mechanism(epsilon):
        return PermuteAndFlip(epsilon=epsilon, sensitivity=2, monotone=monotone)

    scores = np.array([0.0, 2.0, 3.0, 8.0]) if monotone else np.array([0.0, 4.0, 6.0, 16.0])
    right = mechanism(Fraction(1))
    draws = [right.select(scores) for _ in range(SAMPLES)]
    coins = np.exp((scores - scores.max()) * (0.5 if monotone else 0.25))
    assert gap(draws, law_by_orders(coins)) <= BAND
    scores_wrong = [mechanism(wrong).probabilities(scores) for wrong in (0.8, 1.2)]
    assert gap(draws, scores_wrong[0]) > BAND
    assert np.abs(np.cumsum(scores_wrong[0]) - np.cumsum(law_by_orders(coins))).max() > 2 * BAND
    assert gap(draws, scores_wrong[1]) > BAND
    assert np.abs(np.cumsum(scores_wrong[1]) - np.cumsum(law_by_orders(coins))).max() > 2 * BAND


@given(scores=score_lists, data=st.data(), epsilon=st.sampled_from([0.1, 1.0, 3.0]))
def test_no_choice_leaks_more_than_epsilon(scores, data, epsilon):
    changes = st.lists(st.integers(-2, 2), min_size=len(scores), max_size=len(scores))
    moved = np.add(scores, data.draw(changes))
    mechanism = PermuteAndFlip(epsilon=epsilon, sensitivity=2)
    losses = np.log(mechanism.probabilities(scores) / mechanism.probabilities(moved))
    assert np.abs(losses).max() <= epsilon + 1e-9


@given(scores=score_lists, data=st.data(), sign=st.sampled_from([-1, 1]))
def test_monotone_scores_need_half_the_exponent(scores, data, sign):
    changes = st.lists(st.integers(0, 2), min_size=len(scores), max_size=len(scores))
    moved = np.add(scores, sign * np.array(data.draw(changes)))
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=2, monotone=True)
    losses = np.log(mechanism.probabilities(scores) / mechanism.probabilities(moved))
    assert np.abs(losses).max() <= 1 + 1e-9


def test_its_range_exceeds_epsilon_so_only_the_pure_loss_is_claimed():
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    best = max(
        np.ptp(np.log(mechanism.probabilities(one) / mechanism.probabilities(two)))
        for one in itertools.product(range(3), repeat=3)
        for two in itertools.product(range(3), repeat=3)
        if max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 1
    )
    assert best > 1.02
    assert mechanism.loss == PureLoss(epsilon=1)


@given(scores=score_lists, epsilon=st.sampled_from([0.1, 1.0, 3.0]))
def test_never_worse_than_the_exponential_mechanism(scores, epsilon):
    ours = PermuteAndFlip(epsilon=epsilon, sensitivity=1).probabilities(scores)
    theirs = Exponential(epsilon=epsilon, sensitivity=1).probabilities(scores)
    assert ours.sum() == pytest.approx(1)
    assert ours @ scores >= theirs @ scores - 1e-9


@pytest.mark.lengthy
def test_audit_passes_and_has_teeth():
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    found = audit.mechanism(
        mechanism.select,
        pair=(np.array([4.0, 0.0]), np.array([3.0, 1.0])),
        epsilon=1,
        delta=0,
        samples=40_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 0.5


@given(n=st.integers(1, 50), confidence=st.sampled_from([0.5, 0.9, 0.99]))
def test_error_is_attained_and_below_the_exponential_mechanism(n, confidence):
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=2)
    t = mechanism.error(confidence=confidence, candidates=n)
    if t > 0:
        worst = mechanism.probabilities([0.0] + [-t] * (n - 1))
        assert worst[0] == pytest.approx(confidence)
    other = Exponential(epsilon=1, sensitivity=2)
    assert t <= other.error(confidence=confidence, candidates=n) * (1 + 1e-12)


def test_error_for_a_tiny_miss_is_finite_and_close():
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    t = mechanism.error(confidence=1 - Fraction(1, 10**30), candidates=1001)
    assert t == pytest.approx(2 * math.log(1000 * 10**30 / 2))


def test_calibration_reaches_the_error():
    mechanism = PermuteAndFlip.calibrated(error=7, confidence=0.9, candidates=40, sensitivity=3)
    assert 7 * (1 - 1e-9) < mechanism.error(confidence=0.9, candidates=40) <= 7


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        PermuteAndFlip(epsilon=epsilon, sensitivity=1)


@pytest.mark.parametrize("sensitivity", [0, -1, math.nan, math.inf])
def test_bad_sensitivity(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity"):
        PermuteAndFlip(epsilon=1, sensitivity=sensitivity)


@pytest.mark.parametrize("scores", [[], [[1.0]], [math.nan], [math.inf], ["a"]])
def test_bad_scores_are_refused_before_anything_is_drawn(scores, no_randomness):
    with pytest.raises(DataError):
        PermuteAndFlip(epsilon=1, sensitivity=1).select(scores, source=no_randomness)
