"""Poisson batches that are cut: the bound holds for an exact enumeration, and costs little."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from discreet.accounting import (
    DiscreteLaplaceLoss,
    Filter,
    GaussianLoss,
    TruncatedPoissonLoss,
    delta,
    epsilon,
)
from discreet.accounting.losses.certified import epsilon_upper
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

SCALE, REACH = 2, 400  # noise on a sum, and how far it is followed
VALUES = np.arange(-REACH, REACH + 1)


def noisy(centre: int) -> np.ndarray:
    ratio = math.exp(-1 / SCALE)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(VALUES - centre)


def exact(others: int, rate: float, batch: int, *, with_unit: bool) -> np.ndarray:
    """Return the law of a noisy sum where others count as -1 and the unit as +1."""
    law = np.zeros(VALUES.size)
    for coins in product((0, 1), repeat=others + with_unit):
        chance = math.prod(rate if one else 1 - rate for one in coins)
        drawn, unit = sum(coins[:others]), with_unit and coins[-1]
        if drawn + unit <= batch:
            law += chance * noisy(unit - drawn)
        elif not unit:
            law += chance * noisy(-batch)
        else:
            kept = batch / (drawn + 1)
            law += chance * (kept * noisy(1 - (batch - 1)) + (1 - kept) * noisy(-batch))
    return law


def hockey_stick(p: np.ndarray, q: np.ndarray, at: float) -> float:
    return float(np.maximum(p - math.exp(at) * q, 0).sum())


CASES = [(4, 0.5, 2), (4, 0.3, 1), (6, 0.2, 2), (5, 0.7, 3)]


@pytest.mark.parametrize(("others", "rate", "batch"), CASES)
def test_no_dataset_loses_more_than_is_claimed(others, rate, batch):
    inner = DiscreteLaplaceLoss(noise_multiplier=SCALE, sensitivity=1)
    loss = TruncatedPoissonLoss(
        inner=inner, rate=rate, batch=batch, population=others + 1, uniform=True
    )
    p = exact(others, rate, batch, with_unit=True)
    q = exact(others, rate, batch, with_unit=False)
    is_above_plain = False
    for at in np.linspace(0, 1.5, 40):
        worst = max(hockey_stick(p, q, at), hockey_stick(q, p, at))
        assert worst <= loss.delta_upper(epsilon=float(at)) + 1e-12
        is_above_plain |= worst > loss.plain.delta_upper(epsilon=float(at)) + 1e-6
    assert is_above_plain, "accounting as for plain Poisson batches would be wrong, and show here"
    twice_p, twice_q = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
    for at in (0.2, 0.8, 1.4):
        worst = max(hockey_stick(twice_p, twice_q, at), hockey_stick(twice_q, twice_p, at))
        assert worst <= delta(loss * 2, epsilon=at) + 1e-12
    assert float(loss.epsilon_pure) < math.inf, "what is pure for two units stays pure"


@pytest.mark.parametrize(("others", "rate", "batch"), CASES)
def test_divergences_hold_but_for_a_unit_drawn_into_a_full_batch(others, rate, batch):
    """P >= (1 - d) P' and Q >= (1 - d) Q', which have the divergences of plain sampling."""
    inner = DiscreteLaplaceLoss(noise_multiplier=SCALE, sensitivity=1)
    loss = TruncatedPoissonLoss(
        inner=inner, rate=rate, batch=batch, population=others + 1, uniform=True
    )
    full = binom.sf(batch - 1, others, rate)
    assert float(loss.failure) == pytest.approx(rate * full, rel=1e-6)
    p, q = np.zeros(VALUES.size), np.zeros(VALUES.size)
    for drawn in range(others + 1):
        chance = binom.pmf(drawn, others, rate)
        if drawn < batch:
            p += chance * ((1 - rate) * noisy(-drawn) + rate * noisy(1 - drawn))
            q += chance * noisy(-drawn)
        else:
            p += chance * (1 - rate) * noisy(-batch)
            q += chance * (1 - rate) * noisy(-batch)
    assert (p <= exact(others, rate, batch, with_unit=True) + 1e-15).all()
    assert (q <= exact(others, rate, batch, with_unit=False) + 1e-15).all()
    p, q = p / p.sum(), q / q.sum()
    for order in (2, 4):
        for one, other in ((p, q), (q, p)):
            found = math.log((one**order / other ** (order - 1)).sum()) / (order - 1)
            assert found <= float(loss.renyi_upper(order=Fraction(order))) + 1e-12


def cut(deviations: float, **more) -> TruncatedPoissonLoss:
    units, rate = 60_000, 0.01
    room = int(units * rate + deviations * math.sqrt(units * rate * (1 - rate)))
    inner = GaussianLoss(noise_multiplier=4)
    return TruncatedPoissonLoss(inner=inner, rate=rate, batch=room, population=units, **more)


def test_a_cut_far_out_costs_a_budget_what_plain_sampling_does():
    budget = Filter(Guarantee(epsilon=3, delta=1e-6))
    plain = budget.ask(cut(8).plain * 1000).used_after
    assert plain < 0.02
    assert budget.ask(cut(8, uniform=True) * 1000).used_after == pytest.approx(plain, rel=1e-3)


@pytest.mark.lengthy
def test_a_cut_near_the_mean_has_a_price():
    budget = Filter(Guarantee(epsilon=3, delta=1e-6))
    plain = epsilon(cut(8).plain * 1000, delta=1e-6)
    for deviations, dearer in ((6, 1.001), (4, 1.001), (2, 1.1)):
        run = cut(deviations, uniform=True) * 1000
        assert epsilon(run, delta=1e-6) <= plain * dearer
        assert budget.ask(run).used_after < 0.16


def test_where_nothing_is_said_of_the_cut_any_is_covered():
    """As ledgers have it on record: one guarantee for a run, of the same failures or more."""
    loss = cut(4)
    assert loss.failure == 0
    assert loss.renyi_upper(order=Fraction(9)) == math.inf
    assert loss.delta_upper(epsilon=100) >= loss.overflow * 0.01 * (1 - 1e-9)
    assert epsilon_upper(loss, delta=Fraction(loss.overflow * 0.009)) == math.inf
    with pytest.raises(ParameterError, match="uniform"):
        cut(4, uniform=1)
