"""A key that is not shown leaves no trace in the array of those that are."""

import numpy as np
import pytest

from discreet.errors import DataError
from discreet.mechanisms.histograms.stability_histogram import StabilityHistogram

MECHANISM = StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1)
LONELY = [
    "x",
    "a much longer text than the others",
    2.5,
    b"x",
    True,
    None,
    2**70,
    -(2**80),
    (1, "x"),
]


@pytest.mark.parametrize("lonely", LONELY, ids=repr)
@pytest.mark.parametrize(
    "keys", [[1, 2], [7], [], ["a", "b"], [0.5, 1.5], [(1, 2), (3, 4)]], ids=repr
)
@pytest.mark.parametrize("form", [list, tuple])
def test_a_hidden_key_does_not_change_the_type_of_a_list(keys, lonely, form):
    without, _ = MECHANISM.release_arrays(form(keys), [1000] * len(keys))
    beside, _ = MECHANISM.release_arrays(form([*keys, lonely]), [1000] * len(keys) + [0])
    assert (beside.dtype, beside.shape) == (without.dtype, without.shape)
    assert beside.tolist() == without.tolist() == keys
    assert [type(key) for key in beside.tolist()] == [type(key) for key in keys]


def test_lists_of_one_type_come_back_as_that_type():
    shown, _ = MECHANISM.release_arrays([5, 3], [1000, 1000])
    assert (shown.dtype, shown.tolist()) == (np.int64, [3, 5])
    shown, _ = MECHANISM.release_arrays(["b", "a"], [1000, 1000])
    assert (shown.dtype.kind, shown.tolist()) == ("U", ["a", "b"])


@pytest.mark.parametrize("keys", [[3, 3], ["a", "a"], [[1, 2], [3, 4]]], ids=repr)
def test_lists_of_equal_or_nested_keys_are_refused(keys):
    with pytest.raises(DataError, match="keys must"):
        MECHANISM.release_arrays(keys, [1000, 1000])
