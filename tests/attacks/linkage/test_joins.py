"""Joins with a table that has names, exact and nearly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.attacks import linkage
from discreet.errors import DataError, ParameterError

AGES = st.lists(st.integers(-9, 9), min_size=1, max_size=8)
WORDS = st.text("ab", max_size=4)


def distance(a, b):
    """Return the edit distance, by the recursion that defines it."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return distance(a[1:], b[1:])
    return 1 + min(distance(a[1:], b), distance(a, b[1:]), distance(a[1:], b[1:]))


@pytest.mark.lengthy
@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, min_size=1, max_size=6),
       st.integers(0, 2))  # fmt: skip
def test_blocks_of_texts_lose_no_pair(left, right, most):
    found = linkage.match({"name": left}, {"name": right}, edits={"name": most})
    near = [sum(distance(a, b) <= most for b in right) for a in left]
    assert found.details["linked"] == near.count(1)


@pytest.mark.lengthy
@settings(max_examples=40)
@given(AGES, AGES, st.sampled_from([0.5, 1, 2.5, 3]))
def test_blocks_of_numbers_lose_no_pair(left, right, most):
    found = linkage.match({"age": left}, {"age": right}, within={"age": most})
    near = [sum(abs(a - b) <= most for b in right) for a in left]
    assert found.details["linked"] == near.count(1)


def test_dates_differ_by_days_and_texts_by_case_and_accents():
    day = np.array(["2000-01-01", "2000-03-01"], dtype="datetime64[D]")
    data = {"born": day, "name": ["Zoë O'Hara", "Bo"], "who": [1, 2]}
    known = {"born": day + np.timedelta64(3, "D"), "name": ["ZOE OHARA", "Bo"], "who": [1, 2]}
    both = linkage.match(data, known, within={"born": 3}, edits={"name": 0}, truth="who")
    assert both.success == 1
    assert linkage.match(data, known, within={"born": 2}, truth="who").success == 0


def test_two_tolerances_at_once_count_each_candidate_once():
    data, known = {"a": [0, 10], "b": [0, 10]}, {"a": [1, 9], "b": [-1, 11]}
    assert linkage.match(data, known, within={"a": 2, "b": 2}).success == 1


def test_the_wrong_person_is_no_success():
    found = linkage.match(
        {"zip": [1], "who": [1]}, {"zip": [1], "who": [2]}, on=["zip"], truth="who"
    )
    assert (found.success, found.details["linked"], found.details["precision"]) == (0, 1, 0)
    assert found.baseline == 1


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(DataError, match="compared"):
        linkage.match({"a": ["x"]}, {"a": ["y"]}, within={"a": 1})
    for wrong in ({"within": {"a": 0}}, {"edits": {"a": 3}}, {}, {"on": ["b"]}):
        with pytest.raises(ParameterError):
            linkage.match({"a": [1]}, {"a": [1]}, **wrong)


def test_tolerances_come_from_numpy_and_a_column_by_its_name():
    found = linkage.match({"a": [1, 5]}, {"a": [2, 9]}, within={"a": np.float64(1)})
    assert found.details["linked"] == 1
    assert linkage.match({"zip": [1]}, {"zip": [1]}, on="zip").success == 1
