"""Every mechanism that is made from an epsilon costs at most that, as accountants compute it."""

import inspect
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet.mechanisms
from discreet.accounting import epsilon as certified_epsilon

OTHERS = {
    "DiscreteGaussian": {"delta": 1e-6, "sensitivity": 2},
    "DiscreteLaplace": {"sensitivity": 3},
    "Gaussian": {"delta": 1e-6, "sensitivity": 2},
    "Histogram": {"delta": 1e-6, "l0": 3, "linf": 2},
    "Laplace": {"sensitivity": 2},
    "Warner": {},
}


def test_no_mechanism_is_left_out():
    found = {
        name
        for name in discreet.mechanisms.__all__
        if hasattr(getattr(discreet.mechanisms, name), "calibrated")
        and "epsilon" in inspect.signature(getattr(discreet.mechanisms, name).calibrated).parameters
    }
    assert found == OTHERS.keys()


@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=15, deadline=None)
@given(
    asked=st.one_of(
        st.floats(0.01, 8), st.integers(1, 8), st.fractions(Fraction(1, 99), 8, max_denominator=99)
    )
)
def test_a_mechanism_costs_at_most_the_epsilon_that_it_was_made_from(name, asked):
    others = OTHERS[name]
    made = getattr(discreet.mechanisms, name).calibrated(epsilon=asked, **others)
    assert made.loss.epsilon_pure <= asked or "delta" in others
    found = certified_epsilon(made.loss, delta=others.get("delta", 0))
    # At delta = 0 a pure epsilon that is no double is told as the next one above.
    assert found <= asked or (
        "delta" not in others and found == pytest.approx(float(asked), rel=1e-15)
    )
