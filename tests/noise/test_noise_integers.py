"""Uniform integers and weighted choice follow their laws exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import noise
from discreet.errors import ParameterError
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9
SAMPLES = 100_000
BAND = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)


def uniform_cdf(bound):
    return lambda k: np.clip((k.astype(float) + 1) / bound, 0, 1)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 256, 1000, 65_536, 65_537, 10**6, 2**40 + 1, 2**63])
def test_uniform_integers_follow_the_law_and_a_wrong_bound_would_show(bound):
    draws = noise.uniform_integers(bound, SAMPLES)
    assert draws.min() >= 0
    assert draws.max() < bound
    assert cdf_gap(draws, uniform_cdf(bound)) <= BAND
    if bound > 1:  # the true gap of a fifth too many is a sixth
        assert cdf_gap(draws, uniform_cdf(bound * 1.2)) > BAND


def test_small_bounds_are_exactly_even():
    """Chi-square on 7 outcomes: above 60 with probability below 1e-9 at 6 degrees of freedom."""
    counts = np.bincount(noise.uniform_integers(7, 700_000), minlength=7)
    assert ((counts - 100_000) ** 2 / 100_000).sum() < 60


def test_single_draws_and_huge_bounds():
    draws = [noise.uniform_integers(10**30) for _ in range(2000)]
    assert all(0 <= draw < 10**30 for draw in draws)
    share = np.mean([draw < 10**30 // 4 for draw in draws])
    assert abs(share - 0.25) <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * 2000))
    assert noise.uniform_integers(2**80, (2, 3)).dtype == object
    ones = [noise.uniform_integers(5) for _ in range(20_000)]
    assert cdf_gap(ones, uniform_cdf(5)) <= dkw_band(20_000, false_alarm=FALSE_ALARM)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "weights",
    [
        [1, 2, 3, 4],
        [0.5, 0.25, 0.25],
        [Fraction(1, 3), Fraction(1, 7), 0, 5],
        [10**30, 2 * 10**30, 7],
        [1e-300, 1, 1e-300],
    ],
)
def test_choice_follows_its_weights_and_wrong_ones_would_show(weights):
    draws = noise.choice(weights, SAMPLES)
    exact = np.cumsum([float(Fraction(w) / sum(map(Fraction, weights))) for w in weights])
    assert cdf_gap(draws, lambda k: np.where(k < 0, 0.0, exact[np.clip(k, 0, None)])) <= BAND
    tilted = np.array([float(w) for w in weights]) * (1 + 0.5 * np.arange(len(weights)))
    wrong = np.cumsum(tilted / tilted.sum())
    if max(abs(wrong - exact)) > 2 * BAND:
        assert cdf_gap(draws, lambda k: np.where(k < 0, 0.0, wrong[np.clip(k, 0, None)])) > BAND
    singles = [noise.choice(weights) for _ in range(2000)]
    assert set(singles) <= {i for i, weight in enumerate(weights) if weight}


def test_bad_input_is_refused_before_anything_is_drawn(no_randomness):
    for bad in (0, -1, 2.5, float("nan"), "3", None, True):
        with pytest.raises(ParameterError, match="bound"):
            noise.uniform_integers(bad, source=no_randomness)
    for bad in ([], [0, 0], [-1, 2], [float("nan")], ["a"]):
        with pytest.raises(ParameterError, match="weights"):
            noise.choice(bad, source=no_randomness)
