"""Top-k by peeling and in one shot: laws, losses, gaps, errors, refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import PureLoss, ZCDPLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection.top_k import TopK, _largest
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct mechanism fails one of these tests
SAMPLES = 40_000
BAND = dkw_band(SAMPLES, false_alarm=FALSE_ALARM)


def peeling_law(scores, rate, k):
    law = {}
    for order in itertools.permutations(range(len(scores)), k):
        left, chance = dict(enumerate(scores)), 1.0
        for i in order:
            top = max(left.values())
            weights = {j: math.exp(rate * (s - top)) for j, s in left.items()}
            chance *= weights[i] / sum(weights.values())
            del left[i]
        law[order] = chance
    return law


def one_shot_law(scores, scale, k, reach):
    """Pr[(winners in order, gaps)] for whole-number scores, by summing over all noise vectors."""
    axis = np.arange(-reach, reach + 1)
    noise = np.stack(np.meshgrid(*[axis] * len(scores), indexing="ij"), axis=-1)
    noise = noise.reshape(-1, len(scores))
    weight = np.exp(-np.abs(noise).sum(axis=1) / scale)
    noisy = noise + np.array(scores)
    order = np.argsort(-noisy, axis=1, kind="stable")
    ranked = np.take_along_axis(noisy, order, axis=1)
    # The last gap is counted to losing: a runner-up with a lower index would win a tie.
    losers = np.where(np.arange(len(scores)) >= k, ranked + (order < order[:, k - 1 : k]), -(10**6))
    gaps = np.concatenate(
        [ranked[:, : k - 1] - ranked[:, 1:k], (ranked[:, k - 1] - losers.max(axis=1))[:, None]],
        axis=1,
    )
    outcomes, place = np.unique(
        np.concatenate([order[:, :k], gaps], axis=1), axis=0, return_inverse=True
    )
    totals = np.bincount(place.ravel(), weights=weight / weight.sum())
    return {tuple(map(int, o)): float(t) for o, t in zip(outcomes, totals, strict=True)}


def worst(one, two, floor):
    return max(abs(math.log(p / two[o])) for o, p in one.items() if p > floor)


@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(st.integers(0, 4), min_size=2, max_size=4),
    data=st.data(),
    monotone=st.booleans(),
)
def test_peeling_leaks_no_more_than_epsilon(scores, data, monotone):
    n = len(scores)
    changes = data.draw(st.lists(st.integers(0 if monotone else -1, 1), min_size=n, max_size=n))
    mechanism = TopK(k=2, epsilon=1, sensitivity=1, monotone=monotone)
    moved = np.add(scores, changes).tolist()
    rate = float(mechanism.rate)
    assert rate == (0.5 if monotone else 0.25)
    assert worst(peeling_law(scores, rate, 2), peeling_law(moved, rate, 2), 0) <= 1 + 1e-9


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("scores", "changes", "monotone"),
    [
        ([0, 1, 1], [1, -1, 1], False),
        ([1, 1, 1], [1, 1, -1], False),
        ([0, 0, 0], [-1, 1, 1], False),
        ([2, 0, 1], [-1, 1, -1], False),
        ([0, 1, 1], [1, 0, 1], True),
        ([1, 1, 1], [1, 1, 0], True),
        ([1, 0, 1], [0, 1, 0], True),
    ],
)
def test_one_shot_with_its_gaps_leaks_no_more_than_epsilon(scores, changes, monotone):
    epsilon, k = 3.0, 2
    scale = (1 if monotone else 2) * k / epsilon
    reach = int(16 * scale)
    one = one_shot_law(scores, scale, k, reach)
    two = one_shot_law(np.add(scores, changes).tolist(), scale, k, reach)
    assert worst(one, two, 1e-4) <= epsilon + 1e-2
    assert worst(two, one, 1e-4) <= epsilon + 1e-2


def two_winners_chance(rise, scale, losers, gaps):
    """Pr[0 and 1 win with these gaps]: both score ``rise`` above many losers."""
    p = math.exp(-1 / scale)
    t = np.arange(-300, 300)
    below = np.where(
        t < 0, np.exp(np.minimum(t, 0) / scale), 1 + p - p * np.exp(-np.maximum(t, 0) / scale)
    ) / (1 + p)
    to_beat = np.diff(below**losers, prepend=0.0)
    second = np.exp(-np.abs(t + gaps[1] - rise) / scale)
    first = np.exp(-np.abs(t + gaps[1] + gaps[0] - rise) / scale)
    return to_beat @ (first * second)


def test_one_shot_needs_all_of_its_noise():
    # The losers fall by one and the two winners rise by one, far out in the tail.
    scale = 2 * 2 / 3.0
    ratio = two_winners_chance(2, scale, 200, (1, 1)) / two_winners_chance(0, scale, 200, (1, 1))
    assert 0.99 * 3 < math.log(ratio) <= 3 + 1e-9


def gap_of(outcomes, draws, law):
    number = {outcome: i for i, outcome in enumerate(outcomes)}
    ends = np.cumsum([law[outcome] for outcome in outcomes])
    return cdf_gap(
        [number[tuple(d)] for d in draws],
        lambda k: np.where(k < 0, 0.0, ends[np.clip(k, 0, len(ends) - 1)]),
    )


@pytest.mark.lengthy
def test_peeling_follows_its_law_and_a_wrong_epsilon_would_show():
    scores = [0, 4, 9]
    mechanism = TopK(k=2, epsilon=1, sensitivity=1)
    draws = [mechanism.select(scores).tolist() for _ in range(SAMPLES)]
    right = peeling_law(scores, 0.25, 2)
    outcomes = sorted(right)
    assert gap_of(outcomes, draws, right) <= BAND
    for wrong in (peeling_law(scores, 0.2, 2), peeling_law(scores, 0.3, 2)):
        distance = np.cumsum([wrong[o] - right[o] for o in outcomes])
        assert np.abs(distance).max() > 2 * BAND
        assert gap_of(outcomes, draws, wrong) > BAND


@pytest.mark.lengthy
def test_one_shot_follows_its_law_and_a_wrong_epsilon_would_show():
    scores, epsilon = [0, 2], 2
    mechanism = TopK(k=1, epsilon=epsilon, sensitivity=1, method="one_shot")
    chance = (2 + 2) / 4 * math.exp(-2)  # real Laplace noise of scale 1, a distance of 2
    lost = 1 - np.mean([mechanism.select(scores)[0] for _ in range(SAMPLES)])
    assert abs(lost - chance) <= BAND + 1e-5
    for scale in (0.8, 1.2):
        wrong = (2 + 2 / scale) / 4 * math.exp(-2 / scale)
        assert abs(wrong - chance) > 2 * BAND
        assert abs(lost - wrong) > BAND


def test_one_shot_scale_grows_with_k():
    one, five = (TopK(k=k, epsilon=1, sensitivity=1, method="one_shot")._steps for k in (1, 5))
    assert five.scale == 5 * one.scale
    assert five.grid == one.grid


def test_gaps_are_differences_of_the_noisy_scores():
    mechanism = TopK(k=3, epsilon=1000, sensitivity=1, method="one_shot")
    chosen, gaps = mechanism.select_with_gaps([10, 40, 20, 30, 0])
    assert chosen.tolist() == [1, 3, 2]
    # Noise of scale 0.006 strays by 5 with probability below exp(-800).
    assert np.abs(gaps - 10).max() < 5


def test_different_costs():
    peeling = TopK(k=4, epsilon=2, sensitivity=1)
    one_shot = TopK(k=4, epsilon=2, sensitivity=1, method="one_shot")
    assert peeling.loss == one_shot.loss == PureLoss(epsilon=2)
    assert peeling.zcdp_loss == ZCDPLoss(rho=Fraction(1, 8))
    assert one_shot.zcdp_loss == ZCDPLoss(rho=2)


@pytest.mark.lengthy
@pytest.mark.parametrize("method", ["peeling", "one_shot"])
def test_audit_passes_and_has_teeth(method):
    mechanism = TopK(k=2, epsilon=4, sensitivity=1, method=method)
    found = audit.mechanism(
        lambda scores: tuple(mechanism.select(scores).tolist()),
        pair=([1.0, 1.0, 1.0], [0.0, 2.0, 2.0]),
        epsilon=4,
        delta=0,
        samples=10_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 0.5


@pytest.mark.lengthy
def test_audit_of_the_gaps_passes():
    mechanism = TopK(k=2, epsilon=4, sensitivity=1, method="one_shot")

    def rounded(scores):
        chosen, gaps = mechanism.select_with_gaps(scores)
        return (*chosen.tolist(), *np.floor(gaps).tolist())

    found = audit.mechanism(
        rounded,
        pair=([1.0, 1.0, 1.0], [0.0, 2.0, 2.0]),
        epsilon=4,
        delta=0,
        samples=10_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found


def test_peeling_error_holds_exactly():
    mechanism = TopK(k=2, epsilon=1, sensitivity=1)
    t = mechanism.error(confidence=0.9, candidates=5)
    law = peeling_law([0, 0, -t * 1.0001, -t * 1.0001, -t * 1.0001], 0.25, 2)
    good = sum(chance for order, chance in law.items() if max(order) <= 1)
    assert 0.9 <= good < 0.93
    assert mechanism.error(confidence=0.9, candidates=2) == 0


@pytest.mark.lengthy
@pytest.mark.parametrize("method", ["peeling", "one_shot"])
def test_error_is_kept_by_releases(method):
    mechanism = TopK(k=3, epsilon=1, sensitivity=1, method=method)
    t = mechanism.error(confidence=0.9, candidates=20)
    scores = np.array([0.0] * 3 + [-t * 1.0001] * 17)
    samples = 3000
    good = sum(mechanism.select(scores).max() < 3 for _ in range(samples))
    # Hoeffding: below 0.9 - band with probability at most FALSE_ALARM.
    assert good / samples >= 0.9 - math.sqrt(math.log(1 / FALSE_ALARM) / (2 * samples))


@pytest.mark.parametrize("method", ["peeling", "one_shot"])
def test_calibration_reaches_the_error(method):
    mechanism = TopK.calibrated(
        k=3, error=70, confidence=0.9, candidates=40, sensitivity=3, method=method
    )
    assert 70 * (1 - 1e-5) < mechanism.error(confidence=0.9, candidates=40) <= 70


@given(values=st.lists(st.integers(-3, 3), min_size=1, max_size=9), data=st.data())
def test_largest_breaks_ties_by_index(values, data):
    k = data.draw(st.integers(1, len(values)))
    expected = sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    assert _largest(np.array(values), k).tolist() == expected
    assert _largest(np.array(values, dtype=object), k).tolist() == expected


@pytest.mark.parametrize("method", ["peeling", "one_shot"])
def test_all_candidates_can_be_ranked(method):
    chosen = TopK(k=4, epsilon=1, sensitivity=1, method=method).select([1, 2, 3, 4])
    assert sorted(chosen.tolist()) == [0, 1, 2, 3]
    assert chosen.dtype == np.int64


@pytest.mark.parametrize("k", [0, -1, 1.5, True, math.nan])
def test_bad_k(k):
    with pytest.raises(ParameterError, match="k must"):
        TopK(k=k, epsilon=1, sensitivity=1)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        TopK(k=1, epsilon=epsilon, sensitivity=1)


def test_other_bad_parameters():
    with pytest.raises(ParameterError, match="sensitivity"):
        TopK(k=1, epsilon=1, sensitivity=0)
    with pytest.raises(ParameterError, match="method"):
        TopK(k=1, epsilon=1, sensitivity=1, method="both")
    with pytest.raises(ParameterError, match="candidates"):
        TopK(k=3, epsilon=1, sensitivity=1).error(confidence=0.9, candidates=2)


@pytest.mark.parametrize("method", ["peeling", "one_shot"])
@pytest.mark.parametrize("scores", [[], [1.0], [[1.0, 2.0]], [1, math.nan], ["a", "b"]])
def test_bad_scores_are_refused_before_anything_is_drawn(method, scores, no_randomness):
    with pytest.raises(DataError):
        TopK(k=2, epsilon=1, sensitivity=1, method=method).select(scores, source=no_randomness)


def test_gaps_need_one_shot_and_a_loser(no_randomness):
    with pytest.raises(ParameterError, match="one_shot"):
        TopK(k=1, epsilon=1, sensitivity=1).select_with_gaps([1, 2], source=no_randomness)
    with pytest.raises(DataError, match="3 entries"):
        TopK(k=2, epsilon=1, sensitivity=1, method="one_shot").select_with_gaps(
            [1, 2], source=no_randomness
        )


def test_one_shot_tells_scores_far_from_zero_apart():
    # In steps of the grid these pass 2**62 and would have saturated to ties.
    scores = [5 * 10**12, 9 * 10**12, 7 * 10**12, 6 * 10**12]
    mechanism = TopK(k=3, epsilon=1, sensitivity=1, method="one_shot")
    assert mechanism.select(scores).tolist() == [1, 2, 3]
    chosen, gaps = mechanism.select_with_gaps(scores)
    assert chosen.tolist() == [1, 2, 3]
    assert gaps == pytest.approx([2e12, 1e12, 1e12], rel=1e-6)
    assert mechanism.select([1e300, 3e300, 2e300, 0.0]).tolist() == [1, 2, 0]
