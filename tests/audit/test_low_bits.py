"""The audit of low bits: textbook floating-point noise fails, noise on a grid does not."""

import math

import numpy as np
import pytest

from discreet import audit
from discreet.audit.scores import lowest_set_bit
from discreet.errors import DataError

FALSE_ALARM = 1e-9

rng = np.random.default_rng()


def run(fn, **extra):
    given = {"pair": (0.0, 1.0), "epsilon": 1, "delta": 0, "batch": True}
    return audit.low_bits(fn, confidence=1 - FALSE_ALARM, **{**given, **extra})


def test_a_textbook_float_laplace_fails_by_far():
    found = run(lambda value, n: value + rng.laplace(size=n))
    assert not found.passed
    assert found.epsilon_lower > 3


def test_a_textbook_float_gaussian_fails_by_far():
    found = run(lambda value, n: value + rng.normal(scale=4, size=n), delta=1e-5)
    assert not found.passed
    assert found.epsilon_lower > 3


def test_the_same_noise_on_a_grid_passes():
    step = 2.0**-20
    found = run(lambda value, n: np.rint((value + rng.laplace(size=n)) / step) * step)
    assert found.passed


def test_single_calls_work_too():
    found = run(lambda value: value + rng.laplace(), batch=False, samples=10_000)
    assert not found.passed


@pytest.mark.parametrize(
    ("value", "position"),
    [(1.0, 0), (0.75, -2), (-6.0, 1), (5e-324, -1074), (0.1, -55), (2.0**1000, 1000), (3, 0)],
)
def testlowest_set_bit(value, position):
    assert lowest_set_bit([value])[0] == position
    assert (value / 2.0**position) % 2 == 1  # an odd multiple: the definition


def test_zero_and_non_finite_values_have_places_of_their_own():
    zero, infinite, nan = lowest_set_bit([0.0, math.inf, math.nan])
    assert zero != infinite == nan
    assert zero > 1023


def test_arrays_are_refused():
    with pytest.raises(DataError, match="one number per release"):
        run(lambda value: [value, value], batch=False, samples=1_000)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("pair", "scale", "least"), [((0, 1), 1, 8), ((10, 11), 1, 5), ((100, 101), 10, 2)]
)
def test_textbook_laplace_fails_at_any_magnitude(pair, scale, least):
    # Outputs that only one input can reach: the other side counts none, and the bound is a ceiling.
    settings = {"pair": pair, "epsilon": 1 / scale, "samples": 200_000}
    found = run(lambda value, n: value + rng.laplace(scale=scale, size=n), **settings)
    assert found.epsilon_lower > least


def test_the_sign_of_zero_is_a_bit():
    def signed(value, n):
        return np.where(rng.random(n) < (0.9 if value else 0.1), -0.0, 0.0)

    common = {"pair": (0.0, 1.0), "epsilon": 1, "delta": 0, "samples": 10_000, "batch": True}
    assert not audit.low_bits(signed, **common).passed
    assert audit.mechanism(signed, **common).passed


@pytest.mark.parametrize("seed", range(5))
def test_a_scale_of_two_digits_is_guessed(seed):
    drawn = np.random.default_rng(seed)  # the mean of 2,500 is 2% off or so
    found = audit.low_bits(
        lambda v, n: v + drawn.laplace(scale=0.37, size=n),
        pair=(10.0, 11.0), epsilon=4, delta=0, samples=20_000, batch=True,
    )  # fmt: skip
    assert not found.passed
