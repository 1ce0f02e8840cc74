"""Partition selection: the optimal probabilities, reached exactly, and the stability histogram."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import ApproximateLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.histograms.keep_probability import KeepProbability
from discreet.mechanisms.histograms.key_order import in_order
from discreet.mechanisms.histograms.partition_selection import PartitionSelection
from discreet.mechanisms.histograms.stability_histogram import StabilityHistogram, _reach
from discreet.noise import SYSTEM, discrete_laplace

FALSE_ALARM = 1e-9
GOOD = {"epsilon": 1, "delta": 1e-6, "l0": 1}


def recursion(epsilon, delta, n):
    """Return pi(0), ..., pi(n) by the definition, to 60 digits."""
    with mpmath.workdps(60):
        e = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        d = mpmath.mpf(delta.numerator) / delta.denominator
        pi = [mpmath.mpf(0)]
        for _ in range(n):
            pi.append(min(e * pi[-1] + d, 1 - (1 - pi[-1] - d) / e, mpmath.mpf(1)))
        return [Fraction(int(mpmath.floor(p * mpmath.mpf(2) ** 150)), 2**150) for p in pi]


# The probabilities ------------------------------------------------------------------------------

epsilons = st.fractions(Fraction(1, 50), 6, max_denominator=1000)
deltas = st.fractions(Fraction(1, 10**9), Fraction(999, 1000), max_denominator=10**9).filter(bool)


@pytest.mark.lengthy
@settings(max_examples=60, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_probabilities_are_those_of_the_recursion(epsilon, delta):
    pi = KeepProbability(epsilon, delta)
    n = min(2 * pi.turn + 20, 200)
    expected = recursion(epsilon, delta, n)
    assert pi.floats(np.arange(n + 1)) == pytest.approx([float(p) for p in expected], rel=1e-12)
    for users in {0, 1, 2, 3, pi.turn - 1, pi.turn, pi.turn + 1, 2 * pi.turn, n} & set(range(n)):
        exactly = Fraction(pi.chance(users)(100), 2**100)
        assert abs(exactly - expected[users]) <= Fraction(2, 2**100)


@settings(max_examples=60, deadline=None)
@given(epsilon=epsilons, delta=deltas, users=st.integers(0, 300))
def test_neighbouring_probabilities_are_private(epsilon, delta, users):
    # Both outcomes, both directions, with the sampler's own probabilities to 200 bits.
    pi = KeepProbability(epsilon, delta)
    p, q = (Fraction(pi.chance(n)(200), 2**200) for n in (users, users + 1))
    slack = Fraction(1, 2**180)
    with mpmath.workdps(80):
        e = Fraction(str(mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)))
    for left, right in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
        assert left <= e * right + delta + slack
    assert p <= q


def test_truncated_geometric_noise_and_a_threshold_give_the_same():
    # Where the turning point is reached exactly, keeping n + noise > k is the optimal strategy.
    epsilon, k = 1.0, 6
    x = np.arange(-k, k + 1)
    weight = np.exp(-epsilon * np.abs(x))
    weight /= weight.sum()
    delta = float(weight[-1])
    # The smallest change of delta that no rounding of this number can undo.
    pi = KeepProbability(Fraction(epsilon), Fraction(delta * (1 - 1e-12)))
    for n in range(2 * k + 3):
        assert pi.floats(np.array([n]))[0] == pytest.approx(weight[n + x > k].sum(), rel=1e-9)


def test_no_larger_probability_would_be_private():
    selection = PartitionSelection(epsilon=1, delta=1e-3, l0=1)
    pi = selection.keep_probability(np.arange(40))
    for n in range(30):
        larger = min(1.0, pi[n + 1] * (1 + 1e-9) + 1e-12)
        is_private = larger <= math.e * pi[n] + 1e-3 and 1 - pi[n] <= math.e * (1 - larger) + 1e-3
        assert pi[n + 1] == 1 or not is_private


# The coins --------------------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("margin", [2.0**-36, 1.0])
def test_partitions_are_kept_as_often_as_they_should(margin):
    # A margin of 1 sends every decision through integer arithmetic.
    pi = KeepProbability(Fraction(1, 2), Fraction(1, 100), margin=margin)
    runs = 300_000 if margin < 1 else 3_000
    for users in (1, 4, 7, 12):
        share = pi.select(np.full(runs, users), source=SYSTEM).mean()
        p = float(pi.floats(np.array([users]))[0])
        band = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * runs))
        assert abs(share - p) <= band
        if margin < 1 and users == 7:  # 20% off would show
            assert abs(share - 0.8 * p) > band
            assert abs(share - 1.2 * p) > band


@pytest.mark.parametrize("users", [0, 1, 2, 5, 14, 15, 20, 10**6])
def test_doubles_and_integers_decide_alike(users):
    pi = KeepProbability(Fraction(1), Fraction(1e-6))
    slow = KeepProbability(Fraction(1), Fraction(1e-6), margin=1.0)

    class Near:
        """Gives words just below and just above pi, where the two ways might differ."""

        is_secure = False

        def read(self, n, /):
            floor = min(pi.chance(users)(64), 2**64 - 1)
            offsets = [-(2**40), -1, 1, 2**40]
            words = [min(max(floor + offset, 0), 2**64 - 1) for offset in offsets]
            return np.array(words, dtype="<u8").tobytes() if n == 32 else b"\xff" * n

    counts = np.full(4, users)
    expected = [w < pi.chance(users)(64) for w in np.frombuffer(Near().read(32), "<u8").tolist()]
    assert slow.select(counts, source=Near()).tolist() == expected
    assert pi.select(counts, source=Near()).tolist() == expected


def test_empty_partitions_are_never_kept_and_large_ones_always():
    selection = PartitionSelection(epsilon=1, delta=0.4, l0=2)
    counts = np.array([[0, 0, 10**6], [2**63 - 1, 0, 0]])
    for _ in range(200):
        kept = selection.select(counts)
        assert kept.tolist() == (counts > 0).tolist()
    assert selection.select(0) is False
    assert selection.select(10**9) is True
    assert selection.select(np.zeros(0, dtype=np.int64)).size == 0


def test_several_partitions_share_the_budget():
    one = PartitionSelection(epsilon=Fraction(1, 4), delta=Fraction(1, 400), l0=1)
    four = PartitionSelection(epsilon=1, delta=Fraction(1, 100), l0=4)
    n = np.arange(200)
    assert (one.keep_probability(n) == four.keep_probability(n)).all()
    assert four.loss == ApproximateLoss(epsilon=1, delta=Fraction(1, 100))


def test_kept_from_is_the_smallest_number_that_will_do():
    for confidence in (1e-7, 0.01, 0.5, 0.999):
        selection = PartitionSelection(epsilon=0.3, delta=1e-6, l0=2)
        n = selection.kept_from(confidence=confidence)
        before, at = selection.keep_probability([n - 1, n])
        assert before < confidence <= at


def test_selection_passes_the_audit_and_a_smaller_delta_fails():
    selection = PartitionSelection(epsilon=0.5, delta=0.05, l0=2)

    def run(counts, runs):
        return selection.select(np.tile(counts, (runs, 1))) @ np.array([1, 2])

    of = {"epsilon": 0.5, "batch": True, "confidence": 1 - FALSE_ALARM, "samples": 200_000}
    for pair in (((0, 0), (1, 1)), ((3, 5), (4, 6))):
        assert audit.mechanism(run, pair=pair, delta=0.05, **of).passed
    assert not audit.mechanism(run, pair=((0, 0), (1, 1)), delta=0.02, **of).passed


# The stability histogram ------------------------------------------------------------------------


@pytest.mark.lengthy
@given(scale=st.fractions(Fraction(1, 20), 500), share=st.fractions(Fraction(1, 10**12), 1))
def test_the_threshold_is_the_smallest_that_hides_a_lonely_key(scale, share):
    share = min(share, Fraction(49, 100)) or Fraction(1, 2)
    m = _reach(scale, share)
    with mpmath.workdps(60):
        r = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        limit = mpmath.mpf(share.numerator) / share.denominator
        assert r**m / (1 + r) <= limit
        assert m == 1 or r ** (m - 1) / (1 + r) > limit


@pytest.mark.parametrize(("l0", "linf"), [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_the_histogram_is_private_on_every_event(l0, linf):
    """Sum exactly: one shared key that grows by linf, the others new with count linf each.

    Outputs of different keys are independent, so the divergence is a sum over products; per key it
    suffices to tell "hidden" from each shown count.
    """
    epsilon, delta = 1.0, 0.02
    mechanism = StabilityHistogram(epsilon=1, delta=Fraction(1, 50), l0=l0, linf=linf)
    scale, threshold = float(mechanism.mechanism.scale), mechanism.threshold
    r = math.exp(-1 / scale)
    shown = np.arange(threshold, threshold + int(60 * scale))

    def law(count):
        """Probabilities of "hidden" and of each shown count for a key that is there."""
        at = (1 - r) / (1 + r) * np.exp(-np.abs(shown - count) / scale)
        return np.concatenate([[1 - at.sum()], at])

    absent = np.zeros(shown.size + 1)
    absent[0] = 1.0
    for base in (1, threshold - linf, threshold, threshold + 5):
        keys = l0 - 1  # new keys next to the one that both have
        before, after = law(base), law(base + linf)
        # All new keys hidden, or not: on the first datasets only the former can happen.
        hidden = law(linf)[0] ** keys
        worst = np.maximum(after * hidden - math.exp(epsilon) * before, 0).sum() + (1 - hidden)
        assert worst <= delta + 1e-12
        assert np.maximum(before - math.exp(epsilon) * after * hidden, 0).sum() <= delta + 1e-12
    hidden = law(linf)[0] ** l0  # all keys new
    assert 1 - hidden <= delta
    assert 1 - math.exp(epsilon) * hidden <= delta


def test_a_lonely_key_shows_about_as_rarely_as_delta_says():
    mechanism = StabilityHistogram(epsilon=1, delta=0.05, l0=1, linf=1)
    runs = 200_000
    keys, counts = mechanism.release_arrays(np.arange(runs), np.ones(runs, dtype=np.int64))
    band = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * runs))
    r = math.exp(-1)
    assert abs(keys.size / runs - r ** (mechanism.threshold - 1) / (1 + r)) <= band
    assert keys.size / runs <= 0.05 + band
    assert (counts >= mechanism.threshold).all()


def test_counts_get_laplace_noise_and_a_wrong_scale_would_show():
    mechanism = StabilityHistogram(epsilon=0.5, delta=1e-6, l0=1, linf=2)
    n = 100_000
    _, counts = mechanism.release_arrays(np.arange(n), np.full(n, 10_000))
    assert counts.size == n
    reference = discrete_laplace(4, n)
    band = 2 * math.sqrt(math.log(4 / FALSE_ALARM) / (2 * n))  # two samples
    at = np.arange(-40, 41)

    def distance(scale_up):
        ours = np.searchsorted(np.sort(counts - 10_000), at * scale_up, side="right") / n
        theirs = np.searchsorted(np.sort(reference), at, side="right") / n
        return np.abs(ours - theirs).max()

    assert distance(1) <= band
    assert distance(2) > band
    assert mechanism.mechanism.scale == 4


def test_keys_come_out_sorted_whatever_order_they_came_in():
    mechanism = StabilityHistogram(epsilon=1, delta=1e-6, l0=1, linf=1)
    assert list(mechanism.release({"b": 900, "a": 800, "c": 0})) == ["a", "b"]
    assert list(mechanism.release({2: 900, "a": 800, (1,): 700})) == [2, "a", (1,)]
    keys, _ = mechanism.release_arrays(["z", "y", "x"], [0, 900, 900])
    assert keys.tolist() == ["x", "y"]
    assert mechanism.release({}) == {}
    assert mechanism.loss == ApproximateLoss(epsilon=1, delta=1e-6)


class Colour(Enum):
    red = 3
    blue = 1


simple_keys = (
    st.text(max_size=3)
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.binary(max_size=3)
    | st.none()
    | st.dates()
    | st.datetimes()
    | st.uuids()
    | st.sampled_from(Colour)
    | st.sampled_from([np.int64(5), np.float32(2.5), np.str_("x"), np.datetime64("2020-01-01")])
    | st.decimals(allow_nan=False)
    | st.fractions()
)
keys_of_all_kinds = st.recursive(simple_keys, lambda inner: st.lists(inner, max_size=3).map(tuple))


@pytest.mark.lengthy
@given(keys=st.lists(keys_of_all_kinds, max_size=8, unique=True), data=st.data())
def test_the_order_of_keys_depends_on_the_keys_alone(keys, data):
    shuffled = data.draw(st.permutations(keys))
    first = [keys[i] for i in in_order(keys)]
    second = [shuffled[i] for i in in_order(shuffled)]
    assert [(type(key), repr(key)) for key in first] == [(type(key), repr(key)) for key in second]


def aware(hour):
    return datetime(2020, 1, 1, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    "keys",
    [
        [frozenset({1}), frozenset({2})],  # only partly ordered: sorting leaves them as they came
        [math.nan],
        [1.0, math.nan, 0.5],
        [(1, math.nan)],
        [np.float64("nan")],
        [np.datetime64("NaT")],
        [Decimal("NaN")],
        [object(), object()],  # whose repr shows where they lie in memory
        [len],
        [1j, 2j],
        [aware(1), datetime(2020, 1, 1)],  # noqa: DTZ001
        [type("Sub", (str,), {})("a")],  # whose order could be anything
    ],
)
def test_keys_without_an_order_of_their_own_are_refused(keys, no_randomness):
    mechanism = StabilityHistogram(**GOOD, linf=1)
    with pytest.raises(DataError, match="keys must be") as caught:
        mechanism.release(dict.fromkeys(keys, 1000), source=no_randomness)
    assert "0x" not in str(caught.value)
    array = np.empty(len(keys), dtype=object)
    array[:] = keys
    with pytest.raises(DataError, match="keys must be"):
        mechanism.release_arrays(array, [1000] * len(keys), source=no_randomness)


@pytest.mark.parametrize(
    "keys",
    [
        np.array([1.0, math.nan]),
        np.array(["2020", "NaT"], dtype="datetime64[D]"),
        np.array([1j, 2j]),
        np.zeros(2, dtype=[("a", "i4")]),
        np.ma.masked_array([1, 2], mask=[True, False]),
        [[1], [1, 2]],
    ],
)
def test_arrays_without_an_order_are_refused(keys, no_randomness):
    with pytest.raises(DataError, match="keys must"):
        StabilityHistogram(**GOOD, linf=1).release_arrays(keys, [9, 9], source=no_randomness)


def test_objects_in_arrays_are_sorted_too():
    mechanism = StabilityHistogram(**GOOD, linf=1)
    keys, counts = mechanism.release_arrays(
        np.array(["b", 7, "a"], dtype=object), [5000, 6000, 7000]
    )
    assert keys.tolist() == [7, "a", "b"]
    assert np.abs(counts - [6000, 7000, 5000]).max() < 500


def test_a_hidden_key_does_not_show_in_the_width_of_the_others():
    mechanism = StabilityHistogram(**GOOD, linf=1)
    for kind in ("U", "S"):
        names = np.array(["yes", "a-very-long-secret"], dtype=kind)
        keys, _ = mechanism.release_arrays(names, [5000, 0])
        assert keys.tolist() == np.array(["yes"], dtype=kind).tolist()
        assert keys.dtype == np.dtype(f"{kind}3")
        nothing, _ = mechanism.release_arrays(names, [0, 0])
        assert nothing.size == 0
        assert nothing.dtype == np.array([], dtype=kind).dtype


def many_histograms(mechanism):
    """Run a histogram of two keys many times in one call; one number for each run."""

    def run(counts, runs):
        keys = np.arange(2 * runs)
        shown, values = mechanism.release_arrays(keys, np.tile(counts, runs))
        out = np.full(2 * runs, -1)
        out[shown] = values
        return out[::2] * 1000 + out[1::2]

    return run


@pytest.mark.lengthy
def test_the_histogram_passes_the_audit_and_smaller_claims_fail():
    mechanism = StabilityHistogram(epsilon=1, delta=0.05, l0=2, linf=1)
    run = many_histograms(mechanism)
    of = {"batch": True, "confidence": 1 - FALSE_ALARM, "samples": 200_000}
    both_grow, one_new, both_new = ((50, 50), (51, 51)), ((5, 0), (6, 1)), ((0, 0), (1, 1))
    for pair in (both_grow, one_new, both_new):
        assert audit.mechanism(run, pair=pair, epsilon=1, delta=0.05, **of).passed
    assert not audit.mechanism(run, pair=both_grow, epsilon=0.5, delta=0.05, **of).passed
    # Two lonely keys show with chance 0.034 in all: the threshold is a whole number.
    assert not audit.mechanism(run, pair=both_new, epsilon=1, delta=0.025, **of).passed


# Calibration ------------------------------------------------------------------------------------


@pytest.mark.lengthy
@settings(max_examples=25, deadline=None)
@given(
    error=st.integers(1, 500),
    confidence=st.sampled_from([0.5, 0.95, 1 - 1e-9]),
    delta=st.sampled_from([1e-3, 1e-9]),
    l0=st.integers(1, 9),
)
def test_selection_is_calibrated_to_an_error(error, confidence, delta, l0):
    selection = PartitionSelection.calibrated(
        error=error, confidence=confidence, delta=delta, l0=l0
    )
    assert selection.error(confidence=confidence) <= error
    assert selection.keep_probability([error + 1])[0] >= confidence
    if selection.epsilon == l0 * 2.0**-40:
        assert error * delta / l0 > 0.49  # so many users are kept by delta alone
        return
    # A probability of 1 - 1e-9 has seven digits left in a float, and so has the best epsilon.
    less = PartitionSelection(epsilon=selection.epsilon * (1 - 1e-6), delta=delta, l0=l0)
    assert less.error(confidence=confidence) > error


@settings(max_examples=25, deadline=None)
@given(
    error=st.integers(0, 500),
    confidence=st.sampled_from([0.5, 0.95, 1 - Fraction(1, 10**30)]),
    l0=st.integers(1, 9),
    linf=st.integers(1, 9),
)
def test_the_histogram_is_calibrated_to_an_error(error, confidence, l0, linf):
    mechanism = StabilityHistogram.calibrated(
        error=error, confidence=confidence, delta=1e-6, l0=l0, linf=linf
    )
    assert mechanism.error(confidence=confidence) <= error
    smaller = mechanism.epsilon * (1 - 1e-9)
    less = StabilityHistogram(epsilon=smaller, delta=1e-6, l0=l0, linf=linf)
    assert less.error(confidence=confidence) > error


def test_large_errors_get_the_smallest_epsilon_there_is():
    for kind, more in ((PartitionSelection, {}), (StabilityHistogram, {"linf": 1})):
        found = kind.calibrated(error=10**30, confidence=0.9, delta=1e-6, l0=2, **more)
        assert found.epsilon == 2 * 2.0**-40


def test_bad_calibrations_are_named():
    for kind, more in ((PartitionSelection, {}), (StabilityHistogram, {"linf": 1})):
        good = {"error": 9, "confidence": 0.9, "delta": 1e-6, "l0": 1} | more
        for change in ({"error": -1}, {"error": 0.5}, {"confidence": 1}, {"delta": 0}, {"l0": 0}):
            with pytest.raises(ParameterError, match=next(iter(change))):
                kind.calibrated(**(good | change))
    with pytest.raises(ParameterError, match="error"):
        PartitionSelection.calibrated(error=0, confidence=0.9, delta=1e-6, l0=1)


@pytest.mark.lengthy
@pytest.mark.parametrize("power", [0, 20, 400])
def test_thresholds_of_any_size_are_the_smallest(power):
    linf = 10**power
    mechanism = StabilityHistogram(epsilon=np.float32(0.5), delta=np.float32(1e-6), l0=1, linf=linf)
    m = mechanism.threshold - linf
    with mpmath.workdps(1000):
        r = mpmath.exp(-mpmath.mpf(1) / (2 * linf))
        share = mpmath.mpf(float(np.float32(1e-6)))
        assert r**m / (1 + r) <= share < r ** (m - 1) / (1 + r)


# Bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PartitionSelection, StabilityHistogram])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epsilon", 0),
        ("epsilon", 1e-30),
        ("epsilon", 10**400),
        ("epsilon", float("inf")),
        ("delta", 0),
        ("delta", 1),
        ("delta", Fraction(1, 10**301)),
        ("l0", 0),
        ("l0", 0.5),
        ("linf", 0),
    ],
)
def test_bad_parameters_are_named(kind, name, value):
    good = GOOD | ({"linf": 1} if kind is StabilityHistogram else {})
    if name not in good:
        return
    with pytest.raises(ParameterError, match=name) as caught:
        kind(**(good | {name: value}))
    assert caught.value.parameter == name


@pytest.mark.parametrize("counts", [[-1], [0.5], ["a"], None, [float("nan")], [True]])
def test_bad_counts_are_refused_before_anything_is_drawn(counts, no_randomness):
    selection = PartitionSelection(**GOOD)
    with pytest.raises(DataError):
        selection.select(counts, source=no_randomness)
    with pytest.raises(AssertionError):
        selection.select([1], source=no_randomness)
    if counts is None or counts == [-1]:
        return
    mechanism = StabilityHistogram(**GOOD, linf=1)
    with pytest.raises(DataError):
        mechanism.release({"key": counts[0]}, source=no_randomness)
    with pytest.raises(DataError):
        mechanism.release_arrays(["key"], counts, source=no_randomness)


def test_keys_and_counts_must_match(no_randomness):
    mechanism = StabilityHistogram(**GOOD, linf=1)
    with pytest.raises(DataError, match="equally long"):
        mechanism.release_arrays(["a", "b"], [1], source=no_randomness)
    with pytest.raises(DataError, match="distinct"):
        mechanism.release_arrays(["a", "a"], [1, 2], source=no_randomness)
