"""Two-stage laws: what many reports say, against the enumeration of all of them."""

import itertools
import math
from fractions import Fraction

import pytest

from discreet.errors import ParameterError
from discreet.local.laws.chained import ChainedCoins, ChainedPreference
from discreet.local.laws.preference import ONE
from discreet.noise.enclosure import exp_bounds

BUDGETS = [(2, 1), (Fraction(1, 2), Fraction(1, 3)), (6, 0.2), (1, 1)]


def is_within(ratio, epsilon):
    """Say whether a ratio is proved to be at most exp(epsilon)."""
    _, high = exp_bounds(Fraction(epsilon), 256)  # of exp(-epsilon)
    return ratio * high <= 1 << 256


def laws_of_direct(law, reports):
    """Return the chance of every sequence of reports, one table for each value."""
    k = law.outputs
    own, other = law.permanent.hit(shared=1), law.permanent.hit(shared=0)
    stray = (1 - Fraction(law.keep, ONE)) / (k - 1)

    def chance(value, seen):
        total = Fraction(0)
        for kept in range(k):
            part = own if kept == value else other
            for one in seen:
                part *= Fraction(law.keep, ONE) if one == kept else stray
            total += part
        return total

    sequences = list(itertools.product(range(k), repeat=reports))
    return [{seen: chance(value, seen) for seen in sequences} for value in range(k)]


def laws_of_bits(law, reports, bits, held):
    """Return the chance of all sequences of rows of bits, one table for each set of bits held."""
    own, other, keep = (Fraction(x, ONE) for x in (law.own, law.other, law.keep))

    def of_bit(is_set, seen):
        one = own if is_set else other
        ones, zeros = one, 1 - one
        for shown in seen:
            ones *= keep if shown else 1 - keep
            zeros *= 1 - keep if shown else keep
        return ones + zeros

    columns = list(itertools.product((0, 1), repeat=reports))
    return [
        {
            seen: math.prod(
                (of_bit(j in mine, column) for j, column in enumerate(seen)), start=Fraction(1)
            )
            for seen in itertools.product(columns, repeat=bits)
        }
        for mine in held
    ]


def worst_ratio(tables):
    for table in tables:
        assert sum(table.values()) == 1
    pairs = itertools.permutations(tables, 2)
    return max(
        first[seen] / second[seen] for first, second in pairs for seen in first if first[seen]
    )


def check(epsilon, worst):
    """The stated epsilon covers the worst ratio, and is no larger than it must be."""
    assert is_within(worst, epsilon)
    assert epsilon == pytest.approx(math.log(worst), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "first"), BUDGETS)
@pytest.mark.parametrize(("outputs", "reports"), [(2, 1), (2, 5), (3, 1), (3, 4), (5, 2)])
def test_all_sequences_of_direct_reports_have_the_stated_loss(epsilon, first, outputs, reports):
    law = ChainedPreference.calibrated(epsilon=epsilon, first=first, outputs=outputs)
    tables = laws_of_direct(law, reports)
    if law.keep == ONE and reports > 1:  # reports that differ have no chance at all
        tables = [{seen: p for seen, p in table.items() if p} for table in tables]
    check(law.epsilon_after(reports), worst_ratio(tables))
    if reports == 1:
        assert is_within(worst_ratio(tables), first)
        assert tables[0][(0,)] == law.hit
        assert tables[0][(1,)] == law.miss


@pytest.mark.parametrize(("epsilon", "first"), BUDGETS)
@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("reports", [1, 2, 3])
def test_all_sequences_of_unary_reports_have_the_stated_loss(epsilon, first, optimized, reports):
    law = ChainedCoins.calibrated(epsilon=epsilon, first=first, differing=2, optimized=optimized)
    bits = 3 if reports < 3 else 2
    tables = laws_of_bits(law, reports, bits, [{value} for value in range(bits)])
    if law.keep == ONE:
        tables = [{seen: p for seen, p in table.items() if p} for table in tables]
    check(law.epsilon_after(reports), worst_ratio(tables))
    if reports == 1:
        assert is_within(worst_ratio(tables), first)


@pytest.mark.parametrize(("epsilon", "first"), BUDGETS)
@pytest.mark.parametrize(("bits", "reports"), [(1, 1), (1, 4), (2, 1), (2, 3), (3, 2)])
def test_all_sequences_of_a_few_bits_have_the_stated_loss(epsilon, first, bits, reports):
    law = ChainedCoins.calibrated(
        epsilon=epsilon, first=first, differing=min(2, bits), optimized=False
    )
    tables = laws_of_bits(law, reports, bits, [set(), *({value} for value in range(bits))])
    if law.keep == ONE:
        tables = [{seen: p for seen, p in table.items() if p} for table in tables]
    check(law.epsilon_after(reports), worst_ratio(tables))


@pytest.mark.parametrize(("epsilon", "first"), BUDGETS)
def test_budgets_are_kept_and_nearly_used_up(epsilon, first):
    for law in (
        ChainedPreference.calibrated(epsilon=epsilon, first=first, outputs=4),
        ChainedCoins.calibrated(epsilon=epsilon, first=first, differing=2, optimized=True),
        ChainedCoins.calibrated(epsilon=epsilon, first=first, differing=1, optimized=False),
    ):
        assert law.epsilon_after(1) <= first * (1 + 1e-15)
        assert law.epsilon_after(1) == pytest.approx(float(first), rel=1e-12)
        assert law.lasting == pytest.approx(float(epsilon), rel=1e-12)
        losses = [law.epsilon_after(t) for t in (1, 2, 3, 10, 1000, 5000)]
        assert losses == sorted(losses)
        assert losses[-1] <= law.lasting


def test_the_chained_coins_are_those_of_the_paper():
    # [ACBX22]: the closed forms of L-OSUE and L-GRR.
    a, b = math.exp(2), math.exp(0.7)
    law = ChainedCoins.calibrated(epsilon=2, first=0.7, differing=2, optimized=True)
    assert law.keep / ONE == pytest.approx((a * b - 1) / (a * b + a - b - 1), rel=1e-12)

    def of_direct(k):
        ours = ChainedPreference.calibrated(epsilon=2, first=0.7, outputs=k)
        theirs = (a * b - 1) / ((k - 1) * (a - b) + a * b - 1)
        return ours, theirs

    ours, theirs = of_direct(2)
    assert ours.keep / ONE == pytest.approx(theirs, rel=1e-12)
    # For more values theirs leaves out that a third value leads to the same report, so that a
    # report is noisier than its budget asks for: 0.544 of 0.7 here.
    ours, theirs = of_direct(6)
    assert ours.keep / ONE > 1.15 * theirs
    spent = ChainedPreference(permanent=ours.permanent, keep=int(theirs * ONE)).epsilon_after(1)
    assert spent == pytest.approx(0.5443639, abs=1e-6)


def test_a_second_report_can_cost_more_than_the_first():
    law = ChainedPreference.calibrated(epsilon=6, first=Fraction(1, 5), outputs=100)
    assert law.epsilon_after(2) > 2 * law.epsilon_after(1)
    assert law.epsilon_after(2) <= law.epsilon_after(1) + law.further


@pytest.mark.parametrize("first", [0, -1, 3, math.nan, "1"])
def test_a_first_budget_that_cannot_be_is_refused(first):
    for make in (
        lambda: ChainedPreference.calibrated(epsilon=2, first=first, outputs=4),
        lambda: ChainedCoins.calibrated(epsilon=2, first=first, differing=2, optimized=True),
    ):
        with pytest.raises(ParameterError, match="first"):
            make()


@pytest.mark.parametrize(
    "coins",
    [
        {"own": 1 << 62, "other": 1 << 63, "keep": ONE, "differing": 2},
        {"own": 1 << 63, "other": 0, "keep": ONE, "differing": 2},
        {"own": 1 << 63, "other": 1 << 62, "keep": 1 << 63, "differing": 2},
        {"own": 1 << 63, "other": 1 << 62, "keep": ONE + 1, "differing": 2},
        {"own": 1 << 63, "other": 1 << 62, "keep": ONE, "differing": 3},
    ],
)
def test_coins_that_tell_nothing_or_too_much_are_refused(coins):
    with pytest.raises(ParameterError):
        ChainedCoins(**coins)


def test_a_budget_too_small_for_the_coins_is_refused():
    for make in (
        lambda: ChainedPreference.calibrated(epsilon=1e-25, first=1e-25, outputs=4),
        lambda: ChainedCoins.calibrated(epsilon=1e-25, first=1e-25, differing=2, optimized=True),
        lambda: ChainedCoins.calibrated(epsilon=1, first=1e-25, differing=2, optimized=True),
    ):
        with pytest.raises(ParameterError):
            make()
