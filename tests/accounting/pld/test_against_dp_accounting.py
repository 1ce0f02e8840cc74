"""Two hundred random settings against an independent accountant.

dp-accounting's bound is meant to be pessimistic, with an error of up to its grid of 1e-4 for every
operation: so our lower bound must not exceed it, our upper bound must not exceed it by more than
a relative 2e-4 plus 2e-4, and it must not exceed ours by more than that and its own error.
"""

import random

import dp_accounting as peer
import pytest
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution

from discreet.accounting import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    bracket,
)

ADD_REMOVE = peer.NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE_ONE = peer.NeighboringRelation.REPLACE_ONE
ZERO_OUT = peer.NeighboringRelation.REPLACE_SPECIAL


def single(dice):
    """One mechanism, in our words and in theirs, under a relation that both speak of."""
    kind = dice.choice(["gaussian", "laplace", "discrete laplace", "discrete gaussian"])
    relation = dice.choice([ADD_REMOVE, ZERO_OUT])
    multiplier = dice.uniform(0.6, 8)
    if kind == "gaussian":
        relation = dice.choice([ADD_REMOVE, REPLACE_ONE, ZERO_OUT])
        ours, theirs = GaussianLoss(noise_multiplier=multiplier), peer.GaussianDpEvent(multiplier)
        # Replacing a unit moves the sum twice as far as adding or removing one.
        return (ours.group(2) if relation == REPLACE_ONE else ours), theirs, relation
    if kind == "laplace":
        return LaplaceLoss(noise_multiplier=multiplier), peer.LaplaceDpEvent(multiplier), relation
    shift = dice.randint(1, 5)
    scale = multiplier * shift
    if kind == "discrete laplace":
        ours = DiscreteLaplaceLoss(noise_multiplier=multiplier, sensitivity=shift)
        law = privacy_loss_distribution.from_discrete_laplace_mechanism(1 / scale, shift)
        return ours, law, relation
    ours = DiscreteGaussianLoss(sigma=scale, sensitivity=shift, dimension=1)
    law = privacy_loss_distribution.from_discrete_gaussian_mechanism(scale, shift)
    return ours, law, relation


def sampled(dice):
    rate = 10 ** dice.uniform(-3, -0.3)
    multiplier = dice.uniform(0.7, 5)
    kind = dice.choice(["gaussian", "laplace"])
    ours = (GaussianLoss if kind == "gaussian" else LaplaceLoss)(noise_multiplier=multiplier)
    theirs = (peer.GaussianDpEvent if kind == "gaussian" else peer.LaplaceDpEvent)(multiplier)
    relation = dice.choice([ADD_REMOVE, ZERO_OUT])
    return ours.sampled(rate=rate), peer.PoissonSampledDpEvent(rate, theirs), relation


def their_epsilon(theirs, steps, delta, relation):
    if not isinstance(theirs, peer.DpEvent):  # a law that their events do not name
        return theirs.self_compose(steps).get_epsilon_for_delta(delta)
    accountant = PLDAccountant(neighboring_relation=relation)
    accountant.compose(theirs, steps)
    return accountant.get_epsilon(delta)


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(200))
def test_a_random_setting_agrees(seed):
    dice = random.Random(seed)
    ours, theirs, relation = (single if seed % 2 else sampled)(dice)
    steps = dice.choice([1, 2, 10, 50, 200])
    delta = 10 ** dice.uniform(-8, -3)
    expected = their_epsilon(theirs, steps, delta, relation)
    if expected > 60:  # their grid is meant for less
        steps = 1
        expected = their_epsilon(theirs, steps, delta, relation)
    found = bracket(ours * steps, delta=delta)
    assert found.lower <= expected * (1 + 1e-9) + 1e-9
    slack = 2e-4 + 2e-4 * expected
    assert found.upper <= expected + slack
    assert expected <= found.upper + slack + 1e-4 * steps
