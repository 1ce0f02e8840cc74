"""Heavier checks, run by `make audit`: more samples, more settings."""

import math
import random

import dp_accounting.pld.privacy_loss_distribution as peer
import numpy as np
import pytest

import discreet
from discreet import audit, noise
from discreet import mechanisms as m
from discreet.accounting import GaussianLoss, LaplaceLoss, bracket, compose
from discreet.testing import cdf_gap, dkw_band

pytestmark = pytest.mark.slow
FALSE_ALARM = 1e-9
SAMPLES = 5_000_000


@pytest.mark.parametrize("scale", [1.0, 37.5, 4000.0])
def test_five_million_samples_follow_the_law_and_two_per_cent_off_would_show(scale):
    draws = noise.discrete_laplace(scale, SAMPLES)
    band = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)

    def cdf(at):
        p = math.exp(-1 / at)

        def law(k):
            below = np.exp(np.minimum(k, 0) / at) / (1 + p)
            return np.where(k < 0, below, 1 - p * np.exp(-np.maximum(k, 0) / at) / (1 + p))

        return law

    assert cdf_gap(draws, cdf(scale)) <= band
    assert cdf_gap(draws, cdf(1.02 * scale)) > band


@pytest.mark.parametrize("make", [m.Laplace, m.DiscreteLaplace])
def test_two_million_samples_prove_nearly_all_of_the_loss_and_no_more(make):
    mechanism = make(sensitivity=1, scale=1)
    kind = np.int64 if make is m.DiscreteLaplace else np.float64
    found = audit.mechanism(
        lambda value, n: mechanism.release(np.full(n, value, dtype=kind)),
        pair=(0, 1),
        epsilon=1,
        delta=0,
        samples=2_000_000,
        confidence=1 - FALSE_ALARM,
        batch=True,
    )
    assert found.passed
    assert found.epsilon_lower > 0.97


@pytest.mark.parametrize("seed", range(150))
def test_random_mixtures_are_never_below_an_optimistic_accountant(seed):
    """dp-accounting rounded the other way is a lower bound: ours must not fall below it."""
    dice = random.Random(seed)
    grid = {
        "pessimistic_estimate": False,
        "use_connect_dots": False,
        "value_discretization_interval": 2e-4,
    }
    parts, theirs = [], None
    for _ in range(dice.choice([1, 2, 3])):
        multiplier, times = 10 ** dice.uniform(-0.2, 1.2), dice.choice([1, 2, 5, 30])
        rate = dice.choice([1.0, 10 ** dice.uniform(-3, -0.3)])
        if dice.random() < 0.5:
            ours = GaussianLoss(noise_multiplier=multiplier)
            law = peer.from_gaussian_mechanism(multiplier, sampling_prob=rate, **grid)
        else:
            ours = LaplaceLoss(noise_multiplier=multiplier)
            law = peer.from_laplace_mechanism(multiplier, sampling_prob=rate, **grid)
        parts.append((ours if rate == 1 else ours.sampled(rate=rate), times))
        law = law.self_compose(times)
        theirs = law if theirs is None else theirs.compose(law)
    loss, delta = compose(parts), 10 ** dice.uniform(-9, -1)
    lowest = theirs.get_epsilon_for_delta(delta)
    if lowest < 80:
        found = bracket(loss, delta=delta)
        assert found.lower <= found.upper
        assert found.upper >= lowest - 1e-9
    at = min(lowest, 80.0) * 0.7
    assert discreet.delta(loss, epsilon=at) >= theirs.get_delta_for_epsilon(at) - 1e-12
