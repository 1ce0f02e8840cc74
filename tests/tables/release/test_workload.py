"""Workloads: the shares of all questions add up to what was offered, exactly."""

from fractions import Fraction

import pytest

from discreet.testing import temporary_tables


@pytest.mark.lengthy
@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3), (5, 7, 1), (0.1, 10, 3), (1, 1e-9, 1e9)])
def test_the_shares_of_a_workload_without_delta_add_up_to_its_epsilon(weights: list[float]) -> None:
    questions = [
        "SELECT COUNT(*) AS n FROM people",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        "SELECT COUNT(*) AS n FROM people WHERE age > 40",
    ]
    with temporary_tables(epsilon=3, delta=0) as T:
        for asked in (questions[:2], questions):
            for epsilon in (Fraction(1, 10), Fraction(1), Fraction(7, 3)):
                told = weights[: len(asked)]
                workload = T.plan(asked, epsilon=epsilon, delta=0, weights=told)
                assert len(workload.parts) == len(asked)
                assert sum(part.price.epsilon for _, part in workload.parts) <= epsilon
                assert workload.loss.epsilon_pure <= epsilon
        whole = T.plan(questions, epsilon=3, delta=0, weights=weights)
        assert len(whole.release()) == 3
