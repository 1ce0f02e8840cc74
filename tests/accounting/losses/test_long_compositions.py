"""Long compositions: the work grows with their length, and the sums stay on their side."""

import copy
import pickle
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest

from discreet._rounding import sum_up
from discreet.accounting import (
    Filter,
    GaussianLoss,
    Loss,
    PureLoss,
    RandomizedResponseLoss,
    ZCDPLoss,
    compose,
)
from discreet.accounting.filters.costs import Track, cost
from discreet.errors import ParameterError
from discreet.privacy import Guarantee

done: Counter[str] = Counter()


@dataclass(frozen=True, eq=False, repr=False)
class CountedLoss(Loss):
    """A loss that counts what is done with it."""

    number: int
    kind = "counted"

    epsilon_pure = Fraction(0)

    def delta_upper(self, *, epsilon):
        return 0.0

    def __repr__(self):
        done["repr"] += 1
        return f"CountedLoss({self.number})"

    def __hash__(self):
        done["hash"] += 1
        return hash(self.number)

    def __eq__(self, other):
        done["eq"] += 1
        return isinstance(other, CountedLoss) and self.number == other.number


def one_by_one(some):
    total = some[0] * 1
    for loss in some[1:]:
        total = total + loss
    return total


def pairwise(some):
    while len(some) > 1:
        some = [sum(some[i : i + 2]) for i in range(0, len(some), 2)]
    return some[0]


def doubled(some):
    return sum(some) * 1_000_000 + sum(some)


@pytest.mark.parametrize("add", [one_by_one, sum, pairwise, doubled])
def test_adding_takes_work_in_proportion(add):
    works = []
    for n in (256, 2048):
        done.clear()
        assert len(add([CountedLoss(i) for i in range(n)]).parts) == n
        works.append(done.total())
    assert works[1] <= 8 * works[0] * (11 / 8 if add is pairwise else 1) * 1.1


def test_doubling_again_and_again_is_quick():
    loss = PureLoss(epsilon=1) + GaussianLoss(noise_multiplier=2)
    for _ in range(200):
        loss = loss + loss
    assert dict(loss.parts)[PureLoss(epsilon=1)] == 2**200


def test_a_hundred_thousand_additions_come_to_an_end():
    loss = one_by_one([PureLoss(epsilon=1 + i % 5) for i in range(100_000)])
    assert [times for _, times in loss.parts] == [20_000] * 5
    del loss  # a chain that is let go of link by link would be too deep


def test_what_was_added_lazily_is_plain_data():
    loss = PureLoss(epsilon=1) + GaussianLoss(noise_multiplier=2) * 3
    same = compose([(GaussianLoss(noise_multiplier=2), 3), (PureLoss(epsilon=1), 1)])
    for twin in (same, copy.copy(loss), copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin == loss
        assert hash(twin) == hash(loss)
        assert repr(twin) == repr(loss)
    with pytest.raises(AttributeError):
        loss.partss  # noqa: B018


def test_relations_that_do_not_fit_are_refused_when_added():
    sampled = PureLoss(epsilon=1).sampled(rate=0.5)
    answers = RandomizedResponseLoss(epsilon=1, categories=2)
    with pytest.raises(ParameterError, match="different neighbouring relations"):
        (sampled + PureLoss(epsilon=1)) + (answers * 2)
    assert (sampled + PureLoss(epsilon=1)).relation is sampled.neighbours
    assert (answers * 0 + sampled).relation is sampled.neighbours


def test_sums_of_unlike_fractions_stay_short_and_above():
    amounts = [Fraction(1, n) for n in range(1, 4000)]
    found, truth = sum_up(amounts), sum(amounts)
    assert truth <= found <= truth * (1 + Fraction(1, 2**200))
    assert found.denominator.bit_length() < 4000 < truth.denominator.bit_length()


@pytest.mark.parametrize("kind", ["basic", "zcdp", "renyi"])
def test_costs_of_many_unlike_parts_stay_short(kind):
    parts = [(GaussianLoss(noise_multiplier=Fraction(1000 + i, 7)), 1) for i in range(1000)]
    parts += [(ZCDPLoss(rho=Fraction(1, 1009 + i), delta=Fraction(1, 10**9 + i)), 1)
              for i in range(1000)]  # fmt: skip
    half = Fraction(1, 2)
    track = Track(kind=kind, divergence=half, failure=half, each=Fraction(1, 10**6), order=half * 6)
    whole = compose(parts)
    for amount in (*cost(whole, track), *whole.zcdp, whole.failure):
        assert Fraction(amount).denominator.bit_length() < 8000


def test_decimals_fill_a_filter_to_the_last_unit():
    parts = [(PureLoss(epsilon=Fraction(k, 5050)), 1) for k in range(1, 101)]
    assert Filter(Guarantee(epsilon=1)).charge(compose(parts)).used_after == 1
