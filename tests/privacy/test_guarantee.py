"""Guarantees keep what was typed, refuse nonsense, and never understate a group's loss."""

import copy
import math
import pickle
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError, ParameterError, PrivacyWarning
from discreet.privacy import Guarantee, advised_delta
from discreet.privacy.guarantee import weaknesses

epsilons = st.floats(0, 50) | st.integers(0, 50) | st.fractions(0, 50)
deltas = st.floats(0, 1) | st.fractions(0, 1)


def test_numbers_stay_as_typed():
    assert repr(Guarantee(epsilon=1, delta=1e-6)) == "Guarantee(epsilon=1, delta=1e-06)"
    assert repr(Guarantee(epsilon=Fraction(1, 3))) == "Guarantee(epsilon=Fraction(1, 3), delta=0)"


def test_numpy_numbers_become_plain_ones():
    g = Guarantee(epsilon=np.float64(0.5), delta=np.float32(0))
    assert repr(g) == "Guarantee(epsilon=0.5, delta=0.0)"
    assert type(Guarantee(epsilon=np.int64(2)).epsilon) is int


@pytest.mark.parametrize("bad", [-1, -1e-300, math.nan, math.inf, "1", None, True, 1j])
def test_bad_epsilon_is_refused_by_name(bad):
    with pytest.raises(ParameterError, match=r"^epsilon must be") as caught:
        Guarantee(epsilon=bad)
    assert caught.value.parameter == "epsilon"
    assert isinstance(caught.value, DiscreetError)


@pytest.mark.parametrize("bad", [-1e-300, 1.0000001, 2, math.nan, math.inf, "0", None, False])
def test_bad_delta_is_refused_by_name(bad):
    with pytest.raises(ParameterError, match=r"^delta must be"):
        Guarantee(epsilon=1, delta=bad)


def test_epsilon_must_be_named_and_given():
    with pytest.raises(TypeError):
        Guarantee(1, 1e-6)
    with pytest.raises(TypeError):
        Guarantee(delta=1e-6)


def test_is_a_value():
    g = Guarantee(epsilon=1, delta=1e-6)
    assert g == Guarantee(epsilon=1.0, delta=1e-6)
    assert len({g, Guarantee(epsilon=1, delta=1e-6)}) == 1
    assert pickle.loads(pickle.dumps(g)) == copy.deepcopy(g) == g
    with pytest.raises(AttributeError):
        g.epsilon = 2


@given(epsilon=epsilons, delta=deltas, k=st.integers(1, 40))
def test_group_is_never_below_the_theorem_and_hardly_above(epsilon, delta, k):
    group = Guarantee(epsilon=epsilon, delta=delta).group(k)
    assert group.epsilon >= k * Fraction(epsilon)
    assert float(group.epsilon) <= float(k * Fraction(epsilon)) * (1 + 1e-15)
    with mpmath.workdps(60):
        exact = Fraction(delta)
        theorem = (
            k
            * mpmath.exp(
                (k - 1) * mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
            )
            * exact.numerator
            / exact.denominator
        )
        capped = min(mpmath.mpf(1), theorem)
        value = mpmath.mpf(Fraction(group.delta).numerator) / Fraction(group.delta).denominator
        assert value >= capped * (1 - mpmath.mpf(10) ** -50)
        assert value <= capped * (1 + mpmath.mpf("1e-15")) + mpmath.mpf("1e-323")


@given(epsilon=epsilons, delta=deltas, j=st.integers(1, 6), k=st.integers(1, 6))
def test_groups_of_groups_are_no_better_than_the_group(epsilon, delta, j, k):
    g = Guarantee(epsilon=epsilon, delta=delta)
    once, twice = g.group(j * k), g.group(j).group(k)
    assert float(twice.delta) >= float(once.delta) * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [1e6, 1e308, 10**400, Fraction(10**400, 3)])
def test_nothing_overflows(epsilon):
    group = Guarantee(epsilon=epsilon, delta=1e-300).group(10**9)
    assert group.delta == 1
    assert group.is_empty
    assert group.epsilon >= Fraction(epsilon) * 10**9 * (1 - Fraction(1, 10**12))


def test_tiny_deltas_that_no_float_holds_round_up():
    assert Guarantee(epsilon=1, delta=Fraction(1, 10**400)).group(2).delta == 5e-324


def test_a_pure_guarantee_stays_pure():
    assert Guarantee(epsilon=1000).group(10**6) == Guarantee(epsilon=10**9)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "2", None])
def test_bad_group_size(bad):
    with pytest.raises(ParameterError, match=r"^k must be"):
        Guarantee(epsilon=1).group(bad)


@given(n=st.integers(1, 10**12))
def test_delta_is_weighed_against_one_tenth_of_one_over_n(n):
    edge = advised_delta(n=n)
    assert edge == Fraction(1, 10 * n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Guarantee(epsilon=1, delta=edge).warn_if_weak(n=n)
    with pytest.warns(PrivacyWarning, match="not far below 1/n"):
        Guarantee(epsilon=1, delta=edge * Fraction(1001, 1000)).warn_if_weak(n=n)


def test_large_epsilon_is_called_weak():
    with pytest.warns(PrivacyWarning, match="epsilon=10.5 is above 10"):
        Guarantee(epsilon=10.5).warn_if_weak(n=10)


@pytest.mark.parametrize("bad", [0, -5, 2.5, math.nan, "many"])
def test_bad_n(bad):
    with pytest.raises(ParameterError, match=r"^n must be"):
        Guarantee(epsilon=1).warn_if_weak(n=bad)


@pytest.mark.parametrize("n", [10, 100, 1000, 10**5, 10**7])
def test_the_advised_delta_is_not_warned_about_as_a_float_either(n):
    advised = float(f"1e-{len(str(10 * n)) - 1}")
    assert Fraction(advised) != Fraction(1, 10 * n)  # no double is a negative power of ten
    assert weaknesses(Guarantee(epsilon=1, delta=advised), n=n) == []
    assert len(weaknesses(Guarantee(epsilon=1, delta=1.01 * advised), n=n)) == 1
