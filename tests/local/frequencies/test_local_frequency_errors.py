"""Squared errors are those of theory, and an auditor finds no more than what is claimed."""

from itertools import count

import numpy as np
import pytest
from scipy import stats

from discreet import audit, local
from discreet.testing import SeededSource

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-9
MAKERS = [
    local.DirectResponse,
    local.HadamardResponse,
    local.SymmetricUnary,
    local.OptimizedUnary,
    local.LocalHashing,
    local.PublicHashing,
    local.SubsetSelection,
    local.ProjectiveResponse,
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_squared_error_over_theory_is_one(make, epsilon):
    """Within 5% at 50,000 cells: at least six standard deviations.

    Independent cells would have seven; those of one collection hang together a little, which was
    seen to lengthen the standard deviation by up to a fifth.
    """
    domain, trials, n = 1000, 50, 20_000
    randomiser = make(domain=domain, epsilon=epsilon)
    values = np.sort(np.random.default_rng(1).zipf(1.5, n) % domain)
    counts = np.bincount(values, minlength=domain)
    theory = np.array([randomiser.support.variance(n=n, count=int(c)) for c in counts])
    errors = [
        randomiser.estimate(randomiser.release(values)).counts - counts for _ in range(trials)
    ]
    ratio = float((np.square(errors) / theory).mean())
    bias = float((np.sum(errors, axis=0) / np.sqrt(trials * theory)).mean()) * np.sqrt(domain)
    assert 0.95 < ratio < 1.05
    assert abs(bias) < 3 * stats.norm.isf(FALSE_ALARM)  # cells of a collection may move together


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_an_auditor_finds_no_more_than_what_is_claimed_and_flags_broken_ones(make, epsilon):
    def collect(randomiser, value, n):
        reports = randomiser.release(np.full(n, value))
        if isinstance(randomiser, local.LocalHashing):  # too many outputs to count each
            members, cells = np.divmod(reports, randomiser.family.cells)
            at = (randomiser.family.cell(members, np.full(n, v)) == cells for v in (0, 1))
            return next(at) + 2 * next(at)
        return reports if reports.ndim == 1 else [row.tobytes() for row in reports]

    def reused(seed):
        """Let all devices share one seed."""
        return lambda v, n: [sound.release([v], source=SeededSource(seed)).tobytes()] * n

    sound = make(domain=3, epsilon=epsilon)
    found = audit.mechanism(
        lambda v, n: collect(sound, v, n),
        pair=(0, 1),
        epsilon=epsilon,
        delta=0,
        batch=True,
        samples=60_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed
    assert found.epsilon_lower > 0.6 * epsilon
    wrong = make(domain=3, epsilon=1.5 * epsilon)
    telling = next(seed for seed in count() if reused(seed)(0, 1) != reused(seed)(1, 1))
    for broken in (lambda v, n: collect(wrong, v, n), reused(telling)):
        assert not audit.mechanism(
            broken, pair=(0, 1), epsilon=epsilon, delta=0, batch=True, samples=60_000
        ).passed
