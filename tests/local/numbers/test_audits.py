"""Every randomiser of numbers is audited, and a broken one is flagged; errors are as in theory."""

import math

import numpy as np
import pytest

from discreet import audit
from discreet.local import (
    BitPushing,
    Duchi,
    Hybrid,
    JointTable,
    KeyValue,
    Moments,
    Piecewise,
    Ranges,
    SquareWave,
    UnitVectors,
)

LINE = {"low": -1, "high": 1}


def numbers(kind, **rest):
    def build(epsilon):
        randomiser = kind(**LINE, epsilon=epsilon, **rest)
        return lambda value, n: randomiser.release(np.full(n, value))

    return build


def ranges(epsilon):
    randomiser = Ranges(domain=16, epsilon=epsilon)
    return lambda value, n: randomiser.release(np.full(n, 0 if value < 0 else 15))


def pairs(epsilon):
    randomiser = JointTable(rows=2, columns=3, epsilon=epsilon)
    return lambda value, n: randomiser.release(np.full(n, value > 0), np.full(n, value > 0))


def key_values(epsilon):
    randomiser = KeyValue(keys=3, **LINE, epsilon=epsilon, pairs=1)
    return lambda value, n: randomiser.release([{0: -1.0} if value < 0 else {2: 1.0}] * n)


def vectors(epsilon):
    randomiser = UnitVectors(dimension=2, epsilon=epsilon, candidates=16)

    def release(value, n):
        reports = randomiser.release(np.tile([value, 0.0], (n, 1)))
        return np.round(randomiser.read(reports)[:, 0] * randomiser.gain, 2)

    return release


CASES = {
    "Duchi": numbers(Duchi),
    "Piecewise": numbers(Piecewise, cells=32),
    "Hybrid": numbers(Hybrid, cells=32),
    "Moments": numbers(Moments),
    "BitPushing": numbers(BitPushing, bits=3),
    "SquareWave": numbers(SquareWave, bins=16),
    "Ranges": ranges,
    "JointTable": pairs,
    "KeyValue": key_values,
    "UnitVectors": vectors,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_randomiser_passes_and_with_coins_for_twice_the_epsilon_it_is_flagged(name):
    claim = {"pair": (-1.0, 1.0), "epsilon": 1, "delta": 0, "batch": True, "confidence": 1 - 1e-9}
    sound = audit.mechanism(CASES[name](1), **claim)
    assert sound.passed
    # Directions in the plane tell vectors apart less often than their law would.
    broken = audit.mechanism(CASES[name](2 if name != "UnitVectors" else 4), **claim)
    assert not broken.passed


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_squared_errors_over_theory_are_one(kind, epsilon):
    randomiser = kind(**LINE, epsilon=epsilon)
    for value in (-1.0, -0.3, 0.0, 0.8):
        readings = randomiser.read(randomiser.release(np.full(300_000, value)))
        squares = np.square(readings - value)
        over = squares.mean() / float(randomiser.variance(value))
        assert abs(over - 1) < 0.02  # of 300,000 degrees of freedom
        error = math.sqrt(float(randomiser.variance(value)) / 300_000)
        assert abs(readings.mean() - value) < 6.2 * error


@pytest.mark.slow
def test_intervals_of_means_cover_at_their_rate():
    randomiser = Hybrid(**LINE, epsilon=1)
    values = np.linspace(-1, 1, 500)
    estimates = [randomiser.estimate(randomiser.release(values)) for _ in range(2000)]
    ends = np.array([estimate.interval(confidence=0.9) for estimate in estimates])
    covered = ((ends[:, 0] <= values.mean()) & (ends[:, 1] >= values.mean())).mean()
    assert covered > 0.9
    deviations = [estimate.mean / estimate.standard_error for estimate in estimates]
    assert 0.85 < np.square(deviations).mean() < 1.1


@pytest.mark.slow
def test_moments_and_pushed_bits_err_as_stated():
    values = np.linspace(-0.5, 1, 20_000)
    found = {"mean": [], "variance": [], "bits": []}
    for _ in range(400):
        randomiser = Moments(**LINE, epsilon=2)
        estimate = randomiser.estimate(randomiser.release(values))
        found["mean"].append((estimate.mean - values.mean()) / estimate.standard_error)
        off = estimate.variance - values.var()
        found["variance"].append(off / estimate.variance_standard_error)
        pushed = BitPushing(**LINE, epsilon=2, bits=8)
        estimate = pushed.estimate(pushed.release(values))
        found["bits"].append((estimate.mean - values.mean()) / estimate.standard_error)
    for name, deviations in found.items():
        assert abs(np.mean(deviations)) < 6.2 / 20, name
        assert 0.5 < np.square(deviations).mean() < 1 + 6.2 * math.sqrt(2 / 400), name
