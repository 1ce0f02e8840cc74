"""Quotes survive the way to JSON and back, whatever they say."""

import json
import math

import pytest

import discreet
from discreet import datasets
from discreet.errors import DataError
from discreet.tables import protect, read_quote, write_quote

QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM people", {"epsilon": 0.5}),
    ("SELECT region, AVG(income) AS pay FROM people GROUP BY region", {"epsilon": 0.5}),
    ("SELECT AVG(hours) AS h FROM people", {"share": "5%"}),
    ("SELECT COUNT(*) AS n FROM people", {"within": 30}),
    ("SELECT COUNT(*) AS n FROM people", {"epsilon": 50}),  # does not fit
    ("SELECT region, COUNT(*) AS n FROM people GROUP BY region", {"epsilon": 1, "delta": 0.5}),
]


@pytest.fixture(params=["deny", "degrade"])
def people(request, tmp_path):
    with protect(
        datasets.census(500, seed=5),
        name="people",
        unit="person_id",
        rows=1,
        guarantee=discreet.Guarantee(epsilon=3, delta=1e-6),
        ledger=tmp_path / "budget.db",
        policy=request.param,
        columns={"income": {"bounds": (0, 200_000)}},
    ) as tables:
        tables.account.limit(discreet.Guarantee(epsilon=1, delta=1e-6), analyst="*", every="month")
        yield tables


@pytest.mark.parametrize(("question", "offer"), QUESTIONS)
def test_a_quote_survives_json(people, question, offer):
    quote = people.quote(question, **offer, who="ana")
    again = read_quote(json.loads(json.dumps(write_quote(quote), allow_nan=False)))
    assert again == quote
    assert str(again) == str(quote)


def test_no_finite_cost_survives_too(people):
    quote = people.quote(*QUESTIONS[-1][:1], epsilon=1, delta=0.5, who="ana")
    assert any(math.isinf(one.used_after) for one in quote.budgets.budgets) or not quote.fits


@pytest.mark.parametrize("wrong", [{}, {"offer": None}, {"offer": 3}, {"question": "x"}])
def test_what_is_no_quote_is_refused(wrong):
    with pytest.raises(DataError, match="no quote"):
        read_quote(wrong)
