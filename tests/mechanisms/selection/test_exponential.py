"""The exponential mechanism: its law, its loss, its error and what it refuses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import BoundedRangeLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection.exponential import Exponential
from discreet.mechanisms.selection.noisy_max import NoisyMax
from discreet.mechanisms.selection.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.selection.top_k import TopK
from discreet.mechanisms.sparse_vector.above_threshold import AboveThreshold
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct mechanism fails one of these tests
SAMPLES = 50_000
BAND = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)

score_lists = st.lists(st.integers(-20, 20), min_size=1, max_size=8)


def test_printed_figure_for_four_scores():
    chances = Exponential(epsilon=1, sensitivity=1).probabilities([5, 4, 3, 2])
    weights = np.exp(np.array([5, 4, 3, 2]) / 2)
    assert np.allclose(chances, weights / weights.sum(), rtol=1e-14)
    assert chances[0] == pytest.approx(0.45, abs=0.006)
    assert chances[3] == pytest.approx(0.10, abs=0.005)


def gap(draws, law):
    ends = np.cumsum(law)
    return cdf_gap(draws, lambda k: np.where(k < 0, 0.0, ends[np.clip(k, 0, len(ends) - 1)]))


@pytest.mark.lengthy
@pytest.mark.parametrize("monotone", [False, True])
def test_choices_follow_the_law_and_a_wrong_epsilon_would_show(monotone):
    def mechanism(epsilon):
        return Exponential(epsilon=epsilon, sensitivity=2, monotone=monotone)

    scores = np.array([0.0, 3.0, 6.0, 8.0])
    right = mechanism(Fraction(1))
    draws = [right.select(scores) for _ in range(SAMPLES)]
    expected = np.exp(scores * (0.5 if monotone else 0.25))
    assert gap(draws, expected / expected.sum()) <= BAND
    # The laws at these epsilons are more than 2 * BAND apart: a miss is as rare as a false alarm.
    for wrong in (0.8, 1.2):
        law = mechanism(wrong).probabilities(scores)
        assert np.abs(np.cumsum(law) - np.cumsum(right.probabilities(scores))).max() > 2 * BAND
        assert gap(draws, law) > BAND


@given(
    scores=score_lists,
    data=st.data(),
    epsilon=st.sampled_from([0.1, 1.0, 3.0]),
    sensitivity=st.sampled_from([1, 2, 5]),
)
def test_the_loss_stays_within_a_range_of_epsilon(scores, data, epsilon, sensitivity):
    changes = st.lists(
        st.integers(-sensitivity, sensitivity), min_size=len(scores), max_size=len(scores)
    )
    moved = np.add(scores, data.draw(changes))
    mechanism = Exponential(epsilon=epsilon, sensitivity=sensitivity)
    losses = np.log(mechanism.probabilities(scores) / mechanism.probabilities(moved))
    assert np.ptp(losses) <= float(mechanism.loss.epsilon) * (1 + 1e-12) + 1e-12
    assert np.abs(losses).max() <= epsilon * (1 + 1e-12) + 1e-12


@given(scores=score_lists, data=st.data(), sign=st.sampled_from([-1, 1]))
def test_monotone_scores_need_half_the_exponent(scores, data, sign):
    changes = st.lists(st.integers(0, 2), min_size=len(scores), max_size=len(scores))
    moved = np.add(scores, sign * np.array(data.draw(changes)))
    mechanism = Exponential(epsilon=1, sensitivity=2, monotone=True)
    losses = np.log(mechanism.probabilities(scores) / mechanism.probabilities(moved))
    assert np.ptp(losses) <= 1 + 1e-12


def test_the_claim_is_tight():
    # One candidate rises, a thousand fall: the range is used up, nearly all of it on one side.
    mechanism = Exponential(epsilon=2, sensitivity=1)
    before, after = np.zeros(1001), np.full(1001, -1.0)
    after[0] = 1
    losses = np.log(mechanism.probabilities(after) / mechanism.probabilities(before))
    assert np.ptp(losses) == pytest.approx(2)
    assert losses.max() > 1.99


@pytest.mark.lengthy
def test_audit_passes_and_has_teeth():
    mechanism = Exponential(epsilon=1, sensitivity=1)
    before, after = np.zeros(20), np.full(20, -1.0)
    after[:2] = 1
    found = audit.mechanism(
        mechanism.select,
        pair=(before, after),
        epsilon=1,
        delta=0,
        samples=40_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 0.5


@given(
    n=st.integers(1, 50),
    confidence=st.sampled_from([0.5, 0.9, 0.99]),
    spread=st.floats(0.01, 0.99),
)
def test_error_holds_for_any_scores_and_is_attained(n, confidence, spread):
    mechanism = Exponential(epsilon=1, sensitivity=2)
    t = mechanism.error(confidence=confidence, candidates=n)
    scores = -np.linspace(0, 2 * t, n) * spread
    chances = mechanism.probabilities(scores)
    assert chances[scores >= scores.max() - t * (1 + 1e-9)].sum() >= confidence - 1e-9
    if t > 0:
        worst = mechanism.probabilities([0.0] + [-t] * (n - 1))
        assert worst[0] == pytest.approx(confidence)


def test_error_is_below_the_textbook_bound():
    t = Exponential(epsilon=1, sensitivity=1).error(confidence=0.95, candidates=100)
    assert 0.95 * 2 * (math.log(100) + math.log(20)) < t < 2 * (math.log(100) + math.log(20))


def test_calibration_reaches_the_error_with_nothing_to_spare():
    mechanism = Exponential.calibrated(error=7, confidence=0.9, candidates=40, sensitivity=3)
    assert 7 * (1 - 1e-9) < mechanism.error(confidence=0.9, candidates=40) <= 7
    with pytest.raises(ParameterError, match="confidence"):
        Exponential.calibrated(error=7, confidence=0.1, candidates=1, sensitivity=3)


def test_loss_and_fields_are_what_was_typed():
    mechanism = Exponential(epsilon=Fraction(1, 3), sensitivity=0.5)
    assert mechanism.loss == BoundedRangeLoss(epsilon=Fraction(1, 3))
    assert mechanism.loss.rho == Fraction(1, 72)
    assert mechanism.rate == Fraction(1, 3)


def test_one_candidate_and_huge_scores():
    assert Exponential(epsilon=1e300, sensitivity=1e-300).select([1, 2]) == 1
    assert Exponential(epsilon=1, sensitivity=1).select([-1e308, 1e308]) == 1
    assert Exponential(epsilon=1, sensitivity=1).select(np.array([2**63 - 1, -(2**63)])) == 0


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "1", None])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        Exponential(epsilon=epsilon, sensitivity=1)


@pytest.mark.parametrize("sensitivity", [0, -1, math.nan, math.inf, True])
def test_bad_sensitivity(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity"):
        Exponential(epsilon=1, sensitivity=sensitivity)


def test_bad_monotone_confidence_and_candidates():
    with pytest.raises(ParameterError, match="monotone"):
        Exponential(epsilon=1, sensitivity=1, monotone="no")
    mechanism = Exponential(epsilon=1, sensitivity=1)
    with pytest.raises(ParameterError, match="confidence"):
        mechanism.error(confidence=1, candidates=3)
    with pytest.raises(ParameterError, match="candidates"):
        mechanism.error(confidence=0.9, candidates=0)


@pytest.mark.parametrize(
    "scores", [[], [[1.0, 2.0]], 3.0, [1.0, math.nan], [math.inf], ["a"], [True, False], [1, None]]
)
def test_bad_scores_are_refused_before_anything_is_drawn(scores, no_randomness):
    with pytest.raises(DataError):
        Exponential(epsilon=1, sensitivity=1).select(scores, source=no_randomness)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, NoisyMax])
def test_extremes_have_an_error_or_a_clear_refusal(kind):
    numbers = [1, 1e-17, 1e-300, Fraction(1, 10**400), 1e300, 10**400, np.float32(0.5)]
    confidences = [0.5, np.float32(0.5), 1 - Fraction(1, 10**30), Fraction(1, 10**400)]
    for epsilon, sensitivity in itertools.product(numbers, numbers):
        try:
            mechanism = kind(epsilon=epsilon, sensitivity=sensitivity)
        except ParameterError:
            assert kind is NoisyMax  # which needs a grid
            continue
        for confidence, candidates in itertools.product(confidences, (1, 7, 10**400)):
            assert mechanism.error(confidence=confidence, candidates=candidates) >= 0


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, NoisyMax])
@pytest.mark.parametrize("error", [1e-300, 1e300, 10**400, Fraction(1, 10**400)])
def test_errors_no_epsilon_reaches_are_refused(kind, error):
    with pytest.raises(ParameterError, match="error"):
        kind.calibrated(error=error, confidence=0.9, candidates=5, sensitivity=1)


@pytest.mark.parametrize("monotone", [np.True_, np.False_, True, False])
def test_every_mechanism_takes_the_same_truth_values(monotone):
    of = {"epsilon": 1, "sensitivity": 1, "monotone": monotone}
    for make in (Exponential, PermuteAndFlip, NoisyMax):
        assert make(**of).select([0, 5000]) == 1
    assert AboveThreshold(threshold=0, positives=1, **of).start().ask(5000) is True
    assert TopK(k=1, **of).select([0, 5000]).tolist() == [1]


@pytest.mark.parametrize("monotone", [1, 0, None, "yes"])
def test_every_mechanism_refuses_the_same_others(monotone):
    of = {"epsilon": 1, "sensitivity": 1, "monotone": monotone}
    more = {AboveThreshold: {"threshold": 0, "positives": 1}, TopK: {"k": 1}}
    for make in (Exponential, PermuteAndFlip, NoisyMax, AboveThreshold, TopK):
        with pytest.raises(ParameterError, match="monotone"):
            make(**of, **more.get(make, {}))
