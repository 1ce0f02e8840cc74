"""Vectors: a loss that leans on no float, directions that are public, and PrivUnit's error."""

import math

import numpy as np
import pytest
from report_laws import FALSE_ALARM, is_within, misfit
from scipy.special import betaincinv, gammaln

from discreet.errors import DataError, ParameterError
from discreet.local import UnitVectors
from discreet.local.laws.directions import directions, of_nearest, philox
from discreet.noise import SYSTEM


def privunit_variance(*, dimension, epsilon):
    """Return 1 / gain**2 of PrivUnit with its best cap [AFT22], by its closed form."""
    a, cap = (dimension - 1) / 2, np.geomspace(1e-6, 0.5, 4000)
    height = 1 - 2 * betaincinv(a, a, cap)
    constant = math.exp(gammaln(a + 0.5) - gammaln(a)) / math.sqrt(math.pi)
    above = constant * (1 - height**2) ** a / (2 * a)  # E[x; x >= height]
    return 1 / (above * np.expm1(epsilon) / (1 + cap * np.expm1(epsilon))).max() ** 2


def test_philox_has_its_published_answers():
    # [SMDS11], in the authors' file of known answers.
    zeros = philox(np.zeros((4, 1), dtype=np.uint32), key=np.uint32([0]))[:, 0]
    assert [hex(int(w)) for w in zeros] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_directions_look_uniform():
    vectors = directions(np.arange(40_000), np.array([3]), dimension=5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.abs(vectors.mean(axis=0)).max() < 6.2 / math.sqrt(5 * 40_000)
    second = vectors.T @ vectors / 40_000
    assert np.abs(second - np.eye(5) / 5).max() < 0.006
    again = directions(np.array([7]), np.array([3]), dimension=5)
    assert (again[0] == vectors[7]).all()


@pytest.mark.parametrize("epsilon", [0.5, 1, 4, 8])
def test_the_loss_is_that_of_the_law_and_the_error_nearly_that_of_privunit(epsilon):
    for dimension, candidates in [(2, 256), (100, 1024)]:
        randomiser = UnitVectors(dimension=dimension, epsilon=epsilon, candidates=candidates)
        assert is_within(randomiser.law.ratio, epsilon)
        assert is_within(randomiser.law.ratio, randomiser.loss.epsilon)
        best = privunit_variance(dimension=dimension + 1, epsilon=epsilon)
        assert 0.999 < 1 / randomiser.gain**2 / best < 1.05
    assert UnitVectors(dimension=100, epsilon=1).bytes_per_report == 5


def test_given_the_seed_the_index_follows_the_law():
    randomiser = UnitVectors(dimension=3, epsilon=2, candidates=12)
    lifted = randomiser._lifted(np.tile([0.6, 0.0, 0.0], (60_000, 1)))
    seeds = np.full(60_000, 99)
    index = randomiser._index(lifted, seeds, SYSTEM)
    near = directions(np.full(12, 99), np.arange(12), dimension=4) @ lifted[0]
    own = near >= np.sort(near)[-randomiser.nearest]
    law = randomiser.law
    inside, outside = law.keep_chance / law.preferred, (1 - law.keep_chance) / (12 - law.preferred)
    assert misfit(index, [inside if one else outside for one in own]) > FALSE_ALARM
    moved = np.roll(own, 1)
    assert misfit(index, [inside if one else outside for one in moved]) < FALSE_ALARM


def test_projections_of_the_nearest_are_as_computed():
    rng = np.random.default_rng(2)
    for dimension, count, nearest in [(2, 10, 3), (5, 64, 1), (40, 100, 20)]:
        normal = rng.normal(size=(1000, count, dimension))
        projection = np.sort(normal[..., 0] / np.linalg.norm(normal, axis=2))[:, -nearest:]
        for power in (1, 2):
            sums = (projection**power).sum(axis=1)
            found = of_nearest(dimension=dimension, count=count, nearest=nearest, power=power)
            assert abs(sums.mean() - found) < 6.2 * sums.std() / math.sqrt(1000)


def test_any_vector_gives_a_report_of_what_it_is_taken_for():
    randomiser = UnitVectors(dimension=2, epsilon=1, candidates=8)
    rows = [[3.0, 4.0], [np.nan, 1.0], [np.inf, 0.0], [1e300, 1e300], [0.3, 0.4], [0, 0]]
    lifted = randomiser._lifted(np.array(rows))
    half = math.sqrt(0.5)
    wanted = [[0.6, 0.8], [0, 0], [0, 0], [half, half], [0.3, 0.4], [0, 0]]
    assert np.allclose(lifted[:, :2], wanted)
    assert np.allclose(np.linalg.norm(lifted, axis=1), 1)
    reports = randomiser.release(rows)
    assert reports.max() < randomiser.outputs
    assert reports.size == 6
    assert randomiser.release(np.empty((0, 2))).size == 0


def test_what_cannot_be_is_refused(no_randomness):
    randomiser = UnitVectors(dimension=2, epsilon=1, candidates=8)
    for vectors in ([1.0, 2.0], [[1.0]], [["a", "b"]], [[1j, 0]]):
        with pytest.raises(DataError, match="2 columns"):
            randomiser.release(vectors, source=no_randomness)
    for reports in ([randomiser.outputs], [-1], []):
        with pytest.raises(DataError, match="reports"):
            randomiser.estimate(reports)
    for bad in ({"dimension": 0}, {"epsilon": 0}, {"candidates": 1}, {"candidates": 1 << 13}):
        with pytest.raises(ParameterError):
            UnitVectors(**{"dimension": 2, "epsilon": 1, "candidates": 8} | bad)


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 1), (10, 1), (20, 4), (50, 6)])
def test_errors_are_those_of_theory(dimension, epsilon):
    randomiser = UnitVectors(dimension=dimension, epsilon=epsilon, candidates=128)
    for length in (0.0, 0.7, 1.0):
        vector = np.full(dimension, length / math.sqrt(dimension))
        n = 20_000
        reports = randomiser.release(np.tile(vector, (n, 1)))
        readings = randomiser.read(reports)
        squares = np.square(readings - vector).sum(axis=1)
        theory = randomiser.variance(length)
        assert abs(squares.mean() / theory - 1) < max(0.02, 6 * squares.std() / theory / n**0.5)
        estimate = randomiser.estimate(reports)
        assert np.abs((estimate.mean - vector) / estimate.standard_error).max() < 6.5
        off = np.linalg.norm(estimate.mean - vector)
        assert off < estimate.ball(confidence=1 - FALSE_ALARM)
        # No better than PrivUnit, and with so few candidates at most a third worse.
        best = privunit_variance(dimension=dimension + 1, epsilon=epsilon)
        assert theory < 1.34 * best
