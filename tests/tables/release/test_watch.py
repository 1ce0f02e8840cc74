"""Watches: what all members of a unit can do to the questions is what is charged."""

import math
from fractions import Fraction
from typing import Any

import pytest

from discreet import Unit
from discreet.accounting import PureLoss
from discreet.testing import temporary_tables

COUNTS = [f"SELECT COUNT(*) FROM people WHERE age > {age}" for age in (20, 40)]


@pytest.mark.lengthy
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize(("rows", "positives"), [(1, 1), (1025, 1 << 14), (1, 1 << 39)])
def test_members_that_move_questions_apart_cost_no_more_than_is_charged(
    neighbours: str, size: int, rows: int, positives: int
) -> None:
    unit: Any = Unit.column("person_id").group(size)
    with temporary_tables(epsilon=3, unit=unit, rows=rows, neighbours=neighbours) as T:
        watch = T.watch(COUNTS, threshold=10, positives=positives, epsilon=1)
    plan = watch._session._plan
    # One member moves all questions one way by ``rows`` (an exchange: two such moves), on the grid
    # by so many steps. The next may move them the other way, and is rounded to the grid by itself.
    moved = rows * (2 if neighbours == "replace_one" else 1)
    steps = size * math.ceil(Fraction(moved) / plan.grid.spacing)
    price_of_a_step = (plan.epsilon_threshold + plan.epsilon_queries) / plan.sensitivity
    assert watch.receipt.loss == PureLoss(epsilon=1)
    assert steps * price_of_a_step <= 1
