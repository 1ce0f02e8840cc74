"""Places of quantiles as values: the ends allow for values that were rounded to a place."""

from fractions import Fraction

import pytest

from discreet.tables.algorithms.quantile_draw import Covering
from discreet.tables.release.execution.quantiles import Ranked, value_grid


@pytest.mark.parametrize("value", [7.0, 9.5, 0.1, 10.0])
def test_a_value_between_two_points_of_the_grid_is_within_the_ends(value):
    grid = value_grid(0, (Fraction(0), Fraction(10)), is_whole=False)
    place = int(value / 10 * (grid.points - 1) + 0.5)  # as the statement rounds it
    found = Ranked.of([Covering(place=place, low=place, high=place)], grid, is_whole=False)
    assert found.low[0] <= value <= found.high[0] <= 10
    assert found.high[0] - found.low[0] <= 10 / (grid.points - 1)


def test_whole_numbers_are_on_the_grid():
    grid = value_grid(0, (Fraction(0), Fraction(10)), is_whole=True)
    found = Ranked.of([Covering(place=7, low=7, high=None)], grid, is_whole=True)
    assert found.low[0] == found.value[0] == 7
    assert found.high[0] != found.high[0]


def test_whole_numbers_of_a_wide_range_are_not():
    grid = value_grid(0, (Fraction(0), Fraction(10**9)), is_whole=True)
    found = Ranked.of([Covering(place=100, low=100, high=100)], grid, is_whole=True)
    assert found.low[0] < found.value[0] < found.high[0]
