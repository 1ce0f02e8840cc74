"""The discrete Gaussian's profile against brute force: scalars, large sigmas, vectors."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import DiscreteGaussianLoss, GaussianLoss, ZCDPLoss, delta
from discreet.accounting.arithmetic import lattice_gaussian as room
from discreet.accounting.arithmetic.lattice_gaussian import lattice_gaussian_delta

TIGHT = 1e-9


def scalar_truth(variance, shift, e):
    """Sum (p(k) - exp(e) p(k + shift))+ over all integers that matter, with 50 digits."""
    with mp.workdps(50):
        v, e = (mp.mpf(x.numerator) / x.denominator for x in (Fraction(variance), Fraction(e)))
        reach = int(40 * mp.sqrt(v)) + 60
        # Beyond the bulk the terms that count start where the loss passes e.
        start = int(mp.floor(e * v / shift - mp.mpf(shift) / 2)) + 1
        total = mp.fsum(
            mp.exp(-(mp.mpf(k) ** 2) / (2 * v))
            * -mp.expm1(e - (k * shift + mp.mpf(shift) ** 2 / 2) / v)
            for k in range(max(start, -reach), max(reach, start + 60))
        )
        return total / mp.fsum(
            mp.exp(-(mp.mpf(k) ** 2) / (2 * v)) for k in range(-reach, reach + 1)
        )


@pytest.mark.lengthy
@settings(max_examples=80, deadline=None)
@given(
    sigma=st.fractions(Fraction(1, 10), 12, max_denominator=30),
    shift=st.integers(1, 5),
    e=st.fractions(0, 20, max_denominator=50),
)
def test_small_sigma_is_exact(sigma, shift, e):
    truth = scalar_truth(sigma**2, shift, e)
    bound = lattice_gaussian_delta(variance=sigma**2, shift=shift, epsilon=e)
    assert bound >= min(truth, 1 - mp.mpf(10) ** -20) or bound == 1
    assert bound <= truth * (1 + TIGHT) + 1e-322


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("tail", "shift"),
    [*itertools.product([0, 2, 8, 20, 36], [1, 7, 400, 6000]), (-3, 6000), (-7.5, 6000)],
)
def test_euler_maclaurin_agrees_with_the_sum_and_stays_above_it(tail, shift):
    # At sigma = 400 both roads can be walked; the remainder is then far larger than in use.
    sigma = 400
    e = Fraction(shift * int(tail * sigma) + shift**2 // 2, sigma**2)
    truth = scalar_truth(sigma**2, shift, e)
    given_ = {"variance": Fraction(sigma**2), "shift": shift, "epsilon": e}
    assert truth <= lattice_gaussian_delta(**given_) <= truth * (1 + TIGHT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_SUM_UP_TO", 1)
        assert truth <= lattice_gaussian_delta(**given_) <= truth * (1 + 1e-7)


@pytest.mark.parametrize("sigma", [1e3, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("multiplier", [0.5, 4.0, 40.0])
def test_large_sigma_approaches_the_continuous_profile(sigma, multiplier):
    shift = round(sigma / multiplier)
    for e in (0.01, 0.5, 1.0):
        exactly = delta(GaussianLoss(noise_multiplier=Fraction(sigma) / shift), epsilon=e)
        discrete = delta(
            DiscreteGaussianLoss(sigma=sigma, sensitivity=shift, dimension=1), epsilon=e
        )
        # The lattice moves delta by a relative (1 + a^2) / (12 sigma^2) or so, a the tail argument.
        a = abs(e * sigma / shift) + shift / sigma
        assert discrete == pytest.approx(exactly, rel=(1 + a**2) / sigma**2 + 1e-10)


def test_worst_scalar_shift_is_the_largest():
    for sigma, e in [(1.3, 0.7), (5, 0.2), (0.4, 3)]:
        deltas = [
            lattice_gaussian_delta(variance=Fraction(sigma) ** 2, shift=d, epsilon=Fraction(e))
            for d in range(1, 8)
        ]
        assert deltas == sorted(deltas)
        loss = DiscreteGaussianLoss(sigma=sigma, sensitivity=7.9, dimension=1)
        assert delta(loss, epsilon=e) == deltas[-1]


def test_an_integer_cannot_move_by_less_than_one():
    loss = DiscreteGaussianLoss(sigma=1, sensitivity=0.9)
    assert delta(loss, epsilon=0) == 0
    assert loss.epsilon_pure == 0


# Vectors


def vector_truth(sigma, shift, e):
    """Enumerate the whole noise lattice in as many dimensions as the shift has entries."""
    reach = math.ceil(12 * sigma)
    line = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-(line**2) / (2 * sigma**2))
    weights /= weights.sum()
    mass, loss = np.ones(1), np.zeros(1)
    for d in shift:
        mass = np.multiply.outer(mass, weights).ravel()
        loss = np.add.outer(loss, (2 * line * d + d * d) / (2 * sigma**2)).ravel()
    return float(np.sum(mass * np.maximum(0, -np.expm1(e - loss))))


@pytest.mark.lengthy
@pytest.mark.parametrize("sigma", [2.0, 2.5, 4.0])
@pytest.mark.parametrize("squared", [2, 3])
def test_no_vector_shift_costs_more_than_claimed_and_the_worst_costs_as_much(sigma, squared):
    loss = DiscreteGaussianLoss(sigma=sigma, sensitivity=math.sqrt(squared + 1e-9))
    for e in (0.0, 0.13, 0.5, 1.0, 1.7):
        shifts = [
            d for d in itertools.product(range(3), repeat=3) if 0 < sum(x * x for x in d) <= squared
        ]
        truth = max(vector_truth(sigma, d, e) for d in shifts)
        bound = delta(loss, epsilon=e)
        assert bound >= truth * (1 - 1e-9)
        if bound < delta(ZCDPLoss(rho=loss.rho), epsilon=e):  # the enumeration was usable
            assert bound <= truth * (1 + 1e-9)


def test_shifts_with_a_common_divisor_are_covered():
    # (2, 0) and (1, 1, 1, 1) have the same norm and different profiles; both lie below the bound.
    loss = DiscreteGaussianLoss(sigma=3.5, sensitivity=2)
    for e in (0.05, 0.3, 0.7, 1.1, 1.9):
        bound = delta(loss, epsilon=e)
        truths = [vector_truth(3.5, d, e) for d in ((2,), (1, 1), (1, 1, 1))]
        assert bound >= max(truths) * (1 - 1e-9)
        four = lattice_gaussian_delta(variance=4 * Fraction(3.5) ** 2, shift=4, epsilon=Fraction(e))
        assert bound <= max(truths[0], four) * (1 + 1e-9)


def test_unit_shifts_are_exact_in_any_dimension():
    one = DiscreteGaussianLoss(sigma=3, sensitivity=1, dimension=1)
    for sensitivity in (1, 1.4):
        loss = DiscreteGaussianLoss(sigma=3, sensitivity=sensitivity)
        assert delta(loss, epsilon=0.5) == delta(one, epsilon=0.5)


@given(sigma=st.floats(0.3, 500), sensitivity=st.floats(1, 60), e=st.floats(0, 5))
def test_vectors_never_cost_more_than_zcdp_says(sigma, sensitivity, e):
    loss = DiscreteGaussianLoss(sigma=sigma, sensitivity=sensitivity)
    assert loss.rho <= Fraction(sensitivity) ** 2 / (2 * Fraction(sigma) ** 2)
    assert delta(loss, epsilon=e) <= delta(ZCDPLoss(rho=loss.rho), epsilon=e) * (1 + 1e-9)
