"""What attackers gain: equal to the guarantee's own functions where only a guarantee is known."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.accounting import ApproximateLoss, GaussianLoss, LaplaceLoss, PureLoss, epsilon, risk
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

EPSILONS, DELTAS = st.floats(0.001, 8), st.floats(0, 0.2)
SHARES = st.floats(0, 1)


def both(e, d):
    return ApproximateLoss(epsilon=e, delta=d), Guarantee(epsilon=e, delta=d)


@given(e=EPSILONS, d=DELTAS)
def test_advantage_is_that_of_the_guarantee(e, d):
    loss, guarantee = both(e, d)
    assert risk.advantage(loss) == pytest.approx(privacy.advantage(guarantee), abs=1e-12)


@given(e=EPSILONS, d=DELTAS, prior=SHARES)
def test_success_is_that_of_the_guarantee(e, d, prior):
    loss, guarantee = both(e, d)
    assert risk.success(loss, prior=prior) == pytest.approx(
        privacy.success(guarantee, prior=prior), abs=1e-12
    )


@pytest.mark.lengthy
@settings(max_examples=30, deadline=None)
@given(e=EPSILONS, d=DELTAS, alarms=SHARES)
def test_detection_is_that_of_the_guarantee(e, d, alarms):
    loss, guarantee = both(e, d)
    ours = risk.detection(loss, false_alarms=alarms)
    theirs = privacy.detection(guarantee, false_alarms=alarms)
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert ours >= theirs - 1e-15


@given(e=EPSILONS, d=DELTAS, prior=SHARES)
def test_posterior_is_that_of_the_guarantee(e, d, prior):
    loss, guarantee = both(e, d)
    assert risk.posterior(loss, prior=prior, delta=d) == pytest.approx(
        privacy.posterior(guarantee, prior=prior), abs=1e-9
    )


@pytest.mark.lengthy
@settings(max_examples=30, deadline=None)
@given(e=EPSILONS, baseline=SHARES)
def test_reconstruction_from_a_pure_loss(e, baseline):
    # 1 - T(b) of the pure curve.
    bound = min(1.0, math.exp(e) * baseline, 1 - math.exp(-e) * (1 - baseline))
    found = risk.reconstruction(PureLoss(epsilon=e), baseline=baseline)
    assert found == pytest.approx(bound, abs=1e-9)
    assert found >= bound - 1e-15


@pytest.mark.lengthy
def test_a_whole_profile_says_less_risk_than_one_of_its_points():
    loss = GaussianLoss(noise_multiplier=4).sampled(rate=0.01) * 10_000
    guarantee = Guarantee(epsilon=epsilon(loss, delta=1e-5), delta=1e-5)
    assert risk.advantage(loss) < 0.3 * privacy.advantage(guarantee)
    assert risk.success(loss, prior=0.5) < privacy.success(guarantee, prior=0.5)
    for alarms in (0.001, 0.01, 0.1):
        assert risk.detection(loss, false_alarms=alarms) < privacy.detection(
            guarantee, false_alarms=alarms
        )


def test_gaussian_risks_have_their_closed_forms():
    from scipy.stats import norm

    loss = GaussianLoss(noise_multiplier=2)
    assert risk.advantage(loss) == pytest.approx(2 * norm.cdf(0.25) - 1)
    assert risk.detection(loss, false_alarms=0.01) == pytest.approx(
        norm.cdf(norm.ppf(0.01) + 0.5), rel=1e-4
    )


def test_certainty_and_impossibility():
    loss = GaussianLoss(noise_multiplier=1)
    assert risk.posterior(loss, prior=0.1, delta=0) == 1
    assert risk.posterior(loss, prior=0, delta=0) == 0
    assert risk.success(loss, prior=0) == risk.success(loss, prior=1) == 1
    assert risk.detection(loss, false_alarms=1) == 1
    assert risk.detection(LaplaceLoss(noise_multiplier=1), false_alarms=0) == pytest.approx(0)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, None])
def test_bad_shares_are_refused_by_name(bad):
    loss = PureLoss(epsilon=1)
    for call, name in (
        (lambda: risk.success(loss, prior=bad), "prior"),
        (lambda: risk.detection(loss, false_alarms=bad), "false_alarms"),
        (lambda: risk.posterior(loss, prior=bad, delta=0), "prior"),
        (lambda: risk.posterior(loss, prior=0.5, delta=bad), "delta"),
        (lambda: risk.reconstruction(loss, baseline=bad), "baseline"),
    ):
        with pytest.raises(ParameterError, match=name):
            call()
