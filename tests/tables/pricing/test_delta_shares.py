"""Groups that nobody listed take delta: never so much that it runs out before epsilon does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import ApproximateLoss, Filter, FilterRules, Loss, PureLoss, compose
from discreet.errors import BudgetExceeded
from discreet.ledger import delta_beside
from discreet.privacy import Guarantee
from discreet.testing import temporary_account, temporary_tables

GROUPED = (
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region",
    "SELECT region, AVG(income) AS m FROM people GROUP BY region",
    "SELECT region, MEDIAN(age) AS q FROM people GROUP BY region",
)
SPREAD = {"rows": 20, "groups": 20}  # over many groups, where Gaussian noise is smaller


def how_often(loss: Loss, guarantee: Guarantee) -> int:
    """Return how often a loss fits into an empty account."""
    rules = FilterRules(guarantee)
    price = rules.price(loss)
    low, high = 0, 1
    while rules.fits(tuple(high * n for n in price)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if rules.fits(tuple(middle * n for n in price)) else (low, middle)
        )
    return low


def without_keys(loss: Loss) -> Loss:
    return compose([(one, n) for one, n in loss.parts if not isinstance(one, ApproximateLoss)])


@pytest.mark.parametrize("question", GROUPED)
@pytest.mark.parametrize("declared", [{}, SPREAD], ids=["alone", "spread"])
def test_hundreds_of_grouped_questions_fit(question, declared):
    with temporary_tables(epsilon=3, n=10, **declared) as T:
        quote = T.quote(question, epsilon=0.01)
    assert how_often(quote.loss, Guarantee(epsilon=3, delta=1e-6)) >= 300


@pytest.mark.lengthy
@settings(max_examples=15, deadline=None)
@given(
    question=st.sampled_from(GROUPED),
    declared=st.sampled_from([{}, SPREAD]),
    epsilon=st.floats(1e-3, 1),
    total=st.floats(0.5, 10),
    power=st.integers(-12, -4),
)
def test_selecting_groups_makes_no_question_fit_less_often(
    question, declared, epsilon, total, power
):
    guarantee = Guarantee(epsilon=total, delta=10.0**power)
    with temporary_tables(epsilon=total, delta=10.0**power, n=10, **declared) as T:
        quote = T.quote(question, epsilon=epsilon)
    assert any(isinstance(one, ApproximateLoss) for one, _ in quote.loss.parts)
    assert how_often(quote.loss, guarantee) == how_often(without_keys(quote.loss), guarantee)


@pytest.mark.lengthy
def test_epsilon_runs_out_in_a_ledger():
    with temporary_tables(epsilon=3, n=200, **SPREAD) as T:
        T.account.limit(Guarantee(epsilon=1, delta=1e-7), analyst="ana")
        asked = {"epsilon": 0.05, "who": "ana", "purpose": "report"}
        for age in range(30):
            where = f"SELECT region, COUNT(*) AS n FROM people WHERE age > {age} GROUP BY region"
            T.sql(where, **asked)
        quote = T.quote(GROUPED[0], **asked)
        for budget in quote.budgets.budgets:
            assert budget.scarce == "epsilon", budget.name
            assert budget.delta_share < budget.epsilon_share
        T.account.ledger.verify()


@pytest.mark.lengthy
def test_plans_keep_to_it_as_well():
    questions = [f"{one} HAVING COUNT(*) > {n}" for one in GROUPED[:2] for n in (1, 2)]
    with temporary_tables(epsilon=3, n=10, **SPREAD) as T:
        plan = T.plan(questions, epsilon=0.01)
    guarantee = Guarantee(epsilon=3, delta=1e-6)
    assert how_often(plan.loss, guarantee) == how_often(without_keys(plan.loss), guarantee) >= 300


def test_a_delta_that_is_stated_is_used():
    with temporary_tables(epsilon=3, n=10) as T:
        stated = T.quote(GROUPED[0], epsilon=0.01, delta=1e-8)
        chosen = T.quote(GROUPED[0], epsilon=0.01)
    assert stated.delta == pytest.approx(1e-8, rel=1e-5)
    assert chosen.delta < 1e-10


def test_a_budget_without_delta_refuses_before_anything_is_charged():
    with temporary_tables(epsilon=3, n=10) as T:
        T.account.limit(Guarantee(epsilon=1), analyst="ana")
        assert not T.quote(GROUPED[0], epsilon=0.1, who="ana", purpose="report")
        with pytest.raises(BudgetExceeded):
            T.sql(GROUPED[0], epsilon=0.1, who="ana", purpose="report")
        assert T.remaining == 1


def test_it_follows_from_what_was_granted_and_the_ledger_is_not_read_for_it(monkeypatch):
    loss, total, ana = PureLoss(epsilon=0.25), *(Guarantee(epsilon=e, delta=1e-6) for e in (2, 3))
    with temporary_account(epsilon=2, delta=1e-6) as account:
        account.limit(ana, analyst="ana")
        account.charge(PureLoss(epsilon=0.5), who="bo", purpose="report")
        account.quote(loss)  # by now, the session knows what was granted
        monkeypatch.setattr(type(account._session), "read", None)
        for who, tightest in ((None, total), ("bo", total), ("ana", ana)):
            alone = FilterRules(tightest, neighbours=account.neighbours).delta_beside(loss)
            assert delta_beside(account, loss, who=who, purpose="report") == alone
        monkeypatch.undo()


@settings(max_examples=50, deadline=None)
@given(
    kind=st.sampled_from(["basic", "zcdp", "renyi", "combined"]),
    epsilons=st.lists(st.floats(1e-4, 2), min_size=1, max_size=30),
)
def test_whatever_keeps_to_it_never_makes_delta_scarce(kind, epsilons):
    from discreet.accounting import GaussianLoss, LaplaceLoss

    spent = Filter(Guarantee(epsilon=3, delta=1e-6), kind=kind)
    for i, one in enumerate(epsilons):
        # Basic composition takes delta for a Gaussian itself, which may be the scarcer one then.
        is_normal = i % 2 and kind != "basic"
        loss = (
            GaussianLoss(noise_multiplier=6 / one)
            if is_normal
            else LaplaceLoss(noise_multiplier=1 / one)
        )
        chance = spent.rules.delta_beside(loss)
        bare, both = spent.ask(loss), spent.ask(loss + ApproximateLoss(epsilon=0, delta=chance))
        assert both.used_after == pytest.approx(bare.used_after, rel=1e-9)
        if both:
            spent.charge(loss + ApproximateLoss(epsilon=0, delta=chance))
