"""What an observer learns over time, against all sequences of a small case."""

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from discreet import local
from discreet.errors import ParameterError

KEEPING = local.RepeatedDirect(domain=3, epsilon=2, first=1)
PLAIN = local.RepeatedDirect(domain=3, epsilon=2, first=2)
FRESH = local.DirectResponse(domain=3, epsilon=1)


def stream_law(randomiser, history):
    """Return the chance of every stream of reports, where each value keeps its own response."""
    law, k = randomiser.law, randomiser.domain
    own, other = float(law.permanent.hit(shared=1)), float(law.permanent.hit(shared=0))
    permanent = np.full((k, k), other) + (own - other) * np.eye(k)
    instant = np.full((k, k), float(law.stray)) + float(law.keep_chance - law.stray) * np.eye(k)
    held = sorted(set(history))
    total = 0.0
    for kept in itertools.product(range(k), repeat=len(held)):
        response = dict(zip(held, kept, strict=True))
        part = math.prod(permanent[value, response[value]] for value in held)
        total += part * reduce(np.multiply.outer, [instant[response[v]] for v in history])
    return total


def worst(first, second):
    """Return the largest logarithm of a ratio, up to what doubles lose."""
    with np.errstate(divide="ignore"):
        return float(np.log(first[first > 0] / second[first > 0]).max())


def pattern(history):
    return tuple(history.index(value) for value in history)


@pytest.mark.parametrize("randomiser", [KEEPING, PLAIN])
@pytest.mark.parametrize("days", [1, 2, 3])
def test_no_two_histories_are_told_apart_better_than_stated(randomiser, days):
    laws = {h: stream_law(randomiser, h) for h in itertools.product(range(3), repeat=days)}
    stated = [local.exposure(randomiser, days=days, changes=c) for c in range(days)]
    for first, second in itertools.permutations(laws, 2):
        found = worst(laws[first], laws[second])
        assert found <= stated[0].anything + 1e-9
        if pattern(first) == pattern(second):
            changes = len(set(first)) - 1
            assert found <= stated[changes].values + 1e-9
            if changes == 0:
                assert found == pytest.approx(stated[0].values, rel=1e-9)  # exact


def test_a_change_shows_without_bound_where_reports_are_the_kept_responses():
    assert math.isinf(worst(stream_law(PLAIN, (0, 1)), stream_law(PLAIN, (0, 0))))
    assert math.isinf(local.exposure(PLAIN, days=2).anything)
    assert local.exposure(PLAIN, days=1).anything == 2


def test_having_no_value_needs_a_response_of_its_own():
    """It is drawn for a random value, and is told from each of them like another one."""
    asking = local.RepeatedUnary(domain=3, epsilon=2, first=2, optimized=True)
    own, other = asking.law.own_chance, asking.law.other_chance
    laws = []
    for value in range(3):
        coins = [own if one == value else other for one in range(3)]
        rows = itertools.product([0, 1], repeat=3)
        laws.append(
            [math.prod(c if b else 1 - c for b, c in zip(r, coins, strict=True)) for r in rows]
        )
    laws.append([sum(column) / 3 for column in zip(*laws, strict=True)])
    apart = [[max(map(lambda p, q: math.log(p / q), a, b)) for b in laws] for a in laws]
    most = max(
        sum(map(lambda a, w: a[w], apart, order)) for order in itertools.permutations(range(4))
    )
    assert most > 3 * asking.loss.epsilon
    assert most <= local.exposure(asking, days=4, changes=3).values


def test_further_reports_cost_no_less_than_their_coins():
    """A product of doubles may be rounded below what it stands for."""
    for first in (0.1, 0.5):
        asking = local.RepeatedUnary(domain=300, epsilon=math.pi, first=first, optimized=True)
        assert asking.further_loss.epsilon_pure >= 300 * Fraction(asking.law.further)


def test_the_numbers_of_thirty_days():
    assert local.exposure(FRESH, days=30).values == 30
    assert local.exposure(FRESH, days=30, changes=29).anything == 30
    assert local.exposure(PLAIN, days=30).values == 2
    assert local.exposure(PLAIN, days=30, changes=1).values == 4
    assert local.exposure(PLAIN, days=30, changes=29).values == 8  # three values, and having none
    assert local.exposure(KEEPING, days=1).values == 1
    assert 1.99 < local.exposure(KEEPING, days=30).values <= 2
    flip = local.BitFlip(domain=100, bits=4, epsilon=1, first=1)
    assert local.exposure(flip, days=365, changes=300).values == 6


def test_shuffling_is_refused_to_what_can_be_linked():
    assert not local.is_linkable(FRESH)
    local.require_unlinkable(FRESH)
    local.require_unlinkable(local.HadamardResponse(domain=9, epsilon=1))
    for one in (KEEPING, local.BitFlip(domain=9, bits=1, epsilon=1, first=1)):
        assert local.is_linkable(one)
        with pytest.raises(ParameterError, match="every report anew"):
            local.require_unlinkable(one)


@pytest.mark.parametrize("wrong", [{"days": 0}, {"days": 3, "changes": 3}, {"days": 2.5}])
def test_days_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError):
        local.exposure(FRESH, **wrong)
