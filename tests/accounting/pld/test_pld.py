"""Composition by privacy loss distributions: never below the truth, and close to it."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FinitePairLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RandomizedResponseLoss,
    WithoutReplacementLoss,
    ZCDPLoss,
    bracket,
    calibrate,
)
from discreet.accounting.losses.certified import delta_bracket
from discreet.accounting.pairs.pairs import GaussianPair
from discreet.accounting.pld import distribution as pld
from discreet.errors import ParameterError

mp.mp.dps = 60


# Against closed forms ---------------------------------------------------------------------------


def gaussian_delta(epsilon, mu=1):
    e, m = mp.mpf(epsilon), mp.mpf(mu)
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("exponent", [6, 8, 12, 15, 20, 25, 30])
def test_ten_thousand_gaussians_are_one(exponent):
    """10,000 Gaussians of noise multiplier 100 are exactly one of noise multiplier 1."""
    target = mp.mpf(10) ** -exponent
    parts = [(GaussianPair(100.0), 10_000)]
    upper = pld.epsilon_upper(parts, delta=float(target), tolerance=2e-5)
    lower = pld.epsilon_lower(parts, delta=float(target), near=upper, tolerance=2e-5)
    assert gaussian_delta(lower) >= target >= gaussian_delta(upper)
    assert upper - lower < 1e-4
    at = pld.delta_upper(parts, epsilon=upper, tolerance=2e-5)
    below = pld.delta_lower(parts, epsilon=upper, tolerance=2e-5)
    truth = gaussian_delta(upper)
    assert below <= truth <= at
    assert at <= 1.01 * truth
    assert below >= 0.99 * truth


def binomial_delta(n, p_up, up, down, epsilon):
    """delta of n independent losses that are ``up`` with chance p_up, else ``down``, exactly."""
    total = mp.mpf(0)
    for k in range(n + 1):
        loss = k * up + (n - k) * down
        if loss > epsilon:
            chance = mp.binomial(n, k) * p_up**k * (1 - p_up) ** (n - k)
            total += chance * (1 - mp.exp(epsilon - loss))
    return total


@pytest.mark.parametrize(("each", "n"), [(0.01, 1000), (0.3, 40), (2.0, 5)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_pure_losses_compose_as_binomials(each, n, share):
    loss = PureLoss(epsilon=each) * n
    at = share * min(n * each, 4 * each * math.sqrt(n))
    e = mp.mpf(each)
    truth = binomial_delta(n, mp.exp(e) / (1 + mp.exp(e)), e, -e, mp.mpf(at))
    found = delta_bracket(loss, epsilon=Fraction(at))
    assert found.lower <= truth <= found.upper
    assert found.upper <= truth * (1 + 1e-4)
    assert found.lower >= truth * (1 - 1e-4)


def test_the_printed_optimum():
    assert discreet.epsilon(PureLoss(epsilon=0.01) * 10_000, delta=1e-5) == pytest.approx(
        4.37638, abs=1e-5
    )
    assert discreet.epsilon(PureLoss(epsilon=0.01) * 10_000, delta=0) == pytest.approx(100)
    assert discreet.epsilon(PureLoss(epsilon=0.005) * 3_000, delta=0) == pytest.approx(15)


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize(("each", "rate", "n"), [(1.0, 0.1, 60), (0.5, 0.01, 300), (3.0, 0.3, 12)])
def test_sampled_randomized_response_composes_as_binomials(each, rate, n, removes):
    """Sampling mixes the two laws; two outcomes stay two outcomes."""
    e, r = mp.mpf(each), mp.mpf(rate)
    p = mp.exp(e) / (1 + mp.exp(e))
    mixed = (1 - r) * (1 - p) + r * p
    if removes:
        up, down, chance = mp.log(mixed / (1 - p)), mp.log((1 - mixed) / p), mixed
    else:
        mixed = (1 - r) * p + r * (1 - p)
        up, down, chance = mp.log(p / mixed), mp.log((1 - p) / (1 - mixed)), p
    pair = PureLoss(epsilon=each).sampled(rate=rate).pairs()[0 if removes else 1]
    for at in (0.2 * n * float(up), 0.6 * n * float(up)):
        truth = binomial_delta(n, chance, up, down, mp.mpf(at))
        upper = pld.delta_upper([(pair, n)], epsilon=at, tolerance=2e-5)
        lower = pld.delta_lower([(pair, n)], epsilon=at, tolerance=2e-5)
        assert lower <= truth <= upper <= truth * (1 + 1e-3)


# Against exact rational convolution -------------------------------------------------------------


@pytest.mark.lengthy
@given(
    weights=st.integers(2, 3).flatmap(
        lambda size: st.tuples(
            st.lists(st.integers(1, 20), min_size=size, max_size=size),
            st.lists(st.integers(1, 20), min_size=size, max_size=size),
        )
    ),
    n=st.integers(2, 4),
    at=st.floats(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_small_finite_pairs_against_enumeration(weights, n, at):
    p, q = ([Fraction(w, sum(side)) for w in side] for side in weights)
    loss = FinitePairLoss(p=tuple(p), q=tuple(q)) * n
    ratio = mp.exp(mp.mpf(at))
    truth = mp.mpf(0)
    for one, other in ((p, q), (q, p)):
        total = mp.mpf(0)
        for outcome in itertools.product(range(len(p)), repeat=n):
            a = math.prod((one[i] for i in outcome), start=Fraction(1))
            b = math.prod((other[i] for i in outcome), start=Fraction(1))
            total += max(
                0, mp.mpf(a.numerator) / a.denominator - ratio * b.numerator / b.denominator
            )
        truth = max(truth, total)
    found = delta_bracket(loss, epsilon=Fraction(at))
    assert found.lower <= truth + mp.mpf(10) ** -25
    assert truth <= found.upper
    assert found.upper <= truth + 1e-3


# The table of hard cases ------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("rate", "multiplier", "steps", "low", "high", "width"),
    [
        (0.01, 4, 10_000, 0.94685, 0.94688, 1e-4),
        (0.01, 4, 40_000, 2.03304, 2.03309, 1e-4),
        (256 / 60_000, 1.1, 14_062, 2.38157, 2.38163, 1e-4),
        (1e-5, 0.5, 10**6, 0.480, 0.49419, 5e-3),
    ],
)
def test_sampled_gaussians_are_bracketed_tightly(rate, multiplier, steps, low, high, width):
    loss = GaussianLoss(noise_multiplier=multiplier).sampled(rate=rate) * steps
    found = bracket(loss, delta=1e-5)
    # The interval holds the truth, and so does ours: they must meet.
    assert found.lower <= high
    assert found.upper >= low
    assert 0 <= found.upper - found.lower <= width
    assert found.upper <= high + width


LOSSES = {
    "pure": PureLoss(epsilon=0.3),
    "approximate": ApproximateLoss(epsilon=0.3, delta=1e-9),
    "gaussian": GaussianLoss(noise_multiplier=3),
    "laplace": LaplaceLoss(noise_multiplier=3),
    "discrete laplace": DiscreteLaplaceLoss(noise_multiplier=3, sensitivity=4),
    "discrete gaussian": DiscreteGaussianLoss(sigma=3, sensitivity=1, dimension=1),
    "bounded range": BoundedRangeLoss(epsilon=0.5),
    "zcdp": ZCDPLoss(rho=0.05),
    "sampled gaussian": GaussianLoss(noise_multiplier=1).sampled(rate=0.05),
    "sampled laplace": LaplaceLoss(noise_multiplier=1).sampled(rate=0.05),
    "sampled pure": PureLoss(epsilon=1).sampled(rate=0.05),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", LOSSES)
def test_composition_keeps_order(name):
    """More operations cost more, a bracket is ordered, and a single one agrees with its profile."""
    loss = LOSSES[name]
    found = [bracket(loss * n, delta=1e-6) for n in (2, 5, 20, 100)]
    for less, more in itertools.pairwise(found):
        assert less.lower <= less.upper
        assert less.upper <= more.upper
    single = discreet.epsilon(loss, delta=1e-6)
    assert found[0].upper >= single * (1 - 1e-9)
    assert found[0].upper <= 2 * discreet.epsilon(loss, delta=5e-7) + 1e-4  # basic composition
    for n, one in zip((2, 5, 20, 100), found, strict=True):
        assert discreet.delta(loss * n, epsilon=one.upper) <= 1.1e-6


@pytest.mark.parametrize("name", LOSSES)
def test_once_by_the_engine_is_the_exact_profile(name):
    """The engine on a single operation must reproduce its closed form."""
    loss = LOSSES[name]
    for at in (0.05, 0.2, 0.28):
        exact = loss.delta_upper(epsilon=Fraction(at))
        got = max(pld.delta_upper([(pair, 1)], epsilon=at, tolerance=1e-6) for pair in loss.pairs())
        assert got <= exact * 1.02 + 1e-9
        if name != "zcdp":  # its bound is not convex, so the engine may do better than it
            assert got >= exact * (1 - 1e-9)


@pytest.mark.lengthy
def test_mixed_losses():
    loss = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000 + LaplaceLoss(
        noise_multiplier=2
    )
    found = bracket(loss, delta=1e-5)
    assert found.lower < 1.40401 < found.upper + 1e-4
    assert found.upper - found.lower < 1e-4
    assert discreet.delta(loss, epsilon=found.upper) <= 1.001e-5
    many = sum(
        (GaussianLoss(noise_multiplier=10 + i / 7) for i in range(200)),
        start=PureLoss(epsilon=0.1) * 1,
    )
    assert 1 < discreet.epsilon(many, delta=1e-6) < 20


def test_composition_is_canonical_and_short():
    a, b = GaussianLoss(noise_multiplier=4), PureLoss(epsilon=1)
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)
    assert (a + b) + a == a * 2 + b
    assert 3 * (a + b) == a * 3 + b * 3
    assert len((a * 10**6 + a * 10**6).parts) == 1
    assert (a * 0).parts == ()
    assert discreet.epsilon(a * 0, delta=1e-6) == 0
    for bad in (-1, 1.5, True):
        with pytest.raises((ParameterError, TypeError)):
            a * bad


def test_relations_do_not_mix():
    local = RandomizedResponseLoss(epsilon=1, categories=2)
    central = GaussianLoss(noise_multiplier=1).sampled(rate=0.1)
    with pytest.raises(ParameterError, match="replace_one"):
        local + central
    assert (local + GaussianLoss(noise_multiplier=2)).relation == "replace_one"
    fixed = WithoutReplacementLoss(inner=GaussianLoss(noise_multiplier=1), batch=10, population=100)
    assert (local + fixed).relation == "replace_one"
    with pytest.raises(ParameterError, match="Sample each operation"):
        (central * 10).sampled(rate=0.5)


@pytest.mark.lengthy
def test_calibration_of_a_training_run():
    def run(multiplier):
        return GaussianLoss(noise_multiplier=multiplier).sampled(rate=0.01) * 10_000

    found = calibrate(run, epsilon=3, delta=1e-5)
    assert discreet.delta(run(found), epsilon=3) <= 1e-5
    assert discreet.delta(run(found * 0.9999), epsilon=3) > 1e-5


@pytest.mark.lengthy
def test_calibration_of_a_sampling_rate_finds_the_largest():
    def run(rate):
        return GaussianLoss(noise_multiplier=2).sampled(rate=rate) * 100

    found = calibrate(run, epsilon=1, delta=1e-5, largest=True)
    assert discreet.delta(run(found), epsilon=1) <= 1e-5
    assert discreet.delta(run(found * 1.0001), epsilon=1) > 1e-5
    # With budget to spare the rate stops at 1, where sampling ends.
    assert calibrate(run, epsilon=500, delta=1e-5, largest=True) == pytest.approx(1, rel=1e-5)


def test_subsampling_figures():
    assert discreet.epsilon(PureLoss(epsilon=0.5).sampled(rate=0.01), delta=0) == pytest.approx(
        math.log1p(0.01 * math.expm1(0.5))
    )
