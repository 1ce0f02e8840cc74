"""The certificate: exact by enumeration, sharper than two separate bounds, and never reversed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._rates import epsilon_lower, rate_lower, rate_upper
from discreet.audit.evidence import certified_epsilon, detectable_epsilon, refutes


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("epsilon", "delta", "alpha"), [(0.5, 0.0, 0.1), (1.5, 0.0, 0.05), (0.7, 0.1, 0.2)]
)
def test_the_test_keeps_its_level_for_every_pair_of_rates(epsilon, delta, alpha):
    # No sampling: the probability of a refutation is summed over all outcomes of 15 trials.
    from scipy.stats import binom

    trials = 15
    counts = np.arange(trials + 1)
    refuted = np.array(
        [
            [
                refutes(x, y, epsilon=epsilon, trials=trials, delta=delta, alpha=alpha)
                for y in counts
            ]
            for x in counts.tolist()
        ]
    )
    assert refuted.any()
    largest = 0.0
    for q in np.linspace(0, 1, 200):
        p = min(1.0, math.exp(epsilon) * q + delta)
        law = np.outer(binom.pmf(counts, trials, p), binom.pmf(counts, trials, q))
        largest = max(largest, float(law[refuted].sum()))
    assert largest <= alpha
    assert largest > alpha / 10  # a test that refutes nothing would keep its level, too


@pytest.mark.parametrize(
    ("likely", "unlikely", "trials"),
    [(75_000, 27_591, 150_000), (75_000, 0, 150_000), (1000, 3, 150_000), (50, 10, 100)],
)
def test_it_is_sharper_than_two_separate_bounds(likely, unlikely, trials):
    alpha = 0.001
    low = rate_lower(np.array([likely]), trials=trials, alpha=alpha / 2)
    high = rate_upper(np.array([unlikely]), trials=trials, alpha=alpha / 2)
    separate = float(epsilon_lower(low, high, delta=0)[0])
    joint = certified_epsilon(likely, unlikely, trials=trials, delta=0, alpha=alpha)
    assert separate < joint < math.log((likely + 1) / (unlikely + 0.5))


@settings(max_examples=30)
@given(x=st.integers(0, 200), y=st.integers(0, 200), delta=st.sampled_from([0.0, 0.1]))
def test_what_is_refuted_is_refuted_for_every_smaller_epsilon(x, y, delta):
    level = {"trials": 200, "delta": delta, "alpha": 0.05}
    bound = certified_epsilon(x, y, **level)
    assert bound >= 0
    if bound > 0:
        assert refutes(x, y, epsilon=bound / 2, **level)
    assert not refutes(x, y, epsilon=bound + 0.01, **level)
    assert certified_epsilon(x, min(200, y + 5), **level) <= bound + 1e-4


def test_tiny_levels_work():
    bound = certified_epsilon(50_000, 18_000, trials=100_000, delta=0, alpha=1e-12)
    assert 0.9 < bound < math.log(50 / 18)


def test_power_is_infinite_where_nothing_was_proved_and_grows_as_less_is_shown():
    level = {"trials": 10_000, "epsilon": 1.0, "delta": 0.0, "alpha": 0.001}
    assert detectable_epsilon(100, 100, proved=0.0, **level) == math.inf
    tight = detectable_epsilon(5_000, 1_839, proved=0.9, **level)
    loose = detectable_epsilon(5_000, 3_033, proved=0.4, **level)
    assert 1 < tight < 1.2
    assert 1.9 < loose < 2.5  # the event shows half of the claim, so half of a violation, too


def test_a_level_of_one_refutes_everything_and_ends():
    bound = certified_epsilon(150, 0, trials=150, delta=1e-6, alpha=1.0)
    assert 0 <= bound < 1500
