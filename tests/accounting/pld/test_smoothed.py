"""Composition by smoothing: the polynomials, the transform, and both bounds against oracles."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.accounting import GaussianLoss, LaplaceLoss, PureLoss, bracket, compose
from discreet.accounting.losses.certified import delta_bracket
from discreet.accounting.pairs.pairs import AtomsPair, GaussianPair, LaplacePair, SampledPair
from discreet.accounting.pld import distribution as pld
from discreet.accounting.pld.discretise import Atoms, atoms_above, atoms_below
from discreet.accounting.pld.pilot import order_from
from discreet.accounting.pld.smoothed import Smoothed, _multiplied, polynomials
from discreet.accounting.pld.spectrum import Spectrum

ORDERS = [order_from(2**i) for i in range(5, 15)] + [order_from(2**i + 1) for i in range(5, 14)]


def hockey_stick(losses, masses, at):
    return math.fsum(masses * np.maximum(0.0, -np.expm1(np.minimum(at - losses, 0.0))))


@pytest.mark.lengthy
@pytest.mark.parametrize("tilt", [0.2, 3.0, 40.0, 900.0])
@pytest.mark.parametrize("periods", [2.0, 30.0, 300.0])
@pytest.mark.parametrize("order", [32, 96, 256])
def test_the_polynomials_lie_on_either_side(tilt, periods, order):
    period = periods / tilt
    at = np.arange(2 * order - 1)
    curve, spike, slack = polynomials(at, tilt=tilt, period=period, order=order)
    near = period / order * np.linspace(0, 12, 300)
    x = np.concatenate([np.linspace(0, period, 701), near, period - near])
    turns = np.exp(2j * np.pi / period * np.outer(x, at)) * np.where(at == 0, 1, 2)
    middle, width = (turns @ curve).real, (turns @ spike).real
    truth = np.exp(-tilt * x) / -math.expm1(-tilt * period)
    truth -= np.exp(-(tilt + 1) * x) / -math.expm1(-(tilt + 1) * period)
    rounding = 1e-14 * np.abs(turns @ np.abs(curve)).max()
    assert (middle + slack - truth > -rounding).all()
    assert (truth - (middle - width - slack) > -rounding).all()
    # And not far from it: the kink at 0 is what costs.
    assert (middle + slack - truth).max() < period / order + 2 * slack


@pytest.mark.parametrize("order", ORDERS)
def test_the_spike_covers_what_smoothing_adds_to_a_kink(order):
    # The kernel's mean of (|y| - u)+ / 2 against 4 / (order (2 order - 1)^2 (u + eta)^2), which the
    # spike exceeds everywhere (docs/proofs). Either falls with u, so cells between points prove it.
    far = np.geomspace(60, order * np.pi, 3000)[1:]
    edges = np.concatenate([np.linspace(0, 60, 24_001), far]) / order
    edges = edges[edges <= np.pi]
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    kernel = (np.sin(order * middle / 2) / np.sin(middle / 2)) ** 4
    kernel *= 3 / (math.pi * (2 * order**3 + order)) * width
    assert math.isclose(kernel.sum(), 1, rel_tol=1e-4)
    beyond = np.append(np.cumsum(kernel[::-1])[::-1], 0.0) * (1 + 1e-3)
    further = np.append(np.cumsum((beyond[:-1] * width)[::-1])[::-1], 0.0) / 2
    size = 2 * order - 1
    spike = 4 / (order * size**2 * (edges[1:] + math.pi / (2 * size)) ** 2)
    assert (further[:-1] < spike).all()


def test_every_order_in_use_was_checked():
    assert {order_from(x) for x in np.geomspace(1, 2**14, 5000)} <= set(ORDERS)


def test_the_spike_is_where_it_is_said_to_be():
    for order in (32, 48, 128):
        at = np.arange(2 * order - 1)
        spike = polynomials(at, tilt=1.0, period=2 * math.pi, order=order)[1]
        x = np.linspace(-np.pi, np.pi, 4001)
        found = (np.exp(1j * np.outer(x, at)) @ (spike * np.where(at == 0, 1, 2))).real
        size = 2 * order - 1
        least = 4 / (order * size**2 * (np.abs(x) + math.pi / (2 * size)) ** 2)
        assert (found > least * (1 - 1e-9)).all()


@pytest.mark.parametrize("order", [64, 1024])
@pytest.mark.parametrize("tilt", [0.7, 4.0])
def test_sums_of_a_few_atoms_lie_between(order, tilt):
    rng = np.random.default_rng(3)
    parts, losses, masses = [], np.zeros(1), np.ones(1)
    for n in (1, 2, 3):
        loss, mass = rng.normal(0.1, 0.4, 4), rng.dirichlet(np.ones(4))
        parts.append((Atoms(loss, mass), n))
        for _ in range(n):
            losses = (losses[:, None] + loss).ravel()
            masses = (masses[:, None] * mass).ravel()
    seen = Smoothed(parts, tilt=tilt, period=60 / tilt, order=order)
    for at in (-0.5, 0.0, 0.4, 1.1, 2.0):
        truth = hockey_stick(losses, masses, at)
        assert seen.below(at) <= truth <= seen.above(at)
    if order > 64:
        truth = hockey_stick(losses, masses, seen.centre)
        assert seen.above(seen.centre) - seen.below(seen.centre) < 5e-3 * truth


def test_normal_losses_need_no_atoms():
    m = 3.0
    pairs = [(GaussianPair(m), 5), (GaussianPair(2 * m), 7)]
    both = GaussianLoss(noise_multiplier=1 / math.sqrt(5 / m**2 + 7 / (2 * m) ** 2))
    above = [(atoms_above(p, step=1, bulk=(0, 1), cap=9, reach=9)[0], n) for p, n in pairs]
    below = [(atoms_below(p, step=1, bulk=(0, 1), cap=9, reach=9), n) for p, n in pairs]
    assert all(atoms.loss.size == 1 for atoms, _ in above + below)
    upper = Smoothed(above, tilt=3.0, period=20.0, order=2048)
    lower = Smoothed(below, tilt=3.0, period=20.0, order=2048)
    for at in (0.0, 1.0, 3.0):
        truth = both.delta_upper(epsilon=Fraction(at))
        assert lower.below(at) <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= upper.above(at)
        assert upper.above(at) - lower.below(at) < 1e-3 * truth + 1e-12


def characteristic(pair, z):
    """E exp(z L) of a pair, by mpmath."""
    if isinstance(pair, SampledPair) and isinstance(pair.inner, GaussianPair) and pair.removes:
        r, s = mpmath.mpf(pair.rate), mpmath.mpf(pair.inner.s)
        return mpmath.quad(
            lambda x: mpmath.npdf(x, 0, s) * (1 - r + r * mpmath.exp((x - 0.5) / s**2)) ** (z + 1),
            mpmath.linspace(-12 * s, 1 + 12 * s, 25),
        )
    top = 1 / mpmath.mpf(pair.b)
    inside = mpmath.quad(lambda x: mpmath.exp((x - top) / 2 + z * x) / 4, [-top, 0, top])
    return inside + mpmath.exp(z * top) / 2 + mpmath.exp(-(z + 1) * top) / 2


def inverted(parts, at):
    """Delta by the integral along a line of exp(K(z) - z at) / (z (z + 1)), by mpmath."""

    def power(z):
        return mpmath.fprod(characteristic(pair, z) ** n for pair, n in parts)

    def log_power(s):
        return mpmath.log(power(s).real)

    tilts = [mpmath.mpf(k) for k in range(1, 40, 2)]
    tilt = min(tilts, key=lambda s: log_power(s) - s * at - mpmath.log(s))
    spread = mpmath.sqrt(mpmath.diff(log_power, tilt, 2))
    step = 2 * mpmath.pi / (30 * spread)  # the trapezoid rule wraps round after 30 deviations
    total = mpmath.mpf(0)
    for k in range(40):
        z = tilt + 1j * k * step
        total += (1 if k else 0.5) * (power(z) * mpmath.exp(-z * at) / (z * (z + 1))).real
    return float(total * step / mpmath.pi)


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        [(SampledPair(GaussianPair(4.0), 0.01, removes=True), 10_000)],
        [(SampledPair(GaussianPair(1.5), 0.05, removes=True), 300), (LaplacePair(30.0), 500)],
    ],
)  # fmt: skip
def test_an_inversion_to_twenty_digits_lies_between(parts):
    with mpmath.workdps(20):
        for at in (0.5, 1.0):
            truth = inverted(parts, at)
            upper = pld.delta_upper(parts, epsilon=at, tolerance=1e-5)
            lower = pld.delta_lower(parts, epsilon=at, tolerance=1e-5)
            assert lower <= truth <= upper
            assert upper - lower < 2e-3 * truth


@pytest.mark.lengthy
def test_a_fine_lattice_lies_between():
    # An oracle with nothing in common: a plain convolution of losses that lie on a lattice, which
    # the pairs do not say.
    rng = np.random.default_rng(5)
    step, parts, law = 2e-4, [], np.ones(1)
    for n in (9, 16, 40):
        place = np.sort(rng.choice(np.arange(-60, 61), 6, replace=False))
        mass = rng.dirichlet(np.ones(6))
        parts.append((AtomsPair(step * place, mass), n))
        single = np.bincount(place + 60, mass, 121)
        for _ in range(n):
            law = np.convolve(law, single)
    losses = step * (np.arange(law.size) - 60 * 65)
    for target in (1e-2, 1e-4):
        upper = pld.epsilon_upper(parts, delta=target, tolerance=1e-5)
        lower = pld.epsilon_lower(parts, delta=target, near=upper, tolerance=1e-5)
        assert hockey_stick(losses, law, upper) <= target <= hockey_stick(losses, law, lower)
        assert upper - lower < 1e-3 * upper


@pytest.mark.lengthy
def test_many_mixed_releases_are_bracketed_closely():
    rng = np.random.default_rng(1)
    parts = []
    for i in range(120):
        x = rng.uniform(0.5, 2)
        kinds = [
            LaplaceLoss(noise_multiplier=40 * x), GaussianLoss(noise_multiplier=40 * x),
            GaussianLoss(noise_multiplier=4 * x).sampled(rate=0.1), PureLoss(epsilon=x / 50),
        ]  # fmt: skip
        parts.append((kinds[i % 4], 1))
    found = bracket(compose(parts), delta=1e-5)
    assert 0 < found.upper - found.lower < 1e-3


def test_a_frequency_of_which_little_is_known_counts_with_all_it_may_be():
    at = np.arange(3)
    rough = Spectrum.of(at).times(np.array([1.0, 1e-3, 0.5]), np.array([0.0, 1e-3, 0.01]), 1)
    later = rough.times(np.array([1.0, 0.5, 0.5]), np.array([0.0, 0.05, 0.01]), 10)
    for spectrum in (rough, later):
        assert math.isinf(spectrum.relative[1])
        assert spectrum.values[1] == 0
    assert rough.swing[1] >= 2e-3
    assert later.swing[1] >= 2e-3 * 0.55**10
    # An error in the logarithm of one or more is an error of all that the product may be.
    assert later.swing[2] >= 0.51**11 - 0.5**11
    worse = rough.times(np.array([1.0, 0.5, 0.5]), np.array([0.0, 0.05, 0.1]), 10)
    assert worse.values[2] == 0
    assert worse.swing[2] >= 0.5 * 0.6**10


def gaussian(m, rate):
    return GaussianLoss(noise_multiplier=m).sampled(rate=rate)


SHAPES = {
    "a tiny epsilon": LaplaceLoss(noise_multiplier=4.3).sampled(rate=1e-4) * 800,
    "two kinds": compose([(gaussian(1.5, 0.05), 300), (LaplaceLoss(noise_multiplier=30), 500)]),
    "rare losses beyond a window": gaussian(1.34, 8e-4) * 1500,
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", SHAPES)
def test_delta_is_as_close_as_epsilon(name):
    # At the epsilon that was found for a delta, that delta must be found, but for parts in 1e4.
    loss = SHAPES[name]
    at = bracket(loss, delta=1e-6)
    found = delta_bracket(loss, epsilon=Fraction(at.upper))
    assert found.lower <= 1e-6 * (1 + 1e-12)
    assert 1e-6 * (1 - 1e-3) < found.upper < 1e-6 * (1 + 2e-4)
    if at.lower > at.upper * (1 - 1e-3):
        assert found.lower > (1 - 2e-3) * found.upper


def test_near_the_largest_loss_delta_is_all_but_nothing():
    # Normal losses are looked at up to some deviations, but a tilt moves them further than that.
    parts = [(GaussianPair(20.0), 1), *((LaplacePair(30.0 + i), 1) for i in range(25))]
    reach, _ = pld.reach_of(parts, delta=1e-30)
    for share in (0.8, 0.9, 0.99):
        at = share * pld.highest(parts, reach)
        assert pld.delta_upper(parts, epsilon=at, tolerance=1e-5) < 1e-20


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (7, 100, 9), (64, 339, 64), (64, 15, 64), (300, 40, 5)]
)
def test_a_product_by_parts_is_the_product(shape):
    rng = np.random.default_rng(1)
    rows, inner, columns = shape
    one = rng.normal(size=(rows, inner)) + 1j * rng.normal(size=(rows, inner))
    other = rng.normal(size=(inner, columns)) + 1j * rng.normal(size=(inner, columns))
    assert np.allclose(_multiplied(one, other), one @ other, rtol=0, atol=1e-12 * inner)
