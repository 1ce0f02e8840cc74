"""Histograms: the right sensitivity for either noise, and the better noise chosen."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import delta as delta_of
from discreet.accounting import epsilon as epsilon_of
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.additive.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.additive.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.histograms.histogram import Histogram
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9
GOOD = {"epsilon": 1, "delta": 1e-6, "l0": 1, "linf": 1}


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.sampled_from([0.1, 1, 4]),
    l0=st.integers(1, 60),
    linf=st.integers(1, 9),
    data=st.data(),
)
def test_every_allowed_change_is_within_both_sensitivities(epsilon, l0, linf, data):
    histogram = Histogram.calibrated(epsilon=epsilon, delta=1e-6, l0=l0, linf=linf)
    change = data.draw(st.lists(st.integers(0, linf), min_size=l0, max_size=l0))
    for mechanism in (histogram.mechanism, histogram.alternative):
        if isinstance(mechanism, DiscreteLaplace):
            assert sum(change) <= mechanism.sensitivity == l0 * linf
        else:
            squares = sum(x * x for x in change)
            assert squares <= Fraction(mechanism.sensitivity) ** 2
            assert math.floor(Fraction(mechanism.sensitivity) ** 2) == l0 * linf * linf
    assert delta_of(histogram.loss, epsilon=epsilon) <= 1e-6
    assert histogram.loss == histogram.mechanism.loss


@settings(max_examples=40, deadline=None)
@given(k=st.lists(st.integers(-30, 30), min_size=3, max_size=3), shift=st.integers(0, 7))
def test_no_vector_leaks_more_than_claimed_under_laplace(k, shift):
    histogram = Histogram.calibrated(epsilon=1, delta=0, l0=2, linf=2)
    d = [(0, 0, 0), (2, 2, 0), (2, 0, 2), (0, 1, 2), (2, 1, 0), (1, 0, 0), (0, 2, 0), (1, 1, 0)]
    weight = histogram.mechanism.log_weight
    loss = sum(weight(x) - weight(x - moved) for x, moved in zip(k, d[shift], strict=True))
    assert loss <= histogram.loss.epsilon_pure == 1


def test_the_better_noise_is_chosen():
    for l0 in (1, 2, 5, 10, 20, 100):
        histogram = Histogram.calibrated(epsilon=1, delta=1e-6, l0=l0, linf=1)
        ours = histogram.mechanism.error(confidence=0.95)
        assert ours <= histogram.alternative.error(confidence=0.95)
        assert histogram.error(confidence=0.95) == ours
        assert type(histogram.mechanism).__name__ in histogram.why.split(":")[0]
    few = Histogram.calibrated(**GOOD)
    assert isinstance(few.mechanism, DiscreteLaplace)
    many = Histogram.calibrated(**(GOOD | {"l0": 100}))
    assert isinstance(many.mechanism, DiscreteGaussian)
    assert epsilon_of(many.loss, delta=1e-6) == pytest.approx(1, abs=1e-3)


def test_without_delta_only_laplace_will_do():
    histogram = Histogram.calibrated(epsilon=1, delta=0, l0=100, linf=1)
    assert histogram.mechanism == DiscreteLaplace(sensitivity=100, scale=100)
    assert histogram.alternative is None
    assert "nothing to compare" in histogram.why


def test_noise_follows_its_law_and_a_wrong_scale_would_show():
    n = 100_000
    histogram = Histogram.calibrated(epsilon=0.5, delta=0, l0=2, linf=5)
    draws = histogram.release(np.full(n, 7)) - 7
    band = dkw_band(n, false_alarm=FALSE_ALARM)

    def cdf(scale):
        p = math.exp(-1 / scale)

        def at(k):
            k = k.astype(float)
            low = np.exp(np.minimum(k, 0) / scale) / (1 + p)
            return np.where(k < 0, low, 1 - p * np.exp(-np.maximum(k, 0) / scale) / (1 + p))

        return at

    assert cdf_gap(draws, cdf(20)) <= band
    assert cdf_gap(draws, cdf(16)) > band
    assert cdf_gap(draws, cdf(25)) > band


@pytest.mark.lengthy
@pytest.mark.parametrize("l0", [1, 30])
def test_the_audit_passes_and_a_third_of_the_claim_fails(l0):
    histogram = Histogram.calibrated(epsilon=1, delta=1e-3, l0=l0, linf=1)

    def run(counts, runs):
        return histogram.release(np.tile(counts, (runs, 1))).sum(axis=1)

    of = {
        "pair": (np.zeros(l0, dtype=np.int64), np.ones(l0, dtype=np.int64)),
        "delta": 1e-3,
        "batch": True,
        "confidence": 1 - FALSE_ALARM,
    }
    assert audit.mechanism(run, epsilon=1, **of).passed
    assert not audit.mechanism(run, epsilon=0.3, samples=200_000, **of).passed


def test_confidences_beyond_doubles_and_numbers_of_any_type():
    histogram = Histogram.calibrated(
        epsilon=np.float32(1), delta=np.float32(1e-6), l0=np.int64(4), linf=2
    )
    assert histogram.error(confidence=1 - Fraction(1, 10**30)) > histogram.error(confidence=0.99)
    rare = Histogram.calibrated(
        epsilon=1, delta=1e-6, l0=4, linf=2, confidence=1 - Fraction(1, 10**30)
    )
    assert rare.error(confidence=rare.confidence) > 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", float("nan")),
        ("delta", 1),
        ("delta", -1e-9),
        ("l0", 0),
        ("l0", 1.5),
        ("linf", 0),
        ("confidence", 1),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ParameterError, match=name) as caught:
        Histogram.calibrated(**(GOOD | {name: value}))
    assert caught.value.parameter == name


@pytest.mark.parametrize(
    "mechanism",
    [
        DiscreteLaplace(sensitivity=5, scale=1),
        DiscreteGaussian(sensitivity=2.44, sigma=1),
        DiscreteGaussian(sensitivity=3, sigma=1, dimension=4),
        "laplace",
    ],
)
def test_a_mechanism_for_smaller_changes_is_refused(mechanism):
    with pytest.raises(ParameterError, match="mechanism"):
        Histogram(l0=6, linf=1, mechanism=mechanism)
    fits = DiscreteGaussian(sensitivity=2.45, sigma=1)
    assert Histogram(l0=6, linf=1, mechanism=fits).mechanism is fits


@pytest.mark.parametrize("counts", [3, [0.5], [float("nan")], ["1"], None, [True]])
def test_bad_counts_are_refused_before_noise_is_drawn(counts, no_randomness):
    histogram = Histogram.calibrated(**GOOD)
    with pytest.raises(DataError):
        histogram.release(counts, source=no_randomness)
    with pytest.raises(AssertionError):
        histogram.release([1], source=no_randomness)
