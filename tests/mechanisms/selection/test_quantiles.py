"""Private quantiles: exact laws on small grids, losses, errors, ties, refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet import audit
from discreet.accounting import BoundedRangeLoss, PureLoss, ZCDPLoss
from discreet.errors import DataError, ParameterError
from discreet.mechanisms.selection import quantiles
from discreet.mechanisms.selection import ranks as _ranks
from discreet.mechanisms.selection.quantile import Quantile
from discreet.mechanisms.selection.quantiles import Quantiles
from discreet.noise import SYSTEM
from discreet.testing import cdf_gap, dkw_band

FALSE_ALARM = 1e-9  # chance that a correct mechanism fails one of these tests


def score(point, values, q):
    """How many records a point misses the quantile by, straight from the definition."""
    n = len(values)
    below, above = sum(v < point for v in values), sum(v > point for v in values)
    return -max(0, below - q * n, above - (1 - q) * n)


def law(values, q, points, rate):
    weights = np.array([math.exp(rate * score(point, values, q)) for point in points])
    return weights / weights.sum()


small_data = st.lists(st.integers(0, 5), max_size=7)
shares = st.sampled_from([Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3)])


def one(q=0.5, high=5, neighbours="add_remove", epsilon=1):
    return Quantile(quantile=q, low=0, high=high, grid=1, epsilon=epsilon, neighbours=neighbours)


@given(values=small_data, extra=st.integers(0, 5), q=shares)
def test_adding_a_record_costs_a_range_of_epsilon(values, extra, q):
    rate = float(one(q)._rate(q))
    losses = np.log(law(values, q, range(6), rate) / law([*values, extra], q, range(6), rate))
    assert np.ptp(losses) <= 1 + 1e-9


@given(values=small_data, old=st.integers(0, 5), new=st.integers(0, 5), q=shares)
def test_replacing_a_record_costs_a_range_of_epsilon(values, old, new, q):
    rate = float(one(q, neighbours="replace_one")._rate(q))
    first, second = [*values, old], [*values, new]
    losses = np.log(law(first, q, range(6), rate) / law(second, q, range(6), rate))
    assert np.ptp(losses) <= 1 + 1e-9


def test_the_sensitivities_are_attained():
    for q in (Fraction(1, 2), Fraction(9, 10)):
        changes = [
            abs(score(p, list(v), q) - score(p, [*v, x], q))
            for v in itertools.product(range(3), repeat=3)
            for x in range(3)
            for p in range(3)
        ]
        assert max(changes) == max(q, 1 - q)


@pytest.mark.lengthy
@settings(max_examples=150, deadline=None)
@given(values=small_data, q=shares, low=st.integers(-2, 0), high=st.integers(5, 9))
def test_cells_give_every_point_its_score_and_count_it_once(values, q, low, high):
    cells = {}

    def spy(scores, *, rate, multiplicity, source):
        cells["scores"], cells["counts"] = scores, multiplicity
        return int(np.argmax(multiplicity > 0))

    places = np.sort(np.array(values, dtype=np.int64))
    original = _ranks.exponential_race
    _ranks.exponential_race = spy
    try:
        _ranks.choose(places, first=low, last=high, share=q, rate=1, source=SYSTEM)
    finally:
        _ranks.exponential_race = original
    assert len(cells["scores"]) == 2 * len(values) + 1  # however the values repeat
    found = sorted(
        (Fraction(int(s), q.denominator), int(c))
        for s, c in zip(cells["scores"], cells["counts"], strict=True)
        if c
    )
    totals = {}
    for s, c in found:
        totals[s] = totals.get(s, 0) + c
    expected = {}
    for point in range(low, high + 1):
        value = Fraction(score(point, values, q))
        expected[value] = expected.get(value, 0) + 1
    assert totals == expected


def gap(draws, law):
    ends = np.cumsum(law)
    return cdf_gap(draws, lambda k: np.where(k < 0, 0.0, ends[np.clip(k, 0, len(ends) - 1)]))


def assert_only_the_right_law_fits(draw, right, wrong):
    """Compare as many draws with all laws as it takes to tell them apart, and no more."""
    apart = min(np.abs(np.cumsum(other) - np.cumsum(right)).max() for other in wrong)
    # So many that the laws lie over two bands apart: a wrong one passes as rarely as a right one
    # fails.
    samples = math.ceil(2.1 * math.log(2 / FALSE_ALARM) / apart**2)
    assert samples < 9_000  # or the test would take too long
    draws = [draw() for _ in range(samples)]
    band = dkw_band(samples, false_alarm=FALSE_ALARM)
    assert gap(draws, right) <= band
    assert all(gap(draws, other) > band for other in wrong)


@pytest.mark.lengthy
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_results_follow_the_law_and_a_wrong_epsilon_would_show(neighbours):
    values = [3, 3, 8, 9, 15, 15, 15, 19, 30, -4]
    clipped = np.clip(values, 0, 20).tolist()
    q, points = Fraction(3, 10), range(21)
    mechanism = one(q, high=20, neighbours=neighbours)
    rate = 1 / (2 * 0.7) if neighbours == "add_remove" else 0.5
    laws = [law(clipped, q, points, factor * rate) for factor in (1, 0.4, 2.5)]
    assert_only_the_right_law_fits(lambda: int(mechanism.release(values)), laws[0], laws[1:])


def test_zeroing_out_is_drawn_like_replacing():
    for q in (Fraction(3, 10), Fraction(1, 2)):
        assert one(q, neighbours="zero_out")._rate(q) == one(q, neighbours="replace_one")._rate(q)
    three = [several(n)._rate(Fraction(1, 4)) for n in ("zero_out", "replace_one")]
    assert three[0] == three[1]


@pytest.mark.lengthy
def test_a_scale_wrong_by_a_fifth_would_show():
    # Twelve records in the middle of a long grid: the weight of the single best point decides.
    values, q = [50] * 12, Fraction(1, 2)
    right, *wrong = (law(values, q, range(101), rate) for rate in (1.0, 0.8, 1.2))
    mechanism = one(q, high=100)
    # Sorted by how much it tells: the best point first.
    number = [50, *(i for i in range(101) if i != 50)]
    place = {point: i for i, point in enumerate(number)}
    assert_only_the_right_law_fits(
        lambda: place[int(mechanism.release(values))], right[number], [w[number] for w in wrong]
    )


def quantiles_law(values, wanted, first, last, bounds, rates):
    """Pr[all results] of the bisection on whole numbers, by recursion."""
    if not wanted:
        return {(): 1.0}
    middle = len(wanted) // 2
    below, upto = bounds
    share = (wanted[middle] - below) / (upto - below)
    chances = law(values, share, range(first, last + 1), rates(share))
    total = {}
    for point, chance in zip(range(first, last + 1), chances, strict=True):
        left = quantiles_law(
            [v for v in values if v < point],
            wanted[:middle],
            first,
            point,
            (below, wanted[middle]),
            rates,
        )
        right = quantiles_law(
            [v for v in values if v >= point],
            wanted[middle + 1 :],
            point,
            last,
            (wanted[middle], upto),
            rates,
        )
        for (a, p), (b, r) in itertools.product(left.items(), right.items()):
            total[(*a, point, *b)] = chance * p * r
    return total


QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]


def several(neighbours="add_remove", wanted=QUARTILES, high=3, epsilon=1):
    return Quantiles(
        quantiles=wanted, low=0, high=high, grid=1, epsilon=epsilon, neighbours=neighbours
    )


def law_of(mechanism, values):
    high = int(mechanism.high)
    return quantiles_law(
        values,
        list(mechanism.quantiles),
        0,
        high,
        (Fraction(0), Fraction(1)),
        lambda share: float(mechanism._rate(share)),
    )


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 3), max_size=5), extra=st.integers(0, 3))
def test_several_leak_no_more_than_epsilon_when_a_record_is_added(values, extra):
    before, after = law_of(several(), values), law_of(several(), [*values, extra])
    assert sum(before.values()) == pytest.approx(1)
    assert max(abs(math.log(p / after[o])) for o, p in before.items()) <= 1 + 1e-9


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 3), max_size=4), old=st.integers(0, 3), new=st.integers(0, 3))
def test_several_leak_no_more_than_epsilon_when_a_record_is_replaced(values, old, new):
    mechanism = several("replace_one")
    before, after = law_of(mechanism, [*values, old]), law_of(mechanism, [*values, new])
    assert max(abs(math.log(p / after[o])) for o, p in before.items()) <= 1 + 1e-9


@pytest.mark.lengthy
def test_several_follow_their_law_and_a_wrong_epsilon_would_show(monkeypatch):
    monkeypatch.setattr(quantiles, "_JITTER_BITS", 0)
    values = [0, 1, 1, 2, 5, 5, 5, 5, 4, 3]
    mechanism = several(high=5, epsilon=6)
    laws = [law_of(several(high=5, epsilon=e), values) for e in (6, 4.2, 8.5)]
    # Any order will do for a distribution function; this one tells the laws apart best.
    outcomes = sorted(laws[0], key=lambda o: laws[1][o] / laws[0][o])
    number = {outcome: i for i, outcome in enumerate(outcomes)}
    right, *wrong = ([law[o] for o in outcomes] for law in laws)
    assert_only_the_right_law_fits(
        lambda: number[tuple(mechanism.release(values).astype(int))], right, wrong
    )


@pytest.mark.lengthy
@given(
    values=st.lists(st.floats(-1e6, 1e6), max_size=30),
    wanted=st.lists(st.integers(1, 99), min_size=1, max_size=9, unique=True),
)
def test_results_never_decrease_and_stay_on_the_grid(values, wanted):
    wanted = [Fraction(w, 100) for w in sorted(wanted)]
    found = Quantiles(
        quantiles=wanted, low=-1, high=2, grid=0.25, epsilon=1, neighbours="add_remove"
    ).release(values)
    assert found.shape == (len(wanted),)
    assert (np.diff(found) >= 0).all()
    assert ((found >= -1) & (found <= 2)).all()
    assert (found * 4 == np.round(found * 4)).all()


def test_heavy_ties_are_split_by_rank():
    # 45% zeros, 50% ones, 5% nines: quartiles 0, 1, 1 and the 97th hundredth 9. Epsilon is large
    # enough for a failure to be rarer than FALSE_ALARM.
    values = [0] * 4500 + [1] * 5000 + [9] * 500
    found = several(wanted=[0.25, 0.5, 0.75, 0.97], high=10, epsilon=40).release(values)
    assert found.tolist() == [0, 1, 1, 9]
    assert several(high=10, epsilon=40).release([7] * 10_000).tolist() == [7, 7, 7]


@pytest.mark.parametrize(("count", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)])
def test_levels_and_costs(count, levels):
    wanted = [Fraction(i + 1, count + 1) for i in range(count)]
    mechanism = several(wanted=wanted)
    assert mechanism.levels == levels == math.ceil(math.log2(count + 1))
    assert mechanism.loss == PureLoss(epsilon=1)
    assert mechanism.zcdp_loss == ZCDPLoss(rho=Fraction(1, 8 * levels))
    assert one().loss == BoundedRangeLoss(epsilon=1)


def ranks_missed(results, wanted, values):
    ordered = np.sort(values)
    below = np.searchsorted(ordered, results, side="left")
    upto = np.searchsorted(ordered, results, side="right")
    rank = np.array([float(w) for w in wanted]) * len(values)
    return np.maximum(0, np.maximum(below - rank, rank - upto)).max()


@pytest.mark.lengthy
def test_errors_are_kept():
    values = np.arange(5000) * 7 % 1001
    single = one(0.3, high=1000)
    many = several(wanted=[0.1, 0.3, 0.5, 0.7, 0.9], high=1000)
    runs = 300
    # Hoeffding: below 0.9 - band with probability at most FALSE_ALARM.
    floor = 0.9 - math.sqrt(math.log(1 / FALSE_ALARM) / (2 * runs))
    for mechanism, wanted in ((single, [0.3]), (many, many.quantiles)):
        t = mechanism.error(confidence=0.9)
        kept = sum(
            ranks_missed(mechanism.release(values), wanted, values) <= t for _ in range(runs)
        )
        assert kept / runs >= floor


def test_single_error_is_attained():
    # n records at one point of a grid of 101: all other points miss the median by n / 2.
    t = one(high=100).error(confidence=0.9)
    chances = law([50] * math.ceil(2 * t), Fraction(1, 2), range(101), 1.0)
    assert 0.9 <= chances[50] < 0.95


def test_calibration_reaches_the_error():
    common = {"low": 0, "high": 100, "grid": 1, "neighbours": "add_remove"}
    single = Quantile.calibrated(error=40, confidence=0.9, quantile=0.3, **common)
    assert 40 * (1 - 1e-9) < single.error(confidence=0.9) <= 40
    many = Quantiles.calibrated(error=400, confidence=0.9, quantiles=(0.3, 0.4), **common)
    assert 400 * (1 - 1e-9) < many.error(confidence=0.9) <= 400


# Under add/remove one more record lifts the 800 points above 509 and lowers the 500 between.
SPREAD = ([10, 509], [10, 509, 1309])


@pytest.mark.lengthy
def test_the_audit_passes_and_half_the_claim_would_fail():
    found = audit.mechanism(
        one(high=1309, epsilon=4).release,
        pair=SPREAD,
        epsilon=4,
        delta=0,
        samples=7_000,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 2  # the exact loss of the best event is 3.0


@pytest.mark.lengthy
def test_the_audit_of_several_passes_and_it_has_teeth():
    mechanism = several(wanted=[Fraction(1, 4), Fraction(1, 2)], high=1309, epsilon=8)
    found = audit.mechanism(
        lambda values: float(mechanism.release(values)[1]),
        pair=SPREAD,
        epsilon=8,
        delta=0,
        samples=3_500,
        confidence=1 - FALSE_ALARM,
    )
    assert found.passed, found
    assert found.epsilon_lower > 1.5  # the median is drawn at half of the budget


@pytest.mark.lengthy
def test_no_data_gives_a_uniform_point():
    uniform = np.full(6, 1 / 6)
    tilted = np.array([2, 2, 2, 1, 1, 1]) / 9
    assert_only_the_right_law_fits(lambda: int(one().release([])), uniform, [tilted])
    assert one().release(np.array([], dtype=np.int64)) in range(6)


# Integers of any size ---------------------------------------------------------------------------

NOON = 1_700_000_000 * 10**9  # nanoseconds, far beyond 2**53


def test_integers_beyond_doubles_keep_their_place():
    hour = 3600 * 10**9
    mechanism = Quantile(
        quantile=0.5,
        low=NOON,
        high=NOON + 24 * hour,
        grid=hour,
        epsilon=50,
        neighbours="add_remove",
    )
    times = NOON + 7 * hour + np.arange(1000)
    # A miss needs a point 500 records off to win: exp(-12500).
    assert mechanism.release(times) == float(NOON + 7 * hour)
    nanosecond = Quantile(
        quantile=0.5, low=NOON, high=NOON + 100, grid=1, epsilon=50, neighbours="add_remove"
    )
    assert _ranks.places(
        np.array([NOON - 1, NOON + 3, NOON + 4]), NOON, NOON + 100, 1
    ).tolist() == [
        0,
        3,
        4,
    ]
    assert nanosecond.release([NOON + 41] * 1000) == float(NOON + 41)


def places_by_definition(values, low, high, grid):
    last = (Fraction(high) - Fraction(low)) / Fraction(grid)
    rounded = (math.floor((v - Fraction(low)) / Fraction(grid) + Fraction(1, 2)) for v in values)
    return [max(0, min(int(last), place)) for place in rounded]


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-50, 50), max_size=8),
    low=st.integers(-(2**65), 2**65) | st.fractions(-60, 60, max_denominator=999),
    grid=st.fractions(Fraction(1, 999), 9, max_denominator=999)
    | st.integers(1, 2**40)
    | st.floats(2.0**-30, 2.0**30),
    steps=st.integers(0, 2**40 - 1) | st.integers(0, 99),
)
@example(values=[], low=0, grid=1e-9, steps=0)  # one point only, and a fine grid
@example(values=[0, 5], low=0, grid=1e-9, steps=0)
def test_integers_are_rounded_to_the_grid_exactly(values, low, grid, steps):
    high = Fraction(low) + steps * Fraction(grid)
    found = _ranks.places(np.array(values, dtype=np.int64), low, high, grid)
    assert found.tolist() == places_by_definition(values, low, high, grid)


def test_fractions_and_floats_of_the_grid():
    cents = Quantile(
        quantile=0.5, low=0, high=1, grid=Fraction(1, 100), epsilon=1000, neighbours="add_remove"
    )
    assert cents.release([0.25] * 100) == 0.25
    assert one(q=0.1)._rate(Fraction(1, 10)) == Fraction(1) / Fraction(18, 10)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        one(epsilon=epsilon)
    with pytest.raises(ParameterError, match="epsilon"):
        several(epsilon=epsilon)


@pytest.mark.parametrize("q", [0, 1, -0.5, math.nan, True, 1e-9, "x"])
def test_bad_quantile(q):
    with pytest.raises(ParameterError, match="quantile"):
        one(q)
    with pytest.raises(ParameterError, match="quantiles"):
        several(wanted=[q])


@pytest.mark.parametrize("wanted", [[], [0.5, 0.5], [0.6, 0.5], 3, "0.5"])
def test_bad_lists_of_quantiles(wanted):
    with pytest.raises(ParameterError, match="quantiles"):
        several(wanted=wanted)


@pytest.mark.parametrize(
    ("bounds", "name"),
    [
        ({"low": 2, "high": 1}, "high"),
        ({"grid": 0}, "grid"),
        ({"grid": 0.3}, "grid"),
        ({"grid": 2.0**-60}, "grid"),
        ({"low": math.nan}, "low"),
        ({"high": math.inf}, "high"),
        ({"high": 10**400}, "high"),
        ({"low": 1, "high": 1, "grid": Fraction(1, 10**400)}, "grid"),
        ({"neighbours": "friends"}, "neighbours"),
    ],
)
def test_bad_bounds(bounds, name):
    common = {"low": 0, "high": 1, "grid": 1, "epsilon": 1, "neighbours": "add_remove"} | bounds
    with pytest.raises(ParameterError, match=name):
        Quantile(quantile=0.5, **common)
    with pytest.raises(ParameterError, match=name):
        Quantiles(quantiles=[0.5], **common)


@pytest.mark.parametrize("values", [3.0, [[1.0]], [math.nan], [math.inf], ["a"], [None]])
def test_bad_values_are_refused_before_anything_is_drawn(values, no_randomness):
    with pytest.raises(DataError):
        one().release(values, source=no_randomness)
    with pytest.raises(DataError):
        several().release(values, source=no_randomness)
