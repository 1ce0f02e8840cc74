"""The attack through a protected table pays like anybody, and comes no farther than epsilon."""

from contextlib import contextmanager
from math import e

import numpy as np
import pytest

import discreet
from discreet.attacks.reconstruction import run, through
from discreet.errors import BudgetExceeded, DataError, ParameterError, Refused

PEOPLE, QUESTIONS, RUNS = 128, 512, 50


@contextmanager
def protected(folder, secret, *, epsilon=1, unit="id"):
    with discreet.protect(
        {"id": np.arange(len(secret)), "secret": secret, "home": np.arange(len(secret)) // 2},
        name="people",
        unit=unit,
        rows=1,
        guarantee=discreet.Guarantee(epsilon=epsilon, delta=1e-6),
        ledger=folder / "budget.db",
    ) as tables:
        yield tables


def interface(tables, people, share):
    return through(tables, condition="secret = 1", by="id", ids=range(people), share=share)


@pytest.mark.lengthy
def test_questions_end_with_the_budget(tmp_path):
    secret = np.arange(12) % 2
    with protected(tmp_path, secret) as tables:
        ask = interface(tables, 12, 0.25)
        for i in range(4):
            assert np.isfinite(ask(np.arange(12) <= i))
        with pytest.raises(BudgetExceeded):
            ask(np.arange(12) > 5)
        report = run(secret, ask, questions=3)
    assert report.details["answered"] == 0


@pytest.mark.lengthy
def test_with_a_huge_epsilon_it_works_so_the_sql_is_right(tmp_path):
    secret = np.random.default_rng(0).integers(0, 2, size=40)
    with protected(tmp_path, secret, epsilon=4000) as tables:
        ask = interface(tables, 40, 1 / 400)
        assert run(secret, ask, questions=200).success == 1
        each = run(secret, ask, subsets=np.eye(40, dtype=bool))
    assert each.success == 1


@pytest.mark.lengthy
def test_only_who_is_the_unit_has_a_bound_on_the_share(tmp_path):
    with protected(tmp_path, np.arange(12) % 2, unit="home") as tables:
        assert interface(tables, 12, 0.1).allowed(baseline=0.5) is None
        with pytest.raises(ParameterError, match="Number them"):
            through(tables, condition="secret = 1", by="id", ids=["a'b"], share=0.1)


@pytest.mark.slow
def test_a_protected_table_keeps_the_bits(tmp_path):
    """Means of 50 runs of 128 bits: subsets at most 55%, and at most what epsilon 1 allows.

    512 counts with epsilon 1 in all have noise of deviation 104, and tell a bit with probability
    0.526 (1,500 simulated runs); the mean of 50 runs then exceeds 0.55 with probability 6e-5 (3.9
    deviations of 0.0062), and so once more, with other noise, with 4e-9. Asked alone, each bit is
    told with probability 0.697, and the mean exceeds 0.731 with 2e-9. The test could fail: without
    noise both are 1, and with half of it the first is above 0.55.
    """
    subsets, alone = shares_right(tmp_path, range(RUNS))
    if subsets > 0.55:
        subsets, alone = shares_right(tmp_path, range(RUNS, 2 * RUNS))
    assert subsets <= 0.55
    assert 0.66 <= alone <= e / (1 + e)


def shares_right(tmp_path, seeds):
    subsets, alone = [], []
    for seed in seeds:
        secret = np.random.default_rng(seed).integers(0, 2, size=PEOPLE)
        for shares, questions, asked in (
            (subsets, QUESTIONS, None),
            (alone, PEOPLE, np.eye(PEOPLE, dtype=bool)),
        ):
            folder = tmp_path / f"{seed}-{questions}"
            folder.mkdir()
            with protected(folder, secret) as tables:
                ask = interface(tables, PEOPLE, 1 / questions)
                report = run(secret, ask, questions=questions, subsets=asked, seed=seed)
            assert report.details["answered"] == questions
            shares.append(report.success)
    return np.mean(subsets), np.mean(alone)


def test_a_mistake_in_the_question_is_not_taken_for_a_spent_budget(tmp_path):
    subsets = np.eye(12, dtype=bool)
    with protected(tmp_path, np.arange(12) % 2) as tables:
        for wrong in ({"condition": "secre = 1"}, {"by": "idd"}):
            facts = {"condition": "secret = 1", "by": "id", "ids": range(12), "share": 0.01} | wrong
            with pytest.raises(Refused, match="no column"):
                through(tables, **facts).many(subsets)
        ask = interface(tables, 12, 0.01)
        for few in (subsets[:, :5], subsets[0, :5]):
            with pytest.raises(DataError, match="12 people of ids="):
                ask.many(few)
        with pytest.raises(DataError, match="12 people"):
            ask(subsets[0, :5])
        with pytest.raises(ParameterError, match="share"):
            interface(tables, 12, 2)
        assert tables.remaining == 1


def test_ten_tenths_are_the_whole_budget(tmp_path):
    """A tenth as a float is a little more, and nothing was answered."""
    with protected(tmp_path, np.arange(10) % 2) as tables:
        answers = interface(tables, 10, 0.1).many(np.eye(10, dtype=bool))
    assert np.isfinite(answers).all()


@pytest.mark.lengthy
def test_more_people_than_one_question_holds_are_asked_about_in_several(tmp_path):
    people = 1200
    with protected(tmp_path, np.arange(people) % 2) as tables:
        answers = interface(tables, people, 1 / people).many(np.eye(people, dtype=bool))
    assert np.isfinite(answers).all()


def test_names_are_quoted(tmp_path):
    data = {"person id": np.arange(6), "ill": [0, 1] * 3}
    with discreet.protect(
        data, name="my people", unit="person id", rows=1, ledger=tmp_path / "budget.db",
        guarantee=discreet.Guarantee(epsilon=1, delta=1e-6),
    ) as tables:  # fmt: skip
        ask = through(tables, condition="ill = 1", by="person id", ids=range(6), share=0.5)
        assert np.isfinite(ask(np.arange(6) < 3))
        assert ask.allowed(baseline=0.5) is not None
