"""How much the accountant computes, counted in numbers and not in seconds."""

import math
import random

import pytest
import scipy.fft

from discreet.accounting import (
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    ShuffledLoss,
    bracket,
    compose,
    delta,
    epsilon,
)
from discreet.accounting.arithmetic import binomials
from discreet.accounting.losses import certified
from discreet.accounting.pairs import pairs
from discreet.accounting.pld import convolve, smoothed
from discreet.accounting.shuffling import amplification, clones

BUDGET = 10**9  # multiplications or so: a second or two
rng = random.Random(3)


def gaussian(m, rate):
    return GaussianLoss(noise_multiplier=m).sampled(rate=rate)


def laplace(m, rate):
    return LaplaceLoss(noise_multiplier=m).sampled(rate=rate)


CORNERS = {
    **{f"gaussian {m} x {n}": gaussian(m, 0.01) * n
       for m in (1e-3, 0.01, 0.03, 0.1) for n in (100, 10_000)},
    "rare and large": laplace(0.03, 1e-6) * 10_000,
    "a pair, rare and large": laplace(0.03, 1e-6) * 2,
    "Laplace x 1e12": LaplaceLoss(noise_multiplier=1e6) * 10**12,
    "pure x 1e12": PureLoss(epsilon=1e-6) * 10**12,
    "gaussian x 1e12": gaussian(4, 1e-6) * 10**12,
    "gaussian x 1e15": gaussian(4, 0.01) * 10**15,
    "300 gaussians": compose([(gaussian(rng.uniform(1, 5), 0.02), 1) for _ in range(300)]),
    "300 Laplaces": compose([(laplace(rng.uniform(1, 5), 0.02), 1) for _ in range(300)]),
    "300 rare": compose([(gaussian(rng.uniform(0.1, 0.3), 1e-4), 1) for _ in range(300)]),
    "shuffle of 2^40": ShuffledLoss(epsilon0=1, n=2**40),
    "10 shuffles of 2^40": ShuffledLoss(epsilon0=1, n=2**40) * 10,
    "sure reports": ShuffledLoss(epsilon0=100, n=2**26) * 1000,
}  # fmt: skip


@pytest.fixture
def work(monkeypatch):
    """Count nodes, transforms, frequencies that are summed, and coins."""
    counted = []

    def counting(module, name, cost):
        real = getattr(module, name)

        def wrapped(*args, **kwargs):
            counted.append(cost(*args, **kwargs))
            return real(*args, **kwargs)

        monkeypatch.setattr(module, name, wrapped)

    def size_of(part, frequency, at):
        return part.weight.size * (int(at[-1]) + 1 if at.size else 1)

    counting(smoothed, "_characteristic", size_of)
    counting(scipy.fft, "rfft", lambda x: 5 * x.size * math.log2(x.size))
    counting(convolve.Composed, "_tilted", lambda self, index: 10 * self._frequency.size)
    counting(smoothed.Smoothed, "_mean", lambda self, terms, loss: 10 * terms.size)
    counting(pairs, "quadrature", lambda edges, widest: 40 * edges.size)
    for module in (binomials, clones, amplification):
        counting(module, "log_pmf", lambda x, *args: 50 * x.size)
    for cached in (certified.epsilon_upper, certified.delta_upper, clones.tails):
        cached.cache_clear()
    return counted


@pytest.mark.lengthy
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CORNERS)
def test_no_corner_takes_unbounded_work(name, work):
    loss = CORNERS[name]
    found = epsilon(loss, delta=1e-6)
    assert math.isfinite(found)
    assert 0 < sum(work) < BUDGET or not work
    work.clear()
    assert 0 <= delta(loss, epsilon=min(found, 1e4)) <= 1
    assert sum(work) < BUDGET
    work.clear()
    both = bracket(loss, delta=1e-6)
    assert both.lower <= both.upper == found
    assert sum(work) < BUDGET


def test_very_many_steps_cost_what_a_limit_says():
    # n operations of epsilon / sqrt(n) tend to Gaussian noise of multiplier 1 / epsilon.
    truth = epsilon(GaussianLoss(noise_multiplier=1), delta=1e-5)
    for n in (10**8, 10**10, 10**12):
        found = bracket(PureLoss(epsilon=1 / math.isqrt(n)) * n, delta=1e-5)
        assert found.lower < truth < found.upper
        assert found.upper < truth + (1e-3 if n < 10**12 else 0.4)


def test_noise_far_below_the_sensitivity_has_an_epsilon():
    # Of 100 releases at a rate of 1% some are of the unit: one alone costs 1 / (2 m^2).
    for m in (0.03, 0.001):
        loss = gaussian(m, 0.01) * 100
        found = epsilon(loss, delta=1e-5)
        assert 1 / (2 * m**2) < found < 100 / m**2
        assert delta(loss, epsilon=found) <= 1e-5 * (1 + 1e-6)
        assert delta(loss, epsilon=1) == 1
        assert bracket(loss, delta=1e-5).lower <= found
