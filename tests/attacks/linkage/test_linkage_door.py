"""Secrets looked up: in a table without names, and through a protected one."""

import numpy as np
import pytest

from discreet.attacks import linkage
from discreet.datasets import voters
from discreet.errors import DataError, ParameterError
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


def test_tables_of_other_types_are_refused_without_a_value():
    known = {"a": [1, 2], "s": [1, 0]}
    with pytest.raises(DataError, match="one type") as error:
        linkage.run({"a": ["918273x", "b"], "s": [1, 1]}, ["a"], auxiliary=known, secret="s")
    assert "918273" not in str(error.value)
    with pytest.raises(ParameterError, match="must not be one of quasi"):
        linkage.run(known, ["a", "s"], auxiliary=known, secret="s")
    lists = {"a": [1, 2], "s": [[1], [2]]}
    with pytest.raises(DataError, match="holds lists"):
        linkage.run(lists, ["a"], auxiliary=lists, secret="s")


def test_a_missing_secret_that_is_found_is_found():
    people = {"a": [1, 2, 3], "s": [None, "ill", "ill"]}
    assert linkage.run(people, ["a"], auxiliary=people, secret="s").success == 1


@pytest.mark.lengthy
def test_moments_and_gaps_are_asked_for_as_sql_has_them(tmp_path):
    """False alarm below 1e-6: at epsilon 2,000 each count is off by less than a half."""
    when = np.array(["2020-01-01T10", "2020-01-02T11"] * 10, dtype="datetime64[us]")
    place = [None, "x"] * 10
    people = {"id": np.arange(20), "when": when, "place": place, "ill": [0, 1] * 10}
    with protect(
        people, name="p", unit="id", rows=1, guarantee=Guarantee(epsilon=4000, delta=1e-6),
        ledger=tmp_path / "budget.db", columns={"ill": {"keys": [0, 1]}},
    ) as opened:  # fmt: skip
        known = {name: column[:2] for name, column in people.items()}
        for quasi in (["when"], ["place"]):
            assert (
                linkage.run(opened, quasi, auxiliary=known, secret="ill", epsilon=900).success == 1
            )
