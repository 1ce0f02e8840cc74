"""Problem documents of a gateway, as the exceptions that local use raises."""

import math
from collections.abc import Mapping
from typing import Any, Final

from discreet.accounting import from_json
from discreet.errors import (
    AccountNotFound,
    AlreadyCharged,
    BudgetExceeded,
    DataError,
    DiscreetError,
    LedgerError,
    LedgerUnavailable,
    Missed,
    NotAllowed,
    ParameterError,
    Refused,
    TryLater,
    Unauthenticated,
)
from discreet.ledger import NoisierOffer

__all__ = ["error_of", "seconds_in", "shown"]

_KIND: Final = "urn:discreet:problem:"
_LONGEST: Final = 10_000
_HERE: Final = {"Idempotency-Key": "key"}  # what a parameter is called on this side


def error_of(document: Mapping[str, Any], *, retry_after: str | None = None) -> DiscreetError:
    """Return the exception that a problem stands for, with the gateway's words.

    >>> problem = {"type": "urn:discreet:problem:already-charged", "detail": "...", "entry": 7}
    >>> error_of(problem).entry
    7
    >>> error_of({"type": "about:blank", "title": "Not found"})
    DiscreetError('the gateway answered with a problem: Not found')
    """
    kind = str(document.get("type", "")).removeprefix(_KIND)
    told = shown(document.get("detail"))
    if not told:
        title = shown(document.get("title")) or "it has no name"
        return DiscreetError(f"the gateway answered with a problem: {title}")
    try:
        found = _made(kind, told, document, retry_after)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return DiscreetError(told)  # of a kind that is known, and without the facts that it has
    if not isinstance(found, Unauthenticated):
        found.args = (told,)  # where both sides have not the same version, that of the gateway
    return found


def _made(
    kind: str, told: str, document: Mapping[str, Any], retry_after: str | None
) -> DiscreetError:
    match kind:
        case "unauthenticated":
            return Unauthenticated()
        case "not-allowed":
            return NotAllowed(told)
        case "not-found":
            return AccountNotFound(told)
        case "already-charged":
            return AlreadyCharged(entry=int(document["entry"]))
        case "budget-exceeded":
            return _budget_exceeded(document)
        case "conflict":
            return LedgerError(told)
        case "refused":
            return _refused(document)
        case "invalid":
            return ParameterError(told, parameter=_parameter(str(document["errors"][0]["where"])))
        case "try-later":
            seconds = document.get("seconds")
            known = float(seconds) if seconds is not None else seconds_in(retry_after)
            return TryLater(told, seconds=known)
        case "unavailable":
            if "may_be_recorded" in document:
                return LedgerUnavailable(told, may_be_recorded=document["may_be_recorded"] is True)
            return DataError(told)
        case "missed":
            return Missed(told)
    return DiscreetError(told)


def _refused(document: Mapping[str, Any]) -> Refused:
    return Refused(
        code=shown(document["code"]),
        line=int(document["line"]),
        column=int(document["column"]),
        reason=shown(document["reason"]),
        remedy=shown(document["remedy"]),
    )


def _budget_exceeded(document: Mapping[str, Any]) -> BudgetExceeded:
    account, offer = document.get("account"), document.get("offer")
    found = BudgetExceeded(
        used=float(document.get("used", math.inf)),
        would_be=float(document.get("would_be", math.inf)),
        budget=shown(document["budget"]),
        account=None if account is None else shown(account),
        still=shown(document["still"]),
        way_out=shown(document["way_out"]),
    )
    if offer is not None:
        found.offer = NoisierOffer(
            loss=from_json(offer["loss"]),
            factor=float(offer["factor"]),
            error=None if offer["error"] is None else float(offer["error"]),
        )
    return found


def _parameter(where: str) -> str:
    """Return the parameter in the place of an error: ``epsilon`` of ``epsilon.float``."""
    return _HERE.get(where, shown(where).partition(".")[0])


def seconds_in(header: str | None) -> float | None:
    """Return what ``Retry-After`` says, if it says so in seconds.

    >>> seconds_in("3"), seconds_in("Fri, 31 Dec 1999 23:59:59 GMT")
    (3.0, None)
    """
    text = (header or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def shown(text: object) -> str:
    r"""Return a text from outside such that it cannot move a terminal's cursor.

    >>> shown("no\x1b[2J such\ntable")
    'no[2J such\ntable'
    """
    told = text[:_LONGEST] if isinstance(text, str) else ""
    return "".join(char for char in told if char.isprintable() or char == "\n")
