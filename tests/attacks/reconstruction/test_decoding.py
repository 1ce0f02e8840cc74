"""Secrets from counts of subsets: the figures of the literature, and what is refused."""

import numpy as np
import pytest

from discreet.attacks import reconstruction
from discreet.attacks.reconstruction import count_subsets, decode, run
from discreet.errors import BudgetExceeded, DataError, DiscreetError, ParameterError

METHODS = ("least squares", "linear programming")
PEOPLE, QUESTIONS = 128, 512


def bits(seed, people=PEOPLE):
    return np.random.default_rng(seed).integers(0, 2, size=people)


@pytest.mark.lengthy
@pytest.mark.parametrize("method", METHODS)
def test_exact_counts_tell_every_bit(method):
    secret = bits(1)
    report = run(secret, count_subsets(secret), questions=QUESTIONS, method=method)
    assert report.success == 1
    assert report.details["answered"] == QUESTIONS
    assert report.is_better_than_guessing


@pytest.mark.lengthy
@pytest.mark.parametrize("law", ["gaussian", "uniform"])
def test_noise_of_a_quarter_of_the_root_hides_hardly_any_bit(law):
    """Seeded: nothing here is left to chance."""
    shares = [
        run(
            bits(seed),
            count_subsets(bits(seed), noise=0.25 * PEOPLE**0.5, law=law, seed=seed),
            questions=QUESTIONS,
            seed=seed,
        ).success
        for seed in range(10)
    ]
    assert np.mean(shares) >= 0.96


def test_linear_programming_does_not_mind_some_lies():
    secret = bits(7, people=48)
    chance = np.random.default_rng(0)
    subsets = chance.random((300, 48)) < 0.5
    answers = (subsets @ secret).astype(float)
    answers[:30] = chance.uniform(0, 500, size=30)
    assert (decode(subsets, answers, method="linear programming") == secret).all()
    assert (decode(subsets, answers, method="least squares") != secret).any()


def test_noise_of_the_size_of_all_people_leaves_little():
    secret = bits(2)
    report = run(secret, count_subsets(secret, noise=PEOPLE), questions=QUESTIONS)
    assert report.success < 0.7


def test_small_numbers_are_decoded_as_bits_are():
    secret = np.random.default_rng(3).integers(0, 5, size=40)
    assert run(secret, count_subsets(secret), questions=120, largest=4).success == 1


def test_what_an_interface_refuses_is_left_out():
    secret = bits(4, people=32)
    left = iter(range(100))

    def stingy(subset):
        if next(left, None) is None:
            raise BudgetExceeded(used=1.0, would_be=1.1, budget="the budget", account="people")
        return float(secret[subset].sum()) if subset.sum() > 10 else float("nan")

    report = run(secret, stingy, questions=200)
    assert 90 <= report.details["answered"] <= 100
    assert report.success == 1


def test_an_interface_that_refuses_everything_teaches_nothing():
    secret = bits(5, people=400)

    def closed(subset):
        raise DiscreetError("No.")

    report = run(secret, closed, questions=10)
    assert report.details["answered"] == 0
    assert 0.3 < report.success < 0.7
    assert not report.is_better_than_guessing


def test_a_mistake_of_the_interface_is_not_taken_for_a_refusal():
    def broken(subset):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run([0, 1], broken, questions=2)


@pytest.mark.parametrize("secret", [[], [0, 2], [-1, 0], [0.5], [[0, 1]], ["a"]])
def test_secrets_are_whole_numbers_in_their_range(secret):
    with pytest.raises(DataError, match="from 0 to 1"):
        run(secret, count_subsets([0, 1]), questions=2)


def test_what_cannot_be_decoded_is_refused():
    subsets = np.ones((2, 3), dtype=bool)
    with pytest.raises(DataError, match="one row for each"):
        decode(subsets, [1.0])
    with pytest.raises(DataError, match="finite"):
        decode(subsets, [1.0, np.nan])
    with pytest.raises(ParameterError, match="method"):
        decode(subsets, [1.0, 2.0], method="magic")
    with pytest.raises(ParameterError, match="law"):
        count_subsets([0, 1], noise=1, law="cauchy")
    with pytest.raises(DataError, match="one column for each"):
        run([0, 1], count_subsets([0, 1]), subsets=subsets)
    with pytest.raises(ParameterError, match="confidence"):
        run([0, 1], count_subsets([0, 1]), questions=2, confidence=1)


def test_the_same_seed_gives_the_same_report():
    secret = bits(6, people=16)
    first, again = (
        reconstruction.run(secret, count_subsets(secret, noise=3), questions=30) for _ in range(2)
    )
    assert first == again


def test_noise_that_no_double_holds_is_refused():
    with pytest.raises(ParameterError, match="1e100"):
        count_subsets([0, 1], noise=10**400)
    assert np.isfinite(count_subsets([0, 1], noise=1e100)(np.array([True, True])))


def test_answers_are_checked_before_and_after_they_are_given():
    asked = []

    def ask(subset):
        asked.append(subset)
        return "918273 people"

    for wrong in ({"confidence": 1}, {"method": "magic"}):
        with pytest.raises(ParameterError):
            run([0, 1], ask, questions=2, **wrong)
    assert not asked
    with pytest.raises(DataError, match="got str") as error:
        run([0, 1], ask, questions=2)
    assert "918273" not in str(error.value)
    with pytest.raises(DataError, match="numbers"):
        count_subsets(["918273 a"])


@pytest.mark.parametrize("method", METHODS)
def test_answers_beyond_all_sense_are_decoded(method):
    secret = bits(8, people=20)
    report = run(secret, count_subsets(secret, noise=1e100), questions=30, method=method)
    assert report.details["answered"] == 30
