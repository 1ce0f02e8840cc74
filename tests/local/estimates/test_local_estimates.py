"""Estimates have the errors that they state, and intervals hold all counts at once."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import local
from discreet.errors import DataError, ParameterError
from discreet.local.estimates.columns import column_sums
from discreet.local.estimates.intervals import chance_interval

FALSE_ALARM = 1e-9


@pytest.mark.parametrize(
    "shape", [(0, 3), (1, 1), (2, 5), (3, 4), (1000, 7), (17, 5000), (70_001, 9)]
)
def test_columns_are_added_up(shape):
    rows = np.random.default_rng(3).integers(0, 256, shape, dtype=np.uint8)
    plain = sum(
        np.unpackbits(part, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        for part in np.array_split(rows, 10)
    )
    assert (column_sums(rows) == plain).all()


def test_variance_is_that_of_the_sum_of_coins():
    """Enumerated: three reports, of which one device has the value."""
    support = local.Support(hit=Fraction(3, 5), miss=Fraction(1, 7))
    mean = square = Fraction(0)
    for seen in range(8):
        bits = [seen >> i & 1 for i in range(3)]
        chance = Fraction(1)
        for bit, p in zip(bits, (support.hit, support.miss, support.miss), strict=True):
            chance *= p if bit else 1 - p
        count = (sum(bits) - 3 * support.miss) / support.contrast
        mean += chance * count
        square += chance * count**2
    assert mean == 1
    assert support.variance(n=3, count=1) == pytest.approx(float(square - 1), rel=1e-14)
    average = (support.variance(n=1, count=1) + 4 * support.variance(n=1, count=0)) / 5
    assert float(support.average_variance(domain=5)) == pytest.approx(average, rel=1e-14)


def test_one_end_misses_as_rarely_as_stated_for_every_mean():
    """Exact: sum of binomial chances of all outcomes whose interval leaves the mean out."""
    n, depth = 60, 3.0
    low, high = chance_interval(np.arange(n + 1), n=n, depth=depth)
    for mean in np.linspace(0, 1, 201):
        law = stats.binom.pmf(np.arange(n + 1), n, mean)
        assert law[low > mean].sum() <= np.exp(-depth)
        assert law[high < mean].sum() <= np.exp(-depth)
    assert (low <= np.arange(n + 1) / n).all()
    assert (high >= np.arange(n + 1) / n).all()
    assert (high - low).max() < 0.4  # they are not wide for nothing


def test_errors_hold_as_often_as_stated():
    """Exact binomial tails, also for rare values with a share."""
    support = local.Support(hit=Fraction(1, 2), miss=Fraction(1, 4))
    n = 500
    for confidence in (0.5, 0.95, 0.999):
        for holders in (0, 100, 500):
            t = support.error(n=n, confidence=confidence, share=Fraction(holders, n))
            heads = np.convolve(
                stats.binom.pmf(np.arange(holders + 1), holders, 0.5),
                stats.binom.pmf(np.arange(n - holders + 1), n - holders, 0.25),
            )
            counts = (np.arange(n + 1) - n / 4) / 0.25
            assert heads[abs(counts - holders) > t].sum() <= 1 - confidence


def test_bad_questions_are_refused():
    support = local.Support(hit=Fraction(1, 2), miss=Fraction(1, 4))
    with pytest.raises(ParameterError, match="count"):
        support.variance(n=5, count=6)
    with pytest.raises(ParameterError, match="hit"):
        local.Support(hit=Fraction(1, 4), miss=Fraction(1, 4))
    with pytest.raises(ParameterError, match="confidence"):
        support.error(n=5, confidence=1)
    with pytest.raises(DataError, match="reports"):
        local.CountEstimate(supports=np.zeros(3, dtype=np.int64), n=0, support=support)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_intervals_hold_all_counts_at_once(confidence):
    """Of 1,000 collections, those with any count outside; a binomial above 1 - confidence."""
    values = np.repeat(np.arange(8), [900, 50, 20, 10, 10, 5, 5, 0])
    counts = np.bincount(values, minlength=8)
    for make in (local.DirectResponse, local.HadamardResponse, local.PublicHashing):
        randomiser = make(domain=8, epsilon=1)
        missed = 0
        for _ in range(1000):
            estimate = randomiser.estimate(randomiser.release(values))
            low, high = estimate.interval(confidence=confidence)
            missed += bool(((counts < low) | (counts > high)).any())
        assert stats.binom.sf(missed - 1, 1000, 1 - confidence) > FALSE_ALARM
