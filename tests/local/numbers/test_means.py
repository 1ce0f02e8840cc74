"""Means of numbers: exact laws without bias, the published variances, and what cannot be asked."""

import math
from fractions import Fraction

import numpy as np
import pytest
from report_laws import FALSE_ALARM, is_within, misfit, worst_ratio

from discreet.errors import DataError, ParameterError
from discreet.local import BitPushing, Duchi, Hybrid, Moments, Piecewise, SquareWave

NUMBERS = [-1.0, -0.7, -0.1, 0.0, 0.3, math.nextafter(1, 0), 1.0, 5.0, math.nan, -math.inf]


def law(randomiser, value):
    """Return the chance of each report about a number, as a fraction."""
    if isinstance(randomiser, Duchi):
        support = randomiser.response.support
        one = support.miss + support.contrast * randomiser.ruler.position(value)
        return [1 - one, one]
    if isinstance(randomiser, Hybrid):
        near, far = law(randomiser.piecewise, value), law(randomiser.duchi, value)
        mix = randomiser.mix
        return [mix * c for c in near] + [(1 - mix) * c for c in far]
    place = randomiser.ruler.position(value)
    floor = math.floor(place)
    cells, window = range(randomiser.cells), randomiser.window
    low, up = ([window.chance(o, position=floor + k) for o in cells] for k in (0, 1))
    return [(1 - place + floor) * a + (place - floor) * b for a, b in zip(low, up, strict=True)]


def exact_readings(randomiser):
    if isinstance(randomiser, Duchi):
        return list(randomiser.readings)
    if isinstance(randomiser, Hybrid):
        return exact_readings(randomiser.piecewise) + exact_readings(randomiser.duchi)
    first, by = randomiser.scale
    return [first + by * report for report in range(randomiser.cells)]


def small(epsilon, low=-1, high=1):
    return [
        Duchi(low=low, high=high, epsilon=epsilon),
        Piecewise(low=low, high=high, epsilon=epsilon, cells=11),
        Hybrid(low=low, high=high, epsilon=epsilon, cells=11),
    ]


@pytest.mark.parametrize("epsilon", [0.3, 1, 2.5, Fraction(5)])
def test_reports_have_the_claimed_loss_and_no_bias_exactly(epsilon):
    for randomiser in small(epsilon):
        laws = [law(randomiser, value) for value in NUMBERS]
        assert all(sum(chances) == 1 for chances in laws)
        used = [column for column in zip(*laws, strict=True) if any(column)]
        ratio = worst_ratio(zip(*used, strict=True))
        assert is_within(ratio, epsilon)
        assert is_within(ratio, randomiser.loss.epsilon)
        assert randomiser.loss.epsilon <= epsilon
        assert math.log(ratio) > 0.98 * float(epsilon)  # and wastes little of it
        readings = exact_readings(randomiser)
        assert randomiser.read(np.arange(randomiser.outputs)) == pytest.approx(
            [float(reading) for reading in readings], rel=1e-12, abs=1e-12
        )
        for value, chances in zip(NUMBERS, laws, strict=True):
            number = Fraction(min(max(value, -1.0), 1.0)) if value == value else Fraction(0)
            mean = sum(c * r for c, r in zip(chances, readings, strict=True))
            assert mean == number
            second = sum(c * r * r for c, r in zip(chances, readings, strict=True))
            assert randomiser.variance(value) == second - number**2
            assert randomiser.variance(value) <= randomiser.spread.variance
            furthest = max(abs(r - number) for r, c in zip(readings, chances, strict=True) if c)
            assert furthest <= randomiser.spread.reach


@pytest.mark.parametrize(("kind", "published"), [(Duchi, 4.68), (Piecewise, 5.22), (Hybrid, 4.29)])
def test_worst_variances_at_epsilon_one_are_the_published_ones(kind, published):
    randomiser = kind(low=-1, high=1, epsilon=1)
    worst = max(float(randomiser.variance(value)) for value in np.linspace(-1, 1, 41))
    assert round(worst, 2) == published
    assert worst <= float(randomiser.spread.variance) < worst + 1e-8
    assert worst < 8  # Laplace: 2 (2 / epsilon)**2


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_the_grid_costs_next_to_nothing(epsilon):
    half = math.exp(epsilon / 2)
    for value in (0.0, 0.4, 1.0):
        continuous = value**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
        fine = Piecewise(low=-1, high=1, epsilon=epsilon)
        assert abs(float(fine.variance(value)) / continuous - 1) < 2e-4
        coarse = Piecewise(low=-1, high=1, epsilon=epsilon, cells=256)  # one byte
        assert abs(float(coarse.variance(value)) / continuous - 1) < 0.05


@pytest.mark.parametrize("randomiser", small(2), ids=lambda r: type(r).__name__)
def test_reports_follow_their_law_and_a_wrong_one_would_show(randomiser):
    for value in (-1.0, 0.3):
        reports = randomiser.release(np.full(200_000, value))
        assert misfit(reports, law(randomiser, value)) > FALSE_ALARM
        assert misfit(reports, law(randomiser, value + 0.05)) < FALSE_ALARM


def test_estimates_hold_their_truth_and_no_number_stops_a_release():
    values = np.concatenate([np.linspace(-3, 9, 100_000), [np.nan, np.inf, -np.inf]])
    inside = np.clip(np.where(np.isnan(values), 2.5, values), 0, 5)
    for kind in (Duchi, Piecewise, Hybrid):
        randomiser = kind(low=0, high=5, epsilon=1)
        reports = randomiser.release(values)
        assert reports.min() >= 0
        assert reports.max() < randomiser.outputs
        assert (randomiser.outputs - 1).bit_length() <= 8 * randomiser.bytes_per_report
        estimate = randomiser.estimate(reports)
        low, high = estimate.interval(confidence=1 - FALSE_ALARM)
        assert low < inside.mean() < high
        off = randomiser.error(n=values.size, confidence=1 - FALSE_ALARM)
        assert high - low == pytest.approx(2 * off)
        worst = randomiser.spread.standard_error(n=values.size)
        assert 0.8 * worst < estimate.standard_error < 1.2 * worst
    assert Duchi(low=0, high=1, epsilon=1).estimate([1]).standard_error > 1


def test_moments_find_mean_and_variance():
    randomiser = Moments(low=-20, high=30, epsilon=4)
    rng = np.random.default_rng(1)
    values = rng.normal(12, 4, 200_000)
    reports = randomiser.release(values)
    assert reports.max() < randomiser.outputs
    assert is_within(
        Fraction(math.exp(float(randomiser.loss.epsilon))) * (1 - Fraction(1, 10**12)), 4
    )
    estimate = randomiser.estimate(reports)
    assert abs(estimate.mean - values.mean()) < 6.2 * estimate.standard_error
    assert abs(estimate.variance - values.var()) < 6.2 * estimate.variance_standard_error
    assert estimate.variance_standard_error < 4
    assert estimate.n == values.size


def test_pushed_bits_are_asked_by_their_weight_and_told_by_their_law():
    randomiser = BitPushing(low=0, high=7, epsilon=1, bits=3)
    support = randomiser.response.support
    reports = randomiser.release(np.full(200_000, 5.0))  # binary 101
    chances = []
    for digit, bit in enumerate([1, 0, 1]):
        asked, one = (
            Fraction(randomiser.weights[digit], sum(randomiser.weights)),
            support.hit if bit else support.miss,
        )
        chances += [asked * (1 - one), asked * one]
    assert misfit(reports, chances) > FALSE_ALARM
    assert misfit(reports, [*chances[:2], chances[3], chances[2], *chances[4:]]) < FALSE_ALARM
    estimate = randomiser.estimate(reports)
    low, high = estimate.interval(confidence=1 - FALSE_ALARM)
    assert low < 5 < high
    assert randomiser.error(n=200_000, confidence=0.9) < (high - low) / 2


def test_squashing_leaves_out_digits_that_nobody_has():
    randomiser = BitPushing(low=0, high=2**20 - 1, epsilon=1, bits=20)
    estimate = randomiser.estimate(randomiser.release(np.full(400_000, 37.5)))
    assert estimate.squashed(errors=6).standard_error < 40
    assert abs(estimate.squashed(errors=6).mean - 37.5) < 250
    assert estimate.standard_error > 1000
    assert abs(estimate.mean - 37.5) < 6.2 * estimate.standard_error


ALL = [Duchi, Piecewise, Hybrid, Moments, SquareWave]


@pytest.mark.parametrize("kind", ALL)
def test_what_cannot_be_is_refused(kind, no_randomness):
    for low, high, epsilon in [
        (1, 0, 1),
        (0, 1, 0),
        (0, 1, -1),
        (0, 1, math.nan),
        (0, math.inf, 1),
    ]:
        with pytest.raises(ParameterError):
            kind(low=low, high=high, epsilon=epsilon)
    with pytest.raises(ParameterError, match="64-bit coins"):
        kind(low=0, high=1, epsilon=1e-30)
    randomiser = kind(low=0, high=1, epsilon=1)
    with pytest.raises(DataError, match="array of numbers"):
        randomiser.release(["x"], source=no_randomness)
    for reports in ([randomiser.outputs], [-1], [0.5], [[1]]):
        with pytest.raises(DataError, match="reports must be"):
            randomiser.estimate(reports)
    with pytest.raises(DataError, match=r"at least one|some about"):
        randomiser.estimate([])


def test_bad_settings_are_refused():
    for cells in (2, 1 << 21, 2.5):
        with pytest.raises(ParameterError, match="cells"):
            Piecewise(low=0, high=1, epsilon=1, cells=cells)
    for bits in (0, 33):
        with pytest.raises(ParameterError, match="bits"):
            BitPushing(low=0, high=1, epsilon=1, bits=bits)
    with pytest.raises(DataError, match="each binary digit"):
        BitPushing(low=0, high=1, epsilon=1, bits=4).estimate([0])
    for bins in (1, 1 << 17):
        with pytest.raises(ParameterError, match="bins"):
            SquareWave(low=0, high=1, epsilon=1, bins=bins)
