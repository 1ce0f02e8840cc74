"""Private accuracy: its noise, its loss, its error, its refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import DiscreteLaplaceLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.additive.classifier_accuracy import ClassifierAccuracy
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct mechanism fails one of these tests
SAMPLES = 50_000


def clamped_cdf(correct, examples, epsilon):
    p = math.exp(-epsilon)

    def cdf(k):
        k = np.asarray(k)
        x = (k - correct).astype(float)
        below = np.exp(np.minimum(x, 0) * epsilon) / (1 + p)
        above = 1 - p * np.exp(-np.maximum(x, 0) * epsilon) / (1 + p)
        return np.where(k < 0, 0.0, np.where(k >= examples, 1.0, np.where(x < 0, below, above)))

    return cdf


@pytest.mark.lengthy
def test_noise_follows_its_law_and_a_wrong_epsilon_would_show():
    examples = 40
    answers = np.arange(examples) < 35
    mechanism = ClassifierAccuracy(epsilon=0.25, examples=examples)
    draws = np.rint([mechanism.release(answers) * examples for _ in range(SAMPLES)]).astype(int)
    band = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)
    assert cdf_gap(draws, clamped_cdf(35, examples, 0.25)) <= band
    assert cdf_gap(draws, clamped_cdf(35, examples, 0.2)) > band
    assert cdf_gap(draws, clamped_cdf(35, examples, 0.3125)) > band


def clamped_masses(correct, examples, epsilon):
    p = math.exp(-epsilon)
    inner = (1 - p) * np.exp(-epsilon * np.abs(np.arange(1, examples) - correct))
    ends = np.exp([-epsilon * correct, -epsilon * (examples - correct)])
    return np.concatenate([ends[:1], inner, ends[1:]]) / (1 + p)


@given(correct=st.integers(0, 10), epsilon=st.sampled_from([0.1, 1.0, 3.0]))
def test_no_result_leaks_more_than_epsilon(correct, epsilon):
    examples = 10
    one = clamped_masses(correct, examples, epsilon)
    assert one.sum() == pytest.approx(1)
    loss = ClassifierAccuracy(epsilon=epsilon, examples=examples).loss
    for other in {max(correct - 1, 0), min(correct + 1, examples)}:
        two = clamped_masses(other, examples, epsilon)
        assert np.abs(np.log(one / two)).max() <= float(loss.epsilon_pure) + 1e-9


def test_loss_is_that_of_a_count():
    mechanism = ClassifierAccuracy(epsilon=Fraction(1, 2), examples=7)
    assert mechanism.loss == DiscreteLaplaceLoss(noise_multiplier=2)
    assert mechanism.loss.epsilon_pure == Fraction(1, 2)


def test_predictions_and_labels_of_any_type():
    mechanism = ClassifierAccuracy(epsilon=1000, examples=4)
    assert mechanism.release_predictions([1, 2, 3, 4], [1, 2, 0, 4]) == 0.75
    assert mechanism.release_predictions(["a", "b", "c", "d"], ["b", "b", "a", "a"]) == 0.25


@given(
    epsilon=st.floats(0.01, 20),
    confidence=st.sampled_from([0.5, 0.9, 0.99, 1 - 1e-12]),
    examples=st.integers(1, 1000),
)
def test_error_is_the_smallest_that_holds(epsilon, confidence, examples):
    t = ClassifierAccuracy(epsilon=epsilon, examples=examples).error(confidence=confidence)
    k = round(t * examples)
    p, miss = math.exp(-epsilon), 1 - confidence
    # Accuracies are between 0 and 1, so no error is above 1.
    assert k == examples or 2 * p ** (k + 1) / (1 + p) <= miss * (1 + 1e-9)
    assert k <= examples
    assert k == 0 or 2 * p**k / (1 + p) > miss * (1 - 1e-9)


@given(error=st.floats(0.001, 0.5), examples=st.integers(10, 10_000))
def test_calibration_is_the_smallest_epsilon(error, examples):
    mechanism = ClassifierAccuracy.calibrated(error=error, confidence=0.95, examples=examples)
    assert mechanism.error(confidence=0.95) <= error
    less = ClassifierAccuracy(epsilon=mechanism.epsilon * (1 - 1e-9), examples=examples)
    assert round(less.error(confidence=0.95) * examples) > math.floor(Fraction(error) * examples)


@pytest.mark.lengthy
def test_audit_passes_and_has_teeth():
    found = audit.mechanism(
        ClassifierAccuracy(epsilon=1, examples=10).release,
        pair=(np.arange(10) < 5, np.arange(10) < 6),
        epsilon=1,
        delta=0,
        samples=40_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 0.8


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        ClassifierAccuracy(epsilon=epsilon, examples=10)


@pytest.mark.parametrize("examples", [0, -1, 1.5, math.nan, True])
def test_bad_examples(examples):
    with pytest.raises(ParameterError, match="examples"):
        ClassifierAccuracy(epsilon=1, examples=examples)


@pytest.mark.parametrize("correct", [[], [True], [1, 0], [[True, False]], [0.5, 0.5], True])
def test_bad_answers_are_refused_before_anything_is_drawn(correct, no_randomness):
    mechanism = ClassifierAccuracy(epsilon=1, examples=2)
    with pytest.raises(DataError):
        mechanism.release(correct, source=no_randomness)


def test_unequal_lengths_are_refused_before_anything_is_drawn(no_randomness):
    with pytest.raises(DataError, match="same shape"):
        ClassifierAccuracy(epsilon=1, examples=2).release_predictions(
            [1, 2], [1], source=no_randomness
        )
