"""What a batch costs: the published figures, and less is never claimed than is true."""

from fractions import Fraction
from math import comb, exp
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.accounting import PureLoss, ShuffledLoss, epsilon
from discreet.accounting.shuffling import shuffle_delta
from discreet.errors import ParameterError
from discreet.local import DirectResponse, HadamardResponse, RepeatedDirect
from discreet.local.wire import parameters_of
from discreet.shuffle import Amplification, AnalyserSettings, composed
from discreet.shuffle.analyser.amplification import local_epsilon

DELTA = 1e-6


@pytest.mark.parametrize(
    ("n", "epsilon0", "expected"),
    [(10**4, 1, 0.0432), (10**6, 4, 0.0343), (10**6, 8, 0.3039)],
)
def test_the_reference_values(n, epsilon0, expected):
    batch = Amplification(epsilon0=epsilon0, honest=n, delta=DELTA)
    assert batch.epsilon_2023 == pytest.approx(expected, abs=6e-5)
    assert batch.epsilon_2023 <= batch.epsilon_2021
    assert batch.loss.epsilon == batch.epsilon_2023


def test_fewer_honest_reports_cost_more_and_one_alone_the_whole():
    batch = Amplification(epsilon0=2, honest=5000, delta=DELTA)
    fewer = batch.if_fewer()
    assert [n for n, _ in fewer] == [2500, 500, 50, 1]
    costs = [batch.epsilon_2023, *(cost for _, cost in fewer)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize("dummies", [1, 3, 10, 40])
def test_dummies_hide_a_report_when_everybody_else_tells_theirs(dummies):
    """The n - 1 attack, exactly: what is left is one report among dummies, which are fair coins."""
    law = DirectResponse(domain=2, epsilon=1)
    keep = float(law.law.keep_chance)
    fair = np.array([comb(dummies, k) for k in range(dummies + 1)]) / 2**dummies
    one = keep * np.append(0, fair) + (1 - keep) * np.append(fair, 0)
    for bound in (0.0, 0.1, 0.3, 0.6, 0.9):
        exact = np.maximum(one - exp(bound) * one[::-1], 0).sum()
        assert exact <= shuffle_delta(epsilon0=1, n=dummies + 1, epsilon=bound)
    # One that is known beforehand would hide nothing, and be noticed here.
    bare = np.array([1 - keep, keep])
    assert np.maximum(bare - exp(0.3) * bare[::-1], 0).sum() > shuffle_delta(
        epsilon0=1, n=dummies + 1, epsilon=0.3
    )


@pytest.mark.parametrize("honest", [0, 1])
def test_without_others_a_report_costs_what_the_device_says(honest):
    batch = Amplification(epsilon0=2, honest=honest, delta=0)
    assert batch.loss == PureLoss(epsilon=2)
    assert batch.shuffled == PureLoss(epsilon=2)


def test_further_envelopes_cost_the_whole_each():
    one = Amplification(epsilon0=1, honest=10_000, delta=DELTA)
    three = Amplification(epsilon0=1, honest=10_000, delta=DELTA, further=2)
    assert three.loss == one.loss + PureLoss(epsilon=1) * 2


def test_batches_compose_as_their_losses_do():
    batch = Amplification(epsilon0=1, honest=10_000, delta=1e-7)
    loss = ShuffledLoss(epsilon0=1, n=10_000)
    total = composed([batch] * 10, delta=1e-6)
    assert total == epsilon(loss * 10, delta=1e-6)
    assert total < 10 * batch.epsilon_2023
    assert composed([], delta=1e-6) == 0


def test_answers_that_a_device_remembers_are_refused():
    kept = RepeatedDirect(domain=4, epsilon=2, first=1)
    with pytest.raises(ParameterError, match="must draw every report anew"):
        local_epsilon(kept)
    parameters = parameters_of(kept, name="tea", a_day=9, lifetime=9)
    with pytest.raises(ParameterError, match="must draw every report anew"):
        AnalyserSettings(parameters=parameters, minimum=10, honest=1, delta=1e-8)
    for law in (DirectResponse(domain=4, epsilon=1), HadamardResponse(domain=40, epsilon=2)):
        assert local_epsilon(law) <= Fraction(law.epsilon)


def test_what_has_no_pure_loss_is_refused():
    with pytest.raises(ParameterError):
        local_epsilon(SimpleNamespace())


@pytest.mark.parametrize(
    "wrong", [{"epsilon0": 0}, {"honest": -1}, {"delta": 1}, {"further": -1}, {"honest": 1.5}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ParameterError):
        Amplification(**{"epsilon0": 1, "honest": 10, "delta": DELTA} | wrong)
