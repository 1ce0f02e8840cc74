"""Differencing through a protected table: nothing beyond what epsilon allows."""

from contextlib import nullcontext
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from discreet.attacks import differencing as d
from discreet.datasets import salaries
from discreet.errors import ParameterError
from discreet.privacy import Guarantee
from discreet.tables import protect

PAYROLL = salaries(60)
BOUNDS = (0, 200_000)
LITTLE = Guarantee(epsilon=0.25, delta=1e-6)


def opened(data, folder, guarantee):
    return protect(
        data, name="payroll", unit="employee_id", rows=1, guarantee=guarantee,
        ledger=f"{folder}/budget.db", columns={"salary": {"bounds": BOUNDS}},
    )  # fmt: skip


def world(is_in, *, guarantee=LITTLE, is_protected=True):
    """Ask how many the target is, all but alone, in a payroll with or without the target."""
    rows = np.arange(60) if is_in else np.delete(np.arange(60), 7)
    data = {name: column[rows] for name, column in PAYROLL.items()}
    with TemporaryDirectory() as folder:
        made = opened(data, folder, guarantee) if is_protected else nullcontext()
        with made as table:
            ask = (
                d.paid(table, epsilon=guarantee.epsilon / 2)
                if is_protected
                else d.Guarded(data, name="payroll", minimum=10)
            )
            count = d.grouped(ask, "COUNT(*)", table="payroll")
            return d.individual_tracker(count, "employee_id = 7", cover="years >= 0")


@pytest.mark.lengthy
def test_a_minimum_size_loses_the_game():
    report = d.distinguish(lambda is_in: world(is_in, is_protected=False), threshold=0.5, trials=20)
    assert report.success == 1


@pytest.mark.lengthy
def test_the_game_is_not_won_beyond_epsilon():
    """False alarm at most 1e-6; 28 right guesses of 28 prove 0.61 > 0.57."""
    report = d.distinguish(
        world, threshold=0.5, trials=28, guarantee=LITTLE, confidence=1 - 2e-6, seed=1
    )
    assert report.interval[0] <= report.allowed
    assert report.allowed == pytest.approx(0.5622, abs=1e-3)


@pytest.mark.slow
def test_many_games_are_not_won_beyond_epsilon():
    """False alarm at most 1e-6; an epsilon of 4 would show (0.98, 0.88 certified, against 0.82)."""
    one = Guarantee(epsilon=1.5, delta=1e-6)
    report = d.distinguish(
        lambda is_in: world(is_in, guarantee=one), threshold=0.5, trials=200, guarantee=one,
        confidence=1 - 2e-6,
    )  # fmt: skip
    assert report.interval[0] <= report.allowed


def test_salaries_stay_secret_and_the_budget_ends_the_attack(tmp_path):
    """False alarm below 1e-6: noise of deviation over 10^5 hits no salary but by 1e-5 each."""
    truths = {at: int(PAYROLL["salary"][at]) for at in range(6)}
    with opened(PAYROLL, tmp_path, Guarantee(epsilon=1, delta=1e-6)) as table:
        report = d.run(
            table, truths, table="payroll", key="employee_id", keys=(0, 59), secret="salary",
            bounds=BOUNDS, epsilon=0.3,
        )  # fmt: skip
    assert report.success <= 2 / 6
    assert report.details["refused"] == 3
    assert report.allowed < 0.5


def test_only_who_is_the_unit_has_a_bound(tmp_path):
    data = {"visit": np.arange(60), **PAYROLL}
    with protect(
        data, name="payroll", unit="visit", rows=1, guarantee=LITTLE,
        ledger=tmp_path / "budget.db", columns={"salary": {"bounds": BOUNDS}},
    ) as table:  # fmt: skip
        facts = {"table": "payroll", "key": "employee_id", "keys": (0, 59), "secret": "salary"}
        report = d.run(table, {1: 5}, bounds=BOUNDS, **facts)
        assert report.allowed is None
        with pytest.raises(ParameterError, match="confidence"):
            d.run(table, {1: 5}, bounds=BOUNDS, confidence=2, **facts)
