"""Several units in Poisson samples, against integrals, another accountant, and any directions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as peer
from mpmath import mp, mpf

from discreet.accounting import (
    Filter,
    GaussianLoss,
    PureLoss,
    SampledGroupLoss,
    bracket,
    calibrate,
    delta,
    epsilon,
)
from discreet.accounting.losses.certified import directions
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

SETTINGS = [(1, 0.5, 2, 1), (4, 0.01, 3, 0.05), (0.5, 0.1, 3, 2), (2, 0.9, 4, 0), (20, 0.01, 2, 0)]


def group(m, rate, size):
    return SampledGroupLoss(noise_multiplier=m, rate=rate, size=size)


def integral(m, rate, up, down, at):
    """The hockey-stick divergence by quadrature, with twenty digits."""
    with mp.workdps(20):
        m, r = mpf(m), mpf(rate)

        def law(count, sign):
            chances = [
                mp.binomial(count, i) * r**i * (1 - r) ** (count - i) for i in range(count + 1)
            ]
            return lambda x: mp.fsum(c * mp.npdf(x, sign * i, m) for i, c in enumerate(chances))

        p, q, factor = law(up, 1), law(down, -1), mp.exp(at)
        low, high = -down - 40 * m, up + 40 * m
        for _ in range(70):  # the ratio grows
            middle = (low + high) / 2
            low, high = (middle, high) if p(middle) < factor * q(middle) else (low, middle)
        marks = [low + 2 * m * k for k in range(11)]
        return float(mp.quad(lambda x: p(x) - factor * q(x), marks))


@pytest.mark.lengthy
@pytest.mark.parametrize(("m", "rate", "size", "at"), SETTINGS)
def test_one_step_is_the_worst_split_by_quadrature(m, rate, size, at):
    truth = max(integral(m, rate, up, size - up, at) for up in range(size + 1))
    assert truth * (1 - 1e-12) <= group(m, rate, size).delta_upper(epsilon=at) <= truth * (1 + 1e-7)


@pytest.mark.lengthy
def test_one_unit_is_plain_sampling():
    for m, rate, steps in ((1, 0.01, 500), (0.6, 0.3, 20)):
        one, plain = group(m, rate, 1), GaussianLoss(noise_multiplier=m).sampled(rate=rate)
        got, known = (bracket(loss * steps, delta=1e-6) for loss in (one, plain))
        assert got.lower <= known.upper
        assert known.lower <= got.upper
        assert got.upper == pytest.approx(known.upper, rel=5e-5)
    promise = Guarantee(epsilon=3, delta=1e-5)
    both = [
        Filter(promise).charge(loss * 3)
        for loss in (group(4, 0.1, 1), GaussianLoss(noise_multiplier=4).sampled(rate=0.1))
    ]
    assert both[0] == both[1]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "rate", "size", "steps"), [(1, 0.05, 2, 50), (3, 0.2, 4, 20)])
def test_many_steps_are_what_another_accountant_says(m, rate, size, steps):
    """It has groups that are all added or all removed, which are the worst here."""
    chances = [
        math.comb(size, i) * rate**i * (1 - rate) ** (size - i) for i in range(size + 1)
    ]  # fmt: skip
    theirs = peer.from_mixture_gaussian_mechanism(
        m, list(range(size + 1)), chances, value_discretization_interval=1e-4
    ).self_compose(steps)
    known = theirs.get_epsilon_for_delta(1e-6)
    found = bracket(group(m, rate, size) * steps, delta=1e-6)
    assert found.lower <= known
    assert known == pytest.approx(found.upper, rel=2e-3)


def planar(centres, chances, m, points):
    """The density of a mixture of Gaussians in the plane."""
    found = np.zeros(points.shape[:-1])
    for centre, chance in zip(centres, chances, strict=True):
        found += chance * np.exp(-((points - centre) ** 2).sum(-1) / (2 * m * m))
    return found / (2 * math.pi * m * m)


def drawn(vectors, rate):
    """What the units in a sample add up to, for every sample."""
    bits = np.array(list(np.ndindex(*[2] * len(vectors))), float).reshape(2 ** len(vectors), -1)
    chances = np.prod(np.where(bits > 0, rate, 1 - rate), axis=1)
    return bits @ vectors.reshape(-1, 2), chances


@pytest.mark.lengthy
def test_no_directions_are_worse_than_all_in_one():
    """Units that pull any way in the plane, added or removed, integrated on a grid."""
    dice = np.random.default_rng(11)
    closest = math.inf
    for _ in range(12):
        m, rate, size = dice.uniform(0.4, 2), dice.uniform(0.02, 0.98), int(dice.integers(2, 5))
        up = int(dice.integers(0, size + 1))
        angle = dice.uniform(0, 2 * math.pi, size) * dice.choice([0.1, 1])
        length = dice.choice([1, dice.uniform(0.5, 1)], size)
        vectors = length[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        vectors[up:] *= -1
        side = np.linspace(-size - 7 * m, size + 7 * m, 500)
        points = np.stack(np.meshgrid(side, side), -1)
        p = planar(*drawn(vectors[:up], rate), m, points)
        q = planar(*drawn(vectors[up:], rate), m, points)
        for at in (0, 0.5, 1.5):
            found = np.maximum(p - math.exp(at) * q, 0).sum() * (side[1] - side[0]) ** 2
            bound = group(m, rate, size).delta_upper(epsilon=at)
            assert found <= bound + 1e-6
            closest = min(closest, bound / found if found > 1e-6 else math.inf)
    assert closest < 1.2  # the bound is met where they nearly pull one way


def test_every_split_is_composed_with_itself_and_with_either_direction_of_others():
    loss = group(2, 0.1, 3)
    ways = directions(((loss, 5),))
    assert [(way[0][0].up, way[0][0].down) for way in ways] == [(3, 0), (0, 3), (1, 2), (2, 1)]
    other = PureLoss(epsilon=1).sampled(rate=0.5)
    both = directions(((loss, 5), (other, 1), (group(3, 0.2, 3), 1)))
    assert len(both) == 2 + 2 * 2
    for way in both:
        assert (way[0][0].up, way[0][0].down) == (way[2][0].up, way[2][0].down)
    mixed = [(way[0][0].up, way[1][0].removes) for way in both[2:]]
    assert sorted(mixed) == [(1, False), (1, True), (2, False), (2, True)]


def test_more_units_larger_rates_and_less_noise_cost_more():
    at = {"epsilon": Fraction(1, 2)}
    deltas = [group(2, 0.1, size).delta_upper(**at) for size in (1, 2, 3, 5)]
    deltas += [group(2, 0.2, 5).delta_upper(**at), group(1, 0.2, 5).delta_upper(**at)]
    deltas.append(GaussianLoss(noise_multiplier=1).group(5).delta_upper(**at))
    assert deltas == sorted(deltas)
    assert len(set(deltas)) == len(deltas)
    assert group(2, 0.1, 2).group(3) == group(2, 0.1, 6)


@pytest.mark.lengthy
def test_noise_is_found_for_a_group():
    noise = calibrate(lambda m: group(m, 0.05, 2) * 50, epsilon=2, delta=1e-6)
    assert epsilon(group(noise, 0.05, 2) * 50, delta=1e-6) <= 2
    assert delta(group(noise, 0.05, 2) * 50, epsilon=2) <= 1e-6
    assert epsilon(group(noise * 0.999, 0.05, 2) * 50, delta=1e-6) > 2


def test_what_no_proof_covers_is_refused():
    with pytest.raises(ParameterError, match="sampled group"):
        group(2, 0.1, 2).sampled(rate=0.1)
    with pytest.raises(ParameterError, match="at most 100"):
        group(2, 0.1, 101)
    with pytest.raises(ParameterError, match="rate"):
        group(2, 0, 2)
