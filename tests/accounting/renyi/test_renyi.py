"""Renyi divergences against integrals and sums in many digits, and the figures they lead to."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import renyi
from discreet.errors import ParameterError

TIGHT = 1e-9  # relative; an upper bound may exceed the truth by no more

orders = st.floats(1.05, 60) | st.integers(2, 60)
epsilons = st.floats(1e-6, 20)


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(60):
        yield


def assert_tight_upper(bound, truth, *, tight=TIGHT):
    assert bound >= truth
    assert bound <= truth * (1 + tight)


def finite(p, q, order):
    """Return the divergence of two finite laws, in the worse direction."""
    a = mp.mpf(order)
    sums = [
        sum(x**a * y ** (1 - a) for x, y in zip(*pair, strict=True)) for pair in ((p, q), (q, p))
    ]
    return max(mp.log(s) / (a - 1) for s in sums)


def response(epsilon, categories=2):
    top = mp.exp(mp.mpf(epsilon))
    rest = [1] * (categories - 2)
    laws = [top, 1, *rest], [1, top, *rest]
    return [[x / (top + categories - 1) for x in law] for law in laws]


# Closed forms


@settings(deadline=None)
@given(multiplier=st.floats(0.01, 100), order=orders)
def test_gaussian_is_its_formula(multiplier, order):
    truth = mp.mpf(order) / (2 * mp.mpf(multiplier) ** 2)
    assert_tight_upper(renyi.gaussian(noise_multiplier=multiplier, order=order), truth)


@settings(deadline=None)
@given(multiplier=st.floats(0.05, 1e6), order=orders)
def test_laplace_is_its_formula(multiplier, order):
    a, t = mp.mpf(order), 1 / mp.mpf(multiplier)
    moment = (a * mp.exp((a - 1) * t) + (a - 1) * mp.exp(-a * t)) / (2 * a - 1)
    truth = mp.log(moment) / (a - 1)
    assert_tight_upper(renyi.laplace(noise_multiplier=multiplier, order=order), truth)


@pytest.mark.parametrize(("multiplier", "order"), [(1, 2), (0.3, 1.5), (3, 7.5)])
def test_laplace_is_its_integral(multiplier, order):
    b, a = mp.mpf(multiplier), mp.mpf(order)
    moment = mp.quad(
        lambda x: mp.exp(-a * abs(x - 1) / b - (1 - a) * abs(x) / b) / (2 * b),
        [-60 * b, 0, 1, 1 + 60 * b],
    )
    truth = mp.log(moment) / (a - 1)
    assert renyi.laplace(noise_multiplier=multiplier, order=order) == pytest.approx(float(truth))


@pytest.mark.lengthy
@settings(deadline=None)
@given(epsilon=epsilons, order=orders, categories=st.integers(2, 50))
def test_randomized_response_is_its_sum(epsilon, order, categories):
    truth = finite(*response(epsilon, categories), order)
    bound = renyi.randomized_response(epsilon=epsilon, categories=categories, order=order)
    assert_tight_upper(bound, truth)


@settings(deadline=None)
@given(epsilon=epsilons, order=orders)
def test_pure_is_below_both_of_the_usual_bounds(epsilon, order):
    bound = renyi.pure(epsilon=epsilon, order=order)
    assert bound <= min(epsilon, order * epsilon**2 / 2) * (1 + TIGHT)


@pytest.mark.lengthy
@settings(max_examples=30, deadline=None)
@given(multiplier=st.floats(0.2, 30), order=orders, shift=st.integers(1, 12))
def test_discrete_laplace_is_its_sum(multiplier, order, shift):
    t = 1 / (mp.mpf(multiplier) * shift)
    ks = range(-400, 401 + shift)  # beyond, both laws have the same constant ratio; take it whole
    q = [mp.exp(-t * abs(k)) for k in ks]
    p = [mp.exp(-t * abs(k - shift)) for k in ks]
    end = 1 / (1 - mp.exp(-t))
    total = 2 * end - 1
    for law in (p, q):
        law[0] *= end
        law[-1] *= end
    truth = finite([x / total for x in p], [x / total for x in q], order)
    bound = renyi.discrete_laplace(noise_multiplier=multiplier, order=order, sensitivity=shift)
    assert_tight_upper(bound, truth)


@pytest.mark.parametrize(
    ("multiplier", "order"), list(itertools.product([0.1, 1, 30], [1.5, 2, 40]))
)
def test_discrete_laplace_tends_to_laplace_from_above(multiplier, order):
    smooth = renyi.laplace(noise_multiplier=multiplier, order=order)
    few, many = (
        renyi.discrete_laplace(noise_multiplier=multiplier, order=order, sensitivity=s)
        for s in (100_000, 100_001)  # by the sum and by the closed form
    )
    assert smooth <= many * (1 + 1e-12)
    assert many == pytest.approx(few, rel=1e-8)
    assert many == pytest.approx(smooth, rel=1e-4)


# Sampling


def sampled_gaussian_truth(s, q, order, *, reverse=False):
    s, q, a = mp.mpf(s), mp.mpf(q), mp.mpf(order)

    def ratio(x):
        return 1 - q + q * mp.exp((2 * x - 1) / (2 * s**2))

    power = 1 - a if reverse else a
    # Less its constant and linear parts, which integrate to a known number: no cancellation.
    moment = mp.quad(
        lambda x: (ratio(x) ** power - 1 - power * (ratio(x) - 1)) * mp.npdf(x, 0, s),
        mp.linspace(-12 * s, 0, 4) + mp.linspace(0, a + 12 * s, 12)[1:],
    )
    return mp.log1p(moment) / (a - 1)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("s", "q", "order"),
    [
        (4, 0.01, 2), (4, 0.01, 1.1), (4, 0.01, 17.3), (4, 0.01, 32),
        (1.1, 256 / 60000, 7.5), (0.5, 1e-5, 4.2), (0.5, 1e-5, 3), (1, 1e-9, 2.5),
        (1, 1e-9, 8), (0.8, 0.9, 1.5), (30, 0.5, 40.5), (0.3, 0.1, 3.5),
    ],
)  # fmt: skip
def test_sampled_gaussian_is_its_integral(s, q, order):
    with mp.workdps(40):
        truth = sampled_gaussian_truth(s, q, order)
        other = sampled_gaussian_truth(s, q, order, reverse=True)
    assert other <= truth
    bound = renyi.sampled_gaussian(noise_multiplier=s, rate=q, order=order)
    assert_tight_upper(bound, truth * (1 - mp.mpf(10) ** -13), tight=1e-8)


def sampled_gaussian_sum(s, q, order):
    s, q = mp.mpf(s), mp.mpf(q)
    moment = mp.fsum(
        mp.binomial(order, j) * (1 - q) ** (order - j) * q**j * mp.exp(j * (j - 1) / (2 * s**2))
        for j in range(order + 1)
    )
    return mp.log(moment) / (order - 1)


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(
    s=st.floats(0.1, 100),
    q=st.floats(1e-9, 0.999) | st.floats(-9, 0).map(lambda x: 0.99 * 10**x),
    order=st.integers(2, 200),
)
def test_sampled_gaussian_is_the_binomial_sum_at_whole_orders(s, q, order):
    truth = sampled_gaussian_sum(s, q, order)
    bound = renyi.sampled_gaussian(noise_multiplier=s, rate=q, order=order)
    assert_tight_upper(bound, truth)


@pytest.mark.lengthy
def test_sampled_gaussian_at_extreme_orders_and_rates():
    truth = sampled_gaussian_sum(4, 1e-9, 10_000)
    assert_tight_upper(renyi.sampled_gaussian(noise_multiplier=4, rate=1e-9, order=10_000), truth)
    between = renyi.sampled_gaussian(noise_multiplier=0.02, rate=0.01, order=99.5)
    ends = [renyi.sampled_gaussian(noise_multiplier=0.02, rate=0.01, order=a) for a in (99, 100)]
    assert ends[0] <= between <= ends[1]


@settings(max_examples=30, deadline=None)
@given(s=st.floats(0.2, 50), q=st.floats(-8, -0.01).map(lambda x: 10**x), order=st.integers(2, 60))
def test_quadrature_agrees_with_the_sum_next_to_whole_orders(s, q, order):
    whole = renyi.sampled_gaussian(noise_multiplier=s, rate=q, order=order)
    beside = renyi.sampled_gaussian(noise_multiplier=s, rate=q, order=order + 1e-9)
    assert beside == pytest.approx(whole, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(epsilon=st.floats(1e-4, 8), q=st.floats(1e-6, 1), order=orders)
def test_sampled_pure_is_its_sum_and_below_its_pure_epsilon(epsilon, q, order):
    p, base = response(epsilon)
    rate = mp.mpf(q)
    mixed = [rate * x + (1 - rate) * y for x, y in zip(p, base, strict=True)]
    bound = renyi.sampled_pure(epsilon=epsilon, rate=q, order=order)
    assert_tight_upper(bound, finite(mixed, base, order), tight=1e-8)
    assert bound <= math.log1p(q * math.expm1(epsilon)) * (1 + TIGHT)


@settings(max_examples=40, deadline=None)
@given(epsilon=st.floats(0.01, 4), q=st.floats(1e-4, 0.9), order=st.floats(1.1, 20))
def test_generic_sampling_bounds_are_above_the_exact_ones(epsilon, q, order):
    exact = renyi.sampled_pure(epsilon=epsilon, rate=q, order=order)
    bound = renyi.sampled(lambda a: renyi.pure(epsilon=epsilon, order=a), rate=q, order=order)
    assert exact * (1 - TIGHT) <= bound <= renyi.pure(epsilon=epsilon, order=order) * (1 + TIGHT)


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.01, 4), n=st.integers(2, 6), order=st.floats(1.1, 12), other=st.booleans()
)
def test_subset_bound_is_above_one_response_out_of_n(epsilon, n, order, other):
    # One of n people is drawn and answers; all others say 0, or the opposite of the changed one.
    one, zero = response(epsilon)
    rest = one if other else zero
    before, after = (
        [(x + (n - 1) * y) / n for x, y in zip(law, rest, strict=True)] for law in (one, zero)
    )
    truth = finite(before, after, order)
    for pure in (None, epsilon):
        bound = renyi.sampled_without_replacement(
            lambda a: renyi.pure(epsilon=epsilon, order=a),
            rate=Fraction(1, n), order=order, pure_epsilon=pure,
        )  # fmt: skip
        assert bound >= truth * (1 - TIGHT)


laws = st.lists(st.floats(0.02, 1), min_size=4, max_size=4).map(
    lambda weights: [mp.mpf(w) / sum(map(mp.mpf, weights)) for w in weights]
)


@pytest.mark.lengthy
@settings(max_examples=60, deadline=None)
@given(p=laws, q=laws, other=laws, rate=st.floats(1e-3, 0.95), order=st.integers(2, 8))
def test_generic_sampling_bounds_hold_for_any_laws(p, q, other, rate, order):
    def mixed(law, base):
        share = mp.mpf(rate)
        return [share * x + (1 - share) * y for x, y in zip(law, base, strict=True)]

    def curve(a):
        return float(max(finite(p, q, a), finite(p, other, a), finite(q, other, a))) + 1e-15

    poisson = renyi.sampled(lambda a: float(finite(p, q, a)) + 1e-15, rate=rate, order=order)
    assert poisson >= finite(mixed(p, q), q, order)
    subset = renyi.sampled_without_replacement(curve, rate=rate, order=order)
    assert subset >= finite(mixed(p, other), mixed(q, other), order)


def test_no_sampling_and_full_sampling():
    assert renyi.sampled_gaussian(noise_multiplier=1, rate=0, order=3) == 0
    assert renyi.sampled_gaussian(noise_multiplier=1, rate=1, order=3) == 1.5
    assert renyi.sampled(lambda a: a, rate=0, order=3) == 0
    assert renyi.sampled(lambda a: a, rate=1, order=3) == pytest.approx(3)
    assert renyi.sampled_pure(epsilon=1, rate=1, order=3) == renyi.pure(epsilon=1, order=3)
    assert renyi.sampled_pure(epsilon=0, rate=0.5, order=3) == 0
    assert renyi.sampled_without_replacement(lambda a: a, rate=0, order=2.5) == 0


@settings(max_examples=30, deadline=None)
@given(s=st.floats(0.3, 20), q=st.floats(1e-6, 0.5), order=st.floats(1.1, 50))
def test_divergence_grows_with_order_and_rate_and_falls_with_noise(s, q, order):
    def at(**change):
        return renyi.sampled_gaussian(**{"noise_multiplier": s, "rate": q, "order": order} | change)

    assert at(order=order * 1.1) >= at()
    assert at(rate=q * 1.5) > at()
    assert at(noise_multiplier=s * 1.1) < at()


# Conversion


def conversion_truth(order, r, delta):
    a, r, d = mp.mpf(order), mp.mpf(r), mp.mpf(delta)
    return r + mp.log((a - 1) / a) - (mp.log(d) + mp.log(a)) / (a - 1)


@settings(deadline=None)
@given(order=st.floats(1.001, 1e6), r=st.floats(0, 50), delta=st.floats(1e-300, 0.5))
def test_conversion_is_its_formula(order, r, delta):
    truth = conversion_truth(order, r, delta)
    bound = renyi.conversion(order=order, renyi=r, delta=delta)
    if bound == 0:  # by the formula or by the total variation distance
        assert truth <= 0 or mp.sqrt(-mp.expm1(-mp.mpf(r))) <= delta
    else:
        assert truth <= bound <= max(truth, 0) + 1e-11 * (1 + abs(mp.log(delta)) / (order - 1))


@settings(deadline=None)
@given(order=st.floats(1.01, 1e4), r=st.floats(0, 5), epsilon=st.floats(0, 20))
def test_conversion_to_delta_is_its_inverse(order, r, epsilon):
    delta = renyi.conversion_delta(order=order, renyi=r, epsilon=epsilon)
    a = mp.mpf(order)
    power = mp.exp((a - 1) * (mp.mpf(r) - mp.mpf(epsilon))) * (1 - 1 / a) ** a / (a - 1)
    truth = min(power, mp.sqrt(-mp.expm1(-mp.mpf(r))), 1)
    assert delta >= truth
    assert delta <= truth * (1 + TIGHT) + 1e-300


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.01, 3), order=st.floats(1.1, 50), at=st.floats(0, 3))
def test_conversion_holds_for_randomized_response(epsilon, order, at):
    r = renyi.pure(epsilon=epsilon, order=order)
    p, q = response(epsilon)
    truth = sum(max(0, x - mp.exp(mp.mpf(at)) * y) for x, y in zip(p, q, strict=True))
    assert renyi.conversion_delta(order=order, renyi=r, epsilon=at) >= truth


def test_conversion_of_nothing_and_of_everything():
    assert renyi.conversion(order=2, renyi=0, delta=1e-9) == 0
    assert renyi.conversion(order=2, renyi=math.inf, delta=0.5) == math.inf
    assert renyi.conversion_delta(order=2, renyi=math.inf, epsilon=1) == 1
    assert renyi.conversion_delta(order=2, renyi=0, epsilon=0) <= 1e-300


# Figures


def composed(steps, **setting):
    return lambda a: steps * renyi.sampled_gaussian(order=a, **setting)


@pytest.mark.parametrize(
    ("setting", "steps", "published"),
    [
        ({"noise_multiplier": 4, "rate": 0.01}, 10_000, 1.0355),
        ({"noise_multiplier": 4, "rate": 0.01}, 40_000, 2.2097),
        ({"noise_multiplier": 1.1, "rate": Fraction(256, 60_000)}, 14_062, 2.5966),
        ({"noise_multiplier": 0.5, "rate": 1e-5}, 1_000_000, 2.142),
    ],
)
def test_published_renyi_figures(setting, steps, published):
    found = renyi.best_epsilon(composed(steps, **setting), delta=1e-5)
    # Never above a search over fewer orders, and not far below it.
    assert 0.997 * published <= found <= published + 5e-5


def test_classic_moments_figures():
    setting = {"noise_multiplier": 4, "rate": 0.01, "delta": 1e-5}
    assert renyi.moments_epsilon(steps=10_000, **setting) == pytest.approx(1.2586, abs=1e-4)
    assert renyi.moments_epsilon(steps=40_000, **setting) == pytest.approx(2.574, abs=3e-3)
    assert renyi.moments_epsilon(steps=10_000, **setting) == pytest.approx(1.26, abs=0.03)
    assert renyi.moments_epsilon(steps=40_000, **setting) == pytest.approx(2.55, abs=0.03)


@pytest.mark.lengthy
@settings(deadline=None)
@given(rho=st.floats(1e-4, 20), delta=st.floats(1e-12, 1e-2))
def test_search_over_orders_finds_the_optimum_of_a_line(rho, delta):
    from discreet.accounting import ZCDPLoss, epsilon

    found = renyi.best_epsilon(lambda a: a * rho, delta=delta)
    best = epsilon(ZCDPLoss(rho=rho), delta=delta)
    # The line ignores the total variation rule, which gives 0 at tiny rho.
    assert found == 0 or found == pytest.approx(best, rel=1e-6, abs=1e-9)
    back = renyi.best_delta(lambda a: a * rho, epsilon=best)
    assert back <= delta * (1 + 1e-5)


# Refusals


@pytest.mark.parametrize("order", [1, 0, -2, math.nan, math.inf, True, "2", None])
def test_bad_orders_are_refused(order):
    for call in (
        lambda: renyi.gaussian(noise_multiplier=1, order=order),
        lambda: renyi.pure(epsilon=1, order=order),
        lambda: renyi.sampled_gaussian(noise_multiplier=1, rate=0.1, order=order),
        lambda: renyi.conversion(order=order, renyi=1, delta=0.1),
    ):
        with pytest.raises(ParameterError, match="order must be a finite number above 1"):
            call()


def test_other_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="rate"):
        renyi.sampled_gaussian(noise_multiplier=1, rate=1.5, order=2)
    with pytest.raises(ParameterError, match="noise_multiplier"):
        renyi.laplace(noise_multiplier=0, order=2)
    with pytest.raises(ParameterError, match="delta"):
        renyi.best_epsilon(lambda a: a, delta=0)
    with pytest.raises(ParameterError, match="renyi"):
        renyi.conversion(order=2, renyi=-1, delta=0.1)
    with pytest.raises(ParameterError, match="sensitivity"):
        renyi.discrete_laplace(noise_multiplier=1, order=2, sensitivity=0.5)
