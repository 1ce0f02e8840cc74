"""Directed rounding: on the stated side, and hardly off."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._exact import float_up
from discreet._rounding import exp_lower, exp_upper, float_down, log_of

fractions = st.fractions(min_value=-4000, max_value=2000)


def as_mpf(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


@given(x=fractions)
def test_exponentials_bracket_the_truth_tightly(x):
    with mpmath.workdps(80):
        truth = mpmath.exp(as_mpf(x))
        low, high = as_mpf(exp_lower(x)), as_mpf(exp_upper(x))
        assert low <= truth <= high
        assert high - low <= truth * mpmath.mpf("1e-34")


@pytest.mark.lengthy
@given(x=st.fractions(min_value=-(10**9), max_value=-5001))
def test_far_below_every_float_the_bracket_is_wide_but_sound(x):
    assert exp_lower(x) == 0
    assert 0 < exp_upper(x) < Fraction(1, 10**2000)


@given(x=st.fractions())
def test_floats_are_the_nearest_ones_on_their_side(x):
    low, high = float_down(x), float_up(x)
    assert low <= x <= high
    assert low == high or float_up(Fraction(low)) == low < high


def test_zero_has_no_sign():
    assert str(float_down(Fraction(0))) == "0.0"


@given(x=st.fractions(min_value=Fraction(1, 10**9)))
def test_log_agrees_with_mpmath(x):
    assert abs(log_of(x) - float(mpmath.log(as_mpf(x)))) < 1e-12
