"""Outputs of any shape, read as numbers and words."""

import math
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.outputs import Raised, fit_reader
from discreet.audit.outputs.flattening import identity, parts
from discreet.audit.scores import fit_bins


@dataclass(frozen=True)
class Answer:
    total: float
    name: str


class Slotted:
    __slots__ = ("total",)

    def __init__(self, total):
        self.total = total


class Plain:
    def __init__(self, total):
        self.total = total


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("output", "name", "part"),
    [
        (3, "output", 3.0),
        (True, "output", 1.0),
        (Fraction(1, 2), "output", 0.5),
        (10**400, "output", math.inf),
        (2**60 + 1, "the low digits of output", 1.0),
        ("total: -2.5", "number 1 in output", -2.5),
        ("total: -2.5", "'total' in output", 1.0),
        (b"abc", "the length of output", 3.0),
        ([1, [2, 3]], "output[1][0]", 2.0),
        ([None, 4.5], "the place of a number in output", 1.0),
        ([1, 2, 7], "the last of output", 7.0),
        ({"a": {"b": 3}}, "output['a']['b']", 3.0),
        ({"b": 1, "a": 2}, "the order of the keys of output", ("'b'", "'a'")),
        ({"x", "y"}, "'x' in output", 1.0),
        (timedelta(minutes=1), "the seconds of output", 60.0),
        (time(0, 1), "the seconds of output", 60.0),
        (date(1, 1, 2), "the seconds of output", 86400.0),
        (datetime(1, 1, 2, tzinfo=UTC), "the seconds of output", 86400.0),
        (Slotted(2.0), "output['total']", 2.0),
        (Answer(2.0, "n"), "output['total']", 2.0),
        (Plain(2.0), "output['total']", 2.0),
        (Point(1, 2), "output['y']", 2.0),
        (np.array([[1, 2], [3, 4]]), "output[1][0]", 3.0),
        (3 + 4j, "output[1]", 4.0),
        (Raised("KeyError"), "output", Raised("KeyError")),
    ],
)
def test_parts(output, name, part):
    assert dict(parts(output))[name] == part


def test_equal_outputs_have_one_identity():
    assert identity({"a": 1, "b": [2]}) == identity({"a": 1, "b": [2]})
    assert identity({"a": 1, "b": [2]}) != identity({"b": [2], "a": 1})  # printed, they differ
    assert identity(math.nan) == identity(np.float64("nan"))
    assert identity([1, {2}]) != identity([1, {3}])


def test_what_is_new_is_read_as_missing():
    reader = fit_reader([1.0, 2.0], [3.0, 4.0])
    reading = reader.read([1.0, None, "text", [1, 2]])
    assert reading.numbers[0, 0] == 1
    assert np.isnan(reading.numbers[1:]).all()
    mixed = fit_reader(["yes", None], ["no", Raised("KeyError")]).read(["yes", "never seen"])
    assert mixed.wholes[0] >= 0 > mixed.wholes[1]


def test_rows_are_coded_as_wholes():
    rows = np.random.default_rng(1).integers(0, 2, (100, 5)).astype(float)
    reader = fit_reader(rows, rows)
    codes = reader.read(rows).wholes
    assert len(np.unique(codes)) == len(np.unique(rows, axis=0))
    assert reader.whole(int(codes[0])) == rows[0].tolist()


def test_bins_hold_every_value_once():
    values = np.concatenate([np.random.default_rng(1).normal(size=5_000), np.full(50, 0.25)])
    bins = fit_bins(values, is_ordered=True)
    counts = bins.counts(np.append(values, [math.nan, -math.inf, math.inf]))
    assert counts.sum() == len(values) + 3
    assert counts[-1] == 1  # what is missing
    assert counts[bins.index(np.array([0.25]))[0]] == 50  # an atom has a bin of its own


def test_tables_are_read_by_their_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    read = dict(parts(table))
    assert read["output['the names'][1]"] == "b"
    assert read["output['the values'][1][0]"] == 2.0
    assert identity(table) == identity(table.copy())


def test_whole_numbers_keep_the_digits_that_doubles_lose():
    numbers = 2**60 + np.arange(100)
    reader = fit_reader(numbers, numbers)
    assert len(np.unique(reader.read(numbers).wholes)) == 100
    names = list(reader.number_names)
    low = reader.read(numbers).numbers[:, names.index("the low digits of output")]
    assert low.tolist() == list(range(100))
