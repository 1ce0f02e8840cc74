"""The masses of Gaussian noise are right in every cell, also where only the other law has mass."""

import numpy as np
import pytest
from mpmath import mp, mpf

from discreet.accounting.pairs.pairs import GaussianPair, SampledPair

RAISED = 1e-12  # more than masses are raised by, less than bounds from below lower them by


def chance(low, high, at, s):
    """Return the mass of noise around ``at`` between two values, from the nearer tail."""
    a, b = ((mpf(x) - at) / s for x in (low, high))
    a, b = (a, b) if a + b > 0 else (-b, -a)
    return (mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))) / 2


@pytest.mark.parametrize("s", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("width", [0.01, 0.04, 0.3])
@pytest.mark.parametrize("far", [2, 9.9, 15, 25, 36])
def test_a_cell_has_its_mass_however_far_out(s, width, far):
    edges = (1 + s * np.array([far, far + width]) - 0.5) / s**2
    loss, mass = GaussianPair(s).nodes(edges, 38.0)
    inside = (loss > edges[0]) & (loss < edges[1])
    truth = chance(*(mpf(s) ** 2 * mpf(float(e)) + mpf(1) / 2 for e in edges), 1, s)
    found = mp.fsum(map(mpf, mass[inside].tolist()))
    assert abs(found / truth - 1) < RAISED  # rounding an edge moves mass to the next cell


@pytest.mark.parametrize("s", [0.05, 0.1, 1.0])
def test_a_sample_without_the_unit_has_its_mass(s):
    """Far out for the one law is the middle of the other, which a sampled pair is made of."""
    _, mass = SampledPair(GaussianPair(s), 0.5, removes=True).nodes(np.zeros(0), 9.0)
    assert 1 - 1e-15 <= mass.sum() < 1 + RAISED
