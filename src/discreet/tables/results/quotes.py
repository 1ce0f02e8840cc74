"""Quotes as data that JSON can hold, and back: what a gateway sends is what a client shows."""

import math
from collections.abc import Mapping
from typing import Any

from discreet.accounting import from_json, to_json
from discreet.errors import DataError
from discreet.ledger import AccountQuote, BudgetQuote, NoisierOffer
from discreet.tables.model.quotes import Expected, Quote

__all__ = ["read_quote", "write_quote"]

_PLAIN = ("question", "epsilon", "delta", "confidence", "noise", "fits_up_to")
_OF_BUDGET = ("name", "fits", "used", "used_after", "scarce", "epsilon_share", "delta_share")
_INFINITE = "inf"  # JSON has no infinity, and a loss without a finite cost has just that


def write_quote(quote: Quote) -> dict[str, Any]:
    """Return all of a quote as JSON has it, with what :meth:`Quote.to_dict` has for people.

    >>> from discreet.testing import temporary_tables
    >>> with temporary_tables(epsilon=3) as T:
    ...     quote = T.quote("SELECT COUNT(*) AS n FROM people", epsilon=0.3)
    >>> read_quote(write_quote(quote)) == quote
    True
    """
    offer = quote.budgets.offer
    return {
        **quote.to_dict(),
        "loss": to_json(quote.loss),
        "account": quote.budgets.account,
        "budgets": [
            {
                **{name: _finite(getattr(one, name)) for name in (*_OF_BUDGET, "alone")},
                "more": None if one.more is None else _finite(one.more),
            }
            for one in quote.budgets.budgets
        ],
        "offer": None
        if offer is None
        else {"loss": to_json(offer.loss), "factor": offer.factor, "error": offer.error},
    }


def read_quote(document: Mapping[str, Any]) -> Quote:
    """Rebuild what :func:`write_quote` wrote.

    >>> read_quote({})
    Traceback (most recent call last):
        ...
    discreet.errors.DataError: this is no quote.
    """
    try:
        offer = document["offer"]
        quote = Quote(
            **{name: document[name] for name in _PLAIN},
            loss=from_json(document["loss"]),
            budgets=AccountQuote(
                account=document["account"],
                budgets=tuple(
                    BudgetQuote(**{name: _number(value) for name, value in one.items()})
                    for one in document["budgets"]
                ),
                offer=None
                if offer is None
                else NoisierOffer(**{**offer, "loss": from_json(offer["loss"])}),
            ),
            expected=tuple(Expected(**one) for one in document["expected"]),
            notes=tuple(document["notes"]),
        )
        str(quote)  # what cannot be shown is none
        return quote
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise DataError("this is no quote.") from None


def _finite(value: Any) -> Any:
    return _INFINITE if isinstance(value, float) and math.isinf(value) else value


def _number(value: Any) -> Any:
    return math.inf if value == _INFINITE else value
