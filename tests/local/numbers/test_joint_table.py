"""Joint tables: pairs, sums and shares with their errors."""

import numpy as np
import pytest

from discreet.errors import DataError, ParameterError
from discreet.local import DirectResponse, HadamardResponse, JointTable

CELLS = np.array([[4000, 0, 1000], [500, 2500, 2000]])


def people():
    rows, columns = np.indices(CELLS.shape)
    return np.repeat(rows.ravel(), CELLS.ravel()), np.repeat(columns.ravel(), CELLS.ravel())


@pytest.mark.parametrize(("epsilon", "kind"), [(3, DirectResponse), (0.2, HadamardResponse)])
def test_a_pair_is_one_value_with_all_of_epsilon(epsilon, kind):
    columns = 3 if kind is DirectResponse else 40
    randomiser = JointTable(rows=2, columns=columns, epsilon=epsilon)
    assert isinstance(randomiser.oracle, kind)
    assert randomiser.oracle.domain == 2 * columns
    assert randomiser.loss.epsilon <= epsilon
    assert randomiser.outputs == randomiser.oracle.outputs


@pytest.mark.parametrize("epsilon", [1, 4])
def test_estimates_add_up_and_hold_the_truth(epsilon):
    randomiser = JointTable(rows=2, columns=3, epsilon=epsilon)
    estimate = randomiser.estimate(randomiser.release(*people()))
    low, high = estimate.interval(confidence=1 - 1e-9)
    assert ((low <= CELLS) & (high >= CELLS)).all()
    for (sums, errors), axis in ((estimate.rows(), 1), (estimate.columns(), 0)):
        assert np.allclose(sums, estimate.counts.sum(axis=axis))
        assert (np.abs(sums - CELLS.sum(axis=axis)) < 6.5 * errors).all()
    shares, _ = estimate.by_row()
    assert np.allclose(shares.sum(axis=1), 1)


def test_what_cannot_be_is_refused(no_randomness):
    randomiser = JointTable(rows=2, columns=3, epsilon=1)
    for rows, columns in [([2], [0]), ([0], [3]), ([0, 1], [0]), ([0.5], [0])]:
        with pytest.raises(DataError, match=r"values|rows and columns"):
            randomiser.release(rows, columns, source=no_randomness)
    for rows, columns in [(1, 3), (3, 1), (1 << 20, 1 << 20)]:
        with pytest.raises(ParameterError, match="domain"):
            JointTable(rows=rows, columns=columns, epsilon=1)


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "times"), [(3, 1), (33, 8)])  # direct and Hadamard response
def test_squared_errors_are_those_stated(columns, times):
    randomiser = JointTable(rows=2, columns=columns, epsilon=1.5)
    # The delta method needs rows of many times their error.
    rows, second = (np.tile(values, times) for values in people())
    truth = np.zeros((2, columns))
    truth[:, :3] = CELLS * times
    found = {"counts": [], "rows": [], "columns": [], "by_row": []}
    for _ in range(600):
        estimate = randomiser.estimate(randomiser.release(rows, second))
        found["counts"].append((estimate.counts - truth) / estimate.standard_error)
        sums, errors = estimate.rows()
        found["rows"].append((sums - truth.sum(axis=1)) / errors)
        sums, errors = estimate.columns()
        found["columns"].append((sums - truth.sum(axis=0)) / errors)
        shares, errors = estimate.by_row()
        found["by_row"].append((shares - truth / truth.sum(axis=1, keepdims=True)) / errors)
    for name, deviations in found.items():
        over = np.square(deviations).mean(axis=0)
        assert np.abs(over - 1).max() < 6.2 * np.sqrt(2 / 600), name
        if name == "counts" and columns == 33:  # 39,600 degrees of freedom
            assert abs(over.mean() - 1) < 0.05
