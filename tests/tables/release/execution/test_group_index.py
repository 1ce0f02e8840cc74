"""Groups in the order of an answer: keys that differ stay different, and no error shows one."""

import decimal
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DataError
from discreet.tables.model.statements import Combinations
from discreet.tables.release.execution.group_index import GroupIndex, plain


def listed(*lists):
    return GroupIndex(Combinations(tuple(map(tuple, lists))))


BEYOND = pa.array([19_000, 2**31 - 1, 2**31 - 2, None], pa.int32()).cast(pa.date32())
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=3)


@given(one=decimals, other=decimals)
def test_decimals_that_differ_stay_different(one, other):
    assert (plain(one) == plain(other)) == (one == other)


@pytest.mark.parametrize("step", ["1", "0.1", "1E-10"])
@pytest.mark.parametrize("start", [2**53 - 2, 2**60, 10**30, 0])
def test_decimals_next_to_each_other_stay_different(start, step):
    with decimal.localcontext(prec=60):
        near = [Decimal(start) + i * Decimal(step) for i in range(50)]
    assert len({plain(value) for value in near}) == 50


def test_decimals_are_found_where_declarations_write_numbers():
    keys = pa.array([Decimal("0.10"), Decimal("2.00"), Decimal(2**60)], pa.decimal128(38, 2))
    found = pa.table({"key_0": keys, "cell_0": [1, 2, 3]})
    assert listed([2**60, 0.1, 2]).aligned(found).tolist() == [[3], [1], [2]]


def test_cells_of_large_decimals_do_not_replace_each_other():
    """With two keys, groups are looked up one by one."""
    keys = pa.array([Decimal(2**60), Decimal(2**60 + 1)], pa.decimal128(38, 0))
    found = pa.table({"key_0": keys, "key_1": ["a", "a"], "cell_0": [5000, 1]})
    assert GroupIndex(found.select([0, 1])).aligned(found).tolist() == [[5000], [1]]


@pytest.mark.parametrize("keys", [1, 2])
def test_dates_beyond_python_are_groups_like_others(keys):
    table = pa.table({"key_0": BEYOND, "key_1": ["a"] * 4, "cell_0": [1, 2, 3, 4]})
    found = table if keys == 2 else table.drop_columns(["key_1"])
    shown = GroupIndex(found.select(range(keys)))
    assert shown.aligned(found).tolist() == [[1], [2], [3], [4]]
    assert len(set(shown.groups)) == 4
    assert shown.groups[0][0] == "2022-01-08"


def test_no_error_shows_a_key():
    texts = pa.array([b"ok", b"\xff\xfesecret"], pa.binary()).view(pa.string())
    shown = GroupIndex(pa.table({"key_0": texts, "key_1": [1, 2]}))
    with pytest.raises(DataError) as caught:
        _ = shown.groups
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_groups_that_were_not_found_are_zero():
    found = pa.table({"key_0": ["b", "z"], "cell_0": [7, 9]})
    assert listed(["a", "b"]).aligned(found).tolist() == [[0], [7]]
    assert listed([]).aligned(found).shape == (0, 1)
    assert listed().aligned(pa.table({"cell_0": [3]})).tolist() == [[3]]
    assert isinstance(listed(["a"]).indices(found), np.ndarray)


keys_of = st.tuples(st.sampled_from([None, "a", "b", "c"]), st.sampled_from([None, 1, 2]))


@given(shown=st.lists(keys_of, unique=True, max_size=8), found=st.lists(keys_of, max_size=20))
def test_selected_groups_are_found_as_one_by_one(shown, found):
    def table(rows):
        types = {"key_0": pa.string(), "key_1": pa.int64()}
        return pa.table({n: pa.array([r[i] for r in rows], types[n]) for i, n in enumerate(types)})

    index, rows = GroupIndex(table(shown)), table(found)
    wanted = [shown.index(key) if key in shown else -1 for key in found]
    assert index.indices(rows).tolist() == wanted
    assert index.groups == shown
    assert index.keep(rows).to_pylist() == [
        {"key_0": key[0], "key_1": key[1]} for key in found if key in shown
    ]


@given(
    one=st.lists(st.sampled_from([None, "a", "b", "c"]), unique=True, max_size=4),
    two=st.lists(st.sampled_from([None, 1, 2]), unique=True, max_size=3),
    found=st.lists(keys_of, max_size=20),
)
def test_listed_groups_are_found_as_one_by_one(one, two, found):
    index = listed(one, two)
    rows = pa.table({f"key_{i}": [key[i] for key in found] for i in range(2)})
    all_of_them = [(a, b) for a in one for b in two]
    assert len(index) == len(all_of_them)
    assert (
        list(zip(index.column(0).to_pylist(), index.column(1).to_pylist(), strict=True))
        == all_of_them
    )
    assert [index.groups[i] for i in range(len(index))] == all_of_them
    wanted = [all_of_them.index(key) if key in all_of_them else -1 for key in found]
    assert index.indices(rows).tolist() == wanted
