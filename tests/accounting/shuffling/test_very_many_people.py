"""Shuffles of very many people, whose coins are bounded by normal laws."""

import math

import numpy as np
import pytest

from discreet.accounting import GaussianLoss, ShuffledLoss, epsilon
from discreet.accounting.shuffling import crowds
from discreet.accounting.shuffling.clones import tails, tilt


@pytest.mark.parametrize("year", [2021, 2023])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n", [300, 10_001, 10**6])
def test_the_bounds_are_above_what_is_counted_coin_by_coin(year, epsilon0, n):
    counted = tails(epsilon0, n, year, 60.0)
    bounded = crowds.crowd_tails(epsilon0, n, year, 60.0)
    spread = tilt(epsilon0) / math.sqrt(n)
    for share in (0.0, 0.5, 1.0, 3.0, 8.0):
        at = min(2 * share * spread, 0.9 * epsilon0)
        truth, found = counted.delta_upper(at), bounded.delta_upper(at)
        # The table has rounded up, and lowered numbers of clones, by little.
        assert found > truth * (1 - 2e-3)
        if n == 10**6 and share <= 3:
            assert found < truth * 1.2


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
def test_the_pair_is_above_the_profile(epsilon0):
    n = 4_000
    counted = tails(epsilon0, n, 2023, 60.0)
    losses, masses, lost = crowds.crowd_atoms(epsilon0, n, 2023, depth=60.0, levels=8)
    assert masses.sum() + lost >= 1
    for at in np.linspace(0, 0.3 * epsilon0, 9):
        found = lost + masses @ np.maximum(0.0, -np.expm1(at - losses))
        assert found > counted.delta_upper(float(at)) * (1 - 2e-3)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0])
def test_epsilon_falls_with_the_square_root_of_the_crowd(epsilon0):
    delta = 1e-9
    found = [epsilon(ShuffledLoss(epsilon0=epsilon0, n=2**i), delta=delta) for i in (26, 30, 40)]
    # As Gaussian noise: one sign among M fair ones has mean 2 t and deviation sqrt(M).
    p = crowds.clone_chance(epsilon0, 2023)[0]
    for i, upper in zip((26, 30, 40), found, strict=True):
        multiplier = math.sqrt(2.0**i * p) / (2 * tilt(epsilon0))
        limit = epsilon(GaussianLoss(noise_multiplier=multiplier), delta=delta)
        assert limit * (1 - 1e-6) < upper < limit * 1.01


def test_rounds_of_a_crowd_compose():
    single = epsilon(ShuffledLoss(epsilon0=1, n=2**40), delta=1e-9)
    many = epsilon(ShuffledLoss(epsilon0=1, n=2**40) * 16, delta=1e-9)
    assert 3 * single < many < 5 * single
