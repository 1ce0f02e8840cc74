"""The noise of whole answers, from SQL to value: of the law that was paid for, and no less."""

import math

import numpy as np
import pytest

from discreet.tables import Norm
from discreet.testing import temporary_tables

FALSE_ALARM = 1e-9  # chance that correct noise fails a test
BINS, ANSWERS = 5_000, 12
DRAWS = (BINS - 1) * ANSWERS
# Dvoretzky-Kiefer-Wolfowitz: a correct law is off by more with chance FALSE_ALARM at most.
BAND = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * DRAWS))


def laplace(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def gaussian(x):
    return np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in x])


def gap(samples, law):
    ordered = np.sort(samples)
    n = len(ordered)
    at = law(ordered)
    return max(np.abs(at - np.arange(n) / n).max(), np.abs(at - np.arange(1, n + 1) / n).max())


@pytest.mark.lengthy
@pytest.mark.parametrize(("order", "law"), [(1, laplace), (2, gaussian)])
def test_an_answer_has_the_noise_that_was_paid_for_and_a_fifth_less_would_show(order, law):
    epsilon, limit, draws = 0.5, 3, []
    with temporary_tables(n=50, epsilon=10**4, delta=1e-2) as T:
        for i in range(ANSWERS):
            # Everybody is below the first bin's end: all other bins hold nothing but noise.
            question = f"SELECT HISTOGRAM(age, {1000 + i}, 2000, {BINS}) AS n FROM people"
            terms = {"epsilon": epsilon, "delta": 1e-6, "bounding": Norm(limit=limit, order=order)}
            answer = T.sql(question, **terms)
            draws.append(answer["n"][1:])
        noise = np.concatenate(draws)
    # What the accounting asks for, by formulas of its own: see below for the Gaussian.
    scale = limit / epsilon if order == 1 else limit * exact_sigma(epsilon, 1e-6)
    assert gap(noise / scale, law) <= BAND
    assert gap(noise / scale / 0.8, law) > BAND  # as if it had been a quarter more
    assert gap(noise / scale * 0.8, law) > BAND  # as if it had been a fifth less


def exact_sigma(epsilon, delta):
    """Return the least sigma of sensitivity 1, by bisecting the exact profile of the Gaussian."""

    def profile(sigma):
        a, b = 1 / (2 * sigma), epsilon * sigma
        normal = lambda x: math.erfc(-x / math.sqrt(2)) / 2  # noqa: E731
        return normal(a - b) - math.exp(epsilon) * normal(-a - b)

    low, high = 0.1, 1000.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if profile(middle) <= delta else (middle, high)
    return high
