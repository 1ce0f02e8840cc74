"""The one page of the explorer: a price before each answer, answers, and the budget going down."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from discreet.errors import BudgetExceeded, DiscreetError, ParameterError
from discreet.service.pages.areas.explorer.company import (
    DELTA,
    EPSILON,
    LONGEST,
    PEOPLE,
    READY,
    WHO,
    people,
)
from discreet.service.pages.areas.explorer.methods import ahead, so_far
from discreet.service.pages.areas.explorer.story import answers_of, burned, results_of
from discreet.service.pages.areas.explorer.visits import Visit, visits_of
from discreet.service.pages.page import PageCall
from discreet.service.web.handlers.answers import quote_document
from discreet.service.web.problems import problem_of
from discreet.tables import Offer

__all__ = ["LEAST", "explorer", "question_of"]

USUAL: Final = 0.5  # epsilon of a question
LEAST: Final = 0.05  # so that a budget is a hundred answers at most
_WORTH: Final = 0.01  # with less there is nothing but noise, which nobody is offered


async def explorer(call: PageCall) -> Mapping[str, Any]:
    """Show a session as it is, and what the question in the address would cost."""
    question, epsilon, problem = READY[0][1], USUAL, None
    try:
        question, epsilon = question_of(call)
    except ParameterError as error:
        problem = problem_of(error).document
    looked = partial(
        _looked, question=question, epsilon=epsilon, was_refused="refused" in call.query
    )
    found = await visits_of(call.gateway).look(call.visitor, looked)
    if problem is not None:
        found |= {"quote": None, "ahead": None, "problem": problem}
    return {
        "total": EPSILON,
        "delta": DELTA,
        "size": PEOPLE,
        "least": LEAST,
        "longest": LONGEST,
        "question": call.query.get("question", question)[: 2 * LONGEST],
        "epsilon": epsilon,
        "ready": [{"name": name, "question": text} for name, text in READY],
        **found,
    }


def question_of(call: PageCall) -> tuple[str, float]:
    """Return the question and the epsilon of a request."""
    told = {**call.query, **call.form}
    question = told.get("question", READY[0][1]).strip()
    if len(question) > LONGEST:
        raise ParameterError(
            f"a question here has at most {LONGEST} characters, got {len(question)}.",
            parameter="question",
        )
    return question, call.number("epsilon", USUAL, least=LEAST, most=EPSILON)


def _looked(visit: Visit, *, question: str, epsilon: float, was_refused: bool) -> dict[str, Any]:
    results = results_of(visit)
    account = visit.tables.account
    is_revealed = visit.folder.is_revealed
    return {
        "has_begun": visit.has_begun,
        "left": visit.tables.remaining,
        "policy": account.policy,
        "burned": burned(visit),
        "answers": answers_of(visit, results),
        "methods": so_far([one.loss for _, one in results]),
        "is_revealed": is_revealed,
        "people": _rows(visit.folder.seed) if is_revealed else None,
        "tables": visit.tables.tables,
        **_priced(visit, question, epsilon, was_refused=was_refused),
        "is_known": any(
            (one.question, one.epsilon) == (question, epsilon) for _, one in results
        ),
    }  # fmt: skip


def _priced(visit: Visit, question: str, epsilon: float, *, was_refused: bool) -> dict[str, Any]:
    """Price a question, and the noisier answer where that is all that fits."""
    offer = Offer(epsilon=epsilon, who=WHO)
    noisier, problem = None, None
    try:
        quote = visit.tables.quote(question, offer)
        most = quote.fits_up_to or 0.0
        if not quote.fits and most >= _WORTH and visit.tables.account.policy == "degrade":
            fitting = Offer(epsilon=most, who=WHO)
            noisier = quote_document(visit.tables.quote(question, fitting))
        if was_refused and not quote.fits:
            # Nothing is ever given back to a budget, so what does not fit now is refused.
            visit.tables.sql(question, offer)
    except BudgetExceeded as error:
        problem = problem_of(error).document
    except DiscreetError as error:
        return {
            "quote": None, "noisier": None, "ahead": None, "problem": problem_of(error).document,
        }  # fmt: skip
    return {
        "quote": quote_document(quote),
        "noisier": noisier,
        "ahead": ahead(quote.loss),
        "problem": problem,
    }


def _rows(seed: int) -> list[dict[str, Any]]:
    columns = {name: column.tolist() for name, column in people(seed).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
