"""What a question costs is told in one measure: by quotes, answers, ledgers and refusals."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet._words import percent
from discreet.accounting import ApproximateLoss, FilterRules, GaussianLoss, PureLoss
from discreet.errors import BudgetExceeded
from discreet.ledger import charged
from discreet.privacy import Guarantee
from discreet.testing import temporary_account, temporary_tables

COUNT = "SELECT COUNT(*) AS n FROM people"
LOSSES = st.one_of(
    st.builds(PureLoss, epsilon=st.floats(0.001, 2)),
    st.builds(GaussianLoss, noise_multiplier=st.floats(0.5, 100)),
    st.builds(ApproximateLoss, epsilon=st.just(0), delta=st.floats(1e-12, 1e-8)),
)


@given(spent=st.lists(LOSSES, max_size=4), loss=LOSSES)
def test_as_many_more_fit_as_are_told_and_no_more(spent, loss):
    rules = FilterRules(Guarantee(epsilon=3, delta=1e-6))
    sums = (0,) * len(rules.units)
    for one in spent:
        sums = tuple(map(sum, zip(sums, rules.price(one), strict=True)))
    price = rules.price(loss)
    times = rules.times(sums, price)

    def after(count):
        return tuple(s + count * p if count else s for s, p in zip(sums, price, strict=True))

    assert times == 0 or rules.fits(after(times))
    assert not rules.fits(after(times + 1))


def test_what_adds_to_a_sum_that_is_not_the_fullest_costs_something_all_the_same():
    with temporary_account(epsilon=1, delta=1e-6) as account:
        account.charge(PureLoss(epsilon=0.9), who="ana", purpose="report")
        keys = ApproximateLoss(epsilon=0, delta=1e-8)
        quote = account.quote(keys, who="ana", purpose="report")
        assert quote.used_after == quote.used  # what was told as 0%
        assert quote.share > 0.009
        assert quote.more < 110


def test_quotes_answers_and_the_ledger_tell_the_same():
    with temporary_tables(epsilon=3, delta=1e-6) as T:
        T.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=0.3)
        quote = T.quote(COUNT, epsilon=0.1)
        answer = T.sql(COUNT, epsilon=0.1)
        assert answer.share == pytest.approx(quote.share)
        assert answer.more == quote.more
        assert answer.left == pytest.approx(quote.remaining) == T.remaining
        words = charged(T.account, answer.receipt).words
        assert words == quote.budgets.words
        assert words in str(quote)
        cost, more = words.split("; ")
        assert f"Price: epsilon=0.1, {cost}." in str(answer)
        assert f"Left of the budget: {percent(T.remaining, up=False)}; {more}." in str(answer)
        assert percent(T.remaining, up=False) in repr(T)


def test_about_so_many_more_do_fit():
    with temporary_tables(epsilon=1) as T:
        first = T.sql(COUNT, epsilon=0.15)
        others = [f"{COUNT} WHERE age > {age}" for age in range(int(first.more) + 1)]
        for question in others[1:]:
            T.sql(question, epsilon=0.15)
        with pytest.raises(BudgetExceeded):
            T.sql(others[0], epsilon=0.15)


def test_a_share_buys_what_it_is_said_to_cost():
    with temporary_tables(epsilon=3, delta=1e-6) as T:
        assert T.quote(COUNT, share="5%").share == pytest.approx(0.05, rel=0.01)
        T.sql(COUNT, epsilon=1)
        assert T.quote(f"{COUNT} WHERE age > 30", share="5%").share <= 0.05


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_what_does_not_fit_says_with_which_epsilon_it_would(delta):
    with temporary_tables(epsilon=1, delta=delta) as T:
        T.sql(COUNT, epsilon=0.7)
        adults = f"{COUNT} WHERE age > 17"
        quote = T.quote(adults, epsilon=0.9)
        with pytest.raises(
            BudgetExceeded, match=r"Nothing was spent\. It fits with epsilon="
        ) as no:
            T.sql(adults, epsilon=0.9)
        most = float(re.search(r"epsilon=([\d.]+)\.", str(no.value))[1])
        assert quote.fits_up_to == most
        assert f"epsilon={most:g} would fit" in str(quote)
        assert not T.quote(adults, epsilon=1.02 * most)
        assert T.sql(adults, epsilon=most).epsilon == most


def test_an_exhausted_allowance_says_when_it_begins_anew():
    with temporary_account(epsilon=5) as account:
        account.limit(Guarantee(epsilon=1), analyst="*", every="month")
        account.charge(PureLoss(epsilon=1), who="ana", purpose="report")
        with pytest.raises(BudgetExceeded, match=r"begins anew on \d{4}-\d\d-01\. The custodian"):
            account.charge(PureLoss(epsilon=Fraction(1, 2)), who="ana", purpose="report")
        with pytest.raises(BudgetExceeded) as total:
            account.charge(PureLoss(epsilon=6), who="bo", purpose="report")
        assert "used. Nothing was spent" in str(total.value)
