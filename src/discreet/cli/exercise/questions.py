"""The questions, from one coin to a training run."""

from fractions import Fraction
from typing import Final

from discreet._exact import Number
from discreet.cli.exercise.judging import Exercise

# A solution imports what it uses: it is shown to learners as a program, and has to run as one.


def two_coins() -> Number:
    from discreet.mechanisms import Warner

    return Warner.coins(truth=Fraction(1, 2), forced_yes=Fraction(1, 2)).epsilon


def a_yes_read_backwards() -> Number:
    from discreet.mechanisms import Warner
    from discreet.privacy import Guarantee, posterior

    coins = Warner.coins(truth=Fraction(1, 2), forced_yes=Fraction(1, 2))
    return 1 - posterior(Guarantee(epsilon=coins.epsilon), prior=Fraction(4, 10))


def a_belief() -> Number:
    from discreet.privacy import Guarantee, posterior

    return posterior(Guarantee(epsilon=1), prior=Fraction(1, 10))


def spread_of_a_count() -> Number:
    from discreet.mechanisms import Laplace

    return Laplace.calibrated(epsilon=Fraction(1, 2), sensitivity=1).standard_deviation


def tail_of_a_count() -> Number:
    from discreet.mechanisms import Laplace

    return Laplace.calibrated(epsilon=Fraction(1, 10), sensitivity=1).error(confidence=0.95)


def step_of_a_mean() -> Number:
    from discreet.mechanisms import sum_sensitivity

    step = sum_sensitivity(low=10, high=60, grid=1, neighbours="replace_one")
    return Fraction(step, 100)


def noise_of_a_mean() -> Number:
    from discreet.mechanisms import Gaussian

    return Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=Fraction(1, 2)).sigma


def classic_noise_of_a_mean() -> Number:
    from discreet.accounting import classic_gaussian_sigma

    return classic_gaussian_sigma(epsilon=1, delta=1e-5, sensitivity=Fraction(1, 2))


def best_of_four() -> Number:
    from discreet.mechanisms import Exponential

    return float(Exponential(epsilon=1, sensitivity=1).probabilities([5, 4, 3, 2])[0])


def best_of_four_counts() -> Number:
    from discreet.mechanisms import Exponential

    return float(
        Exponential(epsilon=1, sensitivity=1, monotone=True).probabilities([5, 4, 3, 2])[0]
    )


def twenty_queries() -> Number:
    from discreet.accounting import PureLoss, epsilon

    return epsilon(PureLoss(epsilon=Fraction(1, 4)) * 20, delta=0)


def advanced_composition() -> Number:
    from discreet.accounting import PureLoss, compare

    told = compare(PureLoss(epsilon=Fraction(1, 10)) * 1000, delta=1e-5)
    return next(method.epsilon for method in told if method.name == "advanced") or 0


def first_term_alone() -> Number:
    from math import log, sqrt

    return 0.1 * sqrt(2 * 1000 * log(1e5))


def counts_that_fit() -> Number:
    from discreet.accounting import GaussianLoss, most_steps

    return most_steps(GaussianLoss(noise_multiplier=50), epsilon=1, delta=1e-6)


def a_family() -> Number:
    from discreet.privacy import Guarantee

    return Guarantee(epsilon=Fraction(1, 2)).group(4).epsilon


def another_answer() -> Number:
    from discreet.privacy import Guarantee, convert

    one = Guarantee(epsilon=1, delta=1e-6)
    return convert(one, source="add_remove", target="replace_one").epsilon


def a_small_delta() -> Number:
    from discreet.privacy import advised_delta

    return advised_delta(n=50_000)


def a_sample() -> Number:
    from discreet.accounting import PureLoss, epsilon

    return epsilon(PureLoss(epsilon=Fraction(1, 2)).sampled(rate=Fraction(1, 100)), delta=0)


def a_shuffled_survey() -> Number:
    from discreet.accounting.shuffling import shuffle_2023

    return shuffle_2023(epsilon0=1, n=10_000, delta=1e-6)


def noise_of_a_training() -> Number:
    from discreet.accounting import GaussianLoss, calibrate

    return calibrate(
        lambda sigma: GaussianLoss(noise_multiplier=sigma).sampled(rate=Fraction(1, 5)) * 250,
        epsilon=3,
        delta=1e-5,
    )


def a_salary() -> Number:
    from discreet.attacks import differencing
    from discreet.datasets import salaries

    desk = differencing.Guarded(salaries(), name="payroll", minimum=10)
    total = differencing.grouped(desk, "SUM(salary)", table="payroll")
    return differencing.difference(total, "employee_id = 7") or 0


EXERCISES: Final = (
    Exercise(
        name="two coins",
        question="A survey asks a delicate question. Everybody tosses a fair coin: heads, they "
        "tell the truth; tails, a second fair coin answers for them. What is the epsilon of one "
        "answer?",
        hint="How much likelier is a 'yes' from somebody whose truth is yes? Take the logarithm.",
        page="proofs.md",
        solution=two_coins,
        mistakes=((lambda: 3, "That is the ratio of the chances; epsilon is its logarithm."),),
    ),
    Exercise(
        name="a yes, read backwards",
        question="In the same survey 40% of all people are a 'yes' in truth. Somebody answers "
        "'yes'. How likely is it that their truth is no?",
        hint="Bayes: of all who answer 'yes', which share has a truth that is no?",
        page="traps.md",
        solution=a_yes_read_backwards,
        mistakes=(
            (lambda: Fraction(1, 4), "That is P(yes | truth no). Asked is P(truth no | yes)."),
        ),
    ),
    Exercise(
        name="a belief",
        question="An observer believes with 10% that you are in a study. Then they see its "
        "release, which is 1-differentially private. How far can their belief have risen, at most?",
        hint="Turn 10% into odds, multiply by e^epsilon, and turn them back.",
        page="why.md",
        solution=a_belief,
        mistakes=((lambda: 0.271828, "e^epsilon multiplies odds (1 : 9), not probabilities."),),
    ),
    Exercise(
        name="the spread of a count",
        question="A count is released with Laplace noise at epsilon = 1/2, for people who are "
        "added or removed. What is the standard deviation of the noise?",
        hint="The scale is sensitivity / epsilon; the deviation is larger than the scale.",
        page="proofs.md",
        solution=spread_of_a_count,
        mistakes=(
            (lambda: 2, "That is the scale. The standard deviation is sqrt(2) times the scale."),
        ),
    ),
    Exercise(
        name="the tail of a count",
        question="A count at epsilon = 0.1, with Laplace noise: how far off is it at most, in 95 "
        "cases of 100?",
        hint="Pr[|noise| > t] = exp(-t epsilon) for a sensitivity of 1.",
        page="proofs.md",
        solution=tail_of_a_count,
        mistakes=((lambda: 23.0259, "That is the point for 90%: both tails are in exp(-t eps)."),),
    ),
    Exercise(
        name="how far a mean can move",
        question="The mean BMI of 100 people is released, each clipped to [10, 60]. How far can "
        "it move when one person's value is replaced by another, the number 100 being public?",
        hint="How far can the sum move? Then divide by the number of people.",
        page="worked-cases.md",
        solution=step_of_a_mean,
        mistakes=(
            (lambda: Fraction(60, 100), "That is for a person who is added to the sum."),
            (lambda: 50, "That is how far the sum moves."),
        ),
    ),
    Exercise(
        name="the noise of a mean",
        question="For that mean, which moves by 1/2: which standard deviation must Gaussian noise "
        "have for epsilon = 1, delta = 1e-5? The smallest that is enough is asked.",
        hint="Let the library calibrate it: discreet calibrate --help.",
        page="proofs.md",
        solution=noise_of_a_mean,
        mistakes=(
            (classic_noise_of_a_mean, "That is the classic formula, 30% more than is needed."),
        ),
    ),
    Exercise(
        name="the best of four",
        question="Four candidates have scores 5, 4, 3 and 2, and a person moves a score by at "
        "most 1, up or down. How likely does the exponential mechanism choose the best, at "
        "epsilon = 1?",
        hint="Weights are exp(epsilon score / (2 sensitivity)).",
        page="textbook.md",
        solution=best_of_four,
        mistakes=(
            (
                best_of_four_counts,
                "That is without the 2, which is for a person who moves all scores the same way.",
            ),
        ),
    ),
    Exercise(
        name="twenty queries",
        question="An analyst asks twenty questions, each 1/4-differentially private. Of which "
        "epsilon can you be sure, with delta = 0?",
        hint="Basic composition.",
        page="proofs.md",
        solution=twenty_queries,
    ),
    Exercise(
        name="a thousand queries",
        question="A thousand releases of epsilon = 0.1 each. Which epsilon does advanced "
        "composition give at delta = 1e-5?",
        hint="epsilon sqrt(2 k ln(1/delta)) + k epsilon (e^epsilon - 1).",
        page="traps.md",
        solution=advanced_composition,
        mistakes=((first_term_alone, "The theorem has a second term: k epsilon (e^epsilon - 1)."),),
    ),
    Exercise(
        name="how many counts fit",
        question="Counts get Gaussian noise of standard deviation 50, and people are added or "
        "removed. How many such counts fit into epsilon = 1, delta = 1e-6?",
        hint="Many Gaussians are one with a smaller noise multiplier: 50 / sqrt(k).",
        page="accountants.md",
        solution=counts_that_fit,
    ),
    Exercise(
        name="a family",
        question="A release is 1/2-differentially private for each person. Which epsilon do the "
        "four members of a family have together?",
        hint="Take them out one after another.",
        page="proofs.md",
        solution=a_family,
    ),
    Exercise(
        name="another answer",
        question="A release is (1, 1e-6)-differentially private when somebody is added or removed. "
        "Which epsilon does it have when somebody's record is replaced?",
        hint="Replacing is removing and adding.",
        page="traps.md",
        solution=another_answer,
        mistakes=((lambda: 1, "Add/remove is not the stricter relation: two steps are needed."),),
    ),
    Exercise(
        name="a small delta",
        question="50,000 people are in the data. Up to which delta does this library not warn?",
        hint="A mechanism may publish each record with probability delta; so stay far below 1/n.",
        page="choosing-epsilon.md",
        solution=a_small_delta,
        mistakes=((lambda: Fraction(1, 50_000), "At 1/n one person may be published on average."),),
    ),
    Exercise(
        name="a sample",
        question="Each person is drawn with a coin of 1%, and something 1/2-differentially private "
        "is computed on those drawn. What is the epsilon of all of it?",
        hint="log(1 + q (e^epsilon - 1)).",
        page="traps.md",
        solution=a_sample,
        mistakes=(
            (lambda: 0.005, "q epsilon is too small: that step is not sound."),
            (lambda: 0.01, "2 q epsilon is a rule of thumb, and wrong for large epsilon."),
        ),
    ),
    Exercise(
        name="a shuffled survey",
        question="10,000 people each randomise their answer at epsilon = 1, and a shuffler removes "
        "who sent which. Which epsilon does the shuffled list have, at delta = 1e-6?",
        hint="discreet.accounting.shuffling knows the bound of 2023.",
        page="trust-models.md",
        solution=a_shuffled_survey,
    ),
    Exercise(
        name="the noise of a training",
        question="250 steps on Poisson batches of rate 0.2 shall cost epsilon = 3 at "
        "delta = 1e-5. Which noise multiplier do they need?",
        hint="calibrate in discreet.accounting, or discreet calibrate.",
        page="accountants.md",
        solution=noise_of_a_training,
        mistakes=((lambda: 1, "With 1, these steps cost an epsilon of 24.6."),),
    ),
    Exercise(
        name="a salary",
        question="discreet.datasets.salaries() is the payroll of 100 people. A desk answers about "
        "ten of them or more, exactly. What does employee 7 earn?",
        hint="Ask for the sum over all, and for the sum over all but one. "
        "discreet.attacks.differencing.Guarded is such a desk.",
        page="why.md",
        solution=a_salary,
    ),
)
