"""Risk figures against the definition itself: the best test among all tests."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.privacy import (
    Guarantee,
    advantage,
    detection,
    odds,
    posterior,
    strength,
    success,
)

epsilons = st.floats(0, 20)
deltas = st.floats(0, 1)
chances = st.floats(0, 1)
guarantees = st.builds(lambda e, d: Guarantee(epsilon=e, delta=d), epsilons, deltas)


def worst_pair(guarantee):
    """The mechanism that fills the region: delta tells all, otherwise randomized response."""
    e, d = math.exp(-float(guarantee.epsilon)), float(guarantee.delta)
    truth, lie = (1 - d) / (1 + e), (1 - d) * e / (1 + e)
    with_you = (d, truth, lie, 0.0)
    without_you = (0.0, lie, truth, d)
    return with_you, without_you


@given(g=guarantees, prior=chances)
def test_success_is_what_the_best_guesser_reaches_on_the_worst_mechanism(g, prior):
    p, q = worst_pair(g)
    bayes = sum(max(prior * a, (1 - prior) * b) for a, b in zip(p, q, strict=True))
    assert success(g, prior=prior) == pytest.approx(bayes, abs=1e-12)


@given(g=guarantees)
def test_advantage_is_total_variation_of_the_worst_mechanism(g):
    p, q = worst_pair(g)
    distance = sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
    assert advantage(g) == pytest.approx(distance, abs=1e-12)
    assert advantage(g) == pytest.approx(2 * success(g, prior=0.5) - 1, abs=1e-12)


@given(epsilon=st.floats(0, 30), delta=deltas)
def test_advantage_is_the_published_formula(epsilon, delta):
    published = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    assert advantage(Guarantee(epsilon=epsilon, delta=delta)) == pytest.approx(published, abs=1e-12)


@given(g=guarantees)
def test_odds_lie_on_the_edge_of_the_region(g):
    with_you, without_you = odds(g)
    assert with_you + without_you == pytest.approx(1)
    assert detection(g, false_alarms=without_you) == pytest.approx(with_you, abs=1e-9)


@given(g=guarantees, a=chances)
def test_detection_is_the_neyman_pearson_curve_of_the_worst_mechanism(g, a):
    p, q = worst_pair(g)
    # Outputs in order of evidence: spend the allowed false alarms on the strongest first.
    left, power = a, 0.0
    for yes, no in zip(p, q, strict=True):
        share = 1.0 if no <= left else left / no
        power += yes * share
        left = max(0.0, left - no * share)
    assert detection(g, false_alarms=a) == pytest.approx(power, abs=1e-9)


@given(epsilon=epsilons, prior=chances)
def test_posterior_is_bayes_rule_on_randomized_response(epsilon, prior):
    g = Guarantee(epsilon=epsilon)
    p, q = worst_pair(g)
    after = prior * p[1] / (prior * p[1] + (1 - prior) * q[1])
    assert posterior(g, prior=prior) == pytest.approx(after, rel=1e-12)
    assert prior <= posterior(g, prior=prior) <= 1


@pytest.mark.lengthy
@given(e=st.fractions(0, 30), p=st.fractions(0, 1))
def test_bounds_round_towards_more_risk(e, p):
    g = Guarantee(epsilon=e)
    with_you, without_you = odds(g)
    assert Fraction(with_you) + Fraction(without_you) >= 1 - Fraction(1, 2**50)
    assert Fraction(with_you) >= 1 - Fraction(without_you) - Fraction(1, 2**50)
    assert Fraction(posterior(g, prior=p)) >= p
    assert Fraction(success(g, prior=p)) >= max(p, 1 - p)


def test_exact_where_exact_is_possible():
    nothing = Guarantee(epsilon=0)
    assert odds(nothing) == (0.5, 0.5)
    assert advantage(nothing) == 0
    assert posterior(nothing, prior=0.25) == 0.25
    assert success(nothing, prior=0.25) == 0.75


def test_publishing_one_random_record_of_n():
    # (0, 1/n): nearly always nothing, yet the exception tells all.
    g = Guarantee(epsilon=0, delta=Fraction(1, 100))
    assert advantage(g) == 0.01
    assert detection(g, false_alarms=0) == 0.01


@pytest.mark.parametrize("epsilon", [800, 1e6, 1e308, 10**400])
def test_no_epsilon_overflows(epsilon):
    g = Guarantee(epsilon=epsilon)
    assert odds(g).with_you == 1
    assert success(g, prior=0.5) == advantage(g) == 1
    assert posterior(g, prior=1e-9) == 1
    assert detection(g, false_alarms=1e-9) == 1
    assert detection(g, false_alarms=0) == 0
    assert posterior(g, prior=0) == 0


@pytest.mark.parametrize(
    ("epsilon", "band"),
    [
        (0, "strong"),
        (1, "strong"),
        (1.01, "moderate"),
        (10, "moderate"),
        (10.01, "weak"),
        (100, "weak"),
        (100.5, "negligible"),
    ],
)
def test_bands(epsilon, band):
    assert strength(Guarantee(epsilon=epsilon)) == band


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, "half", None])
def test_bad_probabilities_are_refused_by_name(bad):
    g = Guarantee(epsilon=1)
    with pytest.raises(ParameterError, match=r"^prior must be"):
        posterior(g, prior=bad)
    with pytest.raises(ParameterError, match=r"^prior must be"):
        success(g, prior=bad)
    with pytest.raises(ParameterError, match=r"^false_alarms must be"):
        detection(g, false_alarms=bad)
