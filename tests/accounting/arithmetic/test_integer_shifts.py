"""Every integer shift of small noise, against enumeration with forty digits; and nothing looser."""

from fractions import Fraction

import pytest
from exact_operations import delta_of, discrete_gaussian, exact, integer_shifts

from discreet.accounting import DiscreteGaussianLoss, ZCDPLoss, bracket, epsilon
from discreet.accounting.arithmetic.integer_shifts import (
    _largest_shifts,
    enumerated_shift_delta,
    is_enumerable,
)


@pytest.mark.parametrize("squared", [1, 2, 5, 12, 25])
@pytest.mark.parametrize("dimension", [1, 2, 30])
def test_every_shift_is_within_one_that_is_looked_at(squared, dimension):
    largest = [tuple(shift) for shift in _largest_shifts(squared, dimension)]
    assert len(set(largest)) == len(largest)
    for shift in integer_shifts(squared, dimension):
        padded = [(*shift, *[0] * (len(one) - len(shift))) for one in largest]
        assert any(
            len(mine) == len(one) and all(a <= b for a, b in zip(mine, one, strict=True))
            for mine, one in zip(padded, largest, strict=True)
        )
    assert set(largest) <= set(integer_shifts(squared, dimension))


@pytest.mark.lengthy
@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.6])
@pytest.mark.parametrize(("squared", "dimension"), [(2, None), (4, None), (5, 2), (9, 1)])
def test_the_worst_of_all_shifts_is_exact(sigma, squared, dimension):
    truth = delta_of(discrete_gaussian(sigma, d) for d in integer_shifts(squared, dimension))
    for at in (Fraction(0), Fraction(1, 3), Fraction(4), Fraction(15)):
        found = exact(
            enumerated_shift_delta(
                variance=Fraction(sigma) ** 2, squared=squared, dimension=dimension, epsilon=at
            )
        )
        assert truth(at) <= found <= truth(at) * (1 + exact(1e-10)) + exact(1e-40)


@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.5, 2), (1, 2), (2, 3), (8, 5)])
def test_small_noise_is_no_longer_priced_by_its_concentration(sigma, sensitivity):
    loss = DiscreteGaussianLoss(sigma=sigma, sensitivity=sensitivity)
    found = bracket(loss, delta=1e-6)
    assert found.upper - found.lower < 1e-6
    assert found.upper < 0.97 * epsilon(ZCDPLoss(rho=loss.rho), delta=1e-6)


def test_what_is_too_much_to_enumerate_is_known():
    assert is_enumerable(variance=Fraction(4), squared=25)
    assert not is_enumerable(variance=Fraction(4), squared=26)
    assert not is_enumerable(variance=Fraction(100), squared=4)
