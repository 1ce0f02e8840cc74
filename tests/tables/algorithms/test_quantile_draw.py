"""Weighted quantiles and extremes: exact laws on tiny grids, privacy, ranks, coverage."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import BoundedRangeLoss
from discreet.errors import DataError, ParameterError
from discreet.tables.algorithms import rank_candidates
from discreet.tables.algorithms.quantile_draw import Ranks
from discreet.tables.algorithms.rank_candidates import Candidates, by_group
from discreet.tables.model.bounds import WEIGHT_STEPS

FALSE_ALARM = 1e-9
POINTS = 5
QUANTILES = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 4), Fraction(1, 3)]


def as_group(table):
    """Return sorted places and weights from a list of steps per place."""
    places = np.flatnonzero(np.asarray(table) > 0)
    return places.astype(np.int64), np.asarray(table, dtype=np.int64)[places]


def law(monkeypatch, ranks, table, ask):
    """Return the exact log-probability of each place, from what is handed to the sampler."""
    seen = {}

    def capture(score, *, rate, multiplicity, source):
        seen["weights"] = [
            (float(rate * int(s)), int(m)) for s, m in zip(score, multiplicity, strict=True)
        ]
        return int(np.flatnonzero(multiplicity)[0])

    monkeypatch.setattr(rank_candidates, "exponential_race", capture)
    places, weights = as_group(table)
    ask(ranks, places, weights)
    group = Candidates.of(places, weights, ranks.points)
    exponents = np.full(ranks.points, np.nan)
    for (exponent, size), start in zip(seen["weights"], group.start.tolist(), strict=True):
        exponents[start : start + size] = exponent
    assert not np.isnan(exponents).any()
    return exponents - np.log(np.sum(np.exp(exponents)))


def median_of(q):
    return lambda ranks, places, weights: ranks.quantile(places, weights, q=q)


def extreme_of(kind):
    return lambda ranks, places, weights: ranks.extreme(places, weights, kind=kind, confidence=0.9)


ASKS = [*map(median_of, QUANTILES), extreme_of("minimum"), extreme_of("maximum")]


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("shift", [0, Fraction(-3, 2), 40])
def test_scores_are_those_of_the_definition(monkeypatch, q, shift):
    ranks = Ranks(epsilon=Fraction(1, 3), limit=2, points=POINTS, neighbours="add_remove")
    for table in ([0, 0, 0, 0, 0], [3, 0, 5, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 9]):
        steps = [n * WEIGHT_STEPS + n for n in table]
        found = law(
            monkeypatch, ranks, steps,
            lambda one, places, weights: one.quantile(places, weights, q=q, shift=shift),
        )  # fmt: skip
        total, scores = Fraction(sum(steps), WEIGHT_STEPS), []
        for p in range(POINTS):
            below = Fraction(sum(steps[:p]), WEIGHT_STEPS)
            above = Fraction(sum(steps[p + 1 :]), WEIGHT_STEPS)
            scores.append(-max(0, below - q * total - shift, above - (1 - q) * total + shift))
        rate = Fraction(1, 3) / (2 * 2 * max(q, 1 - q))
        exponents = np.array([float(rate * score) for score in scores])
        assert found == pytest.approx(exponents - np.log(np.exp(exponents).sum()), abs=1e-9)


@st.composite
def neighbours(draw):
    """Return the tables of two groups, and two units that weigh at most ``limit`` steps in all."""
    limit = draw(st.integers(1, 6))
    base = draw(st.lists(st.integers(0, 9), min_size=2 * POINTS, max_size=2 * POINTS))
    units = []
    for _ in range(2):
        unit, left = [0] * (2 * POINTS), limit
        for place in draw(st.lists(st.integers(0, 2 * POINTS - 1), max_size=limit)):
            if left:
                unit[place] += 1
                left -= 1
        units.append(unit)
    return limit, base, units


@pytest.mark.lengthy
@pytest.mark.parametrize("index", range(len(ASKS)))
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("groups", [1, 2])
def test_privacy_loss_of_all_groups_together_spans_at_most_epsilon(
    monkeypatch, index, relation, groups
):
    """Log-ratios over all pairs of outcomes, for weights as small as single steps."""

    @settings(max_examples=40, deadline=None)
    @given(case=neighbours())
    def check(case):
        limit, base, units = case
        if groups == 1:
            units = [unit[:POINTS] + [0] * POINTS for unit in units]
        first = np.array(base) + (units[0] if relation == "replace_one" else 0)
        second = np.array(base) + units[1]
        # A step is the unit of weight here: the limit is as many steps.
        ranks = Ranks(
            epsilon=1, limit=Fraction(limit, WEIGHT_STEPS), points=POINTS, neighbours=relation,
            is_single=groups == 1,
        )  # fmt: skip
        spans = 0.0
        for part in (slice(0, POINTS), slice(POINTS, None)):
            ratio = law(monkeypatch, ranks, first[part], ASKS[index]) - law(
                monkeypatch, ranks, second[part], ASKS[index]
            )
            spans += ratio.max() - ratio.min()
        assert spans <= 1 + 1e-9

    check()


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("relation", "is_single", "changes"),
    [
        ("add_remove", False, [((0, 0, 0), (0, 0, 6)), ((0, 0, 0), (6, 0, 0))]),
        ("replace_one", True, [((6, 0, 0), (0, 0, 6)), ((0, 6, 0), (0, 0, 6))]),
    ],
)
def test_claimed_span_is_attained(monkeypatch, relation, is_single, changes):
    """A larger rate would break the claim: some neighbours use all of epsilon."""
    ranks = Ranks(epsilon=1, limit=Fraction(6, WEIGHT_STEPS), points=3, neighbours=relation,
                  is_single=is_single)  # fmt: skip
    for ask in (ASKS[0], ASKS[1], ASKS[5]):
        spans = []
        for base in itertools.product(range(0, 61, 12), repeat=3):
            for first, second in changes:
                ratio = law(monkeypatch, ranks, np.add(base, first), ask) - law(
                    monkeypatch, ranks, np.add(base, second), ask
                )
                spans.append(ratio.max() - ratio.min())
        assert max(spans) <= 1 + 1e-9
        assert max(spans) >= 0.8


@pytest.mark.lengthy
def test_draws_follow_the_law(monkeypatch):
    ranks = Ranks(epsilon=1, limit=2, points=POINTS, neighbours="add_remove")
    table = [2 * WEIGHT_STEPS, 0, 0, 3 * WEIGHT_STEPS, 0]
    with monkeypatch.context() as patched:
        wanted = np.exp(law(patched, ranks, table, median_of(Fraction(1, 2))))
    count = 6000
    places, weights = as_group(table)
    drawn = [ranks.quantile(places, weights, q=Fraction(1, 2)) for _ in range(count)]
    shares = np.bincount(drawn, minlength=POINTS) / count
    band = math.sqrt(math.log(2 * POINTS / FALSE_ALARM) / (2 * count))  # Hoeffding, each share
    assert np.abs(shares - wanted).max() <= band


@pytest.mark.lengthy
def test_intervals_cover_all_quantiles_as_often_as_stated():
    rng = np.random.default_rng()
    ranks = Ranks(epsilon=3, limit=3, points=1001, neighbours="replace_one")
    count, confidence, missed, widths = 400, 0.9, 0, []
    for _ in range(count):
        places = np.sort(rng.choice(1001, size=300, replace=False)).astype(np.int64)
        weights = rng.integers(1, 6 * WEIGHT_STEPS, size=300)
        total, ends = weights.sum(), np.cumsum(weights)
        q = Fraction(int(rng.integers(1, 4)), 4)
        low = places[np.searchsorted(ends, float(q) * total)]
        rows = Fraction(int(total), WEIGHT_STEPS)
        found = ranks.interval(places, weights, q=q, confidence=confidence, rows=rows)
        if found.low is not None and found.high is not None:
            missed += not found.low <= low <= found.high
            widths.append(found.high - found.low)
        assert (found.low is None) == (q * rows < ranks.interval_shift(q=q, confidence=confidence))
    # Binomial(400, 0.1) exceeds 85 with a chance below 1e-9.
    assert missed <= 85
    assert len(widths) > 200
    assert np.median(widths) < 700


@pytest.mark.lengthy
@pytest.mark.parametrize("is_low", [True, False])
def test_intervals_cover_quantiles_of_rows_that_are_lost(is_low):
    """A fifth of the rows is lost, all at one end; without a word of it, the median is missed."""
    rng = np.random.default_rng()
    ranks = Ranks(epsilon=3, limit=1, points=1001, neighbours="add_remove")
    places, weights = np.arange(1001), np.full(1001, 10 * WEIGHT_STEPS)
    lost = 2_500
    true = 375 if is_low else 625  # of 12,510 rows, of which 2,500 are at the end
    said, unsaid = [], []
    for _ in range(50):
        asked = {"q": Fraction(1, 2), "confidence": 0.9, "rows": 9_000}
        end = int(rng.integers(0, lost + 1))  # fewer may be lost than are allowed for
        inner = 500 + (end // 40 if not is_low else -(end // 40))
        found = ranks.interval(places, weights, lost=lost, **asked)
        said.append(found.low <= true <= found.high and found.low <= inner <= found.high)
        found = ranks.interval(places, weights, **asked)
        unsaid.append(found.low <= true <= found.high)
    # Binomial(50, 0.1) exceeds 20 with a chance below 1e-9.
    assert sum(said) >= 30
    assert sum(unsaid) <= 5


def test_too_many_lost_rows_leave_ends_open():
    ranks = Ranks(epsilon=3, limit=1, points=1001, neighbours="add_remove")
    places, weights = np.arange(1001), np.full(1001, 10 * WEIGHT_STEPS)
    found = ranks.interval(
        places, weights, q=Fraction(1, 10), confidence=0.9, rows=9_000, lost=5_000
    )
    assert found.low is None
    assert found.high is not None


@pytest.mark.parametrize("kind", ["minimum", "maximum"])
def test_extremes_stay_inside_as_often_as_stated(kind):
    ranks = Ranks(epsilon=2, limit=1, points=4001, neighbours="add_remove")
    places = np.arange(1000, 3001, dtype=np.int64)
    weights = np.full(places.size, WEIGHT_STEPS)
    count, outside, distances = 400, 0, []
    for _ in range(count):
        found = ranks.extreme(places, weights, kind=kind, confidence=0.9)
        end = 3000 if kind == "maximum" else 1000
        beyond = found.place - end if kind == "maximum" else end - found.place
        outside += beyond > 0
        distances.append(abs(beyond))
        assert (found.low, found.high) == (
            (found.place, None) if end > 2000 else (None, found.place)
        )
    assert outside <= 85
    assert np.median(distances) < 60  # ranks are places here


def test_rank_error_holds_and_is_not_idle():
    ranks = Ranks(epsilon=1, limit=1, points=101, neighbours="add_remove")
    places, weights = np.arange(101), np.full(101, 5 * WEIGHT_STEPS)
    t = ranks.rank_error(confidence=0.9, q=0.5)
    far = [abs(ranks.quantile(places, weights, q=0.5) - 50) * 5 - 2.5 > t for _ in range(400)]
    assert sum(far) <= 85
    assert ranks.rank_error(confidence=0.9) > t
    assert ranks.rank_error(confidence=0.99, q=0.5) > t


def test_empty_groups_give_any_place():
    ranks = Ranks(epsilon=1, limit=1, points=3, neighbours="add_remove")
    none = np.zeros(0, dtype=np.int64)
    found = {ranks.quantile(none, none, q=0.5) for _ in range(200)}  # misses one: 3 (2/3)^200
    assert found == {0, 1, 2}
    assert ranks.extreme(none, none, kind="maximum", confidence=0.9).place in found
    assert ranks.interval(none, none, q=0.5, confidence=0.9).low is None


@pytest.mark.parametrize("q", [Fraction(2, 5), Fraction(999_999, 1_000_000)])
@pytest.mark.parametrize("total", [2**50, 2**55, 2**60, 2**62])
def test_huge_weights_do_not_overflow(q, total):
    ranks = Ranks(epsilon=1, limit=1, points=9, neighbours="add_remove")
    places = np.array([2, 5, 7])
    weights = np.array([total // 2, total - total // 2 - total // 8, total // 8])
    share = np.cumsum([int(w) for w in weights], dtype=object)
    wanted = next(p for p, end in zip(places, share, strict=True) if end >= q * int(share[-1]))
    assert ranks.quantile(places, weights, q=q) == wanted


def test_sensitivities():
    half, most = Fraction(1, 2), Fraction(9, 10)

    def of(q, **changes):
        asked = {"epsilon": 1, "limit": 3, "points": 9, "neighbours": "add_remove"} | changes
        return Ranks(**asked).sensitivity(q)

    assert of(half) == Fraction(3, 2)
    assert of(most) == of(1 - most) == Fraction(27, 10)
    assert of(None) == 3
    assert of(half, neighbours="replace_one") == 3
    assert of(most, neighbours="replace_one") == Fraction(54, 10)
    assert of(most, neighbours="replace_one", is_single=True) == 3
    assert of(half, group_size=4) == 6


def test_losses():
    ranks = Ranks(epsilon=2, limit=3, points=9, neighbours="add_remove")
    assert ranks.loss == BoundedRangeLoss(epsilon=2)
    assert sum(loss.epsilon_pure for loss in ranks.interval_losses) == 2


def test_groups_are_split_and_sorted():
    rng = np.random.default_rng()
    groups, places = rng.integers(0, 50, 500), rng.permutation(500)
    weights = rng.integers(0, 9, 500)
    for g, (p, w) in enumerate(by_group(groups, places, weights, count=51)):
        mine = groups == g
        assert p.tolist() == sorted(places[mine])
        assert dict(zip(places[mine].tolist(), weights[mine].tolist(), strict=True)) == dict(
            zip(p.tolist(), w.tolist(), strict=True)
        )


@pytest.mark.parametrize(
    ("places", "weights"),
    [([3], [1]), ([-1], [1]), ([1, 1], [1, 1]), ([1, 0], [1, 1]), ([1], [-1]), ([1], [1, 2])],
)
def test_bad_data_is_refused(places, weights):
    ranks = Ranks(epsilon=1, limit=1, points=3, neighbours="add_remove")
    with pytest.raises(DataError):
        ranks.quantile(np.array(places), np.array(weights), q=0.5)


def test_bad_parameters_are_refused():
    good = {"epsilon": 1, "limit": 1, "points": 9, "neighbours": "add_remove"}
    for name, bad in (("epsilon", 0), ("limit", 0), ("points", 0), ("points", 2**41),
                      ("neighbours", "twins"), ("group_size", 0)):  # fmt: skip
        with pytest.raises(ParameterError, match=name):
            Ranks(**(good | {name: bad}))
    none = np.zeros(0, dtype=np.int64)
    for q in (0, 1, math.nan):
        with pytest.raises(ParameterError, match="q must"):
            Ranks(**good).quantile(none, none, q=q)
    with pytest.raises(ParameterError, match="kind"):
        Ranks(**good).extreme(none, none, kind="most", confidence=0.9)
