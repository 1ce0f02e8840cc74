"""Every way in which outputs can tell: the flawed mechanism is flagged, its twin is not."""

import math

import numpy as np
import pytest
from flawed_mechanisms import FLAWS, coin, laplace, long, sparse_vector

from discreet import audit
from discreet.errors import DataError, ParameterError

FALSE_ALARM = 1e-7  # chance that a sound mechanism fails one audit below

rng = np.random.default_rng()


def run(fn, **given):
    settings = {"pair": (0, 1), "epsilon": 1, "delta": 0, "samples": 200_000, "batch": True}
    return audit.mechanism(fn, **{**settings, **given})


@pytest.mark.lengthy
@pytest.mark.parametrize("name", FLAWS)
def test_flaws_are_found_and_sound_twins_pass(name):
    flaw = FLAWS[name]
    settings = {
        "pair": flaw.pair,
        "epsilon": flaw.epsilon,
        "delta": flaw.delta,
        "samples": flaw.samples,
        "confidence": 1 - FALSE_ALARM,
        "batch": flaw.marks.get("batch", True),
    }
    assert not audit.mechanism(flaw.broken, **settings).passed
    found = audit.mechanism(flaw.sound, **{**settings, "samples": 10_000})
    assert found.passed, found


def test_the_failure_is_named_but_not_its_text():
    def fails(value):
        if value:
            raise ValueError("a value of the data")
        return 0.5

    found = run(fails, pair=(1, 0), samples=5_000, batch=False)
    assert not found.passed
    assert "raised ValueError" in str(found)
    assert "a value of the data" not in str(found)


def test_a_function_that_always_fails_is_the_callers_mistake():
    def never(value):
        raise TypeError

    with pytest.raises(DataError, match="failed on every call"):
        run(never, samples=1_000, batch=False)


# Laplace of scale 1 shows 0.98 on average, with a standard error of 0.006: 8 of them to 0.93.
@pytest.mark.lengthy
def test_power_at_two_hundred_thousand_samples():
    found = run(lambda v, n: v + laplace(n))
    assert 0.93 < found.epsilon_lower <= 1.02
    assert found.power < 1.08
    assert not run(lambda v, n: v + laplace(n, 0.9)).passed


def test_nothing_learned_is_said():
    found = run(lambda v, n: laplace(n), samples=1_000, confidence=1 - FALSE_ALARM)
    assert found.passed
    assert found.power == math.inf
    assert "nothing learned" in str(found)


# The second opinion -----------------------------------------------------------------------------


@pytest.mark.lengthy
def test_the_gaussian_opinion_sees_what_counting_cannot_and_never_decides():
    exact = 3.7304  # the noise of (1, 1e-5), whose epsilon shows with a standard error of 0.013
    found = run(lambda v, n: v + rng.normal(scale=exact, size=n), delta=1e-5)
    assert found.epsilon_lower < 0.7
    assert 0.88 < found.gaussian < 1.05
    short = run(lambda v, n: v + rng.normal(scale=0.8 * exact, size=n), delta=1e-5)
    assert short.gaussian > 1.1
    assert short.passed


def test_the_gaussian_opinion_is_withheld_where_it_makes_no_sense():
    assert run(lambda v, n: v + laplace(n), samples=20_000, delta=1e-5).gaussian is None
    assert run(lambda v, n: v + rng.normal(size=n), samples=5_000, epsilon=9).gaussian is None
    assert run(lambda v, n: coin(n, 0.3).tolist(), samples=5_000, delta=1e-5).gaussian is None


@pytest.mark.lengthy
def test_gaussian_vectors_are_reported_above_their_claim():
    one, two = np.zeros(100), np.eye(100)[17]
    found = run(
        lambda v, n: v + rng.normal(scale=0.8 * 3.7304, size=(n, 100)),
        pair=(one, two),
        delta=1e-5,
        samples=100_000,
    )
    assert found.gaussian > 1
    assert found.passed


# The search for a pair --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_search_finds_the_long_pair_of_the_printed_sparse_vector():
    printed = sparse_vector(threshold=2, query=4 / 3, positives=1)
    common = {"epsilon": 1, "delta": 0, "samples": 200_000, "batch": True}
    assert audit.mechanism(printed, pair=long(1), **common).epsilon_lower < 1.1
    found = audit.search(
        printed, pairs=audit.neighbouring_pairs("answers", size=11), **common, confidence=0.999999
    )
    assert not found.passed
    assert len(found.pair[0]) > 2


def test_pairs_are_neighbours_and_cover_the_hints():
    pairs = audit.neighbouring_pairs("answers", size=6, low=-1, high=1)
    for one, other in pairs:
        assert len(one) == len(other)
        assert one != other
        assert all(abs(a - b) <= 2 for a, b in zip(one, other, strict=True))
    assert ([-1] * 6, [1] * 6) in pairs
    assert ([-1] * 5 + [1], [1] * 5 + [-1]) in pairs
    for one, other in audit.neighbouring_pairs("records", size=9):
        assert other[:-1] == one
    assert ([], [1]) in audit.neighbouring_pairs("records", size=9)


@pytest.mark.parametrize(
    ("bad", "name"),
    [({"kind": "tables"}, "kind"), ({"size": 0}, "size"), ({"low": 2}, "low")],
)
def test_bad_hints_are_named(bad, name):
    given = {"kind": "answers", "size": 3, **bad}
    with pytest.raises(ParameterError) as caught:
        audit.neighbouring_pairs(given.pop("kind"), **given)
    assert caught.value.parameter == name


def test_a_search_needs_pairs():
    with pytest.raises(ParameterError, match="at least one pair"):
        audit.search(lambda v: v, pairs=[], epsilon=1, delta=0)


# How often it cries wolf, and how often it finds ---------------------------------------------


def geometric(v, n):
    p = -math.expm1(-1)
    return v + rng.geometric(p, n) - rng.geometric(p, n)


TIGHT = {  # exactly as private as they claim, so that a false alarm is as likely as can be
    "laplace": (lambda v, n: v + laplace(n), (0, 1)),
    "geometric": (geometric, (0, 1)),
    "vector": (lambda v, n: v + laplace((n, 12)), (np.zeros(12), np.eye(12)[3])),
    "response": (FLAWS["k-ary response"].sound, (0, 1)),
    "keys": (FLAWS["keys"].sound, (0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TIGHT)
def test_false_alarms_at_95_percent(name):
    # At most 0.05 each: more than 30 of 200 have probability below 1e-6.
    fn, pair = TIGHT[name]
    common = {"pair": pair, "samples": 1_000, "confidence": 0.95}
    alarms = sum(not run(fn, **common).passed for _ in range(200))
    assert alarms <= 30


@pytest.mark.slow
def test_power_is_what_it_says():
    # The stated power is flagged in 95 of 100 runs: 80 or fewer have probability below 1e-6. Half
    # of that violation is flagged in about half of the runs: 85 or more have one below 1e-6.
    common = {"samples": 20_000}
    stated = np.median([run(lambda v, n: v + laplace(n), **common).power for _ in range(5)])

    def flagged(epsilon):
        noise = lambda v, n: v + laplace(n, 1 / epsilon)  # noqa: E731
        return sum(not run(noise, **common).passed for _ in range(100))

    assert flagged(stated) > 80
    assert flagged((1 + stated) / 2) < 85
