"""Every accountant by name: the printed figures, order among them, and honest refusals."""

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
    RandomizedResponseLoss,
    ZCDPLoss,
    bracket,
    epsilon,
    most_steps,
)
from discreet.accounting import comparison as methods
from discreet.errors import ParameterError

DP_SGD = GaussianLoss(noise_multiplier=4).sampled(rate=0.01)


def by_name(loss, *, delta):
    return {result.name: result for result in methods.compare(loss, delta=delta)}


def test_ten_thousand_pure_queries():
    found = by_name(PureLoss(epsilon=0.01) * 10_000, delta=1e-5)
    assert found["basic"].epsilon == pytest.approx(100)
    assert found["advanced"].epsilon == pytest.approx(5.80, abs=0.005)
    assert found["optimal"].epsilon == pytest.approx(4.37638, abs=1e-5)
    assert found["zcdp"].epsilon == pytest.approx(4.73, abs=0.005)
    assert found["pld"].epsilon == pytest.approx(4.37638, abs=1e-4)
    assert found["central_limit"].epsilon is None
    assert "Gaussian" in found["central_limit"].note


def test_the_advanced_bound_has_both_terms():
    # Without the second term it would be 15.2 less than it is.
    found = methods.advanced(PureLoss(epsilon=0.1) * 1000, delta=1e-5).epsilon
    first, second = 0.1 * math.sqrt(2 * 1000 * math.log(1e5)), 1000 * 0.1 * math.expm1(0.1)
    assert found == pytest.approx(first + second)


@pytest.mark.parametrize(("steps", "printed"), [(10_000, 1.26), (40_000, 2.55)])
def test_printed_figures_of_the_moments_accountant(steps, printed):
    assert methods.moments(DP_SGD * steps, delta=1e-5).epsilon == pytest.approx(printed, abs=0.03)


def test_a_training_run_by_every_method():
    found = by_name(DP_SGD * 10_000, delta=1e-5)
    truth = bracket(DP_SGD * 10_000, delta=1e-5)
    assert found["renyi"].epsilon == pytest.approx(1.0354, abs=1e-3)
    assert found["zcdp"].epsilon is None
    # The trap: the estimate is below what is certainly true.
    assert not found["central_limit"].is_bound
    assert found["central_limit"].epsilon < truth.lower - 0.004
    for result in found.values():
        assert result.seconds >= 0
        if result.is_bound and result.epsilon is not None:
            assert result.epsilon >= truth.lower


SHARP = st.one_of(
    st.builds(PureLoss, epsilon=st.floats(0.01, 2)),
    st.builds(LaplaceLoss, noise_multiplier=st.floats(0.5, 20)),
    st.builds(
        DiscreteLaplaceLoss, noise_multiplier=st.floats(0.5, 20), sensitivity=st.integers(1, 5)
    ),
    st.builds(GaussianLoss, noise_multiplier=st.floats(0.5, 20)),
    st.builds(ApproximateLoss, epsilon=st.floats(0.01, 1), delta=st.floats(0, 1e-8)),
    st.builds(
        lambda s, q: GaussianLoss(noise_multiplier=s).sampled(rate=q),
        st.floats(0.7, 5),
        st.floats(0.001, 0.5),
    ),
    st.builds(
        lambda s, q: LaplaceLoss(noise_multiplier=s).sampled(rate=q),
        st.floats(0.7, 5),
        st.floats(0.001, 0.5),
    ),
)
# Statements about many mechanisms at once: their brackets are around a bound, not around a truth.
LOSSES = SHARP | st.one_of(
    st.builds(ZCDPLoss, rho=st.floats(0.001, 1)),
    st.builds(BoundedRangeLoss, epsilon=st.floats(0.01, 2)),
    st.builds(
        DiscreteGaussianLoss,
        sigma=st.floats(0.8, 10),
        sensitivity=st.just(1),
        dimension=st.just(1),
    ),
)


@pytest.mark.lengthy
@settings(max_examples=10, deadline=None)
@given(first=SHARP, second=SHARP, times=st.integers(1, 30))
def test_no_method_that_claims_a_bound_is_below_the_truth(first, second, times):
    loss = first * times + second
    truth = bracket(loss, delta=1e-6)
    for result in methods.compare(loss, delta=1e-6):
        if result.epsilon is None:
            assert result.note
        elif result.is_bound:
            assert result.epsilon >= truth.lower * (1 - 1e-9), result
    assert methods.pld(loss, delta=1e-6).epsilon == pytest.approx(truth.upper)


@settings(max_examples=30, deadline=None)
@given(loss=LOSSES, times=st.integers(1, 50))
def test_the_optimum_is_never_worse_than_the_sum(loss, times):
    total = loss * times
    summed, best = methods.basic(total, delta=1e-6), methods.optimal(total, delta=1e-6)
    assert best.epsilon <= summed.epsilon * (1 + 1e-9)


def test_at_delta_zero_only_sums_are_left():
    found = by_name(LaplaceLoss(noise_multiplier=4) * 8, delta=0)
    assert found["basic"].epsilon == found["pld"].epsilon == 2
    assert found["pld"].note == "sum of pure epsilons"
    assert [found[name].epsilon for name in ("advanced", "optimal", "renyi", "moments")] == [
        None
    ] * 4
    assert all(r.epsilon is None for r in methods.compare(DP_SGD * 10, delta=0))


def test_declared_failures_that_exceed_delta_leave_no_bound():
    loss = ApproximateLoss(epsilon=0.1, delta=1e-6) * 20
    for result in methods.compare(loss, delta=1e-5):
        assert result.epsilon is None
        assert result.note
    enough = by_name(loss, delta=1e-4)
    assert enough["basic"].epsilon == pytest.approx(2)
    assert enough["optimal"].epsilon < 2


def test_nothing_costs_nothing():
    loss = PureLoss(epsilon=1) * 0
    assert {result.epsilon for result in methods.compare(loss, delta=1e-6)} == {0.0}


def test_a_way_is_named():
    assert methods.best_method(PureLoss(epsilon=1), epsilon=1.0) == "pure epsilon"
    assert methods.best_method(GaussianLoss(noise_multiplier=2) * 5, epsilon=3.0) == "closed form"
    assert methods.best_method(DP_SGD * 5, epsilon=3.0) == "privacy loss distribution"


@pytest.mark.parametrize("bad", [-1, 1, math.nan, "much"])
def test_a_bad_delta_is_refused(bad):
    with pytest.raises(ParameterError, match="delta"):
        methods.compare(PureLoss(epsilon=1), delta=bad)


@pytest.mark.parametrize(
    ("step", "budget"),
    [
        (DP_SGD, 1),
        (PureLoss(epsilon=0.01), 3),
        (GaussianLoss(noise_multiplier=300), 2),
        (LaplaceLoss(noise_multiplier=20), 1),
        (RandomizedResponseLoss(epsilon=1, categories=3), 2.5),
    ],
)
def test_the_budget_buys_that_many_steps_and_not_one_more(step, budget):
    n = most_steps(step, epsilon=budget, delta=1e-6)
    assert epsilon(step * n, delta=1e-6) <= budget < epsilon(step * (n + 1), delta=1e-6)


@settings(max_examples=30, deadline=None)
@given(each=st.fractions("1/50", 3), budget=st.fractions(0, 20))
def test_pure_steps_are_counted_exactly(each, budget):
    # A budget rounded up to a float can hold a sum that is larger by as little.
    budget = Fraction(float(budget))
    n = most_steps(PureLoss(epsilon=each), epsilon=budget, delta=0)
    assert epsilon(PureLoss(epsilon=each) * n, delta=0) <= budget
    assert (n + 1) * each > budget or epsilon(PureLoss(epsilon=each) * (n + 1), delta=0) > budget


@pytest.mark.lengthy
def test_steps_may_come_with_a_fixed_part():
    def run(steps):
        return DP_SGD * steps + LaplaceLoss(noise_multiplier=4)

    n = most_steps(run, epsilon=1, delta=1e-5)
    assert epsilon(run(n), delta=1e-5) <= 1 < epsilon(run(n + 1), delta=1e-5)


def test_a_budget_too_small_for_one_step_buys_none():
    assert most_steps(GaussianLoss(noise_multiplier=0.5), epsilon=1, delta=1e-6) == 0


def test_steps_that_cost_nothing_have_no_number():
    with pytest.raises(ParameterError, match="next to nothing"):
        most_steps(PureLoss(epsilon=0), epsilon=1, delta=1e-6)
