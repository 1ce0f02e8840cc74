"""A quote tells what will be charged, however little, and whether epsilon or delta binds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet._words import percent
from discreet.accounting import ApproximateLoss
from discreet.errors import BudgetExceeded
from discreet.testing import temporary_tables

ALL = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
GROUPED = "SELECT region, COUNT(*) AS n FROM people WHERE age > {} GROUP BY region"
asked = st.tuples(
    st.sampled_from([ALL, GROUPED]),
    st.floats(1e-4, 0.3),
    st.one_of(st.none(), st.floats(-14, -7).map(lambda power: 10.0**power)),
)


@pytest.mark.lengthy
@settings(max_examples=5, deadline=None)
@given(st.lists(asked, min_size=1, max_size=8))
def test_a_quote_and_the_charge_agree(questions):
    with temporary_tables(epsilon=3, n=20) as T:
        for age, (question, epsilon, delta) in enumerate(questions):
            offer = {"epsilon": epsilon, "delta": delta, "who": "ana", "purpose": "report"}
            quote, before = T.quote(question.format(age), **offer), T.account.used
            if not quote.fits:
                with pytest.raises(BudgetExceeded):
                    T.sql(question.format(age), **offer)
                continue
            T.sql(question.format(age), **offer)
            charged = T.account.used - before
            assert quote.budgets.used_after == pytest.approx(T.account.used, abs=1e-12)
            # A budget is as full as what is scarce in it; what is taken of the other is told, too.
            assert quote.share == pytest.approx(
                max(charged, quote.budgets.tightest.alone), abs=1e-12
            )
            costs, runs_out = str(quote).splitlines()[2:4]
            assert " 0% of" not in costs, "no question is free"
            scarce = quote.budgets.tightest.scarce
            taken = getattr(quote.budgets.tightest, f"{scarce}_share")
            words = percent(taken, up=True) if taken else "nothing"
            assert f"{scarce} first: this takes {words} of it" in runs_out


def test_what_is_not_scarce_is_shown_as_well():
    """Where delta is used most, a count seems to cost nothing: of epsilon it takes its share."""
    with temporary_tables(epsilon=3, n=20) as T:
        T.account.charge(ApproximateLoss(epsilon=0, delta=6e-8), who="ana", purpose="report")
        quote = T.quote(ALL.format(1), epsilon=0.12)
    assert quote.budgets.used_after == quote.budgets.used
    assert "costs     3.4% of the budget" in str(quote)
    assert "delta first: this takes nothing of it, and 3.4% of epsilon" in str(quote)


def test_where_delta_ran_out_it_says_so():
    with temporary_tables(epsilon=3, n=20) as T:
        offer = {"epsilon": 0.01, "delta": 1e-7, "who": "ana", "purpose": "report"}
        T.sql(GROUPED.format(1), **offer)
        with pytest.raises(BudgetExceeded, match="Delta runs out, not epsilon"):
            T.sql(GROUPED.format(2), **offer)
        assert not T.quote(GROUPED.format(2), **offer)
        assert T.quote(GROUPED.format(2), epsilon=0.01), "chosen, it fits"
        with pytest.raises(BudgetExceeded) as refused:
            T.sql(ALL.format(2), epsilon=30, who="ana", purpose="report")
        assert "Delta" not in str(refused.value)


@given(st.floats(0, 1))
def test_a_cost_is_never_rounded_to_nothing(share):
    assert (percent(share, up=True) == "0%") == (share == 0)
    assert (percent(share, up=False) == "100%") == (share == 1) or share > 1 - 1e-9


@pytest.mark.lengthy
def test_a_plan_shows_its_delta_and_the_error_of_every_question():
    questions = [
        ALL.format(1),
        "SELECT SUM(income) AS s FROM people WHERE age > 1",
        GROUPED.format(2),
    ]
    with temporary_tables(epsilon=3, n=20) as T:
        plan = T.plan(questions, epsilon=0.5, delta=2e-8, confidence=0.9)
        shown = str(plan)
        answers = plan.release()
    assert "epsilon=0.5, delta=2e-08 for all of them together" in shown
    assert [[one.text for one in each] for each in plan.expected] == [
        ["COUNT(*)"], ["SUM(income)"], ["COUNT(*)"]
    ]  # fmt: skip
    for place, (expected,) in enumerate(plan.expected):
        assert f"    {place + 1}  {expected} (90% confidence)" in shown
    # What was predicted is the half width of the intervals that came, where the limit is declared.
    for place, column in ((0, "n"), (1, "s")):
        half = (answers[place].highs[column][0] - answers[place].lows[column][0]) / 2
        assert plan.expected[place][0].half_width == pytest.approx(half, rel=1e-6)
