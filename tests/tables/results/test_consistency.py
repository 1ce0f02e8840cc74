"""Consistency: the two passes give exactly the weighted least squares solution."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.tables.results.consistent import consistent
from discreet.tables.results.example import region_counts

FALSE_ALARM = 1e-9


def level(keys, rows, values, errors, **changes):
    """Make a result whose rows have these keys."""
    columns = {name: [row[i] for row in rows] for i, name in enumerate(keys)}
    values = list(map(float, values))
    return region_counts(
        columns=(*keys, "n"), keys=tuple(keys), values={**columns, "n": values}, facts={},
        errors={"n": errors}, reliable={},
        lows={"n": [v - 2 * e for v, e in zip(values, errors, strict=True)]},
        highs={"n": [v + 2 * e for v, e in zip(values, errors, strict=True)]}, **changes,
    )  # fmt: skip


def leaves_of(results):
    """Return the matrix that adds up the finest rows to every row of every level."""
    finest = results[-1]
    rows = []
    for result in results:
        own = list(zip(*(result[k].tolist() for k in result.keys), strict=True)) or [()]
        fine = list(zip(*(finest[k].tolist() for k in result.keys), strict=True))
        fine = fine or [()] * len(finest)
        rows += [[float(f == o) for f in fine] for o in own]
    return np.array(rows)


def dense(results):
    """Solve the same problem by brute force; return values and variances of all rows."""
    design = leaves_of(results)
    values = np.concatenate([r["n"] for r in results])
    errors = np.concatenate([r.errors["n"] for r in results])
    known = np.isfinite(errors)
    scaled = design[known] / errors[known, None]
    leaves = np.linalg.lstsq(scaled, values[known] / errors[known], rcond=None)[0]
    covariance = np.linalg.inv(scaled.T @ scaled)
    return design @ leaves, np.diag(design @ covariance @ design.T)


@st.composite
def trees(draw):
    """Draw a tree of three levels with unequal families and errors."""
    families = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    cities = [(f"r{i}", f"c{j}") for i, size in enumerate(families) for j in range(size)]
    draw(st.randoms(use_true_random=False)).shuffle(cities)
    numbers, errors = st.floats(-1e3, 1e3), st.floats(0.5, 50)

    def some(of, n):
        return draw(st.lists(of, min_size=n, max_size=n))

    regions = [(f"r{i}",) for i in range(len(families))]
    return [
        level((), [()], some(numbers, 1), some(errors, 1)),
        level(("region",), regions, some(numbers, len(regions)), some(errors, len(regions))),
        level(("region", "city"), cities, some(numbers, len(cities)), some(errors, len(cities))),
    ]


@pytest.mark.lengthy
@given(results=trees())
def test_it_is_the_least_squares_solution_with_its_errors(results):
    values, variances = dense(results)
    made = consistent(results, column="n")
    assert np.concatenate([r["n"] for r in made]) == pytest.approx(values, abs=1e-6)
    errors = np.concatenate([r.errors["n"] for r in made])
    assert errors == pytest.approx(np.sqrt(variances), rel=1e-6)
    assert (errors <= np.concatenate([r.errors["n"] for r in results]) * (1 + 1e-9)).all()


@pytest.mark.lengthy
@given(results=trees(), nonnegative=st.booleans())
def test_parts_add_up(results, nonnegative):
    total, regions, cities = consistent(results, column="n", nonnegative=nonnegative)
    assert regions["n"].sum() == pytest.approx(total.value, abs=1e-6)
    for name, value in zip(regions["region"], regions["n"], strict=True):
        assert cities["n"][cities["region"] == name].sum() == pytest.approx(value, abs=1e-6)
    if nonnegative:
        assert min(result["n"].min() for result in (total, regions, cities)) >= 0


@given(results=trees(), nonnegative=st.booleans())
def test_whole_numbers_add_up_exactly(results, nonnegative):
    before = consistent(results, column="n", nonnegative=nonnegative)
    made = consistent(results, column="n", nonnegative=nonnegative, whole=True)
    total, regions, cities = made
    assert all(result["n"].dtype == np.int64 for result in made)
    assert abs(total.value - before[0].value) <= 0.5 + 1e-9
    assert regions["n"].sum() == total.value
    for name, value in zip(regions["region"], regions["n"], strict=True):
        assert cities["n"][cities["region"] == name].sum() == value
    for result in made:
        assert (result.lows["n"] <= result["n"]).all()
        assert (result["n"] <= result.highs["n"]).all()
        assert not nonnegative or result["n"].min() >= 0


def test_intervals_of_raised_and_whole_values_are_those_of_unbiased_ones():
    results = [level((), [()], [2], [1]), level(("k",), [("a",), ("b",)], [6.3, -3.2], [1, 1])]
    unbiased = consistent(results, column="n")[1]
    made = consistent(results, column="n", nonnegative=True, whole=True)[1]
    assert unbiased["n"] == pytest.approx([5.9333, -3.5667], abs=1e-3)
    assert made["n"].tolist() == [2, 0]
    assert made.lows["n"].tolist() == [2, 0]  # 4, widened to what is shown
    assert made.highs["n"].tolist() == [8, 0]
    assert "rounded together" in made.notes[-1]


def test_numbers_too_large_to_round_are_refused():
    results = [level((), [()], [1e17], [1]), level(("k",), [("a",)], [1e17], [1])]
    with pytest.raises(ParameterError, match="below 2\\*\\*52"):
        consistent(results, column="n", whole=True)


@given(results=trees(), data=st.data())
@settings(max_examples=50)
def test_an_unknown_cell_follows_from_the_others(results, data):
    which = data.draw(st.integers(0, 2))
    result = results[which]
    row = data.draw(st.integers(0, len(result) - 1))
    errors = result.errors["n"].tolist()
    errors[row] = math.nan
    rows = list(zip(*(result[k] for k in result.keys), strict=True)) or [()]
    results[which] = level(result.keys, rows, result["n"], errors)
    values, variances = dense(results)
    made = consistent(results, column="n")
    assert np.concatenate([r["n"] for r in made]) == pytest.approx(values, abs=1e-5)
    assert np.concatenate([r.errors["n"] for r in made]) == pytest.approx(
        np.sqrt(variances), rel=1e-5
    )


def test_two_unknown_siblings_have_no_solution():
    results = [level((), [()], [5], [1]), level(("k",), [("a",), ("b",)], [1, 2], [math.nan] * 2)]
    with pytest.raises(ParameterError, match="too many are unknown"):
        consistent(results, column="n")


def test_exact_values_stay_as_they_are():
    results = [level((), [()], [10], [0]), level(("k",), [("a",), ("b",)], [3, 4], [2, 1])]
    total, parts = consistent(results, column="n")
    assert total.value == 10
    assert parts["n"] == pytest.approx([3 + 3 * 4 / 5, 4 + 3 * 1 / 5])
    both = [level((), [()], [9], [1]), level(("k",), [("a",), ("b",)], [3, 4], [0, 0])]
    total, parts = consistent(both, column="n")
    assert (total.value, parts["n"].tolist()) == (7, [3, 4])


@given(
    values=st.lists(st.floats(-100, 100), min_size=1, max_size=5),
    errors=st.lists(st.floats(0.5, 5), min_size=5, max_size=5),
    total=st.floats(0, 100),
)
def test_the_projection_is_the_nearest_point_without_negative_values(values, errors, total):
    from discreet.tables.results.consistent import _project

    variances = np.array(errors[: len(values)]) ** 2
    parent = np.zeros(len(values), dtype=np.int64)
    made = _project(np.array(values), variances, parent, np.array([total]))
    assert made.sum() == pytest.approx(total, abs=1e-9)
    assert made.min() >= 0
    # Karush, Kuhn and Tucker: one multiplier for all that are positive, no less for the others.
    slopes = (made - np.array(values)) / variances
    if (made > 1e-9).any():
        multiplier = slopes[made > 1e-9].max()
        assert slopes[made > 1e-9] == pytest.approx(multiplier, abs=1e-6)
        assert (slopes >= multiplier - 1e-6).all()


@pytest.mark.lengthy
def test_errors_are_those_seen_and_a_wrong_one_would_show():
    rng = np.random.default_rng()
    n, truth, errors = 4000, np.array([30.0, 10.0, 20.0]), np.array([4.0, 3.0, 6.0])
    seen = []
    for _ in range(n):
        noisy = truth + errors * rng.standard_normal(3)
        whole = level((), [()], noisy[:1], errors[:1])
        parts = level(("k",), [("a",), ("b",)], noisy[1:], errors[1:])
        parts = consistent([whole, parts], column="n")[1]
        seen.append(((parts["n"][0] - truth[1]) / parts.errors["n"][0]) ** 2)
    # A sum of n squares of standard normals is within n * (2 sqrt(x/n) + 2 x/n) of n, but for
    # 2 exp(-x) [Laurent and Massart]; an error 20% off moves it by 0.3 n at least.
    x = math.log(2 / FALSE_ALARM)
    band = 2 * math.sqrt(x / n) + 2 * x / n
    assert band < 0.17
    assert abs(np.mean(seen) - 1) <= band
    assert abs(np.mean(seen) / 1.2**2 - 1) > band
    assert abs(np.mean(seen) / 0.8**2 - 1) > band


def test_intervals_shrink_with_the_errors_and_notes_say_so():
    results = [level((), [()], [10], [1]), level(("k",), [("a",), ("b",)], [3, 4], [2, 1])]
    _, parts = consistent(results, column="n")
    width = parts.highs["n"] - parts.lows["n"]
    assert width == pytest.approx(4 * parts.errors["n"])
    assert "add up" in parts.notes[-1]
    assert (results[1]["n"].tolist(), results[1].notes) == ([3, 4], ())


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([level((), [()], [1], [1])], "at least two"),
        ([level(("k",), [("a",)], [1], [1]), level((), [()], [1], [1])], "coarse to fine"),
        ([level(("k",), [("a",)], [1], [1]), level(("k",), [("a",)], [1], [1])], "coarse to fine"),
        ([level(("k",), [("a",)], [1], [1]), level(("k", "j"), [("b", 1)], [1], [1])], "parent"),
        ([level(("k",), [("a",), ("b",)], [1, 2], [1, 1]), level(("k", "j"), [("b", 1)], [1], [1])],
         "parts for each"),
        ([level(("k",), [("a",), ("a",)], [1, 2], [1, 1]), level(("k", "j"), [("a", 1)], [1], [1])],
         "each group once"),
    ],
)  # fmt: skip
def test_what_is_no_hierarchy_is_refused(results, words):
    with pytest.raises(ParameterError, match=words):
        consistent(results, column="n")


@pytest.mark.parametrize(
    ("coarse", "fine"),
    [
        ([1, 2], [2, 1, 2]),
        ([1, 2], [2.0, 1.0, 2.0]),  # whole numbers are equal however they are held
        ([1.5, None], [None, 1.5, None]),
        (["a", None], [None, "a", None]),
    ],
)
def test_parents_are_found_by_equal_keys(coarse, fine):
    whole = level(("k",), [(key,) for key in coarse], [10, 20], [0, 0])
    parts = level(("k", "j"), [(key, j) for j, key in enumerate(fine)], [1, 2, 3], [1, 1, 1])
    _, made = consistent([whole, parts], column="n")
    assert made["n"].tolist() == [9, 10, 11]


def test_the_column_must_be_there():
    with pytest.raises(ParameterError, match="column of numbers"):
        consistent([level((), [()], [1], [1]), level(("k",), [("a",)], [1], [1])], column="k")
