"""The counting bounds against exact binomial sums."""

from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._rates import epsilon_lower, rate_lower, rate_upper


def upper_tail(n, k, p):
    """Pr[Binomial(n, p) >= k], exactly."""
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


@settings(deadline=None)
@given(n=st.integers(1, 40), data=st.data(), alpha=st.sampled_from([0.05, 1e-3, 5e-10]))
def test_clopper_pearson_inverts_the_binomial_tails(n, data, alpha):
    k = data.draw(st.integers(0, n))
    low = Fraction(float(rate_lower(np.array([k]), trials=n, alpha=alpha)[0]))
    high = Fraction(float(rate_upper(np.array([k]), trials=n, alpha=alpha)[0]))
    assert 0 <= low <= Fraction(k, n) <= high <= 1
    if k > 0:  # at the lower bound, so many hits have probability alpha: no more, hardly less
        assert alpha * (1 - 1e-5) <= upper_tail(n, k, low) <= alpha
    if high < 1 - 1e-5:  # closer to 1 the relative slack swamps the distance
        assert alpha * (1 - 1e-3) <= 1 - upper_tail(n, k + 1, high) <= alpha


def test_extreme_counts():
    assert rate_lower(np.array([0]), trials=9, alpha=0.1)[0] == 0
    assert rate_upper(np.array([9]), trials=9, alpha=0.1)[0] == 1


@pytest.mark.parametrize(
    ("p", "q", "delta", "epsilon"),
    [(0.75, 0.25, 0, log(3)), (0.5, 0.1, 0.1, log(4)), (0.1, 0.2, 0, 0), (0.1, 0.01, 0.2, 0)],
)
def test_what_an_event_proves(p, q, delta, epsilon):
    found = epsilon_lower(np.array([p]), np.array([q]), delta=delta)[0]
    assert found == pytest.approx(epsilon, rel=1e-12)


def test_the_ceiling_of_counting():
    # All hits against none: the bound is about log(n / 3.7) at 95%.
    n = 100_000
    low = rate_lower(np.array([n]), trials=n, alpha=0.025)
    high = rate_upper(np.array([0]), trials=n, alpha=0.025)
    assert epsilon_lower(low, high, delta=0)[0] == pytest.approx(log(n / 3.7), abs=0.01)
