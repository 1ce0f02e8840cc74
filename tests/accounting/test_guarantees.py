"""Properties every loss shares, and the two questions asked of it."""

import dataclasses
import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
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
    Loss,
    PureLoss,
    RandomizedResponseLoss,
    ZCDPLoss,
    delta,
    epsilon,
)
from discreet.errors import ParameterError

sizes = st.floats(0.05, 30)
losses = st.one_of(
    sizes.map(lambda x: PureLoss(epsilon=x)),
    st.tuples(sizes, st.floats(0, 0.5)).map(lambda t: ApproximateLoss(epsilon=t[0], delta=t[1])),
    sizes.map(lambda x: ZCDPLoss(rho=x)),
    sizes.map(lambda x: GaussianLoss(noise_multiplier=x)),
    sizes.map(lambda x: LaplaceLoss(noise_multiplier=x)),
    st.tuples(sizes, st.integers(1, 9)).map(
        lambda t: DiscreteLaplaceLoss(noise_multiplier=t[0], sensitivity=t[1])
    ),
    st.tuples(sizes, st.floats(1, 20)).map(
        lambda t: DiscreteGaussianLoss(sigma=t[0], sensitivity=t[1], dimension=1)
    ),
    st.tuples(sizes, st.floats(1, 5)).map(
        lambda t: DiscreteGaussianLoss(sigma=t[0], sensitivity=t[1])
    ),
    st.tuples(sizes, st.integers(2, 99)).map(
        lambda t: RandomizedResponseLoss(epsilon=t[0], categories=t[1])
    ),
    sizes.map(lambda x: BoundedRangeLoss(epsilon=x)),
)


@settings(deadline=None)
@given(loss=losses, low=st.floats(0, 40), more=st.floats(0, 40))
def test_delta_falls_as_epsilon_grows(loss, low, more):
    first, second = delta(loss, epsilon=low), delta(loss, epsilon=low + more)
    assert 0 <= second <= first * (1 + 1e-11) <= 1 + 1e-11


@pytest.mark.lengthy
@settings(deadline=None)
@given(loss=losses, target=st.floats(1e-300, 0.99))
def test_epsilon_is_certified_by_its_own_delta(loss, target):
    found = epsilon(loss, delta=target)
    if math.isfinite(found):
        assert delta(loss, epsilon=found) <= target
    assert found <= epsilon(loss, delta=0)


@pytest.mark.lengthy
@settings(deadline=None)
@given(loss=losses, e=st.floats(0.01, 40))
def test_epsilon_inverts_delta(loss, e):
    at = delta(loss, epsilon=e)
    if 1e-300 < at < 0.999:
        assert epsilon(loss, delta=at) <= e * (1 + 1e-9)


@pytest.mark.lengthy
@settings(deadline=None)
@given(loss=losses, targets=st.tuples(st.floats(1e-300, 0.99), st.floats(1e-300, 0.99)))
def test_epsilon_falls_as_delta_grows(loss, targets):
    small, large = sorted(targets)
    assert epsilon(loss, delta=large) <= epsilon(loss, delta=small) * (1 + 1e-9)


@pytest.mark.parametrize("e", [0, 1e-12, 1, 700, 1e4, 1e6, Fraction(1, 3), 10**6])
@given(loss=losses)
@settings(max_examples=20, deadline=None)
def test_no_epsilon_overflows(loss, e):
    assert 0 <= delta(loss, epsilon=e) <= 1


@pytest.mark.parametrize(
    "loss",
    [
        GaussianLoss(noise_multiplier=1e-6),
        GaussianLoss(noise_multiplier=1e9),
        LaplaceLoss(noise_multiplier=1e-6),
        DiscreteLaplaceLoss(noise_multiplier=1e-6, sensitivity=10**9),
        DiscreteGaussianLoss(sigma=1e-3, sensitivity=1),
        DiscreteGaussianLoss(sigma=1e12, sensitivity=10**6, dimension=1),
        PureLoss(epsilon=1e6),
        BoundedRangeLoss(epsilon=1e6),
        RandomizedResponseLoss(epsilon=1e6, categories=10**400),
        ZCDPLoss(rho=1e9),
        ZCDPLoss(rho=1e-18),
        BoundedRangeLoss(epsilon=Fraction(1, 10**400)),
        LaplaceLoss(noise_multiplier=10**400),
        DiscreteGaussianLoss(sigma=1e200, sensitivity=1, dimension=1),
        DiscreteGaussianLoss(sigma=1e90, sensitivity=1, dimension=1),
        DiscreteGaussianLoss(sigma=1e49, sensitivity=10**48, dimension=1),
        DiscreteGaussianLoss(sigma=1e120, sensitivity=10**119),
        DiscreteGaussianLoss(sigma=1e200, sensitivity=3),
    ],
    ids=repr,
)
def test_extreme_parameters_give_ordered_finite_answers(loss):
    found = [epsilon(loss, delta=d) for d in (0.99, 1e-3, 1e-10, 1e-100, 1e-300)]
    assert found == sorted(found)
    assert all(math.isfinite(x) for x in found)
    deltas = [delta(loss, epsilon=e) for e in (0, 1e-6, 1, 1e3, 1e6)]
    assert deltas == sorted(deltas, reverse=True)


def test_pure_losses_are_exactly_pure():
    for loss in (
        PureLoss(epsilon=Fraction(1, 3)),
        LaplaceLoss(noise_multiplier=3),
        DiscreteLaplaceLoss(noise_multiplier=3, sensitivity=4),
        RandomizedResponseLoss(epsilon=Fraction(1, 3), categories=5),
        BoundedRangeLoss(epsilon=Fraction(1, 3)),
        ApproximateLoss(epsilon=Fraction(1, 3), delta=0),
    ):
        assert loss.epsilon_pure == Fraction(1, 3)
        assert delta(loss, epsilon=Fraction(1, 3)) == 0
        assert delta(loss, epsilon=Fraction(1, 3) - Fraction(1, 10**30)) > 0
        assert Fraction(epsilon(loss, delta=0)) >= Fraction(1, 3)


def test_losses_that_are_not_pure_say_so():
    for loss in (
        GaussianLoss(noise_multiplier=1),
        DiscreteGaussianLoss(sigma=1, sensitivity=1),
        ZCDPLoss(rho=1),
        ApproximateLoss(epsilon=1, delta=1e-9),
    ):
        assert epsilon(loss, delta=0) == math.inf
        assert delta(loss, epsilon=1e6) > 0


def test_nothing_lost_costs_nothing():
    for loss in (PureLoss(epsilon=0), ZCDPLoss(rho=0), BoundedRangeLoss(epsilon=0)):
        assert delta(loss, epsilon=0) == 0
        assert epsilon(loss, delta=0) == epsilon(loss, delta=0.1) == 0


@given(loss=losses)
def test_losses_are_frozen_hashable_plain_data(loss):
    assert isinstance(loss, Loss)
    names = [field.name for field in dataclasses.fields(loss)]
    twin = type(loss)(**{name: getattr(loss, name) for name in names})
    assert twin == loss
    assert hash(twin) == hash(loss)
    with pytest.raises((FrozenInstanceError, TypeError)):
        setattr(loss, next(iter(names)), 1)


def test_numbers_of_numpy_become_plain():
    loss = DiscreteLaplaceLoss(noise_multiplier=np.float64(2), sensitivity=np.int64(3))
    assert repr(loss) == "DiscreteLaplaceLoss(noise_multiplier=2.0, sensitivity=3)"
    assert repr(GaussianLoss(noise_multiplier=np.int64(2))) == "GaussianLoss(noise_multiplier=2)"
    assert GaussianLoss(noise_multiplier=2) == GaussianLoss(noise_multiplier=Fraction(2))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1, "1", None, True])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: PureLoss(epsilon=x), "epsilon"),
        (lambda x: ApproximateLoss(epsilon=x, delta=0), "epsilon"),
        (lambda x: ApproximateLoss(epsilon=1, delta=x), "delta"),
        (lambda x: ZCDPLoss(rho=x), "rho"),
        (lambda x: GaussianLoss(noise_multiplier=x), "noise_multiplier"),
        (lambda x: LaplaceLoss(noise_multiplier=x), "noise_multiplier"),
        (lambda x: DiscreteLaplaceLoss(noise_multiplier=x), "noise_multiplier"),
        (lambda x: DiscreteLaplaceLoss(noise_multiplier=1, sensitivity=x), "sensitivity"),
        (lambda x: DiscreteGaussianLoss(sigma=x, sensitivity=1), "sigma"),
        (lambda x: DiscreteGaussianLoss(sigma=1, sensitivity=x), "sensitivity"),
        (lambda x: RandomizedResponseLoss(epsilon=x, categories=2), "epsilon"),
        (lambda x: RandomizedResponseLoss(epsilon=1, categories=x), "categories"),
        (lambda x: BoundedRangeLoss(epsilon=x), "epsilon"),
        (lambda x: delta(PureLoss(epsilon=1), epsilon=x), "epsilon"),
        (lambda x: epsilon(PureLoss(epsilon=1), delta=x), "delta"),
    ],
)
def test_bad_parameters_are_named(make, name, bad):
    with pytest.raises(ParameterError) as caught:
        make(bad)
    assert caught.value.parameter == name


def test_other_refusals():
    with pytest.raises(ParameterError, match=r"delta must be a number in \[0, 1\)"):
        epsilon(PureLoss(epsilon=1), delta=1)
    with pytest.raises(ParameterError, match="dimension"):
        DiscreteGaussianLoss(sigma=1, sensitivity=1, dimension=0)
    with pytest.raises(ParameterError, match=r"A mechanism has one as its \.loss"):
        delta(1.0, epsilon=1)
