"""Shuffling against brute force over real randomizers, exact sums and the published table."""

import math
from collections import Counter
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._exact import float_up
from discreet.accounting.arithmetic.binomials import log_pmf
from discreet.accounting.shuffling import (
    shuffle_2021,
    shuffle_2023,
    shuffle_delta,
    shuffle_pair,
    without_replacement_pure,
)
from discreet.errors import ParameterError

BY_YEAR = {2021: shuffle_2021, 2023: shuffle_2023}
years = st.sampled_from([2021, 2023])


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(40):
        yield


# Binomial probabilities


def log_pmf_error(x, trials, p):
    """Return how far off a binomial logarithm is, as a share of its stated error."""
    q = 1 - Fraction(p)
    found, error = log_pmf(np.array([x]), trials, float(p), float(q))
    exact = mp.log(mp.binomial(trials, x)) + x * mp.log(mp.mpf(p))
    exact += (trials - x) * mp.log(mp.mpf(q.numerator) / q.denominator)
    return float((mp.mpf(float(found[0])) - exact) / mp.mpf(float(error[0])))


@pytest.mark.parametrize("p", [1 / 2, 1 / 8, 0.3, 0.9])
def test_binomial_logarithms_of_up_to_a_hundred_trials(p):
    # Near the mean the stated error is least; Stirling's series begins within this range.
    for trials in range(1, 101):
        middle = round(trials * p)
        for x in range(max(0, middle - 2), min(trials, middle + 2) + 1):
            assert abs(log_pmf_error(x, trials, p)) <= 1 / 8


@pytest.mark.parametrize(("x", "trials", "p"), [(2, 16, 1 / 8), (16, 32, 1 / 2)])
def test_binomial_logarithms_where_a_series_from_sixteen_on_would_fail(x, trials, p):
    assert abs(log_pmf_error(x, trials, p)) <= 1 / 8


@settings(max_examples=60, deadline=None)
@given(
    trials=st.integers(1, 2**40),
    q=st.floats(1e-12, 0.5),
    deviations=st.floats(-12, 12),
    swapped=st.booleans(),
)
def test_binomial_logarithms_of_many_trials(trials, q, deviations, swapped):
    p = float(1 - Fraction(q)) if swapped else q
    mean, spread = trials * p, math.sqrt(trials * p * (1 - p)) + 1
    x = min(trials, max(0, round(mean + deviations * spread)))
    assert abs(log_pmf_error(x, trials, p)) <= 1 / 2


def test_binomial_logarithms_when_nearly_every_trial_succeeds():
    # The rounding of the mean, 1e12, must not show next to the few failures.
    p = 1 / (1 + 1e-12)
    for failures in range(8):
        assert abs(log_pmf_error(10**12 - failures, 10**12, p)) <= 1 / 2


# The pair itself


def exact_delta(epsilon0, n, year, epsilon):
    """Return the delta of the bound's own pair, straight from its definition."""
    p0, e = mp.exp(mp.mpf(epsilon0)), mp.exp(mp.mpf(epsilon))
    clone = 1 / p0 if year == 2021 else 2 / (p0 + 1)
    true = p0 / (p0 + 1)
    total = mp.mpf(0)
    for c in range(n):
        weight = mp.binomial(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
        fair = [mp.binomial(c, a) / mp.mpf(2) ** c for a in range(c + 1)]
        for a in range(c + 2):
            with_one = fair[a - 1] if a > 0 else 0
            with_none = fair[a] if a <= c else 0
            p = true * with_one + (1 - true) * with_none
            q = (1 - true) * with_one + true * with_none
            total += weight * max(0, p - e * q)
    return total


@settings(max_examples=30, deadline=None)
@given(epsilon0=st.floats(0.01, 6), n=st.integers(1, 25), year=years, share=st.floats(0, 1.05))
def test_delta_is_that_of_the_pair(epsilon0, n, year, share):
    epsilon = share * epsilon0
    truth = exact_delta(epsilon0, n, year, epsilon)
    found = shuffle_delta(epsilon0=epsilon0, n=n, epsilon=epsilon, year=year)
    # The truth has forty digits, so where it is 0 it may come out as 1e-41.
    assert found >= truth * (1 - mp.mpf(10) ** -30) - mp.mpf(10) ** -38
    assert found <= truth * (1 + 1e-9) + 1e-14 * math.exp(epsilon0)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("n", "year", "table"),
    [
        (10**4, 2021, [0.020401, 0.053005, 0.155045, 0.600909]),
        (10**4, 2023, [0.018117, 0.043206, 0.114400, 0.410812]),
        (10**6, 2021, [0.0016191, 0.0043345, 0.0129584, 0.0493071]),
        (10**6, 2023, [0.0014315, 0.0035135, 0.0095172, 0.0342798]),
    ],
)
def test_published_table(n, year, table):
    for epsilon0, published in zip([0.5, 1, 2, 4], table, strict=True):
        found = BY_YEAR[year](epsilon0=epsilon0, n=n, delta=1e-6)
        last_digit = 10.0 ** (math.floor(math.log10(published)) - (5 if published > 0.1 else 4))
        assert published - last_digit <= found <= published * 1.0005


@pytest.mark.lengthy
def test_epsilon_of_sixty_people_is_tight():
    # Every number of clones has its own row at this size, so nothing is lost but rounding.
    for year in (2021, 2023):
        epsilon = BY_YEAR[year](epsilon0=1, n=60, delta=1e-3)
        assert exact_delta(1, 60, year, epsilon) <= 1e-3
        assert exact_delta(1, 60, year, epsilon * (1 - 1e-8)) > 1e-3 * (1 - 1e-6)


@pytest.mark.lengthy
@settings(max_examples=15, deadline=None)
@given(epsilon0=st.floats(0.1, 4), n=st.integers(2, 3000), year=years, share=st.floats(0, 0.9))
def test_the_pair_of_arrays_has_that_delta_in_both_directions(epsilon0, n, year, share):
    pair = shuffle_pair(epsilon0=epsilon0, n=n, year=year, bins=n)
    epsilon = share * epsilon0
    forward = np.sum(pair.masses * -np.expm1(np.minimum(epsilon - pair.losses, 0)))
    # Q has mass exp(-loss) where P has 1, and the loss changes its sign.
    reverse = np.sum(
        pair.masses * np.exp(-pair.losses) * -np.expm1(np.minimum(epsilon + pair.losses, 0))
    )
    found = shuffle_delta(epsilon0=epsilon0, n=n, epsilon=epsilon, year=year)
    assert forward == pytest.approx(found, rel=1e-6, abs=1e-12)
    assert reverse == pytest.approx(found, rel=1e-6, abs=1e-12)
    assert np.sum(pair.masses) == pytest.approx(1, abs=1e-8)
    assert np.sum(pair.masses) + pair.infinite >= 1 - 1e-12
    assert np.max(np.abs(pair.losses)) <= epsilon0


def test_fewer_bins_only_raise_the_pair():
    fine, coarse = (shuffle_pair(epsilon0=1, n=2000, bins=b) for b in (2000, 8))
    for epsilon in (0.0, 0.05, 0.1, 0.2):
        low, high = (
            np.sum(pair.masses * -np.expm1(np.minimum(epsilon - pair.losses, 0)))
            for pair in (fine, coarse)
        )
        assert low <= high * (1 + 1e-9)


# What the pair claims: real randomizers, shuffled


def counts_law(reports):
    """Return the law of how often each report occurs, people independent."""
    law = {(0,) * len(reports[0]): 1.0}
    for report in reports:
        after = Counter()
        for counts, chance in law.items():
            for y, p in enumerate(report):
                more = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                after[more] += chance * p
        law = after
    return law


@st.composite
def randomizers(draw):
    """Draw a channel of 2-4 inputs and 2-4 reports; extreme entries are likely."""
    inputs, outputs = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    strength = draw(st.floats(0.1, 4))
    entry = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
    row = st.lists(entry, min_size=outputs, max_size=outputs)
    weights = np.array(draw(st.lists(st.floats(0.05, 1), min_size=outputs, max_size=outputs)))
    table = np.array(draw(st.lists(row, min_size=inputs, max_size=inputs)))
    channel = weights * np.exp(strength * table)
    return channel / channel.sum(axis=1, keepdims=True)


@pytest.mark.lengthy
@settings(max_examples=150, deadline=None)
@given(
    channel=randomizers(),
    others=st.lists(st.integers(0, 3), max_size=5),
    share=st.floats(0, 1),
)
def test_no_shuffled_randomizer_leaks_more_than_claimed(channel, others, share):
    logs = np.log(channel)
    epsilon0 = float((logs.max(axis=0) - logs.min(axis=0)).max()) + 1e-12
    rest = [channel[i % len(channel)] for i in others]
    before, after = (counts_law([channel[i], *rest]) for i in (0, 1))
    epsilon = share * epsilon0
    truth = sum(max(0, p - math.exp(epsilon) * after[key]) for key, p in before.items())
    n = len(others) + 1
    strong = shuffle_delta(epsilon0=epsilon0, n=n, epsilon=epsilon, year=2023)
    weak = shuffle_delta(epsilon0=epsilon0, n=n, epsilon=epsilon, year=2021)
    assert truth <= strong + 1e-12
    assert strong <= weak + 1e-12


def test_the_bound_is_met_by_a_lone_response_and_nearly_by_a_shuffled_one():
    # One person: the bound is randomized response itself.
    for year in (2021, 2023):
        lone = (math.e - math.exp(0.3)) / (1 + math.e)
        assert shuffle_delta(epsilon0=1, n=1, epsilon=0.3, year=year) == pytest.approx(lone)
    # Two say 1 and four say 0: not far below the bound, so that a wrong constant would show.
    one, zero = np.array([math.e, 1]) / (1 + math.e), np.array([1, math.e]) / (1 + math.e)
    rest = [one, zero, zero, zero, zero]
    before, after = (counts_law([x, *rest]) for x in (one, zero))
    truth = sum(max(0, p - math.exp(0.2) * after[key]) for key, p in before.items())
    bound = shuffle_delta(epsilon0=1, n=6, epsilon=0.2)
    assert truth <= bound <= 2 * truth
    assert shuffle_delta(epsilon0=1, n=12, epsilon=0.2) < truth  # twice the clones would be wrong


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 0.99])
def test_the_bound_is_attained_by_two_people(epsilon):
    one, zero = np.array([math.e, 1]) / (1 + math.e), np.array([1, math.e]) / (1 + math.e)
    before, after = (counts_law([x, one]) for x in (one, zero))
    truth = sum(max(0, p - math.exp(epsilon) * after[key]) for key, p in before.items())
    assert shuffle_delta(epsilon0=1, n=2, epsilon=epsilon) == pytest.approx(truth, rel=1e-9)


def mixture_delta(t, p, n, epsilon):
    """Return delta of the general decomposition (see the proof) with a share t of responses."""
    e = math.exp(epsilon)
    alpha, gamma = t / (p + 1), (1 - t) / p
    value = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            for c in range(n + 1 - a - b):
                rest = n - a - b - c
                ways = math.factorial(n) // math.prod(map(math.factorial, (a, b, c, rest)))
                chance = ways * alpha ** (a + b) * gamma**c * (1 - 2 * alpha - gamma) ** rest
                value += chance * max(0.0, (p - e) * a - (e * p - 1) * b - (e - 1) * p * c) / n
    return value


@settings(max_examples=40, deadline=None)
@given(epsilon0=st.floats(0.05, 5), n=st.integers(1, 8), t=st.floats(0, 1), share=st.floats(0, 1))
def test_every_decomposition_is_below_the_extreme_one(epsilon0, n, t, share):
    p, epsilon = math.exp(epsilon0), share * epsilon0
    extreme = shuffle_delta(epsilon0=epsilon0, n=n, epsilon=epsilon)
    assert mixture_delta(t, p, n, epsilon) <= extreme + 1e-12
    assert mixture_delta(1.0, p, n, epsilon) == pytest.approx(extreme, rel=1e-6, abs=1e-11)


# How it behaves


@pytest.mark.lengthy
@settings(max_examples=12, deadline=None)
@given(
    epsilon0=st.floats(0.05, 5),
    n=st.integers(1, 10**4),
    delta=st.floats(1e-12, 0.1),
    year=years,
)
def test_more_people_and_smaller_epsilons_are_more_private(epsilon0, n, delta, year):
    bound = BY_YEAR[year]
    at = bound(epsilon0=epsilon0, n=n, delta=delta)
    assert at <= epsilon0
    assert bound(epsilon0=epsilon0, n=2 * n, delta=delta) <= at * 1.005
    assert bound(epsilon0=epsilon0 / 2, n=n, delta=delta) <= at * 1.005
    assert bound(epsilon0=epsilon0, n=n, delta=delta / 2) >= at
    assert shuffle_2023(epsilon0=epsilon0, n=n, delta=delta) <= at * 1.005
    assert shuffle_delta(epsilon0=epsilon0, n=n, epsilon=at, year=year) <= delta * 1.01


def test_the_ends():
    assert shuffle_2023(epsilon0=1, n=100, delta=0) == 1
    assert shuffle_2021(epsilon0=0, n=100, delta=0.1) == 0
    assert not shuffle_pair(epsilon0=0, n=100).losses.any()
    assert shuffle_2023(epsilon0=2, n=1, delta=1e-9) == pytest.approx(2, rel=1e-6)
    assert shuffle_2023(epsilon0=1000, n=10**6, delta=1e-6) == 1000
    assert shuffle_delta(epsilon0=1000, n=10**6, epsilon=900) == 1
    assert shuffle_delta(epsilon0=1, n=10, epsilon=1) == 0
    pair = shuffle_pair(epsilon0=1000, n=10**6)
    assert pair.losses.tolist() == [-1000, 1000]


@pytest.mark.parametrize("epsilon0", [5e-324, Fraction(1, 10**400), 1e-300])
@pytest.mark.parametrize("year", [2021, 2023])
def test_epsilons_too_small_for_a_float_tilt(epsilon0, year):
    assert 0 < BY_YEAR[year](epsilon0=epsilon0, n=100, delta=Fraction(1, 10**400)) <= 1e-300
    assert BY_YEAR[year](epsilon0=epsilon0, n=100, delta=1e-6) == 0
    delta = shuffle_delta(epsilon0=epsilon0, n=100, epsilon=0, year=year)
    assert Fraction(epsilon0) / 20 <= delta <= 1e-280
    pair = shuffle_pair(epsilon0=epsilon0, n=100, year=year)
    assert float_up(Fraction(epsilon0)) <= np.max(np.abs(pair.losses)) <= 1e-280
    assert np.sum(pair.masses) == pytest.approx(1, abs=1e-8)


@pytest.mark.lengthy
def test_deep_deltas_are_not_cut_off():
    # The largest loss needs all n reports to agree: far below the usual depth, yet not 0.
    found = shuffle_delta(epsilon0=1, n=200, epsilon=0.9)
    assert 1e-60 < found < 1e-20
    assert found == pytest.approx(float(exact_delta(1, 200, 2023, 0.9)), rel=1e-6)


# Sampling without replacement


@settings(deadline=None)
@given(epsilon=st.floats(1e-9, 30), rate=st.floats(1e-9, 1))
def test_without_replacement_is_its_formula(epsilon, rate):
    truth = mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(epsilon)))
    found = without_replacement_pure(epsilon=epsilon, rate=rate)
    assert truth * (1 - mp.mpf(10) ** -30) <= found <= truth * (1 + 1e-12)


def test_without_replacement_figures_and_ends():
    assert 0.005 <= without_replacement_pure(epsilon=0.5, rate=0.01) <= 0.0065
    assert without_replacement_pure(epsilon=0, rate=0.5) == 0
    assert without_replacement_pure(epsilon=1, rate=0) == 0
    assert without_replacement_pure(epsilon=1, rate=1) == 1
    assert without_replacement_pure(epsilon=2000, rate=0.5) == pytest.approx(2000 - math.log(2))


@pytest.mark.lengthy
@settings(max_examples=60, deadline=None)
@given(channel=randomizers(), n=st.integers(2, 5))
def test_without_replacement_holds_for_real_mechanisms(channel, n):
    # One of n people is drawn and answers through the channel.
    logs = np.log(channel)
    epsilon = float((logs.max(axis=0) - logs.min(axis=0)).max()) + 1e-12
    rest = [channel[i % len(channel)] for i in range(1, n)]
    before, after = (sum([channel[i], *rest]) / n for i in (0, 1))
    bound = without_replacement_pure(epsilon=epsilon, rate=Fraction(1, n))
    assert np.max(np.abs(np.log(before / after))) <= bound + 1e-12


# Refusals


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="n must be a whole number"):
        shuffle_2021(epsilon0=1, n=0, delta=1e-6)
    with pytest.raises(ParameterError, match="epsilon0"):
        shuffle_2023(epsilon0=-1, n=10, delta=1e-6)
    with pytest.raises(ParameterError, match="delta"):
        shuffle_2023(epsilon0=1, n=10, delta=1)
    with pytest.raises(ParameterError, match="year must be 2021 or 2023"):
        shuffle_delta(epsilon0=1, n=10, epsilon=0.1, year=2022)
    with pytest.raises(ParameterError, match="bins"):
        shuffle_pair(epsilon0=1, n=10, bins=0)
    with pytest.raises(ParameterError, match="n must be at most"):
        shuffle_2023(epsilon0=1, n=2**41, delta=1e-6)
    with pytest.raises(ParameterError, match="rate"):
        without_replacement_pure(epsilon=1, rate=2)
