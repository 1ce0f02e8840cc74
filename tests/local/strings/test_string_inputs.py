"""Bad parameters, values and reports get a clear refusal, and never a value in it."""

import numpy as np
import pytest

from discreet import local
from discreet.errors import DataError, ParameterError

RAPPOR = local.Rappor(bits=32, hashes=2, cohorts=6, epsilon=2, key=b"k")
SKETCH = local.HadamardSketch(functions=4, width=8, epsilon=2, key=b"k")
COUNT_MEAN = local.CountMeanSketch(functions=300, width=4, epsilon=2, key=b"k")
HUNT = local.HeavyHitters(length=2, steps=2, epsilon=2, key=b"k", functions=4)
TREE = local.PrefixTree(length=2, levels=2, epsilon=2, key=b"k", functions=4, width=4)


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: local.Rappor(bits=12, hashes=2, cohorts=6, epsilon=2, key=b""), "width"),
        (lambda: local.Rappor(bits=16, hashes=0, cohorts=6, epsilon=2, key=b""), "hashes"),
        (lambda: local.Rappor(bits=16, hashes=2, cohorts=6, epsilon=0, key=b""), "epsilon"),
        (lambda: local.Rappor(bits=16, hashes=2, cohorts=6, epsilon=2, key="text"), "key"),
        (lambda: local.CountMeanSketch(functions=0, width=4, epsilon=2, key=b""), "functions"),
        (
            lambda: local.CountMeanSketch(functions=1 << 20, width=1024, epsilon=2, key=b""),
            "functions",
        ),
        (lambda: local.HadamardSketch(functions=2, width=1, epsilon=2, key=b""), "width"),
        (lambda: local.HeavyHitters(length=0, steps=1, epsilon=2, key=b""), "length"),
        (lambda: local.HeavyHitters(length=256, steps=256, epsilon=2, key=b""), "length"),
        (lambda: local.HeavyHitters(length=8, steps=3, epsilon=2, key=b""), "steps"),
        (lambda: local.HeavyHitters(length=8, steps=65, epsilon=2, key=b""), "steps"),
        (lambda: local.HeavyHitters(length=8, steps=4, epsilon=2, key=b"", keep=17), "keep"),
        (lambda: local.PrefixTree(length=8, levels=8, epsilon=2, key=b"", keep=0), "keep"),
    ],
)
def test_parameters_that_cannot_be_are_refused_by_name(make, parameter):
    with pytest.raises(ParameterError) as told:
        make()
    assert told.value.parameter == parameter


@pytest.mark.parametrize("randomiser", [RAPPOR, SKETCH, COUNT_MEAN, HUNT, TREE])
@pytest.mark.parametrize("values", ["secret", b"secret", None, [b"a", 7], np.array([1, 2]), {"a"}])
def test_what_is_no_list_of_strings_is_refused_without_showing_it(randomiser, values):
    with pytest.raises(DataError) as told:
        randomiser.release(values)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "reports",
    [
        [1, 2],
        np.zeros((2, 4), dtype=np.uint8),
        np.zeros((2, 5), dtype=np.int64),
        np.array([[6, 0, 0, 0, 0]], dtype=np.uint8),  # one cohort too far
    ],
)
def test_rows_that_are_no_reports_are_refused(reports):
    with pytest.raises(DataError):
        RAPPOR.estimate(reports, ["a"])


def test_bits_beyond_the_last_are_refused_and_groups_are_read_in_order():
    bits = COUNT_MEAN._bits
    good = np.array([[1, 43, 9]], dtype=np.uint8)
    devices, ones = bits.count(good)
    assert np.flatnonzero(devices).tolist() == [256 + 43]
    assert ones[299].tolist() == [1, 0, 0, 1]
    for bad in ([1, 44, 9], [1, 43, 16]):
        with pytest.raises(DataError):
            bits.count(np.array([bad], dtype=np.uint8))


@pytest.mark.parametrize("randomiser", [SKETCH, HUNT, TREE])
def test_numbers_that_are_no_reports_are_refused(randomiser):
    estimate = {
        SKETCH: lambda reports: SKETCH.estimate(reports, ["a"]),
        HUNT: HUNT.estimate,
        TREE: lambda reports: TREE.estimate(reports, confidence=0.9),
    }[randomiser]
    for reports in ([-1], [randomiser.outputs], [[0]], ["a"], []):
        with pytest.raises(DataError):
            estimate(np.array(reports))
    assert randomiser.outputs <= 256**randomiser.bytes_per_report


def test_candidates_that_cannot_be_told_apart_are_refused():
    reports = RAPPOR.release(["a"] * 50)
    for candidates in (["a", "a"], [str(i) for i in range(200)]):
        with pytest.raises(ParameterError, match="told apart"):
            RAPPOR.estimate(reports, candidates)
    assert RAPPOR.estimate(reports, []).counts.size == 0
    with pytest.raises(DataError):
        RAPPOR.estimate(reports[:0], ["a"])
