"""The theorem of docs/proofs/laplace_vectors.md, checked by enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import DiscreteLaplaceLoss, delta


def log_laplace(k, scale):
    return -np.abs(k) / scale


def log_gaussian(k, scale):
    return -(k**2) / (2 * scale**2)


def laws(log_weight, scale, shift, reach):
    """Return the law of the noise and of the noise plus ``shift`` on a common grid."""
    line = np.arange(-reach, reach + max(shift) + 1, dtype=float)
    base, moved = np.ones(1), np.ones(1)
    for d in shift:
        one, other = (np.exp(log_weight(line - centre, scale)) for centre in (0, d))
        base = np.multiply.outer(base, one / one.sum()).ravel()
        moved = np.multiply.outer(moved, other / other.sum()).ravel()
    return base, moved


def hockey_stick(p, q, e):
    return float(np.sum(np.maximum(0, p - math.exp(e) * q)))


shifts = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any)


@settings(max_examples=60, deadline=None)
@given(shift=shifts, scale=st.floats(0.3, 3), e=st.floats(0, 3))
def test_a_vector_shift_costs_no_more_than_its_l1_norm_on_one_coordinate(shift, scale, e):
    reach = math.ceil(36 * scale)
    total = sum(shift)
    vector = hockey_stick(*laws(log_laplace, scale, shift, reach), e)
    backwards = hockey_stick(*reversed(laws(log_laplace, scale, shift, reach)), e)
    loss = DiscreteLaplaceLoss(noise_multiplier=scale / total, sensitivity=total)
    assert max(vector, backwards) <= delta(loss, epsilon=e) * (1 + 1e-9) + 1e-12


def test_the_bound_is_strict_where_it_should_be_and_equal_where_it_must_be():
    loss = DiscreteLaplaceLoss(noise_multiplier=0.5, sensitivity=2)
    split = hockey_stick(*laws(log_laplace, 1, (1, 1), 40), 0.5)
    whole = hockey_stick(*laws(log_laplace, 1, (2,), 40), 0.5)
    assert split < whole - 0.01
    assert delta(loss, epsilon=0.5) == pytest.approx(whole, rel=1e-9)


def power(base, moved, level):
    """Return the power of the best randomised test of the given level."""
    ratio = np.divide(moved, base, out=np.full(len(base), np.inf), where=base > 0)
    order = np.argsort(-ratio)
    sizes = np.concatenate([[0], np.cumsum(base[order])])
    powers = np.concatenate([[0], np.cumsum(moved[order])])
    return float(np.interp(level, sizes, powers))


@pytest.mark.parametrize("log_weight", [log_laplace, log_gaussian])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 3), (2, 1)])
def test_powers_of_log_concave_noise_compose(log_weight, a, b):
    def at(shift, level):
        return power(*laws(log_weight, 1.7, (shift,), 60), level)

    for level in np.linspace(0, 1, 21):
        assert at(a + b, level) == pytest.approx(at(b, at(a, level)), abs=1e-9)
        assert at(a + b, level) >= at(a, level) - 1e-12


def test_noise_that_is_not_log_concave_does_not_compose():
    # The test above could fail: with heavy tails the best tests of different shifts differ.
    def log_cauchy(k, scale):
        return -np.log1p((k / scale) ** 2)

    def at(shift, level):
        return power(*laws(log_cauchy, 1.0, (shift,), 3000), level)

    gaps = [at(1, at(1, level)) - at(2, level) for level in (0.05, 0.2, 0.5)]
    assert max(gaps) > 1e-3
