"""Limits chosen privately: privacy on tiny profiles, good choices on large ones."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DataError, ParameterError
from discreet.tables.algorithms import limit_choice as _limits
from discreet.tables.algorithms.limit_choice import (
    choose_limit,
    findable,
    good_rank,
    just_below,
    limit_edges,
    value_edges,
)
from discreet.tables.algorithms.noise import Noise

EDGES = [Fraction(n) for n in (1, 2, 4, 8)]


def law(monkeypatch, bins, **asked):
    """Return the exact log-probabilities of the edges."""
    seen = {}

    def capture(score, *, rate, source):
        seen["exponents"] = np.array([float(rate * int(s)) for s in score])
        return 0

    with monkeypatch.context() as patched:
        patched.setattr(_limits, "exponential_race", capture)
        choose_limit(np.array(bins, dtype=np.int64), edges=EDGES, **asked)
    found = seen["exponents"]
    found = found - np.log(np.exp(found).sum())
    return found if asked.get("from_below") else found[::-1]


@pytest.mark.lengthy
@pytest.mark.parametrize("from_below", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_loss_spans_at_most_epsilon_for_added_and_replaced_units(monkeypatch, from_below, size):
    @settings(max_examples=150, deadline=None)
    @given(
        bins=st.lists(st.integers(0, 12), min_size=5, max_size=5),
        taken=st.lists(st.integers(0, 4), max_size=size),
        given_=st.lists(st.integers(0, 4), max_size=size),
        above=st.sampled_from([0, 1, Fraction(5, 2), 7, 13.7]),
    )
    def check(bins, taken, given_, above):
        asked = {"above": above, "epsilon": 40, "neighbours": "replace_one", "group_size": size,
                 "from_below": from_below}  # fmt: skip
        first, second = np.array(bins), np.array(bins)
        np.add.at(first, taken, 1)
        np.add.at(second, given_, 1)
        ratio = law(monkeypatch, first, **asked) - law(monkeypatch, second, **asked)
        assert ratio.max() - ratio.min() <= 40 * (1 + 1e-9)

    check()
    asked = {"above": 13, "epsilon": 40, "neighbours": "add_remove", "from_below": from_below}
    bins, more = [0, 10, 20, 0, 5], [0, 10, 20, 0, 6]
    if from_below:
        bins, more = bins[::-1], more[::-1]
    ratio = law(monkeypatch, bins, **asked) - law(monkeypatch, more, **asked)
    assert ratio.max() - ratio.min() == pytest.approx(40)  # a larger rate would break the claim


def test_scores_are_those_of_the_definition(monkeypatch):
    bins, target = [5, 20, 40, 3, 7], 30
    found = law(monkeypatch, bins, above=target, epsilon=1, neighbours="add_remove")
    scores = []
    for j in range(4):
        outside = sum(bins[j + 1 :])
        inwards = sum(bins[j:]) if j else math.inf
        scores.append(-max(0, outside - target, target - inwards))
    exponents = np.array(scores) / 2
    assert found == pytest.approx(exponents - np.log(np.exp(exponents).sum()))


def test_units_of_one_size_get_that_size():
    """The tightest limit wins although larger ones cut off nobody either."""
    edges = limit_edges()
    for size in (1, 3, 10):
        bins = np.zeros(len(edges) + 1, dtype=np.int64)
        bins[edges.index(Fraction(size))] = 10_000
        found = choose_limit(
            bins, edges=edges, above=100, epsilon=1, neighbours="add_remove"
        )  # misses with a chance below 60 exp(-50)
        assert found == size


def test_smallest_values_at_zero_get_the_bound_zero():
    edges = value_edges()
    for value, wanted in ((0.0, 0), (3.0, 2), (-7.5, -10), (1.0, 1)):
        bins = np.zeros(len(edges) + 1, dtype=np.int64)
        inner = just_below(edges)
        bins[sum(edge < Fraction(value) for edge in inner)] = 10_000
        found = choose_limit(
            bins, edges=edges, above=100, epsilon=1, neighbours="add_remove", from_below=True
        )
        assert found == wanted


def test_limit_is_near_the_best_for_geometric_sizes():
    rng = np.random.default_rng()
    sizes = rng.geometric(0.1, 50_000)
    edges = limit_edges()
    bins = np.bincount(
        np.searchsorted([int(e) for e in edges], sizes, side="left"), minlength=len(edges) + 1
    )
    noise = Noise(kind="laplace", multiplier=1)
    rank = good_rank(noise, groups=20)
    # A limit beyond all units has a chance below 60 exp(-5 / 2 * 20).
    found = choose_limit(bins, edges=edges, above=rank, epsilon=5, neighbours="add_remove")

    def error(limit):
        cut = np.maximum(0, sizes - float(limit)).sum()
        return cut + 20 * noise.deviation(float(limit)) * math.sqrt(2 / math.pi)

    assert error(found) <= 1.5 * min(error(edge) for edge in edges)


def test_few_units_never_get_a_huge_limit_often():
    edges = limit_edges()
    bins = np.zeros(len(edges) + 1, dtype=np.int64)
    bins[4] = 200  # 5 rows each
    count = 300
    found = [
        choose_limit(bins, edges=edges, above=1, epsilon=0.5, neighbours="add_remove")
        for _ in range(count)
    ]
    # At most 5% are expected; Binomial(300, 0.05) exceeds 45 with a chance below 1e-9.
    assert sum(limit > 5 for limit in found) <= 45


def test_what_can_be_found():
    assert findable(epsilon=2, edges=50) == pytest.approx(findable(epsilon=1, edges=50) / 2)
    assert findable(epsilon=1, edges=50, group_size=3) == pytest.approx(
        3 * findable(epsilon=1, edges=50)
    )
    assert good_rank(Noise(kind="gaussian", multiplier=2), groups=10, sensitivity=2) > 30


def test_edges():
    for order in (1, 2):
        edges = limit_edges(order)
        assert list(edges) == sorted(set(edges))
        assert edges[0] == 1
        assert 500_000 < edges[-1] < 2_000_000
        assert all(b / a <= Fraction(4, 3) for a, b in pairwise(edges) if a > 2)
    edges = value_edges()
    assert list(edges) == sorted(set(edges))
    assert {-edge for edge in edges} == set(edges)


@pytest.mark.lengthy
@given(st.lists(st.fractions(-1000, 1000), max_size=5))
def test_just_below_is_the_last_double_below(edges):
    for edge, below in zip(edges, just_below(edges), strict=True):
        assert below < edge <= Fraction(math.nextafter(float(below), math.inf))


def test_huge_counts_do_not_overflow():
    bins = np.full(5, 2**62, dtype=np.int64)
    asked = {"edges": EDGES, "epsilon": 1, "neighbours": "add_remove"}
    assert choose_limit(bins, above=5, **asked) == 8
    assert choose_limit(bins, above=2**70, **asked) == 1


def test_bad_input_is_refused():
    good = {"edges": EDGES, "above": 1, "epsilon": 1, "neighbours": "add_remove"}
    bins = np.zeros(5, dtype=np.int64)
    for name, bad in (("above", -1), ("epsilon", 0), ("neighbours", "twins"), ("group_size", 0)):
        with pytest.raises(ParameterError, match=name):
            choose_limit(bins, **(good | {name: bad}))
    for wrong in (np.zeros(4, dtype=np.int64), np.zeros(5), bins - 1):
        with pytest.raises(DataError):
            choose_limit(wrong, **good)
