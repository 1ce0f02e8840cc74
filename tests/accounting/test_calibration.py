"""Calibration: safe as evaluated, as small as floats allow, and the printed figures."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    ZCDPLoss,
    calibrate,
    classic_gaussian_sigma,
    delta,
    epsilon,
)
from discreet.errors import ParameterError

families = {
    "gaussian": lambda s: GaussianLoss(noise_multiplier=s),
    "laplace": lambda s: LaplaceLoss(noise_multiplier=s),
    "discrete laplace": lambda s: DiscreteLaplaceLoss(noise_multiplier=s, sensitivity=3),
    "discrete gaussian": lambda s: DiscreteGaussianLoss(sigma=s, sensitivity=1, dimension=1),
    "wide discrete gaussian": lambda s: DiscreteGaussianLoss(
        sigma=s, sensitivity=30_000, dimension=1
    ),
    "vector discrete gaussian": lambda s: DiscreteGaussianLoss(sigma=s, sensitivity=2),
}


@pytest.mark.parametrize("family", families)
@settings(max_examples=15, deadline=None)
@given(e=st.floats(0.05, 5), target=st.floats(1e-12, 0.1))
def test_calibration_is_safe_and_not_wasteful(family, e, target):
    make = families[family]
    found = calibrate(make, epsilon=e, delta=target)
    assert delta(make(found), epsilon=e) <= target
    assert delta(make(found * (1 - 1e-6)), epsilon=e) > target


@pytest.mark.parametrize("e", [1e-6, 1e-3, 1, 40, 1e4])
@pytest.mark.parametrize("target", [1e-300, 1e-20, 1e-5, 0.5, 0.99])
def test_gaussian_calibration_over_its_whole_range(e, target):
    found = calibrate(families["gaussian"], epsilon=e, delta=target)
    assert delta(GaussianLoss(noise_multiplier=found), epsilon=e) <= target
    assert delta(GaussianLoss(noise_multiplier=found * (1 - 1e-9)), epsilon=e) > target


def test_the_printed_figures():
    assert f"{calibrate(families['gaussian'], epsilon=1, delta=1e-5):.4f}" == "3.7306"
    # Mean BMI of 100 people in [10, 60]: sensitivity 0.5, classic formula.
    width = Fraction(60 - 10, 100)
    assert round(classic_gaussian_sigma(epsilon=1, delta=1e-5, sensitivity=width), 2) == 2.42
    # A count at epsilon 1 has Laplace noise of scale 1, standard deviation sqrt(2).
    assert calibrate(families["laplace"], epsilon=1, delta=0) == 1


def test_the_classic_formula_is_safe_where_allowed_and_refused_elsewhere():
    for e in (0.01, 0.3, 1):
        classic = classic_gaussian_sigma(epsilon=e, delta=1e-6, sensitivity=1)
        assert delta(GaussianLoss(noise_multiplier=classic), epsilon=e) <= 1e-6
        assert classic > calibrate(families["gaussian"], epsilon=e, delta=1e-6)
    with pytest.raises(ParameterError, match="use calibrate"):
        classic_gaussian_sigma(epsilon=1.01, delta=1e-6, sensitivity=1)
    # The reason for the refusal: far above 1 the formula is simply false.
    false_sigma = math.sqrt(2 * math.log(1.25e6)) / 1000
    assert delta(GaussianLoss(noise_multiplier=false_sigma), epsilon=1000) > 1e-6


def test_pure_budgets_are_met_exactly():
    for e in (0.1, 1 / 3, 7):
        found = calibrate(families["discrete laplace"], epsilon=e, delta=0)
        assert 1 / Fraction(found) <= Fraction(e)
        assert found == pytest.approx(1 / e, rel=1e-15)


def test_what_cannot_be_met_is_refused():
    with pytest.raises(ParameterError, match="delta above 0"):
        calibrate(families["gaussian"], epsilon=1, delta=0)
    with pytest.raises(ParameterError, match="delta above 0"):
        calibrate(families["discrete gaussian"], epsilon=1, delta=0)
    with pytest.raises(ParameterError):
        calibrate(families["laplace"], epsilon=0, delta=0)
    with pytest.raises(ParameterError, match="delta must be"):
        calibrate(families["laplace"], epsilon=1, delta=1)


composed = {
    "gaussians": lambda s: GaussianLoss(noise_multiplier=s) * 10,
    "sampled": lambda s: GaussianLoss(noise_multiplier=s).sampled(rate=0.01) * 200,
    "laplaces": lambda s: LaplaceLoss(noise_multiplier=s) * 10,
    "mixed": lambda s: GaussianLoss(noise_multiplier=s) * 3 + LaplaceLoss(noise_multiplier=s),
    "choices": lambda s: BoundedRangeLoss(epsilon=min(1 / s, 300)) * 20,
    "zcdp": lambda s: ZCDPLoss(rho=min(1 / s, 300)) * 2 + PureLoss(epsilon=min(1 / s, 300)),
    "failing": lambda s: (
        GaussianLoss(noise_multiplier=s) * 3 + ApproximateLoss(epsilon=0, delta=1e-9)
    ),
}


@pytest.mark.parametrize("family", families)
@settings(max_examples=10, deadline=None)
@given(e=st.fractions(Fraction(1, 20), 5), target=st.floats(1e-12, 0.1))
def test_epsilon_is_at_most_what_was_asked_for(family, e, target):
    make = families[family]
    assert epsilon(make(calibrate(make, epsilon=e, delta=target)), delta=target) <= e


@pytest.mark.lengthy
@pytest.mark.parametrize("family", composed)
@settings(max_examples=2, deadline=None)
@given(e=st.floats(0.01, 4), power=st.integers(-8, -4))
def test_epsilon_of_a_composition_is_at_most_what_was_asked_for(family, e, power):
    make, target = composed[family], 10.0**power
    found = calibrate(make, epsilon=e, delta=target)
    assert epsilon(make(found), delta=target) <= e
    assert delta(make(found), epsilon=e) <= target
    assert delta(make(found * (1 - 2e-4)), epsilon=e) > target, "and hardly more noise than needed"
