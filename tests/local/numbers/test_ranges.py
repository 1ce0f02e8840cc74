"""Ranges by a tree: levels chosen alike, least squares solved, errors as measured."""

import numpy as np
import pytest
from report_laws import FALSE_ALARM, misfit

from discreet.errors import DataError, ParameterError
from discreet.local import Ranges
from discreet.local.numbers.oracles import readings


def values(n, domain):
    return np.minimum(np.random.default_rng(1).binomial(domain, 0.3, n), domain - 1)


def test_reports_of_every_level_have_their_law_and_the_loss_is_the_largest():
    randomiser = Ranges(domain=9, epsilon=1, fan_out=3)
    assert [level.domain for level in randomiser.levels] == [3, 9]
    assert randomiser.loss.epsilon <= 1
    assert randomiser.loss.epsilon == max(level.loss.epsilon for level in randomiser.levels)
    reports = randomiser.release(np.full(200_000, 7))
    chances = []
    for level, node in zip(randomiser.levels, (2, 7), strict=True):
        for output in range(level.outputs):
            own = readings(level, np.eye(level.domain)[node])[output] > 0
            share = level.law.keep_chance if own else 1 - level.law.keep_chance
            size = level.law.preferred if own else level.law.outputs - level.law.preferred
            chances.append(float(share) / size / 2)
    assert misfit(reports, chances) > FALSE_ALARM
    assert misfit(reports, chances[::-1]) < FALSE_ALARM


@pytest.mark.parametrize(("domain", "fan_out", "epsilon"), [(16, 4, 1), (27, 3, 2), (11, 2, 4)])
def test_counts_are_the_weighted_least_squares_of_all_levels(domain, fan_out, epsilon):
    randomiser = Ranges(domain=domain, epsilon=epsilon, fan_out=fan_out)
    estimate = randomiser.estimate(randomiser.release(values(5000, domain)))
    size = fan_out**randomiser.depth
    rows, wanted, weights = [np.ones(size)], [1.0], [1e6]
    for level, codes in zip(randomiser.levels, estimate.reports, strict=True):
        shares = level.estimate(codes).shares
        weight = codes.size / level.support.variance(n=1, count=0)
        rows += list(np.repeat(np.eye(shares.size), size // shares.size, axis=1))
        wanted, weights = [*wanted, *shares], [*weights, *[np.sqrt(weight)] * shares.size]
    scaled = np.array(rows) * np.array(weights)[:, None]
    solved = np.linalg.lstsq(scaled, np.array(wanted) * weights, rcond=None)[0]
    assert np.allclose(estimate.counts / estimate.n, solved[:domain], atol=1e-6)
    count, _ = estimate.range(1, domain - 3)
    assert count == pytest.approx(estimate.counts[1 : domain - 2].sum(), abs=1e-6)
    everybody, error = estimate.range(0, domain - 1)
    assert (everybody, error) == pytest.approx((estimate.n, 0), abs=1e-6)


def test_quantiles_and_bad_questions():
    randomiser = Ranges(domain=100, epsilon=4)
    estimate = randomiser.estimate(randomiser.release(np.arange(200_000) % 100))
    assert 40 < estimate.quantile(0.5) < 60
    assert estimate.quantile(0) == 0
    assert estimate.quantile(1) <= 99
    for first, last in [(-1, 5), (5, 4), (0, 100), (0.5, 3)]:
        with pytest.raises(ParameterError, match=r"first|last"):
            estimate.range(first, last)
    for domain, fan_out in [(1, 4), (1 << 25, 4), (10, 1)]:
        with pytest.raises(ParameterError, match=r"domain|fan_out"):
            Ranges(domain=domain, epsilon=1, fan_out=fan_out)
    with pytest.raises(DataError, match="finest"):
        randomiser.estimate([0])


@pytest.mark.slow
@pytest.mark.parametrize("fan_out", [2, 4, 8])
def test_ranges_are_unbiased_with_the_errors_they_state(fan_out):
    randomiser = Ranges(domain=64, epsilon=1, fan_out=fan_out)
    held = values(20_000, 64)
    asked = [(3, 60), (11, 20), (20, 20)]
    truth = [np.sum((held >= a) & (held <= b)) for a, b in asked]
    found = []
    for _ in range(600):
        estimate = randomiser.estimate(randomiser.release(held))
        found.append([estimate.range(*ends) for ends in asked])
    counts, errors = np.moveaxis(np.array(found), 2, 0)
    deviations = counts - truth
    # Deviations over stated errors have a mean square of 1, to 5 standard errors of 600 squares.
    assert np.abs(np.square(deviations / errors).mean(axis=0) - 1).max() < 5 * np.sqrt(2 / 600)
    assert np.abs(deviations.mean(axis=0) / errors.mean(axis=0)).max() < 6.2 / np.sqrt(600)
    off = [randomiser.error(n=20_000, confidence=0.99, share=(b - a + 1) / 64) for a, b in asked]
    assert (np.abs(deviations) < off).mean() > 0.98
