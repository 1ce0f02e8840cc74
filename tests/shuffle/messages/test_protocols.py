"""Messages among dummies: their laws, what they say on average, and how far it may be off."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from scipy.stats import binom, chi2

from discreet import audit
from discreet.errors import DataError
from discreet.shuffle.messages.comparison import standard_errors
from discreet.shuffle.messages.dummies import ONE, Dummies
from discreet.shuffle.messages.estimates import DummyEstimate, SumEstimate
from discreet.shuffle.messages.histogram import MultiMessageHistogram
from discreet.shuffle.messages.sum import MultiMessageSum

FALSE_ALARM = 1e-9


def histogram(domain=3, *, coins=2, chance=ONE // 4, honest=100):
    dummies = Dummies(coins=coins, chance=chance)
    return MultiMessageHistogram(domain=domain, honest=honest, dummies=dummies)


# The messages -----------------------------------------------------------------------------------


def surprise(seen, law):
    """Return the chance of a chi-square as large as that of these counts."""
    expected = seen.sum() * np.array(law)
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), df=len(law) - 1))


def test_dummies_follow_their_law_and_a_wrong_one_would_show():
    tosses = 200_000
    kinds = Dummies(coins=2, chance=ONE // 4).draw(tosses // 2, kinds=3)
    seen = np.append(np.bincount(kinds, minlength=3), tosses - kinds.size)
    assert surprise(seen, [1 / 12, 1 / 12, 1 / 12, 3 / 4]) > FALSE_ALARM
    assert surprise(seen, [0.09, 0.09, 0.09, 0.73]) < FALSE_ALARM
    assert surprise(seen, [0.09, 0.08, 0.08, 0.75]) < FALSE_ALARM


def test_own_messages_are_all_there_and_one_device_sends_one_value():
    values = np.array([0, 2, 2, 1])
    sure = histogram(chance=ONE)
    messages = sure.release(values)
    assert messages.size == 4 * 3  # each its own value, and two dummies
    assert (np.bincount(messages, minlength=3) >= [1, 1, 2]).all()
    protocol = MultiMessageSum(largest=5, honest=10, dummies=Dummies(coins=1, chance=1))
    bits = protocol.release([5, 0, 3])  # with next to no dummies
    assert (bits == 1).sum() == 8
    assert bits.size == 15
    assert bits.dtype == np.uint8


class Recorded:
    """The same bytes each time, with how many were read at a time."""

    is_secure = False

    def __init__(self):
        self.sizes, self.dice = [], Random(7)

    def read(self, n, /):
        self.sizes.append(n)
        return self.dice.randbytes(n)


def test_the_randomness_read_does_not_depend_on_the_values():
    for protocol in (
        histogram(),
        MultiMessageSum(largest=2, honest=9, dummies=Dummies(coins=3, chance=ONE // 3)),
    ):
        sources = Recorded(), Recorded()
        sizes = [
            protocol.release(np.full(1000, value), source=source).size
            for value, source in zip((0, 2), sources, strict=True)
        ]
        assert sources[0].sizes == sources[1].sizes
        assert sizes[0] == sizes[1]


def test_sizes_are_those_of_one_message():
    assert [histogram(k).bytes_per_message for k in (2, 256, 257, 1 << 20)] == [1, 1, 2, 3]
    assert histogram().messages_per_device == 1.5


# The estimates ----------------------------------------------------------------------------------


def test_counts_are_right_on_average_with_the_stated_variance():
    """Exactly, over all dummies of one device that sends two."""
    protocol = histogram(3, coins=2, chance=ONE)
    mean, square = np.zeros(3), np.zeros(3)
    for first in range(3):
        for second in range(3):
            estimate = protocol.estimate([1, first, second], n=1)
            mean += estimate.counts / 9
            square += (estimate.counts - [0, 1, 0]) ** 2 / 9
    assert mean == pytest.approx([0, 1, 0])
    assert square == pytest.approx(estimate.standard_error**2)


@pytest.mark.parametrize("dummies", [0, 1, 7, 60])
def test_intervals_cover_as_often_as_they_say(dummies):
    covered = 0.0
    for heads in range(dummies + 1):
        estimate = DummyEstimate(seen=np.array([40 + heads, 60 + dummies - heads]), true=100)
        low, high = estimate.interval(confidence=0.9, simultaneous=False)
        if low[0] <= 40 <= high[0]:
            covered += binom.pmf(heads, dummies, 0.5)
    assert covered >= 0.9
    assert covered < 0.9 + 2.2 * binom.pmf(dummies // 2, dummies, 0.5)


def test_a_sum_is_that_of_its_ones():
    estimate = SumEstimate(zeros=10, ones=40, n=10, largest=4)
    assert estimate.sum == 35
    assert estimate.mean == 3.5
    assert estimate.standard_error == pytest.approx(math.sqrt(10) / 2)


def test_predicted_errors_hold_and_are_no_fantasy():
    protocol = histogram(4, coins=3, chance=ONE // 2)
    tosses, kind = 3000, Fraction(1, 8)
    width = protocol.error(n=1000, confidence=0.95)
    variance = float(tosses * kind * Fraction(3, 4))
    assert 1.96 * math.sqrt(variance) < width < 3.2 * math.sqrt(variance)


def test_bad_messages_are_refused_without_telling_them():
    protocol = histogram()
    with pytest.raises(DataError, match="reports must be whole numbers from 0 to 2") as caught:
        protocol.estimate([0, 77], n=1)
    assert "77" not in str(caught.value)
    with pytest.raises(DataError, match="at least as many as those of n devices"):
        protocol.estimate([0, 1], n=3)
    with pytest.raises(DataError, match="values must be whole numbers from 0 to 2"):
        protocol.release([3])
    with pytest.raises(DataError, match="values must be whole numbers from 0 to 5"):
        MultiMessageSum(largest=5, honest=1, dummies=protocol.dummies).release([-1])


@pytest.mark.lengthy
def test_the_error_is_near_a_curators_and_below_that_of_single_reports():
    found = standard_errors(epsilon=1, delta=1e-6, domain=5000, n=10_000)
    dummies = found["shuffler, with dummies"]
    assert found["curator, Gaussian"] < dummies < 1.12 * found["curator, Gaussian"]
    assert 3 * dummies < found["shuffler, single reports"] < found["nobody, single reports"]


# The heavy ones ---------------------------------------------------------------------------------

CLAIM = {"epsilon": 1, "delta": 1e-3}


@pytest.mark.slow
@pytest.mark.parametrize("share", [1, 10])
def test_an_audit_passes_and_a_tenth_of_the_dummies_is_flagged(share):
    honest = 12
    protocol = MultiMessageHistogram.calibrated(**CLAIM, domain=2, honest=honest)
    broken = MultiMessageHistogram(
        domain=2, honest=honest, dummies=Dummies.of(protocol.dummies.mean / share)
    )

    def run(value):
        messages = broken.release([value] + [0] * (honest - 1))
        return tuple(np.bincount(messages, minlength=2).tolist())

    found = audit.mechanism(run, pair=(0, 1), **CLAIM, samples=60_000)
    assert found.passed == (share == 1)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1, 10])
def test_an_audit_of_sums_passes_and_a_tenth_of_the_dummies_is_flagged(share):
    protocol = MultiMessageSum.calibrated(**CLAIM, largest=3, honest=20)
    broken = MultiMessageSum(
        largest=3, honest=20, dummies=Dummies.of(protocol.dummies.mean / share)
    )

    def run(value):
        return tuple(np.bincount(broken.release([value] + [1] * 19), minlength=2).tolist())

    found = audit.mechanism(run, pair=(0, 3), **CLAIM, samples=60_000)
    assert found.passed == (share == 1)


@pytest.mark.slow
def test_squared_errors_are_those_of_theory():
    """12,000 trials x cells; the mean of their squares over theory is within 5 per cent of 1."""
    protocol = MultiMessageHistogram.calibrated(epsilon=1, delta=1e-6, domain=120, honest=5000)
    truth = np.arange(5000) % 120
    counts = np.bincount(truth, minlength=120)
    squares = []
    for _ in range(100):
        estimate = protocol.estimate(protocol.release(truth), n=5000)
        squares.append(((estimate.counts - counts) / estimate.standard_error) ** 2)
    assert abs(np.mean(squares) - 1) < 0.08  # six deviations of the mean of 12,000 squares
    sums = MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=4, honest=300)
    numbers = np.arange(300) % 5
    off = [
        (found.sum - numbers.sum()) / found.standard_error
        for found in (sums.estimate(sums.release(numbers), n=300) for _ in range(12_000))
    ]
    assert abs(np.mean(np.square(off)) - 1) < 0.08
    assert abs(np.mean(off)) < 6.2 / math.sqrt(12_000)
