"""The helpers that other people's tests lean on."""

import numpy as np
import pytest

from discreet import mechanisms as m
from discreet.errors import ParameterError
from discreet.testing import SeededSource, cdf_gap, dkw_band


def test_a_seeded_source_repeats_itself_and_nothing_else():
    mechanism = m.Laplace(sensitivity=1, scale=1)
    one, two = (mechanism.release(np.zeros(100), source=SeededSource(3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = mechanism.release(np.zeros(100), source=SeededSource(4))
    assert (one != other).any()
    assert not SeededSource(3).is_secure


def test_the_gap_is_the_kolmogorov_distance():
    samples = np.array([0] * 30 + [1] * 70)
    assert cdf_gap(samples, lambda k: np.clip(0.5 * (k + 1), 0, 1)) == pytest.approx(0.2)
    exact = cdf_gap(samples, lambda k: np.where(k < 0, 0, np.where(k < 1, 0.3, 1)))
    assert exact == pytest.approx(0, abs=1e-15)


def test_the_band_shrinks_with_the_samples_and_refuses_nonsense():
    assert dkw_band(400, false_alarm=1e-9) == pytest.approx(2 * dkw_band(1600, false_alarm=1e-9))
    for bad in (0, -1, 1.5):
        with pytest.raises(ParameterError):
            dkw_band(bad, false_alarm=1e-9)
    with pytest.raises(ParameterError):
        dkw_band(10, false_alarm=0)
