"""Ask delicate questions without anybody, the pollster included, learning who answered what."""

from fractions import Fraction

import numpy as np

from discreet import mechanisms as m
from discreet.datasets import census

YES_SHARE = 0.18
# The possible answers are public and fixed before the first person is asked.
JOBS = ("child", "student", "employed", "self-employed", "unemployed", "at home", "retired")


def ask_yes_or_no() -> None:
    """Print Warner's survey at three sizes."""
    survey = m.Warner.coins(truth=Fraction(1, 2), forced_yes=Fraction(1, 2))
    print(f"Have you ever evaded tax? In truth {YES_SHARE:.0%} have.")
    print(
        f"Everybody tosses two fair coins; a report costs epsilon = {survey.epsilon:.4f} = ln 3.\n"
    )
    for people in (1_000, 10_000, 100_000):
        answers = np.arange(people) < YES_SHARE * people
        estimate = survey.estimate(survey.release(answers))
        low, high = estimate.interval(confidence=0.95)
        print(
            f"  {people:>7,} people: {estimate.frequencies[1]:6.1%} yes, "
            f"with 95% confidence between {low[1]:.1%} and {high[1]:.1%}"
        )


def ask_for_one_of_many() -> None:
    """Print the employment of a made-up population, from reports at epsilon = 2."""
    survey = m.RandomizedResponse(epsilon=2, categories=len(JOBS))
    jobs = census(50_000)["employment"]
    answers = np.array([JOBS.index(job) for job in jobs])
    estimate = survey.estimate(survey.release(answers))
    truth = np.bincount(answers, minlength=len(JOBS)) / len(answers)
    print(f"\nWhat do you do? 50,000 people, {survey.loss}.")
    print(f"A report is true with probability {survey.truth_probability:.0%}.\n")
    lines = zip(JOBS, estimate.frequencies, estimate.standard_errors, truth, strict=True)
    for job, share, error, true_share in lines:
        bar = "#" * max(0, round(60 * share))
        print(f"  {job:>13} {share:6.1%} ± {error:.1%}  (truth {true_share:5.1%})  {bar}")


def main() -> None:
    """Run both surveys."""
    ask_yes_or_no()
    ask_for_one_of_many()


if __name__ == "__main__":
    main()
