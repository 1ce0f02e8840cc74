"""Losses at the ends of what numbers can hold: every accountant answers, or says that it cannot."""

import math
from fractions import Fraction

import pytest

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    FinitePairLoss,
    GaussianLoss,
    PureLoss,
    RandomizedResponseLoss,
    TruncatedPoissonLoss,
    ZCDPLoss,
    compare,
    delta,
    epsilon,
)

half = Fraction(1, 2)
TINY, HUGE = (1e-300, 1e-100), (700, 1e4, 1e100)
APART = FinitePairLoss(p=(1, 0), q=(0, 1))
ODD = [
    *(kind(epsilon=e) for kind in (PureLoss, BoundedRangeLoss) for e in (*TINY, *HUGE)),
    *(ZCDPLoss(rho=rho, delta=d) for rho in (*TINY, *HUGE) for d in (0, 1e-300, 1 - 1e-12)),
    *(PureLoss(epsilon=e).sampled(rate=rate) for e in (*TINY, *HUGE) for rate in (1e-100, half, 1)),
    *(ZCDPLoss(rho=rho).sampled(rate=rate) for rho in TINY for rate in (1e-100, half)),
    *(PureLoss(epsilon=700) * times for times in (3, 10**6)),
    RandomizedResponseLoss(epsilon=700, categories=10**9) * 3,
    ApproximateLoss(epsilon=700, delta=1e-300) * 3,
    ApproximateLoss(epsilon=1, delta=half).sampled(rate=1) * 3,
    GaussianLoss(noise_multiplier=1e-100),
    GaussianLoss(noise_multiplier=1e-100).sampled(rate=0.001),
    FinitePairLoss(p=(1,), q=(1,)).sampled(rate=1e-100),
    APART,
    APART.sampled(rate=0.1) * 3,
    TruncatedPoissonLoss(inner=APART, rate=0.1, batch=3, population=10) * 3,
]


@pytest.mark.lengthy
@pytest.mark.parametrize("loss", ODD, ids=repr)
def test_every_accountant_answers(loss):
    best = epsilon(loss, delta=1e-5)
    for found in compare(loss, delta=1e-5):
        assert found.note
        assert found.epsilon is None or 0 <= found.epsilon < math.inf
    assert 0 <= delta(loss, epsilon=1) <= 1
    pure = loss.epsilon_pure
    assert best <= (float(pure) * (1 + 1e-12) if pure < 1e300 else math.inf)


def test_three_large_responses_lie_near_their_sum():
    # All three answers are true but for a chance of exp(-700), so the loss is 2100.
    assert 2099.9 < epsilon(PureLoss(epsilon=700) * 3, delta=1e-5) <= 2100.1


def test_a_sample_of_what_reveals_everything_reveals_it_that_often():
    revealing = APART.sampled(rate=0.1) * 3
    assert epsilon(revealing, delta=0.27) == math.inf
    assert 1 - 0.9**3 <= delta(revealing, epsilon=5) < 0.2711
