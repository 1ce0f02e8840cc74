"""The auditor: it finds what is there, and does not cry wolf."""

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest

from discreet import audit
from discreet.errors import DataError, ParameterError

FALSE_ALARM = 1e-9  # chance that an honest mechanism fails one audit below
CONFIDENCE = 1 - FALSE_ALARM

rng = np.random.default_rng()  # insecure noise is good enough to test an auditor with


def laplace(scale):
    return lambda value, n: value + rng.laplace(scale=scale, size=n)


def geometric_noise(scale):
    """Two-sided geometric noise: the difference of two geometric variables."""
    p = -math.expm1(-1 / scale)
    return lambda value, n: value + rng.geometric(p, n) - rng.geometric(p, n)


def coin(value):
    return "yes" if rng.random() < (0.75 if value else 0.25) else "no"


def run(fn, *, pair=(0, 1), epsilon=1, delta=0, samples=200_000, batch=True):
    return audit.mechanism(
        fn,
        pair=pair,
        epsilon=epsilon,
        delta=delta,
        samples=samples,
        confidence=CONFIDENCE,
        batch=batch,
    )


def test_an_honest_laplace_passes_and_nearly_all_of_its_epsilon_shows():
    found = run(laplace(1))
    # The event {<= 0} has p = 0.5, q = 0.184; at 6 standard errors the bound is above 0.93, and it
    # takes about 10 to bring it below 0.9.
    assert 0.9 < found.epsilon_lower <= 1
    assert found.passed


@pytest.mark.lengthy
def test_a_laplace_ten_percent_short_is_caught():
    # True epsilon 1.111; standard error about 0.008 at this size, bound at 6 of them.
    found = run(laplace(0.9), samples=1_000_000)
    assert not found.passed
    assert 1 < found.epsilon_lower < 1 / 0.9


def test_integers_pass_and_are_caught():
    assert 0.9 < run(geometric_noise(1)).epsilon_lower <= 1
    assert not run(geometric_noise(0.8)).passed


def test_delta_is_taken_into_account():
    # With probability 1% the input is told outright, otherwise a fair coin is shown: (0, 0.01)-DP.
    def sometimes(value, n):
        return np.where(rng.random(n) < 0.01, value + 10, rng.integers(0, 2, n))

    assert run(sometimes, epsilon=0.1, delta=0.011).passed
    assert not run(sometimes, epsilon=0.1, delta=0).passed
    assert run(sometimes, epsilon=5, delta=0).epsilon_lower > 3


def test_both_directions_are_tried():
    # Only the second input ever gives 1, so only the direction second-against-first can show it.
    def one_sided(value, n):
        return (rng.random(n) < 0.05).astype(int) * value

    found = run(one_sided)
    assert not found.passed
    assert found.likelier == "second"
    assert run(one_sided, pair=(1, 0)).likelier == "first"


@pytest.mark.parametrize(
    "dress",
    [
        str,
        bool,
        lambda yes: (yes, "answer"),
        lambda yes: np.array([yes, 1 - yes]),
        lambda yes: [float(yes)],
        lambda yes: np.int8(yes),
        lambda yes: 10**30 * yes,
        lambda yes: math.nan if yes else 0.0,
        lambda yes: None if yes else b"no",
    ],
)
def test_outputs_of_any_kind_are_told_apart(dress):
    def response(value):
        return dress(int(rng.random() < (0.9 if value else 0.1)))

    found = run(response, epsilon=1, samples=10_000, batch=False)  # the truth is log 9 = 2.197
    assert not found.passed
    assert 1.7 < found.epsilon_lower <= math.log(9)


def test_arrays_in_a_batch_are_rows():
    def rows(value, n):
        first = (rng.random(n) < (0.9 if value else 0.1)).astype(int)
        return np.stack([first, np.zeros(n, int)], axis=1)

    assert 1.7 < run(rows, samples=10_000).epsilon_lower <= math.log(9)


def test_sets_of_outcomes_find_what_no_threshold_can():
    # Even outputs from one input, mostly odd ones from the other: every half-line has ratio near 1.
    def parity(value, n):
        odd = rng.random(n) < (0.9 if value else 0.1)
        return 2 * rng.integers(0, 50, n) + odd

    assert 1.9 < run(parity, samples=50_000).epsilon_lower <= math.log(9)


def test_continuous_outputs_do_not_fool_the_choice_of_event():
    # Every value is seen once, so sets of seen values are worthless; half-lines must be chosen.
    found = run(laplace(1), samples=20_000)
    assert "output among" not in found.event
    assert found.epsilon_lower > 0.6


def test_two_fair_coins_show_log_three():
    found = run(coin, epsilon=math.log(3), samples=50_000, batch=False)
    assert found.passed
    assert 0.95 < found.epsilon_lower <= math.log(3)


@pytest.mark.slow
def test_false_alarms_stay_within_the_stated_rate():
    # An exactly 1-DP mechanism audited 600 times at 90% fails with probability at most 0.1 each
    # time. By Chernoff, more than 115 failures have probability below exp(-600 KL(0.19, 0.1)),
    # which is below FALSE_ALARM. An auditor that certified on the samples it chose by fails more.
    failures = 0
    for _ in range(600):
        noise = geometric_noise(1)
        found = audit.mechanism(
            noise, pair=(0, 1), epsilon=1, delta=0, samples=400, confidence=0.9, batch=True
        )
        failures += not found.passed
    assert failures <= 115


def test_identical_outputs_prove_nothing():
    found = run(lambda value, n: np.zeros(n), samples=1_000)
    assert found.epsilon_lower == 0
    assert found.passed


def test_the_result_reads_well():
    found = run(coin, epsilon=Fraction(1, 2), samples=20_000, batch=False)
    assert str(found).startswith("FAILED: claimed epsilon=1/2, delta=0, but the samples prove")
    assert "confidence  1 - 1e-09, from 20000 samples of each input" in str(found)
    assert "output = 'yes'" in str(found) or "output = 'no'" in str(found)
    assert "Audit(epsilon_lower=" in repr(found)
    assert str(run(coin, epsilon=2, samples=1_000, batch=False)).startswith("passed: ")


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"samples": 10}, "samples"),
        ({"samples": 1e4 + 0.5}, "samples"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": 0}, "confidence"),
        ({"pair": (1, 2, 3)}, "pair"),
        ({"pair": 1}, "pair"),
    ],
)
def test_bad_parameters_are_named_before_anything_runs(bad, name):
    def never(value):
        raise AssertionError("fn must not be called")

    good = {"pair": (0, 1), "epsilon": 1, "delta": 0, "samples": 1000, "confidence": 0.9}
    with pytest.raises(ParameterError) as caught:
        audit.mechanism(never, **{**good, **bad})
    assert caught.value.parameter == name


def test_outputs_that_cannot_be_told_apart_are_refused():
    class Unhashable:
        __hash__ = None

        def __eq__(self, other):
            return True

    with pytest.raises(DataError, match="type Unhashable"):
        run(lambda value: Unhashable(), samples=1_000, batch=False)
    with pytest.raises(DataError, match="must return n outputs"):
        run(lambda value, n: np.zeros(n + 1), samples=1_000)


def test_times_are_noisy_numbers():
    def at(value, noise):
        return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=value + noise)

    noisy = lambda value: at(value, rng.laplace())  # noqa: E731
    assert run(noisy, samples=10_000, batch=False).passed
    found = run(noisy, pair=(0, 3), samples=10_000, batch=False)  # the truth is 3
    assert not found.passed


def test_a_rare_failure_alone_is_found():
    drawn = np.random.default_rng(4)  # on these draws, a strict look alone finds nothing

    def rare(value, n):
        noise = drawn.laplace(size=n)
        return np.where((value == 1) & (drawn.random(n) < 0.01), math.nan, noise)

    common = {"pair": (0, 1), "epsilon": 1, "delta": 0, "samples": 20_000, "batch": True}
    assert not audit.mechanism(rare, **common).passed


def test_the_order_of_a_mapping_tells():
    def ordered(value):
        first = rng.random() < (0.9 if value else 0.1)
        return {key: rng.laplace() for key in ("ab" if first else "ba")}

    assert not run(ordered, samples=10_000, batch=False).passed


def test_rows_of_a_table_are_a_batch():
    pandas = pytest.importorskip("pandas")

    def table(value, n):
        return pandas.DataFrame({"x": 3 * value + rng.laplace(size=n), "word": "same"})

    assert not run(table, samples=10_000).passed
    with pytest.raises(DataError, match="must return n outputs"):
        run(lambda value, n: dict.fromkeys(range(n)), samples=1_000)


def test_outputs_beyond_the_range_of_doubles_do_not_warn():
    def great(value, n):
        return 1e308 * np.where(rng.random(n) < (0.9 if value else 0.1), 1.5, 1)

    assert not run(great, samples=10_000).passed


@pytest.mark.parametrize("lazy", [lambda value: iter([value]), lambda value: (v for v in [value])])
def test_what_has_still_to_be_run_is_no_output(lazy):
    with pytest.raises(DataError, match="apart"):
        run(lazy, samples=1_000, batch=False)


def test_what_is_new_each_time_proves_nothing():
    found = run(lambda value: object(), samples=1_000, batch=False)
    assert found.epsilon_lower == 0
    assert found.power == math.inf


def test_power_is_not_told_from_a_share_that_may_be_chance():
    from discreet.audit.evidence import detectable_epsilon

    told = {"trials": 15_000, "epsilon": 1, "delta": 0, "alpha": 0.001, "proved": 0.005}
    assert detectable_epsilon(15_000, 14_850, **told) == math.inf


def test_what_changes_with_time_convicts_nobody():
    left = iter(range(5_000))  # calls until a budget is spent: fewer than the audit makes

    def asked(value):
        if next(left, None) is None:
            raise RuntimeError
        return value + rng.laplace()

    assert run(asked, samples=4_000, batch=False).passed


def test_a_bar_appears_only_on_a_terminal(monkeypatch, capsys):
    from discreet.audit import _progress

    assert list(_progress.progress(5)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    assert list(_progress.progress(600)) == list(range(600))
