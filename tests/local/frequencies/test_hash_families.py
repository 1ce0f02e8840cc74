"""The hash families meet the claims that the estimators' exactness rests on."""

from fractions import Fraction

import numpy as np
import pytest
from local_laws import times

from discreet import local
from discreet.local.frequencies.public_hashing import POLYNOMIALS


@pytest.mark.parametrize(
    ("cells", "hash_bits", "bits"), [(3, 4, 3), (4, 2, 4), (5, 3, 2), (2, 1, 5)]
)
def test_two_values_are_hashed_independently_and_evenly(cells, hash_bits, bits):
    family = local.HashFamily(cells=cells, hash_bits=hash_bits, word_bits=bits + hash_bits - 1)
    members = np.arange(family.members)
    sizes = np.bincount(np.arange(1 << hash_bits) * cells >> hash_bits)
    values = [family.cell(members, np.full(members.size, v)) for v in range(1 << bits)]
    joint = np.outer(sizes, sizes) * (family.members // (1 << 2 * hash_bits))
    for u in range(1 << bits):
        for v in range(u):
            table = np.bincount(values[u] * cells + values[v], minlength=cells**2)
            assert (table.reshape(cells, cells) == joint).all()
    assert family.meeting == Fraction(int((sizes**2).sum()), 1 << 2 * hash_bits)


def test_unequal_cells_are_reckoned_with():
    """Three cells of 2**8 hashes: a miss of exactly 1/3 would be wrong, and bias every count."""
    uneven = local.LocalHashing(domain=60, epsilon=0.7)
    assert uneven.family.cells == 3
    assert uneven.family.meeting > Fraction(1, 3)
    law, family = uneven.law, uneven.family
    changed = (1 - law.keep_chance) * (1 - family.meeting) / (family.cells - 1)
    assert uneven.support.miss == law.keep_chance * family.meeting + changed


def test_hashing_fits_a_report_at_every_epsilon_and_domain():
    for domain in (2, 3, 1000, 10**6, 2**31):
        for epsilon in (0.01, 0.5, 1, 3, 10, 50):
            randomiser = local.LocalHashing(domain=domain, epsilon=epsilon)
            family = randomiser.family
            assert randomiser.outputs <= 2**63
            assert family.word_bits >= (domain - 1).bit_length() + family.hash_bits - 1
            assert 1 << family.hash_bits >= family.cells


@pytest.mark.parametrize("degree", range(1, 32))
def test_polynomials_are_irreducible(degree):
    """Rabin's test: x**(2**degree) is x, and x**(2**(degree / p)) - x has no common divisor."""
    frobenius = [0 if degree == 1 else 2]
    for _ in range(degree):
        frobenius.append(times(frobenius[-1], frobenius[-1], degree))
    if degree == 1:
        return  # every polynomial of degree 1 is
    assert frobenius[degree] == 2
    for prime in (p for p in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31) if degree % p == 0):
        assert divisor(1 << degree | POLYNOMIALS[degree - 1], frobenius[degree // prime] ^ 2) == 1


def divisor(a, b):
    while b:
        while a.bit_length() >= b.bit_length():
            a ^= b << (a.bit_length() - b.bit_length())
        a, b = b, a
    return a


def test_chosen_cells_and_sizes_are_near_the_best():
    """Real numbers of cells would reach 4 exp(epsilon) / (exp(epsilon) - 1)**2 for rare values."""
    for epsilon in (0.5, 1, 1.7, 2, 3, 4.4):
        best = 4 * np.exp(epsilon) / (np.exp(epsilon) - 1) ** 2
        for make, worst in (
            (local.LocalHashing, 1.02),
            (local.PublicHashing, 1.07),
            (local.ProjectiveResponse, 1.03),
            (local.SubsetSelection, 1.001),
            (local.OptimizedUnary, 1.0001),
        ):
            found = make(domain=20_000, epsilon=epsilon).support.variance(n=1, count=0)
            assert best * 0.995 < found < best * worst, (make, epsilon)
