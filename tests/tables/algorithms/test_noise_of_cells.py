"""Noise for the engine's integers: its law, its price, its tails."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.accounting import GaussianLoss, LaplaceLoss
from discreet.errors import DiscreetError, ParameterError
from discreet.tables.algorithms.noise import Noise, in_rows
from discreet.tables.model.bounds import WEIGHT_STEPS

FALSE_ALARM = 1e-9
SAMPLES = 40_000
LAWS = {"laplace": stats.laplace(), "gaussian": stats.norm()}


def gap(draws, law):
    """Return the largest distance between the empirical and the true distribution."""
    heights = law.cdf(np.sort(draws))
    steps = np.arange(draws.size + 1) / draws.size
    return max(np.max(steps[1:] - heights), np.max(heights - steps[:-1]))


BAND = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * SAMPLES))  # Dvoretzky, Kiefer, Wolfowitz


@pytest.mark.parametrize("kind", LAWS)
def test_noise_has_the_law_that_it_is_priced_for(kind):
    noise = Noise(kind=kind, multiplier=Fraction(3, 2))
    drawn = noise.add(np.full(SAMPLES, 7 * WEIGHT_STEPS), sensitivity=Fraction(4))
    scaled = (in_rows(drawn) - 7) / 6  # multiplier times sensitivity
    assert gap(scaled, LAWS[kind]) <= BAND + 1e-6
    assert gap(scaled / 1.2, LAWS[kind]) > BAND + 1e-6


def test_losses_are_those_of_the_real_mechanisms():
    assert Noise(kind="laplace", multiplier=3).loss == LaplaceLoss(noise_multiplier=3)
    assert Noise(kind="gaussian", multiplier=3).loss == GaussianLoss(noise_multiplier=3)


@pytest.mark.parametrize("kind", LAWS)
@given(z=st.floats(-9, 9), multiplier=st.floats(0.01, 100), sensitivity=st.floats(0.001, 1e6))
def test_tails_are_upper_bounds_and_close(kind, z, multiplier, sensitivity):
    noise = Noise(kind=kind, multiplier=multiplier)
    x = z * noise.scale(sensitivity)
    half = 0.5 / WEIGHT_STEPS / noise.scale(sensitivity)
    truth = LAWS[kind].sf(z - half)
    found = noise.tail(x, sensitivity)
    assert truth * (1 - 1e-13) <= found <= min(1, truth * (1 + 1e-9)) + 1e-12


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999, 1 - 1e-13])
def test_quantiles_and_deviations(kind, confidence):
    noise = Noise(kind=kind, multiplier=2)
    t = noise.quantile(confidence, 3) / noise.scale(3)
    miss = 2 * LAWS[kind].sf(t)
    assert miss <= (1 - confidence) * (1 + 1e-9)
    assert miss >= (1 - confidence) / (1.1 if confidence < 1 - 1e-12 else 20)
    assert noise.deviation(3) == pytest.approx(6 * LAWS[kind].std(), rel=1e-9)


def test_far_tails_are_never_zero():
    for kind in LAWS:
        assert 0 < Noise(kind=kind, multiplier=1).tail(1e9, 1) < 1e-290


def test_sums_stop_at_the_ends():
    noise = Noise(kind="laplace", multiplier=2**45)
    ends = np.array([2**62, -(2**62)] * 2000)
    drawn = noise.add(ends, sensitivity=1)
    assert drawn.dtype == np.int64
    assert (drawn == np.iinfo(np.int64).max).any()
    assert (drawn == np.iinfo(np.int64).min).any()


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ParameterError):
        Noise(kind="laplace", multiplier=bad)
    with pytest.raises(ParameterError):
        Noise(kind="laplace", multiplier=1).add(np.zeros(1, dtype=np.int64), sensitivity=bad)


def test_bad_kinds_and_values_are_refused():
    with pytest.raises(ParameterError, match="kind must be"):
        Noise(kind="uniform", multiplier=1)
    with pytest.raises(DiscreetError, match="integers"):
        Noise(kind="laplace", multiplier=1).add(np.zeros(3), sensitivity=1)
