"""What a loss must say of itself, and that all it does not say has a safe default."""

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from discreet.accounting import (
    ApproximateLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    Filter,
    FinitePairLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    PureLoss,
    RandomizedResponseLoss,
    SampledGroupLoss,
    ShuffledLoss,
    TruncatedPoissonLoss,
    WithoutReplacementLoss,
    ZCDPLoss,
    bracket,
    calibrate,
    compare,
    epsilon,
    losses,
    most_steps,
)
from discreet.privacy import Guarantee

EVERY = (
    ApproximateLoss(epsilon=1, delta=1e-6),
    BoundedRangeLoss(epsilon=1),
    DiscreteGaussianLoss(sigma=2, sensitivity=1),
    DiscreteLaplaceLoss(noise_multiplier=2, sensitivity=3),
    FinitePairLoss(p=(0.75, 0.25), q=(0.25, 0.75)),
    GaussianLoss(noise_multiplier=2),
    LaplaceLoss(noise_multiplier=2),
    PureLoss(epsilon=1),
    RandomizedResponseLoss(epsilon=1, categories=4),
    GaussianLoss(noise_multiplier=2).sampled(rate=0.25),
    LaplaceLoss(noise_multiplier=2).sampled(rate=0.25),
    SampledGroupLoss(noise_multiplier=2, rate=0.25, size=3),
    ShuffledLoss(epsilon0=1, n=100),
    TruncatedPoissonLoss(inner=PureLoss(epsilon=1), rate=0.1, batch=30, population=100),
    WithoutReplacementLoss(inner=PureLoss(epsilon=1), batch=3, population=9),
    ZCDPLoss(rho=0.125, delta=1e-6),
    GaussianLoss(noise_multiplier=4) * 3 + PureLoss(epsilon=0.1),
)
PROMISE = Guarantee(epsilon=3, delta=1e-6)


@dataclass(frozen=True, kw_only=True)
class ShortestLoss(Loss):
    """States nothing but what every loss must."""

    epsilon: float
    kind = "shortest"

    @property
    def epsilon_pure(self):
        return Fraction(self.epsilon)

    def delta_upper(self, *, epsilon):
        return PureLoss(epsilon=self.epsilon).delta_upper(epsilon=epsilon)


def test_every_listed_loss_is_looked_at_here_and_has_a_kind_of_its_own():
    names = [name for name in losses.__all__ if name.endswith("Loss") and name != "Loss"]
    listed = [getattr(losses, name) for name in names]
    assert {type(loss) for loss in EVERY} == set(listed)
    assert len({loss.kind for loss in listed}) == len(listed)


@pytest.mark.parametrize("loss", EVERY, ids=repr)
def test_what_a_loss_says_in_different_words_agrees(loss):
    assert loss.failure == loss.zcdp[1]
    assert loss.approximate_dp[1] in (0, loss.failure)
    assert loss.approximate_dp[0] <= loss.epsilon_pure
    assert loss.relation in (None, loss.neighbours) or loss.is_composed
    assert sum(times for _, times in loss.parts) == (4 if loss.is_composed else 1)
    curve = loss.renyi_curve()
    quick = loss.renyi_upper(order=Fraction(8))
    if curve is not None and quick < math.inf:
        assert curve(8.0) <= float(quick) * (1 + 1e-12), "the dear bound is the better one"
    rho, _ = loss.zcdp
    if curve is not None and rho < math.inf:
        assert curve(8.0) <= float(8 * rho) * (1 + 1e-12)
    if loss.least_delta:
        assert loss.delta_upper(epsilon=400) >= loss.least_delta


def test_a_loss_that_states_three_things_can_do_everything():
    loss, twin = ShortestLoss(epsilon=0.25), PureLoss(epsilon=0.25)
    assert epsilon(loss, delta=0) == 0.25
    assert epsilon(loss * 50, delta=1e-6) == pytest.approx(epsilon(twin * 50, delta=1e-6), rel=0.02)
    assert bracket(loss * 50, delta=1e-6).upper >= bracket(twin * 50, delta=1e-6).lower
    assert Filter(PROMISE).charge(loss) == Filter(PROMISE).charge(twin)
    assert loss.sampled(rate=0.1).epsilon_pure == twin.sampled(rate=0.1).epsilon_pure
    assert (loss.group(2), loss.noisier(2)) == (PureLoss(epsilon=0.5), ShortestLoss(epsilon=0.125))
    assert most_steps(loss, epsilon=1, delta=0) == 4
    assert calibrate(lambda s: ShortestLoss(epsilon=1 / s), epsilon=0.5, delta=0) == 2
    pairs = zip(compare(loss * 50, delta=1e-6), compare(twin * 50, delta=1e-6), strict=True)
    assert all(a.epsilon == b.epsilon for a, b in pairs if a.name != "pld")


@dataclass(frozen=True, kw_only=True)
class RenyiOnlyLoss(ShortestLoss):
    """Knows a divergence, outside an event that it counts as a failure."""

    kind = "renyi_only"
    epsilon_pure = math.inf

    def delta_upper(self, *, epsilon):
        return 1.0

    def renyi_upper(self, *, order):
        return order * Fraction(self.epsilon)

    @property
    def failure(self):
        return Fraction(1, 10**9)


def test_a_divergence_that_is_stated_is_used_with_its_chance_of_failure():
    loss = RenyiOnlyLoss(epsilon=2**-10)
    f = Filter(PROMISE, kind="renyi")
    divergence, failure = f.rules.price(loss)
    same = f.rules.price(ZCDPLoss(rho=2**-10, delta=Fraction(1, 10**9)))
    assert (divergence, failure) == same
    curve = loss.renyi_curve()
    assert curve(4.0) == 2**-8
    assert compare(loss, delta=1e-6)[4].epsilon > 0


@dataclass(frozen=True, kw_only=True)
class ForgetfulLoss(RenyiOnlyLoss):
    """Has a failure in its zCDP that it does not mention elsewhere."""

    kind = "forgetful"
    failure = Fraction(0)
    zcdp = (Fraction(1, 8), Fraction(1, 100))

    def renyi_upper(self, *, order):
        return math.inf


def test_a_failure_is_never_forgotten():
    assert ForgetfulLoss(epsilon=1).renyi_curve() is None
    assert not Filter(PROMISE).ask(ForgetfulLoss(epsilon=1))
