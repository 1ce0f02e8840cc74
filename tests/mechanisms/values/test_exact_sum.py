"""Sums of clipped values move by their sensitivity at most, to the last bit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import audit
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.additive.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.values.clipping import clip
from discreet.mechanisms.values.exact_sum import exact_sum, sum_sensitivity

FALSE_ALARM = 1e-9

any_numbers = st.lists(st.floats(allow_nan=True) | st.floats(-20, 20), max_size=9) | st.lists(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20), max_size=9
)
bounds = st.tuples(
    st.integers(-50, 50) | st.floats(-50, 50) | st.fractions(-50, 50),
    st.integers(-50, 50) | st.floats(-50, 50) | st.fractions(-50, 50),
).map(sorted)
grids = st.integers(-30, 8).map(lambda e: Fraction(2) ** e)


def by_definition(values, low, high, grid):
    clipped = clip(np.array(values), low=low, high=high).tolist() if values else []
    return sum(math.floor(Fraction(x) / grid + Fraction(1, 2)) for x in clipped)


@given(values=any_numbers, extra=st.floats(allow_nan=True), between=bounds, grid=grids)
def test_one_record_moves_the_sum_by_its_sensitivity_at_most(values, extra, between, grid):
    low, high = between
    of = {"low": low, "high": high, "grid": grid}
    try:
        before = exact_sum(values, **of)
    except ParameterError:  # no double lies between two such close bounds
        assert not 0 < high - low > 1e-9
        return
    assert before == by_definition(values, low, high, grid)
    assert isinstance(before, int)
    added = exact_sum([*map(float, values), extra], **of)
    alone = exact_sum(list(map(float, values)), **of)
    assert abs(added - alone) <= sum_sensitivity(neighbours="add_remove", **of)
    other = exact_sum([*map(float, values), 3.0], **of)
    assert abs(added - other) <= sum_sensitivity(neighbours="replace_one", **of)


def test_sensitivities_are_attained():
    of = {"low": -3, "high": 10, "grid": 0.5}
    empty = exact_sum([], **of)
    assert empty == 0
    assert exact_sum([99.0], **of) - empty == sum_sensitivity(neighbours="add_remove", **of) == 20
    replaced = exact_sum([99.0], **of) - exact_sum([-99.0], **of)
    assert replaced == sum_sensitivity(neighbours="replace_one", **of) == 26
    assert sum_sensitivity(neighbours="zero_out", **of) == 20


def test_a_floating_point_sum_exceeds_the_sensitivity_and_ours_does_not():
    small = np.full(3, 0.1)
    of = {"low": 0, "high": 0.1, "grid": 2.0**-30}
    steps = sum_sensitivity(neighbours="add_remove", **of)
    assert exact_sum(small, **of) - exact_sum(small[1:], **of) == steps
    moved = Fraction(float(np.cumsum(small)[-1])) - Fraction(float(np.cumsum(small[1:])[-1]))
    assert moved > Fraction(0.1)  # more than any record contributes
    # Replaced at the front, one record changes how the others are rounded: 1 becomes 4.
    large = np.array([2.0**53, *[1.0] * 4])
    one, other = (float(np.cumsum([x, *large])[-1]) for x in (1.0, 2.0))
    assert other - one == 4


@pytest.mark.lengthy
def test_long_sums_do_not_overflow():
    of = {"low": 0, "high": 2**40, "grid": 1}
    count = (1 << 20) * 9 + 5
    assert exact_sum(np.full(count, 2**40), **of) == count << 40  # beyond 2**63
    assert exact_sum(np.full(count, -1.0), low=-(2**40), high=0, grid=1) == -count


@pytest.mark.parametrize("exponent", [62, 63, 64, 100])
def test_coarse_grids_round_integers_within_their_bounds(exponent):
    of = {"low": 0, "high": 2**63 - 1, "grid": 2**exponent}
    steps = sum_sensitivity(neighbours="add_remove", **of)
    assert exact_sum(np.array([2**63 - 1]), **of) == steps


def test_the_release_passes_the_audit_and_half_the_claim_fails():
    of = {"low": 0, "high": 1, "grid": 2.0**-4}
    steps = sum_sensitivity(neighbours="add_remove", **of)
    mechanism = DiscreteLaplace.calibrated(epsilon=1, sensitivity=steps)

    def run(values, runs):
        return mechanism.release(np.full(runs, exact_sum(values, **of)))

    common = {"delta": 0, "batch": True, "confidence": 1 - FALSE_ALARM}
    pair = ([0.3, 0.9], [0.3, 0.9, 7.0])
    assert audit.mechanism(run, pair=pair, epsilon=1, **common).passed
    assert not audit.mechanism(run, pair=pair, epsilon=0.5, **common).passed


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"low": 2, "high": 1}, "high"),
        ({"low": math.nan}, "low"),
        ({"high": math.inf}, "high"),
        ({"grid": 0}, "grid"),
        ({"grid": 0.3}, "grid"),
        ({"grid": 2.0**-60}, "grid"),
        ({"grid": math.nan}, "grid"),
    ],
)
def test_bad_parameters_are_named(change, name):
    of = {"low": 0, "high": 1, "grid": 1} | change
    with pytest.raises(ParameterError, match=name):
        exact_sum([0.5], **of)
    with pytest.raises(ParameterError, match=name):
        sum_sensitivity(neighbours="add_remove", **of)


def test_other_bad_input():
    with pytest.raises(ParameterError, match="neighbours"):
        sum_sensitivity(low=0, high=1, grid=1, neighbours="friends")
    with pytest.raises(ParameterError, match="missing"):
        exact_sum([0.5], low=0, high=1, grid=1, missing=3)
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for values in (3.0, [[1.0]], ["a"], None, masked):
        with pytest.raises(DataError):
            exact_sum(values, low=0, high=1, grid=1)
