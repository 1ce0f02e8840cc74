"""What goes wrong, as RFC 9457 has it: one document for each kind, and one for all else."""

import json
import logging
import math
import traceback
from dataclasses import dataclass, field
from typing import Any, Final, final

from pydantic import ValidationError

from discreet.accounting import to_json
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
from discreet.service.desk.unavailable import told_of_outage

__all__ = [
    "KINDS",
    "MEDIA_TYPE",
    "Problem",
    "ProblemKind",
    "internal",
    "problem",
    "problem_of",
    "problem_of_body",
]

MEDIA_TYPE: Final = "application/problem+json"
_logger = logging.getLogger("discreet.service")


@final
@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem: its name, its status, and what it is called."""

    name: str
    status: int
    title: str


_KINDS = (
    ProblemKind("bad-request", 400, "The request cannot be read"),
    ProblemKind("unauthenticated", 401, "A login is needed"),
    ProblemKind("not-allowed", 403, "The login may not do this"),
    ProblemKind("not-found", 404, "There is no such thing"),
    ProblemKind("bad-method", 405, "The method is not for this address"),
    ProblemKind("already-charged", 409, "The request was charged before"),
    ProblemKind("budget-exceeded", 409, "The budget has no room for this"),
    ProblemKind("conflict", 409, "The ledger does not allow this"),
    ProblemKind("too-large", 413, "The request is too large"),
    ProblemKind("bad-media-type", 415, "The request must be JSON"),
    ProblemKind("invalid", 422, "A value is not as it must be"),
    ProblemKind("refused", 422, "The question cannot be answered privately"),
    ProblemKind("try-later", 429, "The gateway takes no more at the moment"),
    ProblemKind("internal", 500, "Something failed inside the gateway"),
    ProblemKind("unavailable", 503, "The dataset or the ledger cannot be reached"),
    ProblemKind("missed", 504, "The answer was not ready in time"),
)
KINDS: Final = {kind.name: kind for kind in _KINDS}


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: its kind, what happened in words, and facts for programs."""

    kind: ProblemKind
    detail: str
    facts: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """The document, as data."""
        return {
            "type": f"urn:discreet:problem:{self.kind.name}",
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": self.detail,
            **self.facts,
        }

    @property
    def body(self) -> bytes:
        """The document."""
        return json.dumps(self.document, allow_nan=False).encode()


def problem(name: str, detail: str, **facts: Any) -> Problem:
    """Return a problem of a kind."""
    return Problem(KINDS[name], detail, facts)


def problem_of(error: DiscreetError) -> Problem:
    """Return what a refusal of the library is called here. All of its words are public.

    But for where a ledger or the records are, and why they do not answer: that is for the log.
    """
    told = str(error)
    match error:
        case Unauthenticated():
            headers = {"WWW-Authenticate": 'Bearer realm="discreet"'}
            return Problem(KINDS["unauthenticated"], told, headers=headers)
        case NotAllowed():
            return problem("not-allowed", told)
        case AccountNotFound():
            return problem("not-found", told)
        case AlreadyCharged():
            return problem("already-charged", told, entry=error.entry)
        case BudgetExceeded():
            return problem("budget-exceeded", told, **_of_budget(error))
        case Refused():
            place = {"code": error.code, "line": error.line, "column": error.column}
            return problem("refused", told, **place, reason=error.reason, remedy=error.remedy)
        case TryLater():
            seconds = None if error.seconds is None else max(1, math.ceil(error.seconds))
            headers = {} if seconds is None else {"Retry-After": str(seconds)}
            return Problem(KINDS["try-later"], told, {"seconds": seconds}, headers)
        case Missed():
            return problem("missed", told)
        case ParameterError():
            where = [{"where": error.parameter, "what": told}]
            return problem("invalid", told, errors=where)
        case LedgerUnavailable():
            may_be = error.may_be_recorded
            return problem("unavailable", told_of_outage(error), may_be_recorded=may_be)
        case DataError():
            return problem("unavailable", told)
        case LedgerError():
            return problem("conflict", told)
    return internal(error)


def _of_budget(error: BudgetExceeded) -> dict[str, Any]:
    offer = error.offer if isinstance(error.offer, NoisierOffer) else None
    known = {"used": error.used, "would_be": error.would_be}
    return {
        **{name: share for name, share in known.items() if math.isfinite(share)},
        "budget": error.budget,
        "still": error.still,
        "way_out": error.way_out,
        "account": error.account,
        "offer": None
        if offer is None
        else {"loss": to_json(offer.loss), "factor": offer.factor, "error": offer.error},
    }


def problem_of_body(error: ValidationError) -> Problem:
    """Return what is wrong with a body, without the values that it holds."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        return problem("bad-request", "the body is no JSON that can be read.")
    errors = [
        {"where": ".".join(map(str, one["loc"])) or "body", "what": str(one["msg"])}
        for one in found[:20]
    ]
    told = "; ".join(f"{one['where']}: {one['what']}" for one in errors[:3])
    return problem("invalid", told, errors=errors)


def internal(error: BaseException) -> Problem:
    """Return the one document for whatever nobody foresaw; the log gets its place, not its words.

    An error's own text, and the lines of its traceback's values, may show data. The names of the
    files and lines that it passed through do not.
    """
    frames = traceback.extract_tb(error.__traceback__)
    told = {
        "event": "internal",
        "error": type(error).__name__,
        "at": [f"{frame.filename.rpartition('discreet/')[2]}:{frame.lineno}" for frame in frames],
    }
    _logger.error(json.dumps(told, sort_keys=True))
    return problem(
        "internal",
        "something failed inside the gateway. What was charged stays charged. Its log says where.",
    )
