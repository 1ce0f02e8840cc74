"""Audits of training in one run: they hold, they are tight, and they find what is wrong."""

import math
from itertools import product

import numpy as np
import pytest
from broken_trainers import BROKEN
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import binom

from discreet import audit
from discreet.accounting import GaussianLoss, PureLoss, epsilon
from discreet.audit.canaries.shapes import GaussianShape, LossShape, is_refuted
from discreet.audit.canaries.tails import epsilon_proved, tail_upper
from discreet.errors import DataError, ParameterError

FALSE_ALARM = 1e-6  # chance that a correct trainer fails an audit, or a test here by chance
DELTA = 1e-5


def distance(claimed, *, delta=DELTA):
    """Return the distance of Gaussian noise with this epsilon."""
    low, high = 1e-3, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        within = epsilon(GaussianLoss(noise_multiplier=1 / middle), delta=delta) <= claimed
        low, high = (middle, high) if within else (low, middle)
    return low


def gaussian_sum(mu, *, seed=None):
    """Return a trainer that releases the sum of its canaries, each on an axis of its own."""
    rng = np.random.default_rng(seed)
    return lambda included: mu * included + rng.normal(size=len(included))


def exact_law(guesses, canaries, reveal_all, epsilon_each):
    """Return the law of right guesses of a response with flips, all revealed now and then."""
    law = binom.pmf(np.arange(guesses + 1), guesses, expit(epsilon_each)) * (1 - reveal_all)
    law[-1] += reveal_all
    return law


# The bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guesses", "right", "claimed", "failures"),
    [(20, 16, 1, 0.1), (20, 18, 1, 0.5), (10, 10, 2, 0.1), (30, 20, 0.3, 0.05), (7, 4, 0, 1)],
)
def test_the_bound_is_the_optimum_of_what_turning_a_coin_allows(guesses, right, claimed, failures):
    """Chances p_j of j right guesses, with excesses e_j that may add up to ``failures``."""
    n = guesses + 1
    gain = np.concatenate([-(np.arange(n) >= right).astype(float), np.zeros(guesses)])
    rows = np.zeros((n, n + guesses))
    for j in range(1, n):
        rows[j - 1, [j, j - 1, n + j - 1]] = j, -math.exp(claimed) * (n - j), -1
    rows[-1, n:] = 1
    most = np.concatenate([np.zeros(guesses), [failures]])
    sums = np.concatenate([np.ones(n), np.zeros(guesses)])[None]
    best = -linprog(gain, rows, most, sums, [1], bounds=(0, None)).fun
    bound = tail_upper(right, guesses=guesses, epsilon=claimed, failures=failures)
    assert bound == pytest.approx(min(1, best), rel=1e-6)


def test_a_mechanism_that_reveals_all_now_and_then_keeps_within_the_bound():
    """With chance r all of k guesses are revealed: (epsilon, r k / m) for each of m canaries.

    Not a vacuous bound: no more than twice what this mechanism does.
    """
    guesses, canaries, reveal_all = 40, 1000, 0.01
    law = exact_law(guesses, canaries, reveal_all, epsilon_each=1)
    failures = canaries * (reveal_all * guesses / canaries)
    for right in range(1, guesses + 1):
        bound = tail_upper(right, guesses=guesses, epsilon=1, failures=failures)
        assert law[right:].sum() <= bound * (1 + 1e-9)
    assert bound < 2 * law[-1]


def test_it_is_sharper_than_the_published_price_of_delta():
    def published(right, *, guesses, claimed, canaries, delta):
        tails = binom.sf(np.arange(right) - 1, guesses, expit(claimed))[::-1]
        tail = binom.sf(right - 1, guesses, expit(claimed))
        steps = np.arange(1, right + 1)
        return tail + 2 * canaries * delta * np.max((tails - tail) / steps)

    for right, claimed, canaries in product((300, 350, 390), (0.5, 1, 3), (10**4, 10**5)):
        ours = tail_upper(right, guesses=400, epsilon=claimed, failures=canaries * DELTA)
        theirs = published(right, guesses=400, claimed=claimed, canaries=canaries, delta=DELTA)
        assert ours <= min(1, theirs) * (1 + 1e-6)


def test_far_tails_do_not_underflow():
    assert epsilon_proved(4000, guesses=4000, failures=0.1, alpha=0.05) > 6
    assert 0 < tail_upper(4000, guesses=4000, epsilon=0, failures=0.1) < 1e-4
    assert tail_upper(10, guesses=4000, epsilon=5, failures=0.1) == 1
    assert tail_upper(0, guesses=10, epsilon=0, failures=0) == 1


@pytest.mark.parametrize("claimed", [0.5, 2.0])
def test_a_curve_with_one_point_refutes_nothing_that_the_point_allows(claimed):
    """The bound for curves looks at fewer sets of counts, so it is the weaker one."""
    curve = LossShape(np.array([claimed]), np.array([DELTA]))
    for right in range(50, 101):
        bound = tail_upper(right, guesses=100, epsilon=claimed, failures=1000 * DELTA)
        assert not is_refuted(curve, right, guesses=100, pool=1000, alpha=bound * 0.999)
    assert is_refuted(curve, 100, guesses=100, pool=1000, alpha=0.05)


# Validity -------------------------------------------------------------------------------------


def flips(truth):
    """Return randomised response with this chance of the truth, and no noise beside it."""
    rng = np.random.default_rng()
    return lambda included: np.where(rng.random(len(included)) < truth, included, ~included)


HONEST = {
    "randomised response": (flips(expit(1.0)), {"epsilon": 1, "delta": 0}),
    "randomised response, as a curve": (
        flips(expit(1.0)), {"loss": PureLoss(epsilon=1), "delta": 0}
    ),
    "Gaussian sum": (gaussian_sum(0.5), {"epsilon": 1.991, "delta": DELTA}),
    "Gaussian sum, as a curve": (
        gaussian_sum(0.5), {"loss": GaussianLoss(noise_multiplier=2), "delta": DELTA}
    ),
}  # fmt: skip


@pytest.mark.lengthy
@pytest.mark.parametrize("name", HONEST)
def test_a_trainer_at_exactly_its_claim_fails_no_more_often_than_stated(name):
    # At 80% each of 100 runs fails with chance at most 0.2: more than 42 with chance below 1e-6.
    assert binom.sf(42, 100, 0.2) < FALSE_ALARM
    train, claim = HONEST[name]
    runs = [audit.training(train, canaries=200, confidence=0.8, **claim) for _ in range(100)]
    assert sum(not found.passed for found in runs) <= 42
    truth = runs[0].epsilon
    assert sum(found.epsilon_lower > truth for found in runs) <= 42


@pytest.mark.lengthy
def test_the_gaussian_opinion_holds_where_its_assumption_does():
    truth = epsilon(GaussianLoss(noise_multiplier=2), delta=DELTA)
    runs = [
        audit.training(gaussian_sum(0.5), canaries=200, epsilon=2, delta=DELTA, confidence=0.8)
        for _ in range(100)
    ]
    assert sum(found.gaussian > truth for found in runs) <= 42


def test_the_gaussian_opinion_convicts_nobody():
    """Flips at epsilon 2 are more often right than noise that has epsilon 2 at this delta."""
    found = audit.training(
        flips(expit(2.0)), epsilon=2, delta=1e-12, confidence=1 - FALSE_ALARM, canaries=20_000
    )
    assert found.passed
    assert found.gaussian > 2


# Tightness ------------------------------------------------------------------------------------

TARGETS = {1: 0.46, 4: 2.0, 8: 3.8}


@pytest.mark.lengthy
@pytest.mark.parametrize("truth", TARGETS)
def test_ten_thousand_canaries_show_enough_of_a_gaussian_sum(truth):
    """In the mean of 40 runs: standard errors are 0.02 to 0.03."""
    mu = distance(truth)
    runs = [
        audit.training(gaussian_sum(mu, seed=s), epsilon=truth, delta=DELTA, seed=s)
        for s in range(40)
    ]
    assert np.mean([found.epsilon_lower for found in runs]) >= TARGETS[truth] - 0.01
    assert np.mean([found.gaussian for found in runs]) >= 1.15 * TARGETS[truth]


@pytest.mark.lengthy
@pytest.mark.parametrize("truth", TARGETS)
def test_more_canaries_show_more(truth):
    mu, means = distance(truth), []
    for canaries in (1_000, 10_000, 100_000):
        runs = [
            audit.training(
                gaussian_sum(mu, seed=s), canaries=canaries, epsilon=truth, delta=DELTA, seed=s
            )
            for s in range(6)
        ]
        means.append(
            [np.mean([r.epsilon_lower for r in runs]), np.mean([r.gaussian for r in runs])]
        )
    proved, gaussian = np.transpose(means)
    assert (np.diff(proved) > 0).all(), proved
    assert (np.diff(gaussian) > -0.1).all(), gaussian  # it is near what canaries can show


@pytest.mark.lengthy
def test_the_power_is_what_is_flagged():
    found = audit.training(gaussian_sum(distance(1)), epsilon=1, delta=DELTA, seed=3)
    assert 1 < found.power < 4
    strong, weak = gaussian_sum(distance(1.3 * found.power)), gaussian_sum(distance(1))
    flagged = [
        [audit.training(t, epsilon=1, delta=DELTA).passed for _ in range(20)]
        for t in (strong, weak)
    ]
    assert sum(flagged[0]) <= 10  # of 20 passes, each with a chance of 5% at most
    assert sum(flagged[1]) >= 10


def test_scores_that_know_nothing_have_no_power():
    found = audit.training(gaussian_sum(0.0, seed=1), epsilon=2, delta=DELTA, seed=2)
    assert found.passed
    assert found.epsilon_lower == 0
    assert found.power > 50
    blind = audit.training(np.zeros_like, epsilon=2, delta=DELTA, canaries=100)
    assert math.isinf(blind.power)
    assert "nothing is learned" in str(blind)


# Broken trainers ------------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_trainer_is_convicted_and_the_honest_one_is_not(name):
    """Mistakes are large here: at this confidence, half the noise would pass."""

    def judged(trainer):
        return audit.training(
            trainer, loss=trainer.claim, delta=DELTA, canaries=20_000, confidence=1 - FALSE_ALARM
        )

    mistake = BROKEN[name]
    assert mistake.trainer.claim == mistake.honest.claim
    broken, honest = judged(mistake.trainer), judged(mistake.honest)
    assert not broken.passed, broken
    assert honest.passed, honest


def test_there_are_enough_of_them():
    assert len(BROKEN) >= 10


def test_many_trials_find_what_canaries_hide_from_each_other():
    """Dividing by the realised size moves the mean of all others, once however many there are."""
    rng = np.random.default_rng()

    def step(divided_by_realised_size):
        def score(is_in, runs):
            sums = np.array([is_in, 9.0]) + rng.normal(scale=2, size=(runs, 2))
            size = 9 + is_in if divided_by_realised_size else 10
            return (sums @ [1, -1] if divided_by_realised_size else sums[:, 0]) / size

        return score

    claimed = epsilon(GaussianLoss(noise_multiplier=2), delta=0.05)

    def judged(fn):
        return audit.mechanism(
            fn,
            pair=(True, False),
            epsilon=claimed,
            delta=0.05,
            samples=200_000,
            confidence=1 - FALSE_ALARM,
            batch=True,
        )

    assert judged(step(False)).passed
    assert not judged(step(True)).passed


# Edges ----------------------------------------------------------------------------------------


def test_a_failed_curve_says_so():
    # At such a confidence no epsilon can be proved: all may be revealed with chance m delta / k.
    found = audit.training(
        lambda included: included,
        loss=GaussianLoss(noise_multiplier=2),
        delta=DELTA,
        confidence=1 - FALSE_ALARM,
        canaries=20_000,
    )
    assert not found.passed
    assert "refutes the whole curve" in str(found)


def test_train_is_called_once_and_can_not_change_the_coins():
    calls = []

    def train(included):
        calls.append(included.copy())
        included[:] = True
        return np.arange(len(included), dtype=float)

    found = audit.training(train, epsilon=1, delta=0, canaries=100, seed=4)
    again = audit.training(train, epsilon=1, delta=0, canaries=100, seed=4)
    assert len(calls) == 2
    assert (calls[0] == calls[1]).all()
    assert found == again
    assert found.gaussian is None
    assert found.epsilon_lower < 1


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"loss": PureLoss(epsilon=1)}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"canaries": 5}, "canaries"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_bad_parameters_are_named_before_anything_is_trained(bad, name):
    def never(included):
        raise AssertionError("train must not be called")

    with pytest.raises(ParameterError) as caught:
        audit.training(never, **{"epsilon": 1, "delta": 0} | bad)
    assert caught.value.parameter == name


class WantsGradients:
    def __array__(self, *args, **kwargs):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_scores_must_be_one_number_each():
    for answer in (np.zeros(3), "no", np.zeros((100, 2)), None, WantsGradients()):
        with pytest.raises(DataError, match="one number for each of the 100 canaries"):
            audit.training(lambda included, answer=answer: answer, epsilon=1, delta=0, canaries=100)
    broken_down = audit.training(
        lambda included: np.where(included, math.nan, 0.0), epsilon=1, delta=0, canaries=100
    )
    assert not broken_down.passed
    assert GaussianShape(0.0).epsilon(delta=DELTA) == 0
