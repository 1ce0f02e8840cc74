"""Every mechanism that adds noise tells its standard deviation."""

import inspect
import math

import numpy as np
import pytest

from discreet import mechanisms
from discreet.mechanisms import (
    ClassifierAccuracy,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Histogram,
    Laplace,
)

DRAWS = 200_000
ADDITIVE = [
    *(Laplace(sensitivity=1, scale=scale) for scale in (0.25, 10)),
    *(Laplace(sensitivity=4, scale=scale, grid=1) for scale in (0.25, 1, 10)),
    *(Gaussian(sensitivity=1, sigma=sigma) for sigma in (0.25, 10)),
    *(Gaussian(sensitivity=8, sigma=sigma, grid=1) for sigma in (0.25, 1, 10)),
    *(DiscreteLaplace(sensitivity=1, scale=scale) for scale in (0.25, 1, 10)),
    *(DiscreteGaussian(sensitivity=1, sigma=sigma) for sigma in (0.3, 1, 2.99, 10)),
    Histogram.calibrated(epsilon=1, delta=0, l0=1, linf=1),
]


@pytest.mark.lengthy
@pytest.mark.parametrize("mechanism", ADDITIVE, ids=str)
def test_the_standard_deviation_is_that_of_the_noise(mechanism):
    if getattr(mechanism, "grid", None) is None:
        noise = np.asarray(mechanism.release(np.zeros(DRAWS, dtype=np.int64)), dtype=float)
    else:  # on a coarse grid an array is another matter
        noise = np.array([mechanism.release(0) for _ in range(DRAWS // 2)])
    # Chebyshev's kind of margin: ten standard errors of a mean of squares, for whose law the
    # fourth moment is estimated; a scale that is a quarter off is outside it.
    squares = noise**2
    margin = 10 * squares.std() / math.sqrt(noise.size)
    assert abs(squares.mean() - mechanism.standard_deviation**2) < margin + 1e-12
    assert margin < 0.45 * squares.mean()


def test_the_forms_meet_where_one_takes_over_from_the_other():
    from discreet.mechanisms.values import deviations

    for law in (deviations.lattice_gaussian_deviation, deviations.rounded_gaussian_deviation):
        assert law(3 - 1e-9) == pytest.approx(law(3.0), rel=1e-8)


def test_clamped_noise_has_the_deviation_of_what_was_added():
    noise = DiscreteLaplace.calibrated(epsilon=0.1, sensitivity=1).standard_deviation
    accuracy = ClassifierAccuracy(epsilon=0.1, examples=1000)
    assert accuracy.standard_deviation == pytest.approx(noise / 1000)


def test_none_that_adds_noise_is_left_out():
    from discreet.mechanisms import additive

    adds = [
        one
        for one in vars(mechanisms).values()
        if inspect.isclass(one) and one.__module__.startswith(additive.__name__)
    ]
    assert len(adds) == 5
    assert all(hasattr(one, "standard_deviation") for one in adds)
