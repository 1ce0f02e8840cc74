"""The loss of messages among dummies, against laws that are enumerated."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._rounding import exp_lower, exp_upper
from discreet.accounting import delta, epsilon, from_json, to_json
from discreet.errors import ParameterError
from discreet.shuffle.messages.binomials import BITS, floored_binomial
from discreet.shuffle.messages.dummies import ONE, Dummies
from discreet.shuffle.messages.hidden_shift import hidden_shift_loss
from discreet.shuffle.messages.histogram import MultiMessageHistogram
from discreet.shuffle.messages.sum import MultiMessageSum

LOSSES = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3)]


def binomial(trials, chance):
    return [
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)
    ]


def law_of_counts(own, *, devices, dummies, kinds):
    """Return the law of how many messages there are of each kind, by going through all coins."""
    outcomes = [None, *range(kinds)]
    chances = [1 - dummies.heads] + [dummies.heads / kinds] * kinds
    found = Counter()
    for tosses in product(range(kinds + 1), repeat=devices * dummies.coins):
        counts = Counter([*own, *(outcomes[toss] for toss in tosses if toss)])
        found[tuple(counts[kind] for kind in range(kinds))] += math.prod(
            (chances[toss] for toss in tosses), start=Fraction(1)
        )
    assert sum(found.values()) == 1
    return found


def exact_delta(p, q, ratio):
    return sum(max(Fraction(0), mass - ratio * q[outcome]) for outcome, mass in p.items())


def assert_covers(loss, p, q, *, slack):
    for at in LOSSES:
        claimed = loss.delta_upper(epsilon=at)
        assert claimed >= max(exact_delta(*way, exp_upper(at)) for way in ((p, q), (q, p)))
        truth = max(exact_delta(*way, exp_lower(at)) for way in ((p, q), (q, p)))
        assert claimed <= float(truth) * slack + 1e-20


# The whole protocol -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "devices", "coins", "chance"),
    [(2, 2, 2, ONE), (2, 3, 1, ONE // 3), (3, 3, 1, ONE), (3, 2, 2, 3 * ONE // 4), (4, 3, 1, ONE)],
)
def test_a_histogram_loses_what_enumeration_says_and_hardly_less(domain, devices, coins, chance):
    dummies = Dummies(coins=coins, chance=chance)
    protocol = MultiMessageHistogram(domain=domain, honest=devices, dummies=dummies)
    others = [0] * (devices - 1)
    p, q = (
        law_of_counts([value, *others], devices=devices, dummies=dummies, kinds=domain)
        for value in (0, domain - 1)
    )
    assert_covers(protocol.loss, p, q, slack=1.01)


@pytest.mark.parametrize(
    ("largest", "devices", "coins", "chance"), [(1, 3, 2, ONE), (2, 3, 2, ONE // 2), (3, 2, 4, ONE)]
)
def test_a_sum_loses_what_enumeration_says_for_every_change(largest, devices, coins, chance):
    dummies = Dummies(coins=coins, chance=chance)
    protocol = MultiMessageSum(largest=largest, honest=devices, dummies=dummies)
    others = [1] * (largest * (devices - 1))
    laws = [
        law_of_counts(
            [1] * value + [0] * (largest - value) + others,
            devices=devices,
            dummies=dummies,
            kinds=2,
        )
        for value in range(largest + 1)
    ]
    assert_covers(protocol.loss, laws[0], laws[-1], slack=1.01)
    for p, q in pairwise(laws):  # a smaller change shows no more
        for at in LOSSES:
            assert protocol.loss.delta_upper(epsilon=at) >= exact_delta(p, q, exp_upper(at))


# The parts --------------------------------------------------------------------------------------


@given(
    trials=st.integers(0, 120), chance=st.fractions(Fraction(1, 10**6), 1, max_denominator=10**6)
)
@settings(max_examples=60)
def test_binomial_masses_are_never_above_the_truth_and_nothing_is_lost(trials, chance):
    first, masses = floored_binomial(trials, chance)
    exact = binomial(trials, chance)
    for k, mass in enumerate(masses, start=first):
        assert Fraction(mass, 1 << BITS) <= exact[k]
    assert 0 <= 1 - Fraction(sum(masses), 1 << BITS) < Fraction(1, 1 << 80)


@pytest.mark.parametrize("shift", [1, 3])
def test_many_coins_lose_what_exact_sums_say_and_hardly_less(shift):
    trials, chance = 90, Fraction(2, 3)
    loss = hidden_shift_loss(trials=trials, chance=chance, shift=shift)
    p, q = {}, {}
    for coins, weight in enumerate(binomial(trials, chance)):
        for heads, mass in enumerate(binomial(coins, Fraction(1, 2))):
            p[coins, heads + shift] = weight * mass
            q[coins, heads] = weight * mass
    p = {key: p.get(key, Fraction(0)) for key in {**p, **q}}
    q = {key: q.get(key, Fraction(0)) for key in p}
    for at in (Fraction(1, 4), Fraction(1)):
        claimed = loss.delta_upper(epsilon=at)
        assert exact_delta(p, q, exp_upper(at)) <= claimed
        assert claimed <= float(exact_delta(p, q, exp_lower(at))) * 1.02


def test_a_loss_is_short_composes_and_can_be_written_down():
    loss = hidden_shift_loss(trials=10**6, chance=Fraction(3, 100), shift=10)
    assert len(loss.p) <= 163
    assert from_json(to_json(loss)) == loss
    once, ten = epsilon(loss, delta=1e-9), epsilon(loss * 10, delta=1e-9)
    assert once < ten < 5 * once


@pytest.mark.lengthy
@given(epsilon=st.floats(0.3, 5), few=st.integers(2, 50), people=st.integers(50, 5000))
@settings(max_examples=3)
def test_as_many_dummies_as_needed_and_hardly_more(epsilon, few, people):
    protocol = MultiMessageHistogram.calibrated(
        epsilon=epsilon, delta=1e-8, domain=few, honest=people
    )
    assert delta(protocol.loss, epsilon=epsilon) <= 1e-8
    fewer = MultiMessageHistogram(
        domain=few, honest=people, dummies=Dummies.of(protocol.dummies.mean * Fraction(98, 100))
    )
    assert delta(fewer.loss, epsilon=epsilon) > 1e-8


@pytest.mark.lengthy
def test_fewer_honest_devices_lose_more():
    protocol = MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=3, honest=400)
    costs = [protocol.loss_if(honest=n).delta_upper(epsilon=1) for n in (400, 300, 200)]
    assert 1e-6 >= costs[0] < costs[1] < costs[2]


# What cannot be ---------------------------------------------------------------------------------


def test_what_no_dummies_buy_is_refused():
    ask = {"domain": 10, "honest": 100}
    with pytest.raises(ParameterError, match="delta must be at least 1e-20"):
        MultiMessageHistogram.calibrated(epsilon=1, delta=1e-30, **ask)
    with pytest.raises(ParameterError, match="delta must be a number in"):
        MultiMessageHistogram.calibrated(epsilon=1, delta=0, **ask)
    with pytest.raises(ParameterError, match="epsilon must be a finite number above 0"):
        MultiMessageHistogram.calibrated(epsilon=0, delta=1e-6, **ask)
    with pytest.raises(ParameterError, match="more than 1048576 dummies from each device"):
        MultiMessageHistogram.calibrated(epsilon=0.01, delta=1e-6, domain=10**6, honest=2)
    with pytest.raises(ParameterError, match="honest must be a whole number of at least 1"):
        MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=3, honest=0)
    with pytest.raises(ParameterError, match="largest must be at most 1000"):
        MultiMessageSum.calibrated(epsilon=1, delta=1e-6, largest=1001, honest=10)
    with pytest.raises(ParameterError, match="chance must be a whole number from 1 to 2"):
        Dummies(coins=1, chance=ONE + 1)
    with pytest.raises(ParameterError, match="coins must be at most 1048576"):
        Dummies.of(Fraction(1 << 21))
