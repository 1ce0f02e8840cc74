"""What local tables do, those behind a gateway do too: one suite for both."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import (
    AlreadyCharged,
    BudgetExceeded,
    DiscreetError,
    ParameterError,
    Refused,
)
from discreet.tables import Groups, Norm, Offer, Quote, Result, Totals, count, mean

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_REGION = "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people GROUP BY region"
FLOOR = iter(range(10_000))


def fresh():
    """Return a question that was not asked before."""
    return f"{COUNT} WHERE income >= {next(FLOOR)}"


def test_who_and_what(T):
    assert T.name == "people"
    assert list(T.tables) == ["people"]
    assert set(T.tables["people"]) == {"person", "age", "region", "income"}
    assert 0 < T.remaining <= 1
    assert "people" in repr(T)
    assert T.refresh() is False


@pytest.mark.parametrize(
    "fields",
    [{"epsilon": 0.1}, {"epsilon": Fraction(1, 3)}, {"epsilon": 1, "delta": 1e-9},
     {"share": "5%"}, {"share": 0.01}, {"share": "0.25%"}, {"within": 10},
     {"within": "10%", "of": 400},
     {"epsilon": 1, "confidence": 0.9}, {"epsilon": 1, "confidence": Fraction(2, 3)},
     {"epsilon": 1, "size": 1000}, {"epsilon": 1, "purpose": "a report"}],
)  # fmt: skip
@pytest.mark.parametrize("question", [COUNT, BY_REGION])
def test_quotes_are_equal(both, fields, question):
    if question == BY_REGION and "within" in fields:
        question = f"{COUNT} WHERE age > 30"
    with both.local() as here, both.remote() as there:
        quotes = [one.quote(question, **fields) for one in (here, there)]
        assert quotes[0] == quotes[1]
        assert str(quotes[0]) == str(quotes[1])
        assert type(quotes[1]) is Quote
        assert here.quote(question, Offer(**fields)) == there.quote(question, Offer(**fields))


@pytest.mark.parametrize(
    "bounding",
    [Norm(limit=2, order=1), Norm(limit=Fraction(3, 2), order=2), Groups(groups=1, rows=1),
     Totals(limit=50_000, order=1)],
)  # fmt: skip
def test_boundings_arrive(both, bounding):
    asked = "SELECT region, SUM(income) AS s FROM people GROUP BY region"
    with both.local() as here, both.remote() as there:
        quotes = [one.quote(asked, epsilon=1, bounding=bounding) for one in (here, there)]
    assert quotes[0] == quotes[1]


def test_answers_have_values_bars_and_frames(T):
    answer = T.sql(BY_REGION + " HAVING COUNT(*) > 1", epsilon=20)
    assert type(answer) is Result
    assert answer.columns == ("region", "n", "pay")
    assert answer.keys == ("region",)
    assert answer["region"].tolist() == ["north", "south"]
    assert abs(answer["n"].sum() - 400) < 20
    assert (answer.lows["n"] < answer["n"]).all()
    assert np.isfinite(answer.errors["pay"]).all()
    assert answer.reliable["n"].dtype == bool
    assert answer.to_pandas().shape == answer.to_polars().shape == (2, 11)
    assert answer.to_arrow(errors=False).column_names == ["region", "n", "pay"]
    assert answer.to_csv().startswith("region,n,n_error")
    assert answer.rounded()["n"].dtype.kind in "if"
    assert answer.epsilon == 20
    assert 0 < answer.left <= 1
    assert "Price" in str(answer)


def test_cards_explanations_and_plots(T):
    pytest.importorskip("matplotlib").use("agg")
    answer = T.sql(BY_REGION, epsilon=10)
    assert answer.card()["privacy"]["unit"] == "all records of one person"
    assert "Who is protected" in answer.explain()
    assert answer.plot("n").get_ylabel() == "n"
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_same_again_is_recalled_and_free(T):
    asked = fresh()
    first = T.sql(asked, epsilon=1)
    before = T.remaining
    again = T.sql(asked, epsilon=1)
    less = T.sql(asked, epsilon=0.5)
    assert [one.is_recalled for one in (first, again, less)] == [False, True, True]
    assert again.value == less.value == first.value
    assert again.to_json() == first.to_json()
    assert T.remaining == before
    assert "answered before" in T.quote(asked, epsilon=1).notes[0]


def test_questions_are_built_step_by_step(T):
    built = T.where("age >= 30").group_by("region", keys={"region": ["north", "south", "west"]})
    built = built.agg(n=count(), pay=mean("income")).order_by("region").limit(3)
    assert built.quote(epsilon=1).fits
    assert built.release(epsilon=5)["region"].tolist() == ["north", "south", "west"]
    assert len(T.sql(built, epsilon=5)) == 3
    assert len(T.agg(n=count()).release(Offer(epsilon=0.5))) == 1
    assert T.table("people").agg(n=count()).quote(share="1%").fits
    with pytest.raises(ParameterError, match="the protected tables are people, not 'others'"):
        T.table("others")


@pytest.mark.lengthy
def test_plans_are_priced_together_and_released(T):
    asked = [fresh(), fresh(), BY_REGION]
    workload = T.plan(asked, epsilon=3, weights=[1, 2, 1])
    assert workload.quote.fits
    assert workload.questions == tuple(asked)
    assert (workload.epsilon, workload.delta > 0) == (3, True)
    assert [len(one) for one in workload.expected] == [1, 1, 2]
    assert "question 1" in str(workload)
    answers = workload.release()
    assert [one.columns for one in answers] == [("n",), ("n",), ("region", "n", "pay")]
    assert all(type(one) is Result for one in answers)


@pytest.mark.lengthy
def test_plans_look_alike(both):
    with both.local() as here, both.remote() as there:
        plans = [one.plan([COUNT, BY_REGION], epsilon=1, delta=1e-9) for one in (here, there)]
        assert str(plans[0]) == str(plans[1])
        assert plans[0].expected == plans[1].expected
        assert plans[0].epsilon == plans[1].epsilon


def test_a_key_is_charged_once(T):
    asked = fresh()
    first = T.sql(asked, epsilon=1, key=f"report {asked}")
    before = T.remaining
    again = T.sql(asked, epsilon=1, key=f"report {asked}")
    assert again.receipt.index == first.receipt.index
    assert T.remaining == before
    with pytest.raises(AlreadyCharged) as found:
        T.sql(asked, epsilon=1, confidence=0.5, key=f"report {asked}")
    assert found.value.entry == first.receipt.index
    with pytest.raises(DiscreetError, match="belongs to another request"):
        T.sql(fresh(), epsilon=2, key=f"report {asked}")


def raised(tables, act):
    with pytest.raises(DiscreetError) as found:
        act(tables)
    return found.value


@pytest.mark.parametrize(
    "question",
    ["SELECT * FROM people", "DROP TABLE people", "SELECT COUNT(*) FROM people\nWHERE nope > 1",
     "SELECT income FROM people", "SELECT COUNT(*) FROM elsewhere"],
)  # fmt: skip
def test_refusals_are_the_same(both, question):
    with both.local() as here, both.remote() as there:
        for act in (lambda t: t.quote(question, epsilon=1), lambda t: t.sql(question, epsilon=1)):
            one, other = (raised(tables, act) for tables in (here, there))
            assert type(one) is type(other) is Refused
            facts = [(e.code, e.line, e.column, e.reason, e.remedy, str(e)) for e in (one, other)]
            assert facts[0] == facts[1]


@pytest.mark.parametrize(
    "act",
    [lambda t: t.sql(COUNT), lambda t: t.sql(COUNT, epsilon=1, share="5%"),
     lambda t: t.sql(COUNT, epsilon=-1), lambda t: t.sql(COUNT, epsilon=float("nan")),
     lambda t: t.sql(COUNT, epsilon=1, confidence=1), lambda t: t.quote(COUNT, within="5%"),
     lambda t: t.quote(COUNT, epsilon=1, bounding=3), lambda t: t.plan([], epsilon=1),
     lambda t: t.plan([COUNT], epsilon=1, weights=[1, 2]), lambda t: t.plan([COUNT], share="5%"),
     lambda t: t.plan([COUNT], epsilon=1, size=4),
     lambda t: t.quote(COUNT, epsilon=1, periods=["2026"]),
     lambda t: t.sql(COUNT, epsilon=1, purpose="\x00"),
     lambda t: t.group_by("region").agg(n=3)],
)  # fmt: skip
def test_bad_parameters_are_the_same(both, act):
    with both.local() as here, both.remote() as there:
        one, other = raised(here, act), raised(there, act)
    assert type(one) is type(other), (one, other)
    assert str(one) == str(other)
    if isinstance(one, ParameterError):
        assert one.parameter == other.parameter


def test_unknown_keywords_are_told_with_a_guess(T):
    for ask in (T.sql, T.quote):
        with pytest.raises(TypeError, match="Did you mean 'epsilon'"):
            ask(COUNT, epsilom=1)


@pytest.mark.lengthy
def test_budgets_go_down_and_end(scarce):
    quote = scarce.quote(COUNT, epsilon=0.75)
    answer = scarce.sql(COUNT, epsilon=0.75)
    assert scarce.remaining == pytest.approx(quote.remaining)
    assert answer.left == pytest.approx(scarce.remaining)
    assert answer.share == pytest.approx(quote.share)
    asked = "SELECT SUM(income) AS s FROM people"
    assert not scarce.quote(asked, epsilon=0.5)
    with pytest.raises(BudgetExceeded) as found:
        scarce.sql(asked, epsilon=0.5)
    error = found.value
    assert 0.7 < error.used < 0.8
    assert 1.2 < error.would_be < 1.3
    assert error.budget == "the budget 'total' of account 'people'"
    assert error.account == "people"
    assert "fits with epsilon=" in error.still
    assert error.still in str(error)
    assert error.offer is None
    with pytest.raises(BudgetExceeded):
        scarce.plan([asked], epsilon=0.5).release()
    assert scarce.remaining == pytest.approx(quote.remaining)


@pytest.mark.lengthy
@pytest.mark.parametrize("where", ["local", "remote"])
def test_more_noise_is_offered_where_that_is_the_policy(tmp_path, where, make_places):
    with (
        make_places(tmp_path, epsilon=1, policy="degrade") as made,
        made.opened(where) as tables,
    ):
        tables.sql(COUNT, epsilon=0.75)
        quote = tables.quote(fresh(), epsilon=0.5)
        assert quote.budgets.offer.factor > 1.9
        with pytest.raises(BudgetExceeded) as found:
            tables.sql(fresh(), epsilon=0.5)
        assert found.value.offer.factor == pytest.approx(2, rel=1e-3)
        assert found.value.offer.loss == quote.budgets.offer.loss


def test_a_receipt_is_proven_and_saved(both, tmp_path):
    from discreet.ledger.verifier import check_receipt

    with both.remote() as there:
        answer = there.sql(fresh(), epsilon=1)
        receipt = there.receipt(answer)
        assert receipt.is_proven
        assert receipt.bodies == answer.receipt.bodies
        receipt.save(tmp_path / "receipt.json")
        document = (tmp_path / "receipt.json").read_bytes()
        proven = check_receipt(document, there.vkey, answer=answer.to_json())
        assert proven.answer == answer.receipt.entries[1]["index"]
        assert there.receipt(answer.rounded()).is_proven
        assert there.receipt(proven.answer) == receipt
    with both.local() as here:
        assert here.account.ledger.prove(answer.receipt).bodies == receipt.bodies
        assert here.account.ledger.vkey == there.vkey
