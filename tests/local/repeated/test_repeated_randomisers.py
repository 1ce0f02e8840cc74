"""Randomisers that keep a response: their samplers, estimates and refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import local
from discreet.errors import DataError, ParameterError

FALSE_ALARM = 1e-9  # chance that a correct sampler fails a test

DIRECT = local.RepeatedDirect(domain=4, epsilon=2, first=1)
UNARY = local.RepeatedUnary(domain=3, epsilon=2, first=1, optimized=True)
RAPPOR = local.RepeatedUnary(domain=3, epsilon=2, first=1, optimized=False)
FLIP = local.BitFlip(domain=4, bits=2, epsilon=2, first=1)
ALL = [DIRECT, UNARY, RAPPOR, FLIP]


def chi_square(seen, chances):
    expected = seen.sum() * np.asarray(chances, dtype=float)
    return float(((seen - expected) ** 2 / expected).sum())


def limit(cells):
    return float(chi2.isf(FALSE_ALARM, cells - 1))


def of_bits(rows, chances):
    """Return the chance of each row of bits whose chances of a 1 are these."""
    return [
        float(math.prod(p if bit else 1 - p for bit, p in zip(row, chances, strict=True)))
        for row in rows
    ]


def test_direct_reports_of_two_days_follow_their_law_and_fresh_ones_would_show():
    n = 100_000
    own, keep = float(DIRECT.law.permanent.keep_chance), float(DIRECT.law.keep_chance)
    stray = float(DIRECT.law.stray)

    def of(first, second):
        total = 0.0
        for kept in range(4):
            part = own if kept == 1 else (1 - own) / 3
            total += part * (keep if first == kept else stray) * (keep if second == kept else stray)
        return total

    chances = [of(a, b) for a, b in itertools.product(range(4), repeat=2)]
    kept = DIRECT.permanent(np.full(n, 1))
    codes = 4 * DIRECT.instant(kept) + DIRECT.instant(kept)
    assert chi_square(np.bincount(codes, minlength=16), chances) < limit(16)
    codes = 4 * DIRECT.release(np.full(n, 1)) + DIRECT.release(np.full(n, 1))
    assert chi_square(np.bincount(codes, minlength=16), chances) > 2 * limit(16)


@pytest.mark.parametrize(("randomiser", "wrong"), [(UNARY, RAPPOR), (RAPPOR, UNARY)])
def test_unary_reports_follow_their_law_and_the_other_law_would_show(randomiser, wrong):
    rows = list(itertools.product((0, 1), repeat=3))
    law = randomiser.law
    for stage, own, other in (
        (lambda one: one.permanent, law.own_chance, law.other_chance),
        (lambda one: one.release, law.hit, law.miss),
    ):
        chances = of_bits(rows, [other, own, other])
        for one, fits in ((randomiser, True), (wrong, False)):
            reports = stage(one)(np.full(100_000, 1))
            bits = np.unpackbits(reports, axis=1, count=3, bitorder="little")
            seen = np.bincount(bits @ [4, 2, 1], minlength=8)
            distance = chi_square(seen, chances)
            assert distance < limit(8) if fits else distance > 2 * limit(8)


def test_a_few_bits_follow_their_law_and_every_set_is_as_likely():
    reports = FLIP.release(np.full(100_000, 1))
    sets = list(itertools.combinations(range(4), 2))
    cells, chances = [], []
    for drawn in sets:
        hits = [FLIP.law.hit if one == 1 else FLIP.law.miss for one in drawn]
        for row in itertools.product((0, 1), repeat=2):
            cells.append(8 * (2 * drawn[0] + row[0]) + 2 * drawn[1] + row[1])
            chances += [p / len(sets) for p in of_bits([row], hits)]
    seen = np.bincount(reports @ [8, 1], minlength=64)
    assert seen[cells].sum() == len(reports)
    assert chi_square(seen[cells], chances) < limit(len(cells))
    other = FLIP.release(np.full(100_000, 2)) @ [8, 1]
    assert chi_square(np.bincount(other, minlength=64)[cells], chances) > 2 * limit(len(cells))


@pytest.mark.parametrize("randomiser", ALL)
def test_a_report_without_a_second_stage_is_the_kept_response(randomiser):
    fields = {"domain": randomiser.domain, "epsilon": 2, "first": 2}
    if isinstance(randomiser, local.RepeatedUnary):
        fields["optimized"] = randomiser.optimized
    if isinstance(randomiser, local.BitFlip):
        fields["bits"] = 2
    plain = type(randomiser)(**fields)
    kept = plain.permanent(np.arange(3).repeat(100))
    assert (plain.instant(kept) == kept).all()
    assert plain.further_loss is None
    assert plain.loss_after(reports=1) == plain.loss_after(reports=99)


@pytest.mark.parametrize("randomiser", ALL)
def test_estimates_are_unbiased_with_the_stated_error(randomiser):
    trials = 200
    counts = np.array([0, 500, 1500] + [0] * (randomiser.domain - 3))
    values = np.repeat(np.arange(randomiser.domain), counts)
    scores = []
    for _ in range(trials):
        estimate = randomiser.estimate(randomiser.release(values))
        off = estimate.counts - counts
        scores.append(off / estimate.standard_error)
    z = np.array(scores)
    # Means of 200 nearly normal scores, one for each value; 6.5 standard errors.
    assert np.abs(z.mean(axis=0)).max() < 6.5 / math.sqrt(trials)
    assert 0.8 < (z**2).mean() < 1.25


def test_a_sampled_estimate_holds_its_interval_and_says_what_nobody_was_asked():
    flip = local.BitFlip(domain=50, bits=1, epsilon=4, first=4)
    values = np.repeat(np.arange(50), 400)
    estimate = flip.estimate(flip.release(values))
    low, high = estimate.interval(confidence=1 - FALSE_ALARM)
    assert ((low <= 400) & (high >= 400)).all()
    assert (high - low).max() < len(values)
    assert np.abs(estimate.counts - 400).max() <= flip.error(n=len(values), confidence=1 - 1e-11)
    few = flip.estimate(flip.release([3, 3]))
    assert np.isnan(few.counts).sum() >= 48
    low, high = few.interval(confidence=0.95)
    assert low[np.isnan(few.counts)].tolist() == [0.0] * int(np.isnan(few.counts).sum())
    assert (high[np.isnan(few.counts)] == 2).all()


def test_the_kept_responses_of_a_few_bits_depend_on_drawn_values_only():
    enrolled = np.array([[1, 3]] * 4)
    keys = FLIP.response_keys([0, 1, 2, 3], enrolled=enrolled)
    assert keys.tolist() == [-1, 0, -1, 1]
    assert FLIP.responses == 3
    assert local.BitFlip(domain=4, bits=4, epsilon=2, first=1).responses == 4


@pytest.mark.parametrize("randomiser", ALL)
def test_losses_stay_within_what_was_declared(randomiser):
    assert randomiser.loss.epsilon_pure <= 2
    assert randomiser.first_loss.epsilon_pure <= 1
    assert randomiser.loss_after(reports=30).epsilon <= randomiser.loss.epsilon
    assert randomiser.error(n=10_000, confidence=0.95) > 0
    assert randomiser.bytes_per_report in (1, 2)


@pytest.mark.parametrize("randomiser", ALL)
@pytest.mark.parametrize("values", [[0, 4], [-1], [0.5], ["a"], [[0]], [None]])
def test_values_outside_are_refused_before_randomness(randomiser, values, no_randomness):
    if values == [0, 4] and randomiser.domain == 3:
        values = [0, 3]
    with pytest.raises(DataError, match="values must be"):
        randomiser.permanent(values, source=no_randomness)


@pytest.mark.parametrize(
    ("randomiser", "reports"),
    [
        (DIRECT, [4]),
        (DIRECT, [[0]]),
        (UNARY, [[1, 2]]),
        (UNARY, np.array([[8]], dtype=np.uint8)),
        (FLIP, [[0, 1]]),
        (FLIP, [[2, 0]]),
        (FLIP, [[0, 8]]),
        (FLIP, [0, 2]),
    ],
)
def test_reports_that_nobody_made_are_refused(randomiser, reports):
    with pytest.raises(DataError, match="reports must"):
        randomiser.estimate(reports)


def test_parameters_that_cannot_be_are_refused():
    for make in (
        lambda: local.RepeatedDirect(domain=4, epsilon=1, first=2),
        lambda: local.RepeatedDirect(domain=1, epsilon=1, first=1),
        lambda: local.RepeatedUnary(domain=4, epsilon=1, first=1, optimized="yes"),
        lambda: local.BitFlip(domain=4, bits=5, epsilon=1, first=1),
        lambda: local.BitFlip(domain=4, bits=0, epsilon=1, first=1),
        lambda: local.BitFlip(domain=4, bits=1, epsilon=1, first=Fraction(0)),
    ):
        with pytest.raises(ParameterError):
            make()
