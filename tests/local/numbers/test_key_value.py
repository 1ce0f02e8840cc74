"""Key-value pairs: one report for both, drawn alike, with frequencies and means."""

import math
from fractions import Fraction

import numpy as np
import pytest
from report_laws import FALSE_ALARM, is_within, misfit, worst_ratio

from discreet.errors import ParameterError
from discreet.local import DirectResponse, HadamardResponse, KeyValue
from discreet.local.numbers.oracles import readings


def law(randomiser, device):
    """Return the chance of each report of a device, as fractions."""
    oracle, told = randomiser.oracle, [Fraction(0)] * (2 * randomiser.keys + 1)
    known = {key: value for key, value in device.items() if 0 <= key < randomiser.keys}
    slots = max(len(known), randomiser.pairs)
    for key, value in known.items():
        up = randomiser.ruler.position(value)
        told[2 * key] += (1 - up) / slots
        told[2 * key + 1] += up / slots
    told[-1] = 1 - sum(told)
    chances = []
    own = [readings(oracle, unit) > 0 for unit in np.eye(len(told))]
    inside = oracle.law.keep_chance / oracle.law.preferred
    outside = (1 - oracle.law.keep_chance) / (oracle.law.outputs - oracle.law.preferred)
    for output in range(oracle.outputs):
        chances.append(sum(c * (inside if own[v][output] else outside) for v, c in enumerate(told)))
    return chances


DEVICES = [{}, {0: -1.0}, {0: 1.0}, {1: 0.3}, {0: 0.5, 1: 1.0}, {0: 1.0, 1: 1.0, 2: -1.0}, {9: 1.0}]


@pytest.mark.parametrize(("epsilon", "pairs"), [(0.5, 1), (2, 1), (2, 2), (5, 3)])
def test_reports_about_any_devices_have_the_claimed_loss(epsilon, pairs):
    randomiser = KeyValue(keys=3, low=-1, high=1, epsilon=epsilon, pairs=pairs)
    laws = [law(randomiser, device) for device in DEVICES]
    assert all(sum(chances) == 1 for chances in laws)
    assert is_within(worst_ratio(laws), epsilon)
    assert is_within(worst_ratio(laws), randomiser.loss.epsilon)


@pytest.mark.parametrize(("epsilon", "kind"), [(2, DirectResponse), (0.3, HadamardResponse)])
def test_reports_follow_their_law(epsilon, kind):
    keys = 3 if kind is DirectResponse else 6
    randomiser = KeyValue(keys=keys, low=-1, high=1, epsilon=epsilon, pairs=2)
    assert isinstance(randomiser.oracle, kind)
    device = {0: 0.5, 1: 1.0, 2: -1.0}
    reports = randomiser.release([device] * 60_000)
    assert misfit(reports, law(randomiser, device)) > FALSE_ALARM
    assert misfit(reports, law(randomiser, {0: -1.0})) < FALSE_ALARM


def test_strange_devices_do_not_stop_a_release_and_unheld_keys_have_no_mean():
    randomiser = KeyValue(keys=4, low=0, high=10, epsilon=4)
    strange = [{}, {7: 1.0}, {-1: 2.0}, {"x": 1.0}, {0: math.nan}, {0: 10**400}, {1: "text"}]
    reports = randomiser.release(strange * 2000)
    assert reports.size == 14_000
    assert reports.max() < randomiser.outputs
    estimate = randomiser.estimate(reports)
    assert abs(estimate.counts[0] - 4000) < 6.5 * estimate.standard_error[0]
    # NaN is the middle and 10**400 the end.
    assert abs(estimate.means[0] - 7.5) < 6.5 * estimate.mean_standard_error[0]
    assert ((estimate.means >= 0) & (estimate.means <= 10) | np.isnan(estimate.means)).all()


@pytest.mark.parametrize(
    "bad", [{"keys": 0}, {"keys": 1 << 31}, {"pairs": 0}, {"low": 2}, {"epsilon": 0}]
)
def test_what_cannot_be_is_refused(bad):
    with pytest.raises(ParameterError):
        KeyValue(**{"keys": 3, "low": 0, "high": 1, "epsilon": 1, "pairs": 1} | bad)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [2, 30])  # direct and Hadamard response
def test_squared_errors_are_those_stated(keys):
    randomiser = KeyValue(keys=keys, low=0, high=1, epsilon=2, pairs=2)
    devices = [{0: 0.9, 1: 0.2}] * 1500 + [{0: 0.5}] * 1500
    counts, means = [], []
    for _ in range(700):
        estimate = randomiser.estimate(randomiser.release(devices))
        counts.append((estimate.counts[:2] - [3000, 1500]) / estimate.standard_error[:2])
        means.append((estimate.means[:1] - 0.7) / estimate.mean_standard_error[:1])
    # Devices are the same each time, so the stated errors, which cover who was asked, are larger.
    for deviations in (counts, means):
        over = np.square(deviations).mean(axis=0)
        assert (over < 1 + 5.5 * math.sqrt(2 / 700)).all()
        assert (over > 0.6).all()
        assert np.abs(np.mean(deviations, axis=0)).max() < 6.2 / math.sqrt(700)
