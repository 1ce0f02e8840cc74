"""Every closed-form profile against an oracle that knows only the two output laws."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RandomizedResponseLoss,
    ZCDPLoss,
    delta,
    epsilon,
)

TIGHT = 1e-9  # relative; an upper bound may exceed the truth by no more


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(60):
        yield


def exact(number):
    number = Fraction(number)
    return mp.mpf(number.numerator) / number.denominator


def assert_tight_upper(bound, truth):
    """The bound is never below the truth, nor above it by more than a relative TIGHT."""
    assert bound >= truth
    assert bound <= truth * (1 + TIGHT) + 1e-322


def hockey_stick(p, q, e):
    """Return sum of (p - exp(e) q)+ over two finite laws given as dictionaries."""
    return sum(max(mp.mpf(0), mass - mp.exp(exact(e)) * q.get(k, 0)) for k, mass in p.items())


# Not below 1e-9, where differences of exponentials need more digits than the oracle carries.
small_epsilons = st.just(0.0) | st.floats(1e-9, 12)
multipliers = st.floats(0.05, 50)


# Gaussian


def gaussian_truth(multiplier, e):
    m, e = exact(multiplier), exact(e)
    return mp.ncdf(1 / (2 * m) - e * m) - mp.exp(e) * mp.ncdf(-1 / (2 * m) - e * m)


@pytest.mark.lengthy
@given(multiplier=multipliers, e=small_epsilons)
def test_gaussian_is_exact_down_to_the_deepest_tail(multiplier, e):
    with mp.workdps(400):
        truth = gaussian_truth(multiplier, e)
    assert_tight_upper(delta(GaussianLoss(noise_multiplier=multiplier), epsilon=e), truth)


@pytest.mark.parametrize(
    ("a", "multiplier"),
    [
        *itertools.product([0, 0.5, 4, 10, 25, 37, 38.4], [1e-5, 1e-3, 0.5, 2.0, 2.01, 1e3, 1e7]),
        *itertools.product([-7.9, -3], [1e-5, 1e-3, 0.05]),
    ],
)
def test_gaussian_is_exact_at_extreme_multipliers(a, multiplier):
    # Choose epsilon so that the tail argument is a: from delta near 1 to about 1e-320.
    e = a / multiplier + 1 / (2 * multiplier**2)
    with mp.workdps(400):
        truth = gaussian_truth(multiplier, e)
    assert_tight_upper(delta(GaussianLoss(noise_multiplier=multiplier), epsilon=e), truth)


def test_gaussian_agrees_with_quadrature_of_its_definition():
    # Independent of any formula: integrate (p - exp(e) q)+ over the line.
    for multiplier, e in [(1, 1), (0.7, 2), (4, 0.1)]:
        s = exact(multiplier)
        gap = lambda x, s=s, e=e: max(  # noqa: E731
            mp.mpf(0), mp.npdf(x, 1, s) - mp.exp(exact(e)) * mp.npdf(x, 0, s)
        )
        edge = exact(e) * s**2 + mp.mpf(1) / 2
        with mp.workdps(25):
            truth = mp.quad(gap, [edge, edge + 4 * s, edge + 12 * s, edge + 40 * s])
        found = delta(GaussianLoss(noise_multiplier=multiplier), epsilon=e)
        assert abs(found / truth - 1) < TIGHT


def test_gaussian_figures():
    # Ten thousand Gaussians of multiplier 100 are one of multiplier 1; delta at 8 is 3.65e-15.
    assert f"{delta(GaussianLoss(noise_multiplier=1), epsilon=8):.2e}" == "3.65e-15"


# Laplace


@given(multiplier=multipliers, e=small_epsilons)
def test_laplace_is_exact(multiplier, e):
    b, e_ = exact(multiplier), exact(e)
    found = delta(LaplaceLoss(noise_multiplier=multiplier), epsilon=e)
    if e_ * b >= 1:
        assert found == 0
        return
    # The best event is {x <= t} where the densities' ratio crosses exp(e).
    t = (1 - e_ * b) / 2
    truth = (1 - mp.exp(-t / b) / 2) - mp.exp(e_) * mp.exp((t - 1) / b) / 2
    assert_tight_upper(found, truth)


def test_laplace_agrees_with_quadrature_of_its_definition():
    for multiplier, e in [(1, 0.5), (2, 0.1), (0.25, 3)]:
        b = exact(multiplier)
        density = lambda x, b=b: mp.exp(-abs(x) / b) / (2 * b)  # noqa: E731
        gap = lambda x, e=e, f=density: max(mp.mpf(0), f(x) - mp.exp(exact(e)) * f(x - 1))  # noqa: E731
        edge = (1 - exact(e) * b) / 2
        with mp.workdps(25):
            truth = mp.quad(gap, [-80 * b, -5 * b, 0, edge])
        assert abs(delta(LaplaceLoss(noise_multiplier=multiplier), epsilon=e) / truth - 1) < TIGHT


# Discrete Laplace


def discrete_laplace_law(scale, centre, reach):
    q = mp.exp(-1 / exact(scale))
    return {k: q ** abs(k - centre) * (1 - q) / (1 + q) for k in range(-reach, reach + 1)}


@pytest.mark.lengthy
@settings(max_examples=60, deadline=None)
@given(
    multiplier=st.fractions(Fraction(1, 8), 4, max_denominator=12),
    shift=st.integers(1, 6),
    e=st.fractions(0, 9, max_denominator=24),
)
def test_discrete_laplace_is_exact(multiplier, shift, e):
    scale = multiplier * shift
    reach = 40 + int(80 * scale)  # what lies outside is below exp(-80)
    truth = hockey_stick(
        discrete_laplace_law(scale, 0, reach), discrete_laplace_law(scale, shift, reach), e
    )
    found = delta(DiscreteLaplaceLoss(noise_multiplier=multiplier, sensitivity=shift), epsilon=e)
    if e >= 1 / multiplier:
        assert found == 0
    else:
        assert found >= truth - mp.mpf(10) ** -30
        assert found <= truth * (1 + TIGHT) + mp.mpf(10) ** -30


@given(multiplier=multipliers, e=small_epsilons)
def test_discrete_laplace_of_sensitivity_one_is_randomized_response(multiplier, e):
    noise = DiscreteLaplaceLoss(noise_multiplier=multiplier)
    coins = RandomizedResponseLoss(epsilon=1 / Fraction(multiplier), categories=2)
    assert delta(noise, epsilon=e) == pytest.approx(delta(coins, epsilon=e), rel=1e-12, abs=0)


@pytest.mark.lengthy
@given(multiplier=st.floats(0.2, 5), shift=st.integers(1, 50), share=st.floats(0, 0.99))
def test_discrete_laplace_is_no_better_than_the_continuous_one(multiplier, shift, share):
    e = share / multiplier
    discrete = delta(DiscreteLaplaceLoss(noise_multiplier=multiplier, sensitivity=shift), epsilon=e)
    assert discrete >= delta(LaplaceLoss(noise_multiplier=multiplier), epsilon=e) * (1 - 1e-12)


# Randomized response, pure, approximate, bounded range


@given(own=small_epsilons, k=st.integers(2, 30), e=small_epsilons)
def test_randomized_response_is_exact(own, k, e):
    favoured = mp.exp(exact(own))
    laws = [
        {i: (favoured if i == true else 1) / (favoured + k - 1) for i in range(k)}
        for true in (0, 1)
    ]
    found = delta(RandomizedResponseLoss(epsilon=own, categories=k), epsilon=e)
    assert_tight_upper(found, hockey_stick(laws[0], laws[1], e) if e < own else 0)


def test_two_fair_coins_cost_log_three():
    loss = RandomizedResponseLoss(epsilon=math.log(3), categories=2)
    assert epsilon(loss, delta=0) == math.log(3)
    assert delta(loss, epsilon=0) == pytest.approx(0.75 - 0.25, rel=1e-12)


@given(own=small_epsilons, failure=st.floats(0, 0.999), e=small_epsilons)
def test_approximate_loss_is_the_profile_of_its_dominating_pair(own, failure, e):
    f, big = exact(failure), mp.exp(exact(own))
    p = {"told": f, "yes": (1 - f) * big / (1 + big), "no": (1 - f) / (1 + big), "other": mp.mpf(0)}
    q = {"told": mp.mpf(0), "yes": p["no"], "no": p["yes"], "other": f}
    truth = hockey_stick(p, q, e) if e < own else f
    assert_tight_upper(delta(ApproximateLoss(epsilon=own, delta=failure), epsilon=e), truth)
    if failure == 0:
        assert delta(PureLoss(epsilon=own), epsilon=e) == pytest.approx(float(truth), rel=1e-9)


@given(own=st.floats(1e-3, 20), share=st.floats(0, 1), t_share=st.floats(0, 1))
def test_bounded_range_covers_every_two_point_law_and_touches_the_worst(own, share, t_share):
    e = share * own

    def two_point(t):
        lowest, highest = mp.exp(t - exact(own)), mp.exp(t)
        q = (1 - lowest) / (highest - lowest)  # mean likelihood ratio 1
        return hockey_stick({0: q * highest, 1: (1 - q) * lowest}, {0: q, 1: 1 - q}, e)

    found = delta(BoundedRangeLoss(epsilon=own), epsilon=e)
    assert found >= two_point(exact(t_share) * exact(own)) * (1 - mp.mpf(10) ** -40)
    if e < own:
        assert_tight_upper(found, two_point((exact(own) + exact(e)) / 2))


@settings(deadline=None)
@given(scores=st.lists(st.floats(-4, 4), min_size=2, max_size=6), e=st.floats(0, 2), data=st.data())
def test_bounded_range_covers_the_exponential_mechanism(scores, e, data):
    # Scores of sensitivity 1, selection with weight exp(score): a range of 2.
    moved = [s + data.draw(st.floats(-1, 1)) for s in scores]
    laws = []
    for row in (scores, moved):
        weights = [mp.exp(exact(s)) for s in row]
        laws.append({i: w / sum(weights) for i, w in enumerate(weights)})
    bound = delta(BoundedRangeLoss(epsilon=2), epsilon=e)
    # A score moved by floats may round to a distance a hair over 1.
    assert bound >= hockey_stick(laws[0], laws[1], e) * (1 - mp.mpf(10) ** -12) - mp.mpf(10) ** -15


def test_the_exponential_mechanism_of_the_textbook_has_its_printed_probabilities():
    weights = [math.exp(s / 2) for s in (5, 4, 3, 2)]
    assert [round(w / sum(weights), 2) for w in weights][::3] == [0.46, 0.1]


# zCDP


@pytest.mark.lengthy
@settings(max_examples=60, deadline=None)
@given(rho=st.floats(1e-9, 100), share=st.floats(0.5, 40))
def test_zcdp_finds_the_best_order(rho, share):
    e = rho + share * math.sqrt(rho)
    found = delta(ZCDPLoss(rho=rho), epsilon=e)

    def at(x):
        return mp.exp(x * ((1 + x) * exact(rho) - exact(e)) - x * mp.log1p(1 / x) - mp.log1p(x))

    with mp.workdps(40):
        guess = max(mp.mpf(e - rho) / (2 * mp.mpf(rho)), mp.mpf(1) / 100)
        slope = lambda x: (2 * x + 1) * exact(rho) - exact(e) - mp.log1p(1 / x)  # noqa: E731
        low, high = guess / 10**8, guess * 10**8
        for _ in range(200):
            middle = mp.sqrt(low * high)
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        truth = at(low)
    assert found >= truth * (1 - mp.mpf(10) ** -30)
    assert found <= min(truth, 1) * (1 + TIGHT) + 1e-322


@given(multiplier=st.floats(0.1, 100), e=st.floats(0, 50))
def test_zcdp_is_an_upper_bound_for_the_gaussian_it_describes(multiplier, e):
    rho = 1 / (2 * Fraction(multiplier) ** 2)
    exactly = delta(GaussianLoss(noise_multiplier=multiplier), epsilon=e)
    assert delta(ZCDPLoss(rho=rho), epsilon=e) >= exactly * (1 - 1e-10)


def test_the_usual_zcdp_route_needs_more_noise_than_the_exact_one():
    assert delta(ZCDPLoss(rho=1 / (2 * 4.04**2)), epsilon=1) > 1e-5
    assert delta(ZCDPLoss(rho=1 / (2 * 4.06**2)), epsilon=1) < 1e-5
