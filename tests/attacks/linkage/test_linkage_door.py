"""Secrets looked up: in a table without names, and through a protected one."""

import pytest

from discreet.attacks import linkage
from discreet.datasets import voters
from discreet.errors import ParameterError
from discreet.privacy import Guarantee
from discreet.tables import protect

QUASI = ("zip", "birth_date", "sex")
SICK = "diagnosis"


@pytest.fixture
def tables(tmp_path):
    people = voters(3000)
    keys = sorted(set(people[SICK].tolist()))
    with protect(
        people, name="patients", unit="voter", rows=1, guarantee=Guarantee(epsilon=1, delta=1e-6),
        ledger=tmp_path / "budget.db", columns={SICK: {"keys": keys}},
    ) as opened:  # fmt: skip
        yield opened


def test_nearly_everybody_is_found_without_protection():
    people = voters(3000)
    found = linkage.run(people, QUASI, auxiliary=people, secret=SICK)
    assert found.success > 0.97
    assert found.is_better_than_guessing


@pytest.mark.lengthy
def test_through_a_budget_an_attack_stays_below_what_is_allowed(tables):
    """False alarm at most 1e-6: success exceeds the bound beyond a certified interval.

    It could fail: with exact answers all 40 are right, and 1e-6 ** (1 / 40) = 0.71 > 0.55.
    """
    found = linkage.run(
        tables, QUASI, auxiliary=voters(3000), secret=SICK, people=40, confidence=1 - 2e-6
    )
    assert found.interval[0] <= found.allowed < 0.6
    assert found.details["answers"] == 40


def test_the_budget_ends_the_attack(tables):
    found = linkage.run(tables, QUASI, auxiliary=voters(3000), secret=SICK, people=10, epsilon=0.4)
    assert found.details == {"answers": 2, "budget_ended": True, "epsilon_each": 0.4}
    assert "the budget ended after 2 answers" in found.summary


def test_a_protected_table_needs_people_to_ask_about(tables):
    with pytest.raises(ParameterError, match="auxiliary"):
        linkage.run(tables, QUASI)
    with pytest.raises(ParameterError, match="secret"):
        linkage.run({"a": [1]}, ["a"], auxiliary={"a": [1]})
