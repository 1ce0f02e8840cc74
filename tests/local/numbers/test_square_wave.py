"""Histograms by square wave: the law, and estimates against simulation."""

import numpy as np
import pytest
from report_laws import FALSE_ALARM, is_within, misfit, worst_ratio

from discreet.errors import ParameterError
from discreet.local import SquareWave


@pytest.mark.parametrize("epsilon", [1e-5, 0.5, 1, 6])
def test_the_law_has_the_claimed_loss(epsilon):
    randomiser = SquareWave(low=0, high=1, epsilon=epsilon, bins=12)
    window, outputs = randomiser.window, range(randomiser.outputs)
    assert window.positions == 12
    laws = [[window.chance(o, position=g) for o in outputs] for g in range(12)]
    assert is_within(worst_ratio(laws), epsilon)
    assert is_within(worst_ratio(laws), randomiser.loss.epsilon)


def test_reports_follow_their_law_and_bins_are_those_of_a_histogram():
    randomiser = SquareWave(low=-3, high=5, epsilon=2, bins=8)
    numbers = np.array([-3, -2.5, 0, 4.9, 5, 99, -99, np.nan])
    assert randomiser.bin(numbers).tolist() == [0, 0, 3, 7, 7, 7, 0, 4]
    reports = randomiser.release(np.full(100_000, 0.5))
    chances = [randomiser.window.chance(o, position=3) for o in range(randomiser.outputs)]
    assert misfit(reports, chances) > FALSE_ALARM
    assert misfit(reports, chances[::-1]) < FALSE_ALARM


def test_estimates_are_nearer_than_without_smoothing_and_as_rehearsed():
    randomiser = SquareWave(low=0, high=1, epsilon=1, bins=64)
    rng = np.random.default_rng(5)
    values = rng.beta(5, 2, 50_000)
    truth = np.histogram(values, bins=64, range=(0, 1))[0] / values.size
    reports = randomiser.release(values)
    estimate = randomiser.estimate(reports)
    assert estimate.shares.sum() == pytest.approx(1)
    assert estimate.shares.min() >= 0
    off = np.abs(np.cumsum(estimate.shares - truth)).sum() / 64  # Wasserstein's distance
    assert off < 0.03
    flat = np.abs(np.cumsum(1 / 64 - truth)).sum() / 64
    assert off < flat / 5
    assert abs(estimate.mean - values.mean()) < 0.03
    rehearsed = randomiser.rehearse(truth, n=values.size, times=3)
    assert np.abs(np.cumsum(rehearsed - truth, axis=1)).sum(axis=1).max() / 64 < 0.03


def test_bad_shares_are_refused():
    randomiser = SquareWave(low=0, high=1, epsilon=1, bins=4)
    for shares in ([1, 2], [0, 0, 0, 0], [-1, 1, 1, 1], [np.nan, 1, 1, 1]):
        with pytest.raises(ParameterError, match="shares"):
            randomiser.rehearse(shares, n=10)


@pytest.mark.slow
def test_smoothing_beats_plain_maximum_likelihood_and_equal_bins():
    rng = np.random.default_rng(6)
    for draw in (lambda n: rng.beta(5, 2, n), lambda n: rng.normal(0.3, 0.1, n)):
        plain, smooth = [], []
        for _ in range(20):
            values = np.clip(draw(20_000), 0, 1)
            randomiser = SquareWave(low=0, high=1, epsilon=1, bins=256)
            truth = np.histogram(values, bins=256, range=(0, 1))[0] / values.size
            reports = randomiser.release(values)
            for found, to in ((False, plain), (True, smooth)):
                shares = randomiser.estimate(reports, smooth=found).shares
                to.append(np.square(shares - truth).sum())
        assert np.mean(smooth) < np.mean(plain)
