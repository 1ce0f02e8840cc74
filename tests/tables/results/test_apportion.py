"""Rounding together: exact sums, and no nearer whole numbers by brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.tables.results.apportion import apportioned
from discreet.tables.results.consistent import _project


def rounded(values, variances, total):
    parent = np.zeros(len(values), dtype=np.int64)
    return apportioned(np.array(values), np.array(variances), parent, np.array([total]))


@given(
    given=st.lists(st.floats(-4, 4), min_size=1, max_size=4),
    total=st.integers(0, 5),
    nonnegative=st.booleans(),
)
def test_with_equal_variances_no_whole_numbers_are_nearer(given, total, nonnegative):
    before, alike = np.array(given), np.ones(len(given))
    parent = np.zeros(len(given), dtype=np.int64)
    near = _project(before, alike, parent, np.array([total]), nonnegative=nonnegative)
    made = rounded(near, alike, total)
    assert made.sum() == total
    assert made.dtype == np.int64
    # Wide enough to hold the best: it is within one of a point that is no farther than this.
    reach = range(0 if nonnegative else -12, 18)
    best = min(
        ((np.array(one) - before) ** 2).sum()
        for one in product(reach, repeat=len(given) - 1)
        for one in [(*one, total - sum(one))]
        if one[-1] in reach
    )
    assert ((made - before) ** 2).sum() == pytest.approx(best, abs=1e-6)
    if nonnegative:
        assert made.min() >= 0


@given(
    values=st.lists(st.floats(0, 9), min_size=1, max_size=6),
    variances=st.lists(st.floats(0.1, 50), min_size=6, max_size=6),
)
def test_each_value_goes_up_or_down_and_the_nearest_way_is_taken(values, variances):
    variances, total = np.array(variances[: len(values)]), round(sum(values))
    parent = np.zeros(len(values), dtype=np.int64)
    near = _project(np.array(values), variances, parent, np.array([total]))
    made = rounded(near, variances, total)
    assert made.sum() == total
    assert (np.abs(made - near) < 1 + 1e-9).all()
    low, high = np.floor(near), np.ceil(near)  # a whole value has one way only
    ways = [
        np.where(up, high, low)
        for up in product((0, 1), repeat=len(near))
        if round(np.where(up, high, low).sum()) == total
    ]
    best = min((((way - near) ** 2) / variances).sum() for way in ways)
    assert (((made - near) ** 2) / variances).sum() == pytest.approx(best, abs=1e-6)


def test_whole_values_stay_and_families_do_not_mix():
    parent = np.array([1, 0, 1, 0, 2])
    made = apportioned(np.array([0.5, 2, 0.5, 3, 7.0]), np.ones(5), parent, np.array([5, 1, 7]))
    assert made[[1, 3, 4]].tolist() == [2, 3, 7]
    assert sorted(made[[0, 2]].tolist()) == [0, 1]


def test_sums_are_exact_where_doubles_are_not():
    rng = np.random.default_rng(0)
    values = np.full(100_000, 1e11) + rng.random(100_000)
    total = int(sum(int(v) for v in values)) + 70_000  # their sum needs more digits than doubles
    made = rounded(values, np.ones(100_000), total)
    assert sum(made.tolist()) == total
    fewer = rounded(values, np.ones(100_000), total - 250_000)
    assert sum(fewer.tolist()) == total - 250_000


def test_none_is_taken_from_a_part_of_nothing():
    made = rounded([0.0, 0.0, 2.0, 1.0], np.ones(4), 2)  # as float errors might have it
    assert made.sum() == 2
    assert made.min() >= 0
