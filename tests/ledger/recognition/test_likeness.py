"""The bound behind a refusal holds for every pairing, and is small enough to refuse copies."""

import math
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.ledger.recognition.likeness import FALSE_ALARM, chance_of_agreements

values = st.lists(st.integers(0, 4), min_size=1, max_size=6)


@given(ours=values, theirs=values)
def test_no_pairing_at_random_agrees_more_often_than_bounded(ours, theirs):
    count = min(len(ours), len(theirs))
    ours, theirs = ours[:count], theirs[:count]
    cross = sum(Counter(ours)[value] * times for value, times in Counter(theirs).items())
    found = Counter(
        sum(a == b for a, b in zip(ours, order, strict=True)) for order in permutations(theirs)
    )
    for agreed in range(1, count + 1):
        often = sum(times for n, times in found.items() if n >= agreed) / math.factorial(count)
        assert often <= chance_of_agreements(agreed, count, cross) + 1e-12


@pytest.mark.parametrize(
    ("count", "kinds", "is_known"),
    [(20, 20, True), (512, 2, True), (100, 10, True), (30, 2, False)],
)
def test_how_many_values_of_so_many_kinds_a_copy_needs(count, kinds, is_known):
    each = count // kinds
    cross = kinds * each * each
    assert (chance_of_agreements(count, count, cross) <= FALSE_ALARM) == is_known
