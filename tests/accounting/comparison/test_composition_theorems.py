"""Composition theorems against exact enumeration, and the figures they are known by."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.arithmetic.binomials import log_pmf, window
from discreet.accounting.comparison.theorems import (
    advanced,
    advanced_classic,
    advanced_mixed,
    basic,
    optimal,
    optimal_delta,
    optimal_mixed,
    split,
)
from discreet.errors import ParameterError

epsilons = st.floats(1e-4, 3)
deltas = st.just(0) | st.floats(1e-9, 1e-2)


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(50):
        yield


def responses_delta(parts, total):
    """Return the delta of reveal-or-respond mechanisms at ``total``, by enumeration."""
    e = mp.exp(mp.mpf(total))
    value = mp.mpf(0)
    for signs in itertools.product((1, -1), repeat=len(parts)):
        p = q = mp.mpf(1)
        for sign, (epsilon, _) in zip(signs, parts, strict=True):
            true = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
            p, q = (p * true, q * (1 - true)) if sign > 0 else (p * (1 - true), q * true)
        value += max(0, p - e * q)
    held = mp.mpf(1)
    for _, delta in parts:
        held *= 1 - mp.mpf(delta)
    return 1 - held * (1 - value)


def binomial_delta(epsilon, steps, total):
    """Return the delta of equal responses, by the binomial law in many digits."""
    x, e = mp.mpf(epsilon), mp.mpf(total)
    p = 1 / (1 + mp.exp(x))
    return mp.fsum(
        mp.binomial(steps, l) * p**l * (1 - p) ** (steps - l) * -mp.expm1(e - (steps - 2 * l) * x)
        for l in range(steps + 1)  # noqa: E741
        if (steps - 2 * l) * x > e
    )


# Binomial probabilities


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 10**9),
    p=st.floats(1e-9, 1 - 1e-9),
    where=st.floats(0, 1),
    depth=st.floats(1, 700),
)
def test_binomial_logarithms_are_within_their_stated_error(n, p, where, depth):
    q = float(1 - Fraction(p))
    first, last = window(n, p, q, depth=depth)
    for x in {first, last, first + int(where * (last - first)), int(where * n)}:
        found, error = log_pmf(np.array([x]), n, p, q)
        exact = mp.loggamma(n + 1) - mp.loggamma(x + 1) - mp.loggamma(n - x + 1)
        exact += x * mp.log(mp.mpf(p)) + (n - x) * mp.log(1 - mp.mpf(p))
        assert abs(mp.mpf(float(found[0])) - exact) <= error[0]


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 200), p=st.floats(1e-3, 0.999), depth=st.floats(0.5, 60))
def test_window_leaves_out_no_more_than_it_says(n, p, depth):
    first, last = window(n, p, 1 - p, depth=depth)
    x = mp.mpf(p)
    law = [mp.binomial(n, k) * x**k * (1 - x) ** (n - k) for k in range(n + 1)]
    assert sum(law[:first]) <= mp.exp(-depth)
    assert sum(law[last + 1 :]) <= mp.exp(-depth)


# Closed forms


def test_figures_of_basic_and_advanced_composition():
    assert basic([(Fraction(1, 100), 0, 10_000)]).epsilon == 100
    assert basic([(Fraction(5, 1000), 0, 3_000)]).epsilon == 15
    assert advanced_classic(epsilon=0.01, steps=10_000, slack=1e-5).epsilon == pytest.approx(
        5.80, abs=0.005
    )
    assert split(epsilon=1, steps=1000, slack=1e-6, by=advanced_classic) == pytest.approx(
        0.00581, abs=5e-6
    )
    assert advanced_classic(epsilon=0.006, steps=1000, slack=1e-6).epsilon == pytest.approx(
        1.033, abs=5e-4
    )


def test_the_second_term_is_there():
    dropped = math.sqrt(2 * 1000 * math.log(1e5)) * 0.1
    assert dropped == pytest.approx(15.2, abs=0.05)
    whole = advanced_classic(epsilon=0.1, steps=1000, slack=1e-5).epsilon
    assert whole - dropped == pytest.approx(10.5, abs=0.05)


def test_basic_composition_is_exact_and_rounds_up():
    total = basic([(0.1, 1e-7, 3), (Fraction(1, 3), 0)])
    assert total.epsilon >= 3 * Fraction(0.1) + Fraction(1, 3)
    assert total.delta >= 3 * Fraction(1e-7)
    assert total.epsilon == pytest.approx(0.3 + 1 / 3, rel=1e-15)
    assert basic([]).epsilon == 0
    assert basic([(1, 0.6, 2)]).delta == 1


@settings(deadline=None)
@given(epsilon=st.floats(1e-5, 5), steps=st.integers(1, 10**6), slack=st.floats(1e-12, 0.4))
def test_advanced_is_its_formula_and_at_most_basic(epsilon, steps, slack):
    x, d = mp.mpf(epsilon), mp.mpf(slack)
    mean, spread = steps * x * mp.tanh(x / 2), mp.sqrt(steps) * x
    truth = mean + spread * mp.sqrt(2 * min(-mp.log(d), mp.log(mp.e + spread / d)))
    truth = min(truth, steps * x)
    found = advanced(epsilon=epsilon, steps=steps, slack=slack)
    assert truth <= found.epsilon <= truth * (1 + 1e-12)
    classic = advanced_classic(epsilon=epsilon, steps=steps, slack=slack)
    exact = x * mp.sqrt(-2 * steps * mp.log(d)) + steps * x * mp.expm1(x)
    assert exact <= classic.epsilon <= exact * (1 + 1e-12)
    assert found.epsilon <= classic.epsilon * (1 + 1e-12)


@settings(deadline=None)
@given(
    parts=st.lists(st.tuples(epsilons, deltas, st.integers(1, 50)), min_size=1, max_size=5),
    slack=st.floats(1e-9, 0.3),
)
def test_advanced_delta_covers_slack_and_failures(parts, slack):
    found = advanced_mixed(parts, slack=slack)
    held = mp.mpf(1)
    for _, delta, count in parts:
        held *= (1 - mp.mpf(delta)) ** count
    pure = found.epsilon >= sum(Fraction(e) * n for e, _, n in parts)
    truth = 1 - held * (1 if pure else 1 - mp.mpf(slack))
    assert truth <= found.delta <= truth * (1 + 1e-11) + 1e-300


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-4, 3), steps=st.integers(1, 3000), slack=st.floats(1e-10, 0.3))
def test_no_closed_form_is_below_the_optimum(epsilon, steps, slack):
    best = optimal(epsilon=epsilon, delta=0, steps=steps, target_delta=slack)
    assert advanced(epsilon=epsilon, steps=steps, slack=slack).epsilon >= best * (1 - 1e-12)


@pytest.mark.lengthy
@settings(deadline=None)
@given(
    total=st.floats(1e-3, 50),
    steps=st.integers(1, 10**5),
    slack=st.floats(1e-12, 0.3),
    by=st.sampled_from([advanced, advanced_classic]),
)
def test_split_is_the_largest_that_fits(total, steps, slack, by):
    each = split(epsilon=total, steps=steps, slack=slack, by=by)
    assert by(epsilon=each, steps=steps, slack=slack).epsilon <= total
    assert by(epsilon=each * (1 + 1e-9), steps=steps, slack=slack).epsilon > total


# Optimal composition


def test_figure_of_optimal_composition():
    found = optimal(epsilon=0.01, delta=0, steps=10_000, target_delta=1e-5)
    assert found == pytest.approx(4.37638, abs=5e-6)


@pytest.mark.lengthy
@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-5, 6), delta=deltas, steps=st.integers(1, 8), share=st.floats(0, 1))
def test_optimal_delta_is_that_of_the_enumeration(epsilon, delta, steps, share):
    total = share * steps * epsilon
    truth = responses_delta([(epsilon, delta)] * steps, total)
    found = optimal_delta(epsilon=epsilon, delta=delta, steps=steps, total=total)
    assert truth * (1 - mp.mpf(10) ** -40) <= found <= truth * (1 + 1e-9) + 1e-14 * epsilon


@pytest.mark.lengthy
@settings(max_examples=25, deadline=None)
@given(epsilon=st.floats(1e-3, 1), steps=st.integers(1, 400), target=st.floats(1e-12, 0.3))
def test_optimal_epsilon_is_tight(epsilon, steps, target):
    found = optimal(epsilon=epsilon, delta=0, steps=steps, target_delta=target)
    assert binomial_delta(epsilon, steps, found) <= target
    if found > 0:
        assert binomial_delta(epsilon, steps, found * (1 - 1e-9)) >= target * (1 - 1e-8)


def test_a_million_steps_agree_with_their_limit():
    # A million responses of 0.001 are nearly a Gaussian of noise multiplier 1.
    from discreet.accounting import GaussianLoss
    from discreet.accounting import epsilon as epsilon_of

    found = optimal(epsilon=0.001, delta=0, steps=10**6, target_delta=1e-5)
    assert found == pytest.approx(
        epsilon_of(GaussianLoss(noise_multiplier=1), delta=1e-5), rel=1e-5
    )


def test_failures_of_the_steps_use_up_the_target():
    assert optimal(epsilon=1, delta=1e-5, steps=1, target_delta=1e-5) == 1
    assert optimal(epsilon=1, delta=1e-5, steps=2, target_delta=1e-5) == math.inf
    assert optimal(epsilon=0.5, delta=0, steps=3, target_delta=0) == 1.5
    assert optimal(epsilon=0, delta=0, steps=3, target_delta=0.1) == 0
    assert optimal(epsilon=0.1, delta=0, steps=2, target_delta=0.5) == 0
    assert optimal_mixed([(1, 1e-5), (1, 0)], target_delta=1e-6) == math.inf
    assert optimal_mixed([(1, 0), (0.5, 0)], target_delta=0) == 1.5
    assert optimal_mixed([], target_delta=0.1) == 0


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(
    parts=st.lists(st.tuples(st.floats(1e-3, 4), deltas), min_size=1, max_size=6),
    share=st.floats(1e-6, 1),
)
def test_mixed_optimum_is_above_the_enumeration_and_close(parts, share):
    target = float(responses_delta(parts, 0)) * share
    if target == 0:
        return
    found = optimal_mixed(parts, target_delta=target, cells=5000)
    if found == math.inf:
        assert responses_delta(parts, sum(e for e, _ in parts)) > target * (1 - 1e-12)
        return
    assert responses_delta(parts, found) <= target * (1 + mp.mpf(10) ** -15)
    if found > 0.01:
        assert responses_delta(parts, found * 0.999) >= target * (1 - 1e-6)


@settings(max_examples=15, deadline=None)
@given(epsilon=st.floats(1e-3, 0.5), steps=st.integers(1, 2000), target=st.floats(1e-9, 0.1))
def test_mixed_optimum_of_equal_parts_is_the_optimum(epsilon, steps, target):
    best = optimal(epsilon=epsilon, delta=0, steps=steps, target_delta=target)
    found = optimal_mixed([(epsilon, 0, steps)], target_delta=target, cells=5000)
    assert best * (1 - 1e-12) <= found
    assert found <= best * (1 + 1e-6) + 1e-9


def test_mixed_optimum_lies_between_those_of_its_extremes():
    parts = [(0.01 * (1 + i / 500), 0) for i in range(500)]
    low, high = (optimal(epsilon=e, delta=0, steps=500, target_delta=1e-6) for e in (0.01, 0.02))
    coarse, fine = (optimal_mixed(parts, target_delta=1e-6, cells=c) for c in (2_000, 20_000))
    assert low < fine <= coarse < high
    assert coarse == pytest.approx(fine, rel=0.02)


def test_huge_and_tiny_parts_together():
    # A response of 1e9 hides nothing: its epsilon is all of the total but for the few others.
    found = optimal_mixed([(1e9, 0), (1e-3, 0, 5)], target_delta=1e-6)
    assert found == pytest.approx(1e9, rel=1e-6)


# Refusals


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="each part must be a tuple"):
        basic([(1, 2, 3, 4)])
    with pytest.raises(ParameterError, match="epsilon"):
        basic([(-1, 0)])
    with pytest.raises(ParameterError, match="delta"):
        optimal(epsilon=1, delta=2, steps=1, target_delta=0.1)
    with pytest.raises(ParameterError, match="slack"):
        advanced(epsilon=1, steps=2, slack=0)
    with pytest.raises(ParameterError, match="steps"):
        advanced(epsilon=1, steps=2.5, slack=0.1)
    with pytest.raises(ParameterError, match="steps must be at most"):
        optimal(epsilon=1, delta=0, steps=10**13, target_delta=0.1)
    with pytest.raises(ParameterError, match="cells"):
        optimal_mixed([(1, 0)], target_delta=0.1, cells=1)
    with pytest.raises(ParameterError, match="epsilon"):
        split(epsilon=0, steps=1, slack=0.1)
    with pytest.raises(ParameterError, match="at most 2\\^500"):
        basic([(Fraction(2) ** 501, 0)])
