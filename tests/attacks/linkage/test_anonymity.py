"""k-anonymity and l-diversity, made and broken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.attacks import linkage
from discreet.datasets import voters
from discreet.errors import DataError

QUASI = ("zip", "birth_date", "sex")
SICK = "diagnosis"


@pytest.mark.lengthy
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), min_size=4, max_size=40),
       st.integers(1, 4))  # fmt: skip
def test_every_group_has_k_rows_and_its_own_labels(rows, k):
    table = {"age": [a for a, _ in rows], "job": [j for _, j in rows]}
    made = linkage.anonymise(table, ["age", "job"], k=k)
    assert np.bincount(made.groups).min() >= k
    shown = list(zip(made.table["age"].to_pylist(), made.table["job"].to_pylist(), strict=True))
    assert min(shown.count(row) for row in shown) >= k
    assert len(set(zip(shown, made.groups.tolist(), strict=True))) == len(set(made.groups.tolist()))


def test_diversity_is_kept_and_homogeneity_stopped_by_it():
    people = voters(3000)
    plain = linkage.anonymise(people, QUASI, k=2)
    mixed = linkage.anonymise(people, QUASI, k=2, secret=SICK, diversity=3)
    assert linkage.homogeneity(plain, secret=SICK).success > 0.02
    assert linkage.homogeneity(mixed, secret=SICK).success == 0
    known = [linkage.background(mixed, secret=SICK, excluded=e).success for e in range(6)]
    assert known[0] == known[1] == 0 < known[2] < known[5] == 1


def test_two_releases_tell_more_than_either():
    people = voters(3000)
    pair = [linkage.anonymise(people, q, k=4, secret=SICK, diversity=3) for q in
            (("zip", "sex", "birth_date"), ("birth_date",))]  # fmt: skip
    both = linkage.composition(*pair, secret=SICK)
    assert both.success > 0.02
    assert both.details["first_alone"] == both.details["second_alone"] == 0


def test_what_cannot_be_done_is_refused():
    table = {"a": [1, 2], "b": [1, 1]}
    made = linkage.anonymise(table, ["a"], k=2)
    with pytest.raises(DataError, match="coarsened"):
        linkage.homogeneity(made, secret="a")
    with pytest.raises(DataError, match="fewer rows"):
        linkage.anonymise(table, ["a"], k=3)
    with pytest.raises(DataError, match="2 values"):
        linkage.anonymise(table, ["a"], k=1, secret="b", diversity=2)
    other = linkage.anonymise({"a": [1, 2], "b": [1, 2]}, ["a"], k=2)
    with pytest.raises(DataError, match="same people"):
        linkage.composition(made, other, secret="b")
