"""Who is alone with their values."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.attacks import linkage
from discreet.attacks.linkage.uniqueness import group_sizes
from discreet.datasets import census, voters
from discreet.errors import DataError, ParameterError

QUASI = ("zip", "birth_date", "sex")


def alone(table, columns):
    """Count in plain Python."""
    rows = list(zip(*(np.asarray(table[c]).tolist() for c in columns), strict=True))
    return sum(rows.count(row) == 1 for row in rows)


@pytest.mark.lengthy
@settings(max_examples=50)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 5), min_size=1, max_size=30), st.integers(1, 5))
def test_the_worst_set_is_the_worst_of_all(rows, size):
    table = dict(zip("abcde", np.array(rows).T, strict=True))
    found = linkage.worst_set(table, size=size)
    best = max(alone(table, columns) for columns in combinations("abcde", size))
    assert found.details["alone"] == best == alone(table, found.details["columns"])
    assert linkage.uniqueness(table, found.details["columns"]).success == found.success


def test_hopeless_sets_are_not_tried():
    found = linkage.worst_set(census(3000), size=3)
    assert found.details["sets_tried"] < 60  # of 175 sets of one to three


def test_codes_too_many_for_a_word_are_numbered_anew():
    codes = [np.arange(3) for _ in range(9)]
    assert group_sizes(codes, [2**20] * 9).tolist() == [1, 1, 1]


def test_missing_values_are_values_and_people_count_once():
    table = {"zip": [1, 1, None, None, 2], "who": [7, 7, 8, 9, 8]}
    assert linkage.uniqueness(table, ["zip"]).details["alone"] == 1
    assert linkage.uniqueness(table, ["zip"], person="who").success == 2 / 3


def test_a_sample_holds_the_truth_at_its_confidence():
    """False alarm at most 1e-6: Clopper-Pearson at that level; seeded besides."""
    people = voters(5000, zips=400)
    columns = ["birth_date"]
    truth = linkage.uniqueness(people, columns).success
    low, high = linkage.uniqueness(people, columns, sample=2000, confidence=1 - 1e-6).interval
    assert low < truth < high
    assert high - low < 0.12  # it could fail


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "parquet", "csv"])
def test_data_comes_as_it_is(kind, tmp_path):
    import pandas as pd
    import polars as pl
    from pyarrow import csv, parquet

    table = pa.table({"zip": [1, 1, 2], "sex": ["f", "m", "f"]})
    parquet.write_table(table, tmp_path / "p.parquet")
    csv.write_csv(table, tmp_path / "p.csv")
    given_as = {
        "pandas": pd.DataFrame(table.to_pydict()), "polars": pl.DataFrame(table.to_pydict()),
        "pyarrow": table, "parquet": tmp_path / "p.parquet", "csv": str(tmp_path / "p.csv"),
    }  # fmt: skip
    assert linkage.uniqueness(given_as[kind], ["zip", "sex"]).success == 1


def test_bad_data_is_refused_without_a_value(tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"secret 918273")
    for data in (tmp_path / "bad.parquet", {"a": []}, {"a": [1], "b": [1, 2]}, 7):
        with pytest.raises(DataError) as error:
            linkage.uniqueness(data, ["a"])
        assert "918273" not in str(error.value)
    with pytest.raises(ParameterError, match="no column 'b'"):
        linkage.uniqueness({"a": [1]}, ["b"])
    with pytest.raises(ParameterError, match="parquet"):
        linkage.uniqueness("notes.txt", ["b"])
    with pytest.raises(ParameterError, match="quasi or worst"):
        linkage.run({"a": [1]})


def test_a_sample_of_a_column_called_rowid_is_looked_up_by_place():
    """False alarm 1e-6 at most; the true share is a half."""
    people = {"rowid": [5, 5, 6, 7]}
    low, high = linkage.uniqueness(people, ["rowid"], sample=200, confidence=1 - 1e-6).interval
    assert low < 0.5 < high


def test_categories_and_zeros_of_both_signs_are_values_like_any():
    names = pa.array(["x", "y", "y", None]).dictionary_encode()
    assert linkage.worst_set({"a": names}, size=1).details["alone"] == 2
    assert linkage.anonymise({"a": names}, ["a"], k=4).groups.tolist() == [0, 0, 0, 0]
    zeros = {"a": [0.0, -0.0, 1.0]}
    both = linkage.worst_set(zeros, size=1), linkage.uniqueness(zeros, ["a"])
    assert [one.details["alone"] for one in both] == [1, 1]


def test_columns_that_cannot_be_told_apart_or_compared_are_refused():
    twice = pa.table([pa.array([1, 2]), pa.array([1, 1])], names=["A", "a"])
    with pytest.raises(DataError, match="two columns of the name 'a'"):
        linkage.uniqueness(twice, ["a"])
    with pytest.raises(DataError, match="'a' holds lists"):
        linkage.worst_set({"a": [[1], [2]]}, size=1)
    with pytest.raises(ParameterError, match="no column '0'"):
        linkage.uniqueness({"a": [1]}, [0])
    assert linkage.uniqueness({"zip": [1]}, "zip").success == 1


@pytest.mark.parametrize("confidence", [0, 1, 2, float("nan"), "0.95"])
def test_every_attack_wants_a_confidence_between_0_and_1(confidence):
    people = {"a": [1, 2], "b": [1, 1]}
    for attack in (
        lambda **level: linkage.uniqueness(people, ["a"], **level),
        lambda **level: linkage.worst_set(people, size=1, **level),
        lambda **level: linkage.match(people, people, on=["a"], **level),
        lambda **level: linkage.run(people, ["a"], auxiliary=people, secret="b", **level),
    ):
        with pytest.raises(ParameterError, match="confidence"):
            attack(confidence=confidence)
