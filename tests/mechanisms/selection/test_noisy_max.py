"""Noisy max: exact laws of winner and gap on integers, the loss, the error, the refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import BoundedRangeLoss, PureLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection.laplace_steps import LaplaceSteps
from discreet.mechanisms.selection.noisy_max import NoisyMax
from discreet.mechanisms.values.grid import Grid
from discreet.mechanisms.values.grid_steps import (
    FARTHEST,
    clamped_step,
    clamped_steps,
    exact_steps,
    steps_below_best,
)
from discreet.noise import SYSTEM
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct mechanism fails one of these tests
SAMPLES = 32_000
BAND = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)


def mass(k, scale):
    p = np.exp(-1 / scale)
    return (1 - p) / (1 + p) * np.exp(-np.abs(k) / scale)


def cdf(k, scale):
    p = np.exp(-1 / scale)
    k = np.asarray(k, dtype=float)
    below = np.exp(np.minimum(k, 0) / scale) / (1 + p)
    return np.where(k < 0, below, 1 - p * np.exp(-np.maximum(k, 0) / scale) / (1 + p))


def joint_law(steps, scale, reach=60, gaps=12):
    """Pr[winner = i, gap = g] for whole-number scores, by summing over the value to beat."""
    values = np.arange(min(steps) - reach, max(steps) + reach)
    law = np.zeros((len(steps), gaps + 1))
    for i, own in enumerate(steps):
        others = [cdf(values - x - (j < i), scale) for j, x in enumerate(steps) if j != i]
        to_beat = np.diff(np.prod(others, axis=0), prepend=0.0)
        for g in range(gaps):
            law[i, g] = to_beat @ mass(values + g - own, scale)
        beyond = 1 - cdf(values + gaps - 1 - own, scale)  # all larger gaps together
        law[i, gaps] = to_beat @ beyond
    return law


changed_scores = st.integers(2, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 5), min_size=n, max_size=n),
        st.lists(st.integers(-2, 2), min_size=n, max_size=n),
    )
)


@settings(max_examples=60, deadline=None)
@given(pair=changed_scores, epsilon=st.sampled_from([0.5, 1.0, 2.0]), monotone=st.booleans())
def test_neither_winner_nor_gap_leaks_more_than_epsilon(pair, epsilon, monotone):
    scores, changes = pair
    changes = np.abs(changes) if monotone else np.array(changes)
    sensitivity = 2
    scale = (1 if monotone else 2) * sensitivity / epsilon
    one = joint_law(scores, scale, reach=int(25 * scale) + 5)
    two = joint_law(np.add(scores, changes).tolist(), scale, reach=int(25 * scale) + 5)
    assert one.sum() == pytest.approx(1, abs=1e-6)
    assert np.abs(np.log(one / two)).max() <= epsilon + 1e-6
    assert np.abs(np.log(one.sum(axis=1) / two.sum(axis=1))).max() <= epsilon + 1e-6


def plain_tie_chance(scores, scale, winner):
    """Pr[``winner`` wins, exactly level with the best of the others]."""
    t = np.arange(-200, 200)
    others = [(j < winner, x) for j, x in enumerate(scores) if j != winner]
    not_above = np.prod([cdf(t - x - is_before, scale) for is_before, x in others], axis=0)
    below = np.prod([cdf(t - 1 - x, scale) for _, x in others], axis=0)
    return mass(t - scores[winner], scale) @ (not_above - below)


def test_the_plain_gap_to_the_runner_up_would_leak_through_ties():
    # Why the gap is counted to losing. Counted to the runner-up, candidate 2 can be level only with
    # candidate 3, while both rivals before it must be lower; four scores move by one each.
    epsilon, before, after = 2.0, [0, 2, 0, 0], [1, 3, -1, -1]
    scale = 2 / epsilon
    plain = plain_tie_chance(before, scale, 2) / plain_tie_chance(after, scale, 2)
    assert math.log(plain) > 1.7 * epsilon
    ours = np.log(joint_law(before, scale) / joint_law(after, scale))
    assert np.abs(ours).max() <= epsilon + 1e-6


def draw_joint(steps_object, scores, samples, gaps):
    drawn = np.empty(samples, dtype=np.int64)
    together = np.tile(np.array(scores, dtype=float), (samples, 1))
    for k, noisy in enumerate(steps_object.noisy_below_best(together, source=SYSTEM)):
        winner = int(np.argmax(noisy))
        gap = int(noisy[winner]) - steps_object.to_beat(np.delete(noisy, winner), before=winner)
        drawn[k] = winner * (gaps + 1) + min(gap, gaps)
    return drawn


@pytest.mark.lengthy
def test_coarse_steps_follow_the_joint_law_and_a_wrong_scale_would_show():
    scores, gaps = [0, 2, 1], 12
    steps = LaplaceSteps(Grid(0), 2, Fraction(3))
    drawn = draw_joint(steps, scores, SAMPLES, gaps)

    # Large gaps last, whoever won: that order tells the scales apart best.
    drawn = drawn % (gaps + 1) * len(scores) + drawn // (gaps + 1)
    right, *wrong = (
        np.cumsum(joint_law(scores, scale, gaps=gaps).T.ravel()) for scale in (3, 2.4, 3.6)
    )

    def gap_to(ends):
        return cdf_gap(drawn, lambda k: np.where(k < 0, 0.0, ends[np.clip(k, 0, ends.size - 1)]))

    assert gap_to(right) <= BAND
    for ends in wrong:
        assert np.abs(ends - right).max() > 2 * BAND
        assert gap_to(ends) > BAND


def loser_chance(distance, scale):
    """Pr[difference of two Laplace variables > distance], for real noise."""
    return (2 + distance / scale) / 4 * math.exp(-distance / scale)


def binomial_band(samples, chance):
    """Bernstein: a binomial share strays this far with probability at most FALSE_ALARM."""
    log = math.log(2 / FALSE_ALARM)
    return math.sqrt(2 * chance * (1 - chance) * log / samples) + log / samples


@pytest.mark.lengthy
@pytest.mark.parametrize("monotone", [False, True])
def test_choices_follow_the_law_and_a_wrong_epsilon_would_show(monotone):
    mechanism = NoisyMax(epsilon=1, sensitivity=1, monotone=monotone)
    scale, samples = 1 if monotone else 2, 14_000
    lost = np.mean([mechanism.select([2.0 * scale, 0.0]) for _ in range(samples)])
    # The grid is 2**-20 of the noise, which changes no chance by more than 1e-5.
    right = loser_chance(2 * scale, scale)
    band = binomial_band(samples, right) + 1e-5
    assert abs(lost - right) <= band
    for wrong in (0.8 * scale, 1.25 * scale):
        chance = loser_chance(2 * scale, wrong)
        assert abs(chance - right) > 2 * band
        assert abs(lost - chance) > band


@pytest.mark.lengthy
def test_gumbel_and_exponential_noise_have_their_own_laws():
    scores = np.array([0.0, 6.0])
    expected = {"gumbel": 1 / (1 + math.exp(3)), "exponential": math.exp(-3) / 2}
    wrong = {"gumbel": 1 / (1 + math.exp(2.4)), "exponential": math.exp(-2.4) / 2}
    samples = 15_000
    for noise, chance in expected.items():
        mechanism = NoisyMax(epsilon=1, sensitivity=1, noise=noise)
        lost = 1 - sum(mechanism.select(scores) for _ in range(samples)) / samples
        band = binomial_band(samples, chance)
        assert abs(lost - chance) <= band
        assert abs(lost - wrong[noise]) > band


def test_losses():
    assert NoisyMax(epsilon=1, sensitivity=1).loss == PureLoss(epsilon=1)
    assert NoisyMax(epsilon=1, sensitivity=1, noise="exponential").loss == PureLoss(epsilon=1)
    gumbel = NoisyMax(epsilon=1, sensitivity=1, noise="gumbel")
    assert gumbel.loss == BoundedRangeLoss(epsilon=1)


@pytest.mark.lengthy
@given(
    epsilon=st.fractions(min_value=Fraction(1, 10**6), max_value=50),
    sensitivity=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    monotone=st.booleans(),
    winners=st.integers(1, 9),
)
def test_noise_covers_the_rounded_sensitivity_exactly(epsilon, sensitivity, monotone, winners):
    steps = LaplaceSteps.of(epsilon, sensitivity, monotone, winners=winners)
    moved = math.ceil(sensitivity / steps.grid.spacing)  # the most that a score can move, in steps
    assert winners * moved * (1 if monotone else 2) / steps.scale <= epsilon
    ideal = winners * sensitivity * (1 if monotone else 2) / epsilon
    assert ideal <= steps.scale * steps.grid.spacing <= ideal * Fraction(100001, 100000)


@pytest.mark.lengthy
@pytest.mark.parametrize("noise", ["laplace", "gumbel", "exponential"])
def test_the_audit_passes_and_it_has_teeth(noise):
    # Many rivals rise together while the leader falls: more of epsilon shows.
    mechanism = NoisyMax(epsilon=4, sensitivity=1, noise=noise)
    before, after = np.array([3.0] + [0.0] * 20), np.array([2.0] + [1.0] * 20)
    found = audit.mechanism(
        lambda scores: mechanism.select(scores) == 0,
        pair=(before, after),
        epsilon=4,
        delta=0,
        samples=4_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 1.4


@pytest.mark.lengthy
def test_the_audit_of_the_gap_passes_and_has_teeth():
    mechanism = NoisyMax(epsilon=4, sensitivity=1)

    def signed_gap(scores):
        winner, gap = mechanism.select_with_gap(scores)
        return gap if winner == 0 else -gap

    found = audit.mechanism(
        signed_gap,
        pair=([2.0, 0.0], [1.0, 1.0]),
        epsilon=4,
        delta=0,
        samples=4_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 0.8


@pytest.mark.parametrize("n", [1, 2, 10, 100])
def test_laplace_error_holds_in_the_worst_case(n):
    steps = LaplaceSteps.of(1, 1, False, winners=1)
    t = NoisyMax(epsilon=1, sensitivity=1).error(confidence=0.9, candidates=n)
    if n == 1:
        assert t == 0
        return
    # The union bound, for real noise: the grid makes no difference in six digits.
    chance = (n - 1) * loser_chance(t, float(steps.scale) * float(steps.grid.spacing))
    assert chance == pytest.approx(0.1, rel=1e-4)


def test_errors_are_in_the_order_promised():
    errors = [
        NoisyMax(epsilon=1, sensitivity=1, noise=noise).error(confidence=0.95, candidates=50)
        for noise in ("exponential", "gumbel", "laplace")
    ]
    assert errors == sorted(errors)


@pytest.mark.parametrize("noise", ["laplace", "gumbel", "exponential"])
def test_calibration_reaches_the_error(noise):
    mechanism = NoisyMax.calibrated(
        error=7, confidence=0.9, candidates=40, sensitivity=3, noise=noise
    )
    assert 7 * (1 - 1e-5) < mechanism.error(confidence=0.9, candidates=40) <= 7


# Candidates a million noise scales apart, wherever they lie: only one can win.
FAR_APART = [
    [5 * 10**12, 9 * 10**12],
    [-9 * 10**12, -5 * 10**12],
    [2**62, 2**63 - 1],
    [-(2**63), 2**53 + 10**7],
    [5e12, 9e12],
    [1e30, 2e30],
    [-2e300, -1e300],
    [1e308, 1.7e308],
]


@pytest.mark.parametrize("scores", FAR_APART)
def test_scores_far_from_zero_are_told_apart(scores):
    mechanism = NoisyMax(epsilon=1, sensitivity=1)
    assert mechanism.select(scores) == 1
    assert mechanism.select(scores[::-1]) == 0
    winner, gap = mechanism.select_with_gap(scores)
    assert winner == 1
    farthest = float(FARTHEST * mechanism._steps.grid.spacing)
    assert gap == pytest.approx(min(farthest, float(scores[1]) - float(scores[0])), rel=1e-6)


def test_integers_beyond_doubles_keep_their_differences():
    # As doubles both would be 2**60.
    mechanism = NoisyMax(epsilon=1, sensitivity=Fraction(1, 1000))
    assert all(mechanism.select([2**60 + 60, 2**60]) == 0 for _ in range(50))


@given(
    scores=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    exponent=st.integers(-80, 60),
)
def test_steps_are_the_nearest_multiples_of_any_score(scores, exponent):
    grid = Grid(exponent)
    array = np.array(scores)
    expected = [math.floor(Fraction(x) / grid.spacing + Fraction(1, 2)) for x in array.tolist()]
    assert exact_steps(grid, array).tolist() == expected
    below = [min(FARTHEST, max(expected) - x) for x in expected]
    assert steps_below_best(grid, array).tolist() == below
    clamped = [max(-FARTHEST, min(FARTHEST, x)) for x in expected]
    assert clamped_steps(grid, array).tolist() == clamped
    raised = [clamped_step(grid, x) for x in array.tolist()]
    assert [steps - base for steps, base in raised] == clamped


@given(
    near=st.sampled_from([FARTHEST, 1 << 62, (1 << 62) - (1 << 40)]),
    offset=st.integers(-(2**45), 2**45),
    step=st.integers(0, 2**41),
    sign=st.sampled_from([-1, 1]),
)
def test_clamping_keeps_neighbours_as_close_as_they_were(near, offset, step, sign):
    pair = sign * np.array([near + offset, near + offset + step])
    found = clamped_steps(Grid(0), pair)
    assert 0 <= sign * int(found[1] - found[0]) <= step


def test_extreme_magnitudes_neither_wrap_nor_fail():
    assert NoisyMax(epsilon=1, sensitivity=1).select([-1e308, 1e308]) == 1
    assert NoisyMax(epsilon=1e-30, sensitivity=1e-3).select([1.0, 2.0]) in (0, 1)
    winner, gap = NoisyMax(epsilon=1e-30, sensitivity=1e-3).select_with_gap([1.0, 2.0])
    assert winner in (0, 1)
    assert 0 <= gap < math.inf


def test_ties_go_to_the_lower_index_and_object_sums_agree():
    steps = LaplaceSteps(Grid(0), 2, Fraction(1, 10**6))  # no noise, but in one of e**(10**6)
    for noisy in (steps.noisy, steps.noisy_below_best):
        assert int(np.argmax(noisy(np.array([1.0, 3.0, 3.0]), source=SYSTEM))) == 1
    wide = LaplaceSteps(Grid(0), 2, Fraction(2**70))
    assert wide.noisy_below_best(np.array([1.0, 3.0]), source=SYSTEM).dtype == object


@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_no_gap_for_other_noise(noise, no_randomness):
    with pytest.raises(ParameterError, match="'laplace' for a gap"):
        NoisyMax(epsilon=1, sensitivity=1, noise=noise).select_with_gap(
            [1, 2], source=no_randomness
        )


def test_no_gap_without_a_runner_up(no_randomness):
    with pytest.raises(DataError, match="two entries"):
        NoisyMax(epsilon=1, sensitivity=1).select_with_gap([1], source=no_randomness)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        NoisyMax(epsilon=epsilon, sensitivity=1)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1e-300, 1), (1e-280, 1e-20), (1, 1e300)])
def test_noise_beyond_doubles_is_refused(epsilon, sensitivity):
    with pytest.raises(ParameterError, match=r"grid|epsilon"):
        NoisyMax(epsilon=epsilon, sensitivity=sensitivity)


@pytest.mark.parametrize("sensitivity", [0, -1, math.nan, math.inf])
def test_bad_sensitivity(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity"):
        NoisyMax(epsilon=1, sensitivity=sensitivity)


def test_bad_noise():
    with pytest.raises(ParameterError, match="noise"):
        NoisyMax(epsilon=1, sensitivity=1, noise="gaussian")


@pytest.mark.parametrize("noise", ["laplace", "gumbel", "exponential"])
@pytest.mark.parametrize("scores", [[], [[1.0]], [math.nan], [math.inf], ["a"]])
def test_bad_scores_are_refused_before_anything_is_drawn(noise, scores, no_randomness):
    with pytest.raises(DataError):
        NoisyMax(epsilon=1, sensitivity=1, noise=noise).select(scores, source=no_randomness)


@given(
    scores=st.lists(st.floats(-20, 20), min_size=1, max_size=6),
    moves=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    epsilon=st.floats(0.01, 4),
)
def test_no_candidate_is_likelier_than_epsilon_allows(scores, moves, epsilon):
    mechanism = NoisyMax(epsilon=epsilon, sensitivity=1)
    moved = [score + move for score, move in zip(scores, moves, strict=False)]
    before, after = mechanism.probabilities(scores), mechanism.probabilities(moved)
    assert math.fsum(before) == pytest.approx(1)
    assert (before <= math.exp(epsilon) * after * (1 + 1e-9) + 1e-15).all()


def test_of_two_the_chance_has_a_closed_form():
    # The difference of two Laplace noises of scale 1 exceeds -d with 1 - (1/2 + d/4) exp(-d).
    for d in (0, 0.5, 1, 7):
        chance = 1 - (0.5 + d / 4) * math.exp(-d)
        found = NoisyMax(epsilon=2, sensitivity=1).probabilities([d, 0])
        assert found == pytest.approx([chance, 1 - chance], rel=1e-12)


def test_chances_are_how_often_each_wins():
    mechanism, scores, n = NoisyMax(epsilon=2, sensitivity=1), [3, 2, 0, 0.5], 10_000
    won = np.bincount([mechanism.select(scores) for _ in range(n)], minlength=4) / n
    # Hoeffding, for four candidates: a false alarm has probability 8 exp(-2 n 0.035^2) < 2e-10.
    assert np.abs(won - mechanism.probabilities(scores)).max() < 0.035
