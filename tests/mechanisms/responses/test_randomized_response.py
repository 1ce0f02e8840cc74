"""Randomized response: exact probabilities, honest estimates, and nothing drawn for bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import PureLoss, RandomizedResponseLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.responses.frequency_estimate import FrequencyEstimate
from discreet.mechanisms.responses.randomized_response import RandomizedResponse
from discreet.mechanisms.responses.warner import Warner
from discreet.noise.enclosure import chance_odds, exp_bounds

FALSE_ALARM = 1e-9
SAMPLES = 400_000
BAND = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * SAMPLES))  # Hoeffding


# The loss ---------------------------------------------------------------------------------------


@given(epsilon=st.fractions(Fraction(1, 100), 12), k=st.integers(2, 50))
def test_the_two_probabilities_have_ratio_exp_epsilon(epsilon, k):
    # The probability of a lie as the sampler has it, to 200 bits, shared by k - 1 categories.
    lie = Fraction(chance_odds(epsilon, Fraction(k - 1))(200), 1 << 200)
    other, truth = lie / (k - 1), 1 - lie
    low, high = exp_bounds(epsilon, 190)
    slack = Fraction(1, 1 << 150)
    assert Fraction(low, 1 << 190) - slack <= other / truth <= Fraction(high, 1 << 190) + slack
    mechanism = RandomizedResponse(epsilon=epsilon, categories=k)
    assert mechanism.truth_probability == pytest.approx(float(truth), rel=1e-12)
    assert mechanism.other_probability == pytest.approx(float(other), rel=1e-12)
    assert mechanism.loss == RandomizedResponseLoss(epsilon=epsilon, categories=k)


probabilities = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)


@pytest.mark.lengthy
@given(yes=probabilities, no=probabilities)
def test_warner_epsilon_covers_both_answers_and_is_tight(yes, no):
    if yes == no:
        return
    mechanism = Warner(yes_if_yes=yes, yes_if_no=no)
    ratio = max(yes / no, no / yes, (1 - yes) / (1 - no), (1 - no) / (1 - yes))
    # exp(-epsilon) <= 1 / ratio, proved with integers: epsilon is not too small.
    assert Fraction(exp_bounds(Fraction(mechanism.epsilon), 300)[0], 1 << 300) <= 1 / ratio
    assert mechanism.epsilon == pytest.approx(
        math.log(ratio.numerator) - math.log(ratio.denominator), rel=1e-9, abs=1e-15
    )
    assert mechanism.loss.epsilon_pure == Fraction(mechanism.epsilon)


def test_two_fair_coins_cost_the_logarithm_of_three():
    fair = Warner.coins(truth=Fraction(1, 2), forced_yes=Fraction(1, 2))
    assert (fair.yes_if_yes, fair.yes_if_no) == (Fraction(3, 4), Fraction(1, 4))
    assert fair.epsilon == pytest.approx(math.log(3), abs=1e-15)
    assert isinstance(fair.loss, RandomizedResponseLoss)
    assert isinstance(Warner(yes_if_yes=0.5, yes_if_no=0.25).loss, PureLoss)
    tiny = Warner(yes_if_yes=Fraction(1, 2) + Fraction(1, 10**30), yes_if_no=Fraction(1, 2))
    assert tiny.epsilon == pytest.approx(2e-30, rel=1e-12)


# The reports ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 7, 300])
def test_reports_follow_their_law_and_a_wrong_epsilon_would_show(k):
    mechanism = RandomizedResponse(epsilon=2, categories=k)
    reports = mechanism.release(np.full(SAMPLES, k - 1))
    kept = float(np.mean(reports == k - 1))
    assert abs(kept - mechanism.truth_probability) <= BAND
    for factor in (0.8, 1.25):  # the true differences exceed 2 * BAND
        wrong = RandomizedResponse(epsilon=2 * factor, categories=k)
        assert abs(kept - wrong.truth_probability) > BAND
    lies = reports[reports != k - 1]
    # Lies are uniform: compare their running shares with the diagonal (Dvoretzky-Kiefer-Wolfowitz).
    shares = np.cumsum(np.bincount(lies, minlength=k)[: k - 1]) / lies.size
    band = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * lies.size))
    assert np.abs(shares - np.arange(1, k) / (k - 1)).max() <= band


@pytest.mark.parametrize("truth", [False, True])
def test_warner_reports_follow_their_law(truth):
    mechanism = Warner(yes_if_yes=Fraction(5, 8), yes_if_no=Fraction(1, 8))
    share = float(mechanism.release(np.full(SAMPLES, truth)).mean())
    p = 0.625 if truth else 0.125
    assert abs(share - p) <= BAND
    assert abs(share - 0.8 * p) > BAND
    assert abs(share - 1.2 * p) > BAND


def test_the_same_kind_comes_back():
    two = RandomizedResponse(epsilon=1, categories=2)
    assert isinstance(two.release(True), bool)
    assert type(two.release(1)) is int
    assert isinstance(two.release(np.True_), bool)
    assert two.release([True, False]).dtype == np.bool_
    assert two.release(np.zeros((2, 3), dtype=np.uint8)).dtype == np.uint8
    assert two.release(np.zeros((2, 3), dtype=np.int64)).shape == (2, 3)
    many = RandomizedResponse(epsilon=1, categories=300)
    assert many.release(np.zeros(9, dtype=np.uint8)).dtype == np.int64  # 299 needs more room
    assert many.release(np.zeros(9, dtype=np.int16)).dtype == np.int16
    assert two.release(np.zeros(0, dtype=np.bool_)).size == 0
    warner = Warner(yes_if_yes=0.75, yes_if_no=0.25)
    assert isinstance(warner.release(True), bool)
    assert warner.release(np.ones((2, 2), dtype=np.int64)).shape == (2, 2)


class Counting:
    """The system's randomness, with a count of the bytes read."""

    is_secure = True

    def __init__(self):
        self.read_sizes = []

    def read(self, n, /):
        self.read_sizes.append(n)
        return bytes(n)


def test_the_randomness_read_does_not_depend_on_the_answers():
    mechanism = RandomizedResponse(epsilon=1, categories=2)
    sizes = []
    for answers in (np.zeros(100_000, dtype=bool), np.ones(100_000, dtype=bool)):
        source = Counting()
        mechanism.release(answers, source=source)
        sizes.append(source.read_sizes)
    assert sizes[0] == sizes[1]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (RandomizedResponse(epsilon=1, categories=2), (0, 1)),
        (RandomizedResponse(epsilon=1, categories=4), (0, 3)),
        (Warner(yes_if_yes=0.5, yes_if_no=0.2), (False, True)),
    ],
)
def test_the_audit_passes_and_half_the_claim_fails(mechanism, pair):
    def run(answer, runs):
        return mechanism.release(np.full(runs, answer))

    of = {"pair": pair, "delta": 0, "batch": True, "confidence": 1 - FALSE_ALARM}
    claim = mechanism.loss.epsilon_pure
    assert audit.mechanism(run, epsilon=claim, **of).passed
    assert not audit.mechanism(run, epsilon=claim / 2, **of).passed


# The estimate -----------------------------------------------------------------------------------


@pytest.mark.lengthy
@given(
    shares=st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any),
    epsilon=st.floats(0.1, 5),
)
def test_the_estimate_is_unbiased(shares, epsilon):
    # Feed it the expected reports: the estimate is linear, so the truth must come back.
    k, truth = len(shares), np.array(shares) / sum(shares)
    mechanism = RandomizedResponse(epsilon=epsilon, categories=k)
    p, q = mechanism.truth_probability, mechanism.other_probability
    n = 10**12
    expected = np.round((q + truth * (p - q)) * n).astype(np.int64)
    estimate = FrequencyEstimate(observed=expected, hit=np.full(k, p), miss=np.full(k, q))
    assert estimate.frequencies == pytest.approx(truth, abs=1e-9)
    assert estimate.frequencies.sum() == pytest.approx(1)
    assert estimate.counts.sum() == pytest.approx(estimate.reports)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(epsilon=1, categories=2),
        Warner(yes_if_yes=0.7, yes_if_no=0.4),
        Warner(yes_if_yes=0.2, yes_if_no=0.9),
    ],
)
def test_estimates_are_as_far_off_as_they_say(mechanism):
    n, runs, share = 2000, 400, 0.25
    answers = np.arange(n) < share * n
    found = [mechanism.estimate(mechanism.release(answers)) for _ in range(runs)]
    off = np.array([estimate.frequencies[1] - share for estimate in found])
    error = float(np.mean([estimate.standard_errors[1] for estimate in found]))
    # Its mean is normal to good accuracy: 6.5 standard errors are passed once in 10**10.
    assert abs(off.mean()) < 6.5 * error / math.sqrt(runs)
    # The people are fixed here, so the spread is that of the coins alone, a little less than the
    # error stated. A sample deviation of 400 is 25% off once in 10**12 runs.
    if isinstance(mechanism, Warner):
        p, q = mechanism.yes_if_yes, mechanism.yes_if_no
    else:
        p, q = mechanism.truth_probability, mechanism.other_probability
    spread = math.sqrt((share * p * (1 - p) + (1 - share) * q * (1 - q)) / n) / abs(p - q)
    assert 0.75 * spread < off.std() < 1.25 * spread <= 1.25 * error * 1.01
    covered = np.mean(
        [low[1] <= share <= high[1] for low, high in (e.interval(confidence=0.9) for e in found)]
    )
    assert covered > 0.9 - math.sqrt(math.log(1 / FALSE_ALARM) / (2 * runs))
    bound = mechanism.error(confidence=0.9, reports=n)
    assert np.mean(np.abs(off) <= bound) > 0.9 - math.sqrt(math.log(1 / FALSE_ALARM) / (2 * runs))


def test_intervals_hold_at_the_ends():
    mechanism = RandomizedResponse(epsilon=3, categories=2)
    low, high = mechanism.estimate([False] * 50).interval(confidence=0.95)
    assert low[1] == 0 <= high[1] < 0.1
    assert low[0] > 0.9 > 0
    assert high[0] == 1
    wide = mechanism.estimate([False] * 50).interval(confidence=0.9999)
    assert wide[1][1] > high[1]


def test_the_repr_is_readable():
    estimate = RandomizedResponse(epsilon=5, categories=9).estimate(list(range(9)) * 10)
    assert repr(estimate).startswith("FrequencyEstimate(reports=90, frequencies=[0.111 ± 0.03")
    assert "... 3 more" in repr(estimate)


@pytest.mark.parametrize("reports", [[True], [True] * 5, [False] * 40])
def test_agreeing_reports_are_not_taken_for_certainty(reports):
    survey = Warner(yes_if_yes=0.75, yes_if_no=0.25)
    estimate = survey.estimate(reports)
    # Even if everybody's truth is the same, the coins alone have this spread.
    coins = math.sqrt(0.75 * 0.25 / len(reports)) / 0.5
    assert (estimate.standard_errors >= coins * (1 - 1e-12)).all()
    assert "± 0," not in repr(estimate)
    assert "± 0]" not in repr(estimate)


@given(
    seen=st.integers(0, 200),
    unseen=st.integers(0, 200),
    hit=st.floats(0.01, 0.99),
    miss=st.floats(0.01, 0.99),
)
def test_standard_errors_are_never_below_the_least_possible_spread(seen, unseen, hit, miss):
    n = seen + unseen
    if n == 0 or abs(hit - miss) < 0.01:
        return
    estimate = FrequencyEstimate(
        observed=np.array([seen, unseen]),
        hit=np.array([hit, 1 - miss]),
        miss=np.array([miss, 1 - hit]),
    )
    # The mean of a report lies between miss and hit, and its spread is concave in it.
    least = math.sqrt(min(hit * (1 - hit), miss * (1 - miss)) / n) / abs(hit - miss)
    assert (estimate.standard_errors >= least * (1 - 1e-9)).all()
    most = 0.5 / math.sqrt(n) / abs(hit - miss)
    assert (estimate.standard_errors <= most * (1 + 1e-9)).all()


def test_reports_that_tell_nothing_are_refused():
    with pytest.raises(ParameterError, match="larger epsilon"):
        RandomizedResponse(epsilon=1e-17, categories=3).estimate([0, 1, 2])


# Calibration ------------------------------------------------------------------------------------


@given(
    error=st.floats(0.02, 50),
    reports=st.integers(2000, 10**9),
    categories=st.integers(2, 1000),
    confidence=st.sampled_from([0.5, 0.95, 1 - Fraction(1, 10**30)]),
)
def test_a_survey_calibrated_to_an_error_reaches_it_at_the_smallest_epsilon(
    error, reports, categories, confidence
):
    least = math.sqrt(math.log(2 / float(1 - confidence)) / (2 * reports))
    of = {"error": error, "confidence": confidence, "reports": reports, "categories": categories}
    if error <= least:
        with pytest.raises(ParameterError, match="error must be above"):
            RandomizedResponse.calibrated(**of)
        return
    survey = RandomizedResponse.calibrated(**of)
    assert survey.error(confidence=confidence, reports=reports) <= error
    less = RandomizedResponse(epsilon=survey.epsilon * (1 - 1e-9), categories=categories)
    if survey.epsilon < 20:  # beyond, the last digits of epsilon no longer matter
        assert less.error(confidence=confidence, reports=reports) > error * (1 - 1e-13)


@pytest.mark.lengthy
@settings(deadline=None)
@given(epsilon=st.floats(1e-300, 50) | st.fractions(Fraction(1, 10**6), 100) | st.just(1000))
def test_warner_calibrated_is_symmetric_and_spends_the_budget_without_exceeding_it(epsilon):
    survey = Warner.calibrated(epsilon=epsilon)
    yes, no = survey.yes_if_yes, survey.yes_if_no
    assert yes + no == 1
    assert yes > no
    assert survey.epsilon <= epsilon
    assert survey.epsilon >= epsilon * (1 - 1e-12)
    # exp(-epsilon) <= no / yes, proved with integers: the coins leak no more than the budget.
    bits = 400 + 3 * math.ceil(epsilon) + Fraction(epsilon).denominator.bit_length()
    assert Fraction(exp_bounds(Fraction(epsilon), bits)[0], 1 << bits) <= no / yes
    assert isinstance(survey.loss, RandomizedResponseLoss)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), 10**5, Fraction(1, 10**400), "1"])
def test_budgets_no_coin_can_have_are_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        Warner.calibrated(epsilon=epsilon)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(epsilon=np.float32(1), categories=np.int32(3)),
        RandomizedResponse(epsilon=10**400, categories=3),
        RandomizedResponse(epsilon=Fraction(1, 10**400), categories=3),
        Warner(yes_if_yes=np.float32(0.75), yes_if_no=np.float32(0.25)),
        Warner(yes_if_yes=Fraction(1, 2) + Fraction(1, 10**400), yes_if_no=Fraction(1, 2)),
    ],
)
def test_extremes_have_an_error_and_can_be_released(mechanism):
    for confidence in (0.5, np.float32(0.5), 1 - Fraction(1, 10**30), 1 - Fraction(1, 10**400)):
        for reports in (1, 10**400):
            assert mechanism.error(confidence=confidence, reports=reports) >= 0
    assert mechanism.release([0, 1, 1]).size == 3


def test_intervals_at_confidences_beyond_doubles():
    estimate = RandomizedResponse(epsilon=3, categories=2).estimate([0] * 600 + [1] * 400)
    wide = estimate.interval(confidence=0.999999)
    wider = estimate.interval(confidence=1 - Fraction(1, 10**30))
    assert (wider[0] < wide[0]).all()
    assert (wider[1] > wide[1]).all()
    assert (wider[1] < 1).all()  # a side of 5e-31 is not lost
    widest = estimate.interval(confidence=1 - Fraction(1, 10**400))
    assert widest[0].tolist() == [0, 0]
    assert widest[1].tolist() == [1, 1]


# Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", float("nan")),
        ("epsilon", "1"),
        ("categories", 1),
        ("categories", 2.5),
        ("categories", 2**40),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ParameterError, match=name) as caught:
        RandomizedResponse(**({"epsilon": 1, "categories": 2} | {name: value}))
    assert caught.value.parameter == name


@pytest.mark.parametrize(
    ("yes", "no", "name"), [(1, 0.5, "yes_if_yes"), (0.5, 0, "yes_if_no"), (0.5, 0.5, "yes_if_yes")]
)
def test_bad_coins_are_named(yes, no, name):
    with pytest.raises(ParameterError) as caught:
        Warner(yes_if_yes=yes, yes_if_no=no)
    assert caught.value.parameter == name


@pytest.mark.parametrize("truth", [0, 1, -0.5, float("nan")])
def test_certain_coins_are_refused(truth):
    with pytest.raises(ParameterError, match="truth"):
        Warner.coins(truth=truth, forced_yes=0.5)
    with pytest.raises(ParameterError, match="forced_yes"):
        Warner.coins(truth=0.5, forced_yes=truth)


@pytest.mark.parametrize("bad", [[0, 3], [-1], [0.5], ["yes"], None, [[1], [2, 3]], [float("nan")]])
def test_bad_answers_are_refused_before_anything_is_drawn(bad, no_randomness):
    for mechanism in (
        RandomizedResponse(epsilon=1, categories=3),
        RandomizedResponse(epsilon=1, categories=2),
        Warner(yes_if_yes=0.75, yes_if_no=0.25),
    ):
        with pytest.raises(DataError) as caught:
            mechanism.release(bad, source=no_randomness)
        assert "-1" not in str(caught.value)
        with pytest.raises(DataError):
            mechanism.estimate(bad)
    with pytest.raises(AssertionError):  # the source does complain
        RandomizedResponse(epsilon=1, categories=3).release([0], source=no_randomness)


def test_booleans_need_two_categories_and_estimates_need_reports():
    three = RandomizedResponse(epsilon=1, categories=3)
    with pytest.raises(DataError, match="booleans"):
        three.release([True])
    with pytest.raises(DataError, match="at least one"):
        three.estimate(np.zeros(0, dtype=np.int64))
