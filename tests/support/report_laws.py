"""Compare the reports of a randomiser with its exact law."""

from fractions import Fraction

import numpy as np
from scipy.stats import chi2

from discreet.noise.enclosure import exp_bounds

FALSE_ALARM = 1e-9  # chance that a correct sampler fails one comparison


def misfit(reports, chances):
    """Return the p-value of Pearson's chi-square test; ``chances`` are those of 0, 1, 2, ..."""
    expected = np.array([float(chance) for chance in chances]) * len(reports)
    assert abs(expected.sum() / len(reports) - 1) < 1e-9
    assert expected.min() >= 20
    seen = np.bincount(reports, minlength=expected.size)
    return chi2.sf(((seen - expected) ** 2 / expected).sum(), expected.size - 1)


def worst_ratio(laws):
    """Return how much likelier an output of one law is than of another, exactly, at most."""
    return max(max(column) / min(column) for column in zip(*laws, strict=True))


def is_within(ratio, epsilon):
    """Prove ratio <= exp(epsilon) with integers."""
    low, _ = exp_bounds(Fraction(epsilon), 300)
    # exp(-epsilon) is below (low + 2) / 2**300, so this is a little stricter than needed.
    return ratio * (low + 2) <= 1 << 300
