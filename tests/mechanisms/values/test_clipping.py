"""Clipping keeps its bounds exactly, for every input, and each record to itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from discreet.errors import DataError, ParameterError
from discreet.mechanisms import DiscreteLaplace, Gaussian, Laplace
from discreet.mechanisms.values.clipping import clip, clip_norm
from discreet.mechanisms.values.exact_sum import exact_sum

any_floats = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
bounds = st.tuples(
    st.fractions(min_value=-100, max_value=100), st.fractions(min_value=-100, max_value=100)
).map(sorted)


@pytest.mark.lengthy
@given(values=st.lists(any_floats, max_size=20), between=bounds)
def test_results_lie_within_the_bounds_exactly(values, between):
    low, high = between
    try:
        found = clip(np.array(values, dtype=float), low=low, high=high)
    except ParameterError:
        assert Fraction(float(low)) != low  # no double lies between two such close fractions
        return
    assert all(low <= Fraction(x) <= high for x in found.tolist())
    for value, result in zip(values, found.tolist(), strict=True):
        if low <= (Fraction(value) if math.isfinite(value) else math.inf) <= high:
            assert result == value


def test_special_values():
    found = clip([math.nan, math.inf, -math.inf, 0.5], low=0, high=1, missing=0.25)
    assert found.tolist() == [0.25, 1, 0, 0.5]
    assert clip(math.nan, low=-1, high=3) == 1.0
    assert clip(np.float32(7), low=-1, high=3) == 3.0
    assert clip(np.longdouble("1e4000"), low=0, high=3) == 3.0


SIZES = [sign * huge for huge in (10**19, 10**30, 2**1023, 10**400) for sign in (1, -1)]


@pytest.mark.parametrize("size", SIZES, ids=lambda x: f"{x > 0} {x.bit_length()}")
def test_no_integer_is_too_large(size):
    end = 10 if size > 0 else 0
    assert clip(size, low=0, high=10) == end
    assert clip([3, size], low=0, high=10).tolist() == [3, end]
    assert clip([3, size, -5], low=0, high=10).tolist() == [3, end, 0]
    assert clip([-(2**63), size], low=-(2**70), high=2**70)[0] == -(2**63)
    assert clip([-(2**62) - 1, size], low=-(2**70), high=2**70)[0] == -(2**62) - 1
    assert clip([2.5, size, math.nan], low=0, high=10).tolist() == [2.5, end, 5]
    assert clip([3, size], low=0, high=2.5).tolist() == [2.5, min(end, 2.5)]
    assert clip_norm([[0.0, size]], bound=1, norm=2)[0, 1] == pytest.approx(1 if size > 0 else -1)
    assert exact_sum([1, size], low=0, high=10, grid=0.5) == 2 + 2 * end
    assert exact_sum([1.5, size], low=0, high=10, grid=0.5) == 3 + 2 * end


@pytest.mark.parametrize("size", SIZES, ids=lambda x: f"{x > 0} {x.bit_length()}")
@pytest.mark.parametrize("grid", [2.0**-900, 2.0**-20, 1, 2.0**900])
def test_no_integer_is_too_large_to_be_released(size, grid):
    unit = Fraction(grid)
    for noise in (
        Laplace(sensitivity=unit, scale=unit, grid=grid),
        Gaussian(sensitivity=unit, sigma=unit, grid=grid),
    ):
        assert math.isfinite(noise.release(size))
        assert np.isfinite(noise.release([size, 1])).all()
    counts = DiscreteLaplace(sensitivity=1, scale=1)
    assert abs(counts.release(size) - size) < 1000
    assert abs(counts.release([size]).tolist()[0]) > 2**62


def test_integers_stay_integers_with_whole_bounds():
    found = clip(np.array([2**63 - 1, -(2**63), 5]), low=-10, high=10.0)
    assert found.dtype == np.int64
    assert found.tolist() == [10, -10, 5]
    assert clip(np.array([2**64 - 1], dtype=np.uint64), low=0, high=2**70)[0] == 2**63 - 1
    assert clip(7, low=0, high=5) == 5
    assert isinstance(clip(7, low=0, high=5), int)
    assert clip([1, 9], low=0, high=2.5).tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"low": 2, "high": 1}, "high"),
        ({"low": math.nan, "high": 1}, "low"),
        ({"low": 0, "high": math.inf}, "high"),
        ({"low": 0, "high": 10**400}, "high"),
        ({"low": 0, "high": 1, "missing": 2}, "missing"),
        ({"low": 0, "high": 1, "missing": math.nan}, "missing"),
        ({"low": Fraction(1, 3), "high": Fraction(1, 3)}, "high"),
    ],
)
def test_bad_parameters(parameters, name):
    with pytest.raises(ParameterError, match=name):
        clip([0.5], **parameters)


@pytest.mark.parametrize(
    "values", [["a"], [None], [[1], [1, 2]], [True], [1j], np.ma.masked_array([1.0], mask=[True])]
)
def test_bad_types(values):
    with pytest.raises(DataError):
        clip(values, low=0, high=1)
    with pytest.raises(DataError):
        clip_norm(values, bound=1, norm=2)


tables = npst.arrays(
    np.float64,
    npst.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(any_floats, st.floats(-10, 10), st.floats(-1e-300, 1e-300)),
)


def exact_norm_fits(row, bound, norm):
    parts = [abs(Fraction(x)) for x in row]
    return sum(parts) <= bound if norm == 1 else sum(p * p for p in parts) <= bound**2


@pytest.mark.lengthy
@given(
    table=tables,
    bound=st.fractions(min_value=Fraction(1, 1000), max_value=1000),
    norm=st.sampled_from([1, 2]),
)
def test_norms_are_certified_exactly(table, bound, norm):
    found = clip_norm(table, bound=bound, norm=norm)
    assert found.shape == table.shape
    assert all(exact_norm_fits(row, bound, norm) for row in found.tolist())


@given(row=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50), norm=st.sampled_from([1, 2]))
def test_long_rows_keep_their_direction_and_short_ones_everything(row, norm):
    vector = np.array(row)
    length = np.linalg.norm(vector, ord=norm)
    assert (clip_norm(vector, bound=length + 1, norm=norm) == vector).all()
    if length > 1e-6:
        found = clip_norm(vector, bound=length / 2, norm=norm)
        assert np.allclose(found, vector / 2, rtol=1e-12, atol=1e-300)


def test_rows_do_not_influence_each_other():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(20, 7)) * 10
    together = clip_norm(table, bound=3, norm=2)
    alone = np.array([clip_norm(row, bound=3, norm=2) for row in table])
    assert (together == alone).all()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_to_clip(shape):
    assert clip_norm(np.zeros(shape), bound=1, norm=1).shape == shape


def test_integers_and_special_values():
    assert clip_norm([3, 4], bound=10, norm=2).tolist() == [3.0, 4.0]
    assert clip_norm([math.nan, 1.0], bound=2, norm=1).tolist() == [0.0, 1.0]
    found = clip_norm([math.inf, -math.inf], bound=1, norm=1)
    assert np.allclose(found, [0.5, -0.5])


@pytest.mark.parametrize("bound", [0, -1, math.nan, math.inf, True, 10**400])
def test_bad_bound(bound):
    with pytest.raises(ParameterError, match="bound"):
        clip_norm([[1.0]], bound=bound, norm=2)


@pytest.mark.parametrize("norm", [0, 3, math.inf, True, "2"])
def test_bad_norm(norm):
    with pytest.raises(ParameterError, match="norm"):
        clip_norm([[1.0]], bound=1, norm=norm)


@pytest.mark.parametrize("rows", [3.0, np.zeros((2, 2, 2))])
def test_bad_shapes(rows):
    with pytest.raises(DataError, match="dimensions"):
        clip_norm(rows, bound=1, norm=2)
