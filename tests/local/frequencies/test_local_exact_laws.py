"""Every randomiser of frequencies follows its exact law, and no two values differ by more."""

import math
from fractions import Fraction

import numpy as np
import pytest
from local_laws import bit_rows, numbered, owned, reported
from scipy import stats

from discreet import local
from discreet.errors import DataError, ParameterError
from discreet.noise.enclosure import exp_bounds
from discreet.testing import SeededSource

FALSE_ALARM = 1e-9

PREFERRING = [
    local.DirectResponse(domain=2, epsilon=0.5),
    local.DirectResponse(domain=5, epsilon=Fraction(7, 3)),
    local.HadamardResponse(domain=2, epsilon=1),
    local.HadamardResponse(domain=11, epsilon=0.3),
    local.SubsetSelection(domain=2, epsilon=1),
    local.SubsetSelection(domain=10, epsilon=0.5),
    local.SubsetSelection(domain=7, epsilon=4),
    local.LocalHashing(domain=4, epsilon=1.2),
    local.PublicHashing(domain=3, epsilon=1),
    local.PublicHashing(domain=25, epsilon=3),
    local.ProjectiveResponse(domain=7, epsilon=1),
    local.ProjectiveResponse(domain=40, epsilon=0.4),
    local.ProjectiveResponse(domain=100, epsilon=2),
]
UNARY = [
    local.SymmetricUnary(domain=2, epsilon=1),
    local.SymmetricUnary(domain=9, epsilon=2.5),
    local.OptimizedUnary(domain=3, epsilon=0.2),
    local.OptimizedUnary(domain=9, epsilon=Fraction(1)),
]
ALL = PREFERRING + UNARY


def exact_law(randomiser, value, law=None):
    """Return the chance of every output, as fractions that add up to 1."""
    law = law or randomiser.law
    if isinstance(randomiser, local.SymmetricUnary | local.OptimizedUnary):
        coins = [law.own if v == value else law.other for v in range(randomiser.domain)]
        one = [(Fraction(coin, 2**64), 1 - Fraction(coin, 2**64)) for coin in coins]
        return [
            math.prod(p if bit else q for bit, (p, q) in zip(row.tolist(), one, strict=True))
            for row in bit_rows(randomiser.domain)
        ]
    own = owned(randomiser)[value]
    inside = Fraction(law.keep, 2**64) / int(own.sum())
    outside = (1 - Fraction(law.keep, 2**64)) / int((~own).sum())
    return [inside if mine else outside for mine in own.tolist()]


def assert_priced(ratio, randomiser):
    """The loss covers the largest ratio, keeps the promise, and wastes next to nothing."""
    priced = randomiser.loss.epsilon
    _, high = exp_bounds(Fraction(priced), 300)
    assert ratio * high <= 2**300
    assert float(randomiser.epsilon) - 1e-12 < priced <= randomiser.epsilon


@pytest.mark.parametrize("randomiser", PREFERRING, ids=repr)
def test_values_own_equally_many_outputs_and_share_equally_many(randomiser):
    """So the law is one of preference, its loss exact and the estimator unbiased, for all pairs."""
    own = owned(randomiser).astype(np.int64)
    shared = own @ own.T
    size, common = int(shared[0, 0]), int(shared[0, 1])
    assert (shared == common + (size - common) * np.eye(randomiser.domain, dtype=np.int64)).all()
    law = randomiser.law
    assert Fraction(size, own.shape[1]) == Fraction(law.preferred, law.outputs)
    assert size > common
    keep = Fraction(law.keep, 2**64)
    miss = keep * Fraction(common, size)
    miss += (1 - keep) * Fraction(size - common, own.shape[1] - size)
    assert randomiser.support == local.Support(hit=keep, miss=miss)
    ratio = keep / size / ((1 - keep) / (own.shape[1] - size))
    assert law.ratio == ratio
    assert_priced(ratio, randomiser)


@pytest.mark.parametrize("randomiser", UNARY, ids=repr)
def test_rows_of_bits_lose_exactly_what_they_say(randomiser):
    first, second = exact_law(randomiser, 0), exact_law(randomiser, 1)
    assert sum(first) == 1
    ratio = max(p / q for p, q in zip(first, second, strict=True))
    assert ratio == randomiser.law.ratio
    assert_priced(ratio, randomiser)
    held = [
        sum(p for p, r in zip(law, bit_rows(randomiser.domain), strict=True) if r[0])
        for law in (first, second)
    ]
    assert held == [randomiser.support.hit, randomiser.support.miss]


def statistic(columns, law):
    """Return chi-square, with outcomes of equal chance and few draws taken together."""
    chances = np.array([float(p) for p in law])
    seen = np.bincount(columns, minlength=chances.size)
    if chances.size > 2000:
        fold = np.arange(chances.size) % 1000 + 1000 * (chances > chances.min())
        seen, chances = np.bincount(fold, seen, 2000), np.bincount(fold, chances, 2000)
    keep = chances > 0
    expected = columns.size * chances[keep]
    return ((seen[keep] - expected) ** 2 / expected).sum(), keep.sum() - 1


def lax_law(randomiser):
    """Return the law of half as much epsilon again, over the same outputs."""
    more, law = float(randomiser.epsilon) * 1.5, randomiser.law
    if isinstance(randomiser, local.SymmetricUnary):
        return local.BitCoins.symmetric(epsilon=more)
    if isinstance(randomiser, local.OptimizedUnary):
        return local.BitCoins.optimized(epsilon=more)
    return local.Preference.calibrated(epsilon=more, outputs=law.outputs, preferred=law.preferred)


@pytest.mark.parametrize("randomiser", ALL, ids=repr)
def test_reports_follow_the_law_and_a_wrong_one_would_show(randomiser):
    value = randomiser.domain - 1
    reports = randomiser.release(np.full(150_000, value))
    if isinstance(randomiser, local.SymmetricUnary | local.OptimizedUnary):
        bits = np.unpackbits(reports, axis=1, bitorder="little")
        assert not bits[:, randomiser.domain :].any()
        columns = bits[:, : randomiser.domain] @ (1 << np.arange(randomiser.domain))[::-1]
    else:
        columns = numbered(randomiser, reports)
    found, freedom = statistic(columns, exact_law(randomiser, value))
    assert found <= stats.chi2.isf(FALSE_ALARM, freedom)
    wrong, freedom = statistic(columns, exact_law(randomiser, 0))
    assert wrong > stats.chi2.isf(FALSE_ALARM, freedom)
    lax, freedom = statistic(columns, exact_law(randomiser, value, lax_law(randomiser)))
    assert lax > stats.chi2.isf(FALSE_ALARM, freedom)


@pytest.mark.parametrize("randomiser", PREFERRING, ids=repr)
def test_the_reader_counts_who_owns_each_report(randomiser):
    own = owned(randomiser)
    columns = np.random.default_rng(7).integers(0, own.shape[1], 3000)
    reports = reported(randomiser, columns)
    assert (randomiser.supports(reports) == own[:, columns].sum(axis=1)).all()
    estimate = randomiser.estimate(reports)
    assert estimate.n == 3000
    assert estimate.counts.shape == (randomiser.domain,)


@pytest.mark.parametrize("randomiser", ALL, ids=repr)
def test_the_randomness_read_does_not_depend_on_the_values(randomiser):
    """Both branches of a coin are drawn, so equal seeds leave the source at the same place."""
    ends = []
    for value in (0, randomiser.domain - 1):
        source = SeededSource(5)
        randomiser.release(np.full(100, value), source=source)
        ends.append(source.read(8))
    if not isinstance(randomiser, local.SubsetSelection):  # there only the law of it is the same
        assert ends[0] == ends[1]


@pytest.mark.parametrize("randomiser", ALL, ids=repr)
def test_errors_and_sizes_are_those_of_reports(randomiser):
    reports = randomiser.release([0, 1, 1])
    if reports.ndim == 2:
        assert reports.dtype == np.uint8
        assert reports.shape == (3, randomiser.bytes_per_report)
    else:
        assert reports.max() < randomiser.outputs <= 256**randomiser.bytes_per_report
        assert randomiser.outputs > 256 ** (randomiser.bytes_per_report - 1)
    assert randomiser.error(n=1000, confidence=0.9) == randomiser.support.error(
        n=1000, confidence=0.9
    )
    assert randomiser.release([]).shape[0] == 0


@pytest.mark.parametrize("make", sorted({type(r) for r in ALL}, key=lambda make: make.__name__))
def test_bad_input_is_refused_before_anything_is_drawn(make, no_randomness):
    for bad in (1, 0, -3, 2.5, "a", None, 2**31 + 1):
        with pytest.raises(ParameterError, match="domain"):
            make(domain=bad, epsilon=1)
    for bad in (0, -1, float("nan"), float("inf"), "1", 1e-30):
        with pytest.raises(ParameterError, match="epsilon"):
            make(domain=4, epsilon=bad)
    randomiser = make(domain=9, epsilon=1)
    for bad in ([9], [-1], [0.5], ["a"], [[1]], None):
        with pytest.raises(DataError, match="values"):
            randomiser.release(bad, source=no_randomness)
    with pytest.raises(DataError, match="reports"):
        randomiser.estimate(randomiser.release([]))
    if hasattr(randomiser, "outputs"):
        bad_reports = [[randomiser.outputs], [-1], [0.5], ["a"], [[1]]]
    else:
        rows = randomiser.release([3, 4])
        bad_reports = [[1], rows[:, :1], rows.astype(int), rows | np.array([0, 4], np.uint8), "a"]
        if make is local.SubsetSelection:
            bad_reports.append(rows & np.array([0, 0], np.uint8))
    for bad in bad_reports:
        with pytest.raises(DataError, match="reports"):
            randomiser.estimate(bad)


def test_large_epsilons_and_domains_are_within_reach():
    for make in {type(r) for r in ALL}:
        sure = make(domain=30, epsilon=1000)
        assert sure.loss.epsilon <= 1000
        estimate = sure.estimate(sure.release([4] * 500))
        assert abs(estimate.counts[4] - 500) < 250
        assert make(domain=2**31, epsilon=1).bytes_per_report >= 4


class Counting:
    """Count what is read of a source."""

    is_secure = False

    def __init__(self, seed):
        self.source, self.read_bytes = SeededSource(seed), 0

    def read(self, n, /):
        self.read_bytes += n
        return self.source.read(n)


def test_how_much_is_read_for_a_set_does_not_tell_whether_the_own_value_is_in_it():
    randomiser = local.SubsetSelection(domain=3, epsilon=1)
    assert randomiser.size == 1
    seen = {False: [], True: []}
    for seed in range(6000):
        source = Counting(seed)
        (row,) = randomiser.release([1], source=source)
        seen[bool(row[0] & 2)].append(source.read_bytes)
    assert stats.ks_2samp(*seen.values()).pvalue > FALSE_ALARM
