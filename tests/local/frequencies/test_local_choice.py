"""The choice is by error, bytes and speed, and can be read in a terminal."""

import numpy as np
import pytest

from discreet import local
from discreet.errors import ParameterError


@pytest.mark.parametrize(
    ("domain", "epsilon", "n", "expected"),
    [
        (2, 1, 1000, local.DirectResponse),
        (5, 2, 1000, local.DirectResponse),
        (10, 1, 1000, local.SubsetSelection),
        (10_000, 1, 10**6, local.PublicHashing),
        (10**6, 4, 10**8, local.ProjectiveResponse),
    ],
)
def test_each_place_has_its_randomiser(domain, epsilon, n, expected):
    choice = local.choose(domain=domain, epsilon=epsilon, n=n)
    assert choice.randomiser == expected(domain=domain, epsilon=epsilon)
    errors = [rated.standard_error for rated in choice.candidates]
    assert errors == sorted(errors)
    assert len(errors) == 8


def test_the_error_shown_is_the_error_had():
    """Root mean square over all values, within 5 standard deviations, whoever has what."""
    values = np.repeat(np.arange(400), np.arange(400))
    for rated in local.choose(domain=400, epsilon=1, n=values.size).candidates:
        estimate = rated.randomiser.estimate(rated.randomiser.release(values))
        square = ((estimate.counts - np.arange(400)) ** 2).mean()
        assert abs(square / rated.standard_error**2 - 1) < 6.5 * (2 / 400) ** 0.5


def test_what_nobody_would_wait_for_is_not_chosen():
    choice = local.choose(domain=10**6, epsilon=1, n=10**8)
    slow = [rated for rated in choice.candidates if rated.reading_seconds > 60]
    assert {rated.name for rated in slow} >= {"LocalHashing", "OptimizedUnary"}
    assert choice.randomiser not in [rated.randomiser for rated in slow]


def test_it_prints_within_a_terminal_and_gives_its_reason():
    for domain, epsilon, n in ((2, 5, 10), (10_000, 1, 10**6), (2**31, 0.01, 10**9)):
        text = repr(local.choose(domain=domain, epsilon=epsilon, n=n))
        assert max(map(len, text.splitlines())) <= 80
        assert "Why: " in text
        assert text.count("\n> ") == 1


def test_bad_questions_are_refused():
    for bad in ({"domain": 1}, {"epsilon": 0}, {"n": 0}, {"epsilon": 1e-40}):
        with pytest.raises(ParameterError, match=next(iter(bad))):
            local.choose(**({"domain": 10, "epsilon": 1, "n": 100} | bad))
