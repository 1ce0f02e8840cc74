"""Each free step is the projection that it claims to be, found by other means."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from discreet import local
from discreet.errors import ParameterError

whole = st.integers(-50, 50)
rows = st.lists(whole, min_size=1, max_size=12)
totals = st.integers(0, 60)


def exact_simplex(counts, total):
    """Search the number to subtract among all sets that may stay above 0, exactly."""
    falling = sorted(map(Fraction, counts), reverse=True)
    for size in range(len(falling), 0, -1):
        number = (sum(falling[:size]) - total) / size
        if falling[size - 1] >= number:
            return [max(count - number, 0) for count in map(Fraction, counts)]
    raise AssertionError


@given(counts=rows, total=totals)
def test_the_simplex_projection_is_the_exact_one(counts, total):
    got = local.onto_simplex(counts, total=total)
    np.testing.assert_allclose(got, [float(x) for x in exact_simplex(counts, total)], atol=1e-9)
    assert (got >= 0).all()


@given(counts=rows, data=st.data())
def test_no_point_of_the_simplex_gets_farther(counts, data):
    truth = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=len(counts), max_size=len(counts)))
    )
    got = local.onto_simplex(counts, total=int(truth.sum()))
    assert ((got - truth) ** 2).sum() <= ((np.array(counts) - truth) ** 2).sum() + 1e-9


@given(counts=rows, total=totals)
def test_norm_sub_is_what_repeated_subtraction_ends_at(counts, total):
    values = np.array(counts, dtype=float)
    positive = values > 0
    got = local.norm_sub(counts, total=total)
    assert (got >= 0).all()
    assert abs(got.sum() - total) < 1e-9
    if not positive.any():
        return
    assert (got[~positive] == 0).all()
    for _ in range(len(counts) + 1):  # the loop of the paper
        values[values < 0] = 0
        positive = values > 0 if total else values > np.inf
        if positive.any():
            values[positive] += (total - values.sum()) / positive.sum()
        else:
            values[:] = 0
    np.testing.assert_allclose(got, values, atol=1e-9)


@given(counts=rows, increasing=st.booleans(), data=st.data())
def test_monotone_counts_are_scipys(counts, increasing, data):
    size = len(counts)
    weights = data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    got = local.monotone(counts, increasing=increasing, weights=weights)
    peer = isotonic_regression(np.array(counts, float), weights=weights, increasing=increasing)
    np.testing.assert_allclose(got, peer.x, atol=1e-9)


@settings(max_examples=40)
@given(
    shape=st.sampled_from([(1, 2), (1, 3, 9), (2, 4, 8), (1, 2, 4, 12), (3,)]),
    known=st.booleans(),
    data=st.data(),
)
def test_consistent_counts_are_generalised_least_squares(shape, known, data):
    levels = [data.draw(st.lists(whole, min_size=size, max_size=size)) for size in shape]
    spreads = data.draw(st.lists(st.integers(1, 9), min_size=len(shape), max_size=len(shape)))
    leaves = shape[-1]
    sums = np.concatenate([np.kron(np.eye(size), np.ones(leaves // size)) for size in shape])
    scale = np.repeat([1e-6 if known and not i else s for i, s in enumerate(spreads)], shape) ** 0.5
    if known and len(shape) > 1:
        spreads[0] = 0
    best = np.linalg.lstsq(sums / scale[:, None], np.concatenate(levels) / scale, rcond=None)[0]
    got = np.concatenate(local.hierarchical(levels, variances=spreads))
    np.testing.assert_allclose(got, sums @ best, atol=1e-3)
    np.testing.assert_allclose(got, sums @ got[-leaves:], atol=1e-9)


def test_an_estimate_brings_its_total():
    randomiser = local.DirectResponse(domain=4, epsilon=1)
    estimate = randomiser.estimate(randomiser.release([0] * 500 + [1] * 500))
    for step in (local.norm_sub, local.onto_simplex):
        assert step(estimate).sum() == pytest.approx(1000)
    assert (np.diff(local.monotone(estimate, increasing=False)) <= 0).all()


@pytest.mark.parametrize("step", [local.norm_sub, local.onto_simplex, local.monotone])
@pytest.mark.parametrize("counts", [[], [[1.0]], [np.nan], ["a"], None, [np.inf]])
def test_what_are_no_counts_is_refused(step, counts):
    total = {} if step is local.monotone else {"total": 5}
    with pytest.raises(ParameterError) as told:
        step(counts, **total)
    assert told.value.parameter == "counts"


def test_totals_weights_and_levels_are_checked():
    with pytest.raises(ParameterError, match="total must be given"):
        local.norm_sub([1, 2])
    with pytest.raises(ParameterError, match="total must be"):
        local.onto_simplex([1, 2], total=-1)
    with pytest.raises(ParameterError, match="weights"):
        local.monotone([1, 2], weights=[1, 0])
    for levels, variances in [([[1], [2, 3]], [1]), ([[1, 2], [3, 4, 5]], [1, 1]), ([], [])]:
        with pytest.raises(ParameterError, match="coarse to fine"):
            local.hierarchical(levels, variances=variances)
    with pytest.raises(ParameterError, match="coarse to fine"):
        local.hierarchical([[1], [2, 3]], variances=[1, 0])
