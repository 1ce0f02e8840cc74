"""Rates at certified false positives: the claim itself, and what is refused."""

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from discreet.attacks.membership import certified_rate, roc
from discreet.errors import DataError, ParameterError


def test_the_threshold_is_the_largest_rank_whose_law_is_certified():
    others = np.arange(10_000.0)
    rate = certified_rate([9_999.5], others, false_positive_rate=0.001)
    rank = rate.accused + 1
    assert beta.sf(0.001, rank, 10_000 - rank + 1) <= 0.025
    assert beta.sf(0.001, rank + 1, 10_000 - rank) > 0.025
    assert rate.found == 1


@pytest.mark.lengthy
def test_false_positives_and_interval_hold_together_as_often_as_claimed():
    """Fails by chance with probability below 1e-9, and if the rank were one tenth too large."""
    dice, runs, confidence = np.random.default_rng(), 1500, 0.9
    wrong = too_many = 0
    for _ in range(runs):
        others, members = dice.normal(size=2000), dice.normal(1, 1, 100)
        rate = certified_rate(members, others, false_positive_rate=0.05, confidence=confidence)
        true_false_positives, true_found = norm.sf(rate.threshold), norm.sf(rate.threshold - 1)
        low, high = rate.interval
        too_many += true_false_positives > 0.05
        wrong += true_false_positives > 0.05 or not low <= true_found <= high
    assert wrong <= binom.isf(1e-9, runs, 1 - confidence)
    assert too_many > 0  # the law is exact: a rank that never errs would be wasteful


def test_ties_never_accuse_more_than_certified():
    rate = certified_rate([1, 1, 1], np.ones(500), false_positive_rate=0.1)
    assert (rate.found, rate.accused) == (0, 0)


def test_too_few_others_are_refused_and_the_number_needed_is_right():
    with pytest.raises(DataError, match="at least 3,688 are needed"):
        certified_rate([1.0], np.arange(3687.0), false_positive_rate=0.001)
    assert certified_rate([1e9], np.arange(3688.0), false_positive_rate=0.001).found == 1


@pytest.mark.parametrize("scores", [[], [[1.0]], [float("nan")]])
def test_what_is_no_list_of_numbers_is_refused(scores):
    with pytest.raises(DataError, match="scores of members"):
        certified_rate(scores, np.arange(100.0), false_positive_rate=0.5)


@pytest.mark.parametrize("rate", [0, 1.5, float("nan")])
def test_rates_that_are_none_are_refused(rate):
    with pytest.raises(ParameterError, match="false_positive_rate"):
        certified_rate([1.0], np.arange(100.0), false_positive_rate=rate)


def test_the_curve_never_falls():
    dice = np.random.default_rng(0)
    points = np.array(roc(dice.normal(1, 1, 1000), dice.normal(0, 1, 1000)))
    assert (np.diff(points, axis=0) >= 0).all()
