"""One offer says how a question is paid and who asks, as an object or as keywords."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from discreet.errors import ParameterError
from discreet.tables import Offer, count
from discreet.tables.pricing.offer import OfferFields, offered
from discreet.testing import temporary_tables

COUNT = "SELECT COUNT(*) AS n FROM people"


def asking(question, offer=None, **fields):
    """Stand for a function that takes an offer."""


def test_keywords_and_fields_are_the_same():
    assert get_type_hints(OfferFields) == get_type_hints(Offer)
    assert list(get_type_hints(OfferFields)) == [field.name for field in fields(Offer)]


def test_an_offer_and_keywords_ask_the_same():
    offer = Offer(epsilon=0.5, who="ana", purpose="planning")
    with temporary_tables(epsilon=3) as T:
        quoted = T.quote(COUNT, offer)
        assert quoted.epsilon == T.quote(COUNT, epsilon=0.5).epsilon == 0.5
        assert T.table("people").agg(n=count()).quote(offer).loss == quoted.loss
        first = T.sql(COUNT, offer)
        assert T.sql(COUNT, epsilon=0.5, who="ana", purpose="planning").is_recalled
        assert first.receipt.entries[0]["who"] == "ana"


def test_keywords_change_an_offer():
    assert offered(Offer(epsilon=1, who="ana"), {"who": "bo"}, by=asking) == Offer(
        epsilon=1, who="bo"
    )
    relative = Offer(within="5%", of=200)
    assert offered(relative, {"size": 7}, by=asking).within == relative.within == 10
    with pytest.raises(ParameterError, match="exactly one"):
        offered(Offer(epsilon=1), {"share": "5%"}, by=asking)


def test_many_questions_are_paid_by_epsilon_only():
    with temporary_tables(epsilon=3) as T:
        assert T.plan([COUNT], Offer(epsilon=0.5)).epsilon == 0.5
        with pytest.raises(ParameterError, match="takes no share="):
            T.plan([COUNT], share="5%")
        with pytest.raises(ParameterError, match="takes no delta="):
            T.watch([COUNT], Offer(epsilon=0.5, delta=1e-6), threshold=10)
        for given in (0.95, 0.9):
            with pytest.raises(ParameterError, match="takes no confidence="):
                T.watch([COUNT], threshold=10, epsilon=0.5, confidence=given)
        assert T.plan([COUNT], epsilon=0.5, confidence=0.9).asker.offer.confidence < 0.95
        assert T.remaining == 1


@pytest.mark.parametrize("name", ["sql", "quote", "plan", "watch", "release"])
def test_an_unknown_keyword_is_told_by_the_name_of_what_was_called_with_a_guess(name):
    told = rf"^{name}\(\) got an unexpected keyword argument 'epsilonn'. Did you mean 'epsilon'\?$"
    with temporary_tables(epsilon=3) as T:
        calls = {
            "sql": lambda: T.sql(COUNT, epsilonn=1),
            "quote": lambda: T.quote(COUNT, epsilonn=1),
            "plan": lambda: T.plan([COUNT], epsilonn=1),
            "watch": lambda: T.watch([COUNT], threshold=3, epsilonn=1),
            "release": lambda: T.agg(n=count()).release(epsilonn=1),
        }
        with pytest.raises(TypeError, match=told):
            calls[name]()
