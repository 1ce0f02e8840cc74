"""One dataset: what is public about it, what a question would cost, and paying for it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from discreet._json import read_json
from discreet.accounting import from_json
from discreet.errors import DiscreetError
from discreet.privacy import Guarantee
from discreet.service.identity.login import Role
from discreet.service.pages.areas.analyst.meaning import meaning
from discreet.service.pages.areas.analyst.offers import (
    CONFIDENCES,
    PAYMENTS,
    Asked,
    read_asked,
)
from discreet.service.pages.page import PageCall, Redirect
from discreet.service.records.jobs import JobState
from discreet.service.web.handlers import asking, books
from discreet.service.web.problems import problem_of, problem_of_body

__all__ = ["dataset", "run"]

_PATIENCE: Final = 8.0  # seconds for which a browser waits; then its page looks again by itself
_LOOKS: Final = 0.1


async def dataset(call: PageCall) -> Mapping[str, Any]:
    """Describe a dataset, and price the question of the query. Nothing is charged."""
    described = await call.ask(asking.dataset)
    asked = read_asked(call)
    found = {
        "dataset": described,
        "budgets": await call.ask(books.budgets),
        "asked": asked.fields(),
        "payments": PAYMENTS,
        "confidences": CONFIDENCES,
        "may_ask": call.who.is_a(Role.ANALYST),
        "quote": None,
        "degraded": None,
        "may_degrade": False,
        "problem": None,
        "job": await _job(call),
    }
    if asked.question and found["may_ask"]:
        found |= await _priced(call, asked, described["policy"])
    found["meaning"] = await _meant(call, found["quote"], described, asked.prior)
    return found


async def _meant(
    call: PageCall, quote: Mapping[str, Any] | None, described: Mapping[str, Any], prior: float
) -> Mapping[str, Any]:
    """Say what the answer would tell about somebody, or else what the whole budget does."""
    price = quote or described["guarantee"]
    loss = None if quote is None else from_json(quote["loss"])
    told = partial(
        meaning,
        Guarantee(epsilon=price["epsilon"], delta=price["delta"]),
        loss=loss,
        neighbours=described["neighbours"],
        prior=prior,
    )
    return await call.gateway.desk.free(told, call.who)


async def _priced(call: PageCall, asked: Asked, policy: str) -> dict[str, Any]:
    """Return the quote, or what is wrong; and where it does not fit, what noise would."""
    try:
        body = asked.body()
        quote = await call.ask(asking.quote, body)
        degraded = None
        if not quote["fits"] and quote["fits_up_to"] is not None:
            payment = {"epsilon": quote["fits_up_to"], "share": None, "within": None}
            degraded = await call.ask(asking.quote, body.model_copy(update=payment))
    except ValidationError as error:
        return {"problem": problem_of_body(error).document}
    except DiscreetError as error:
        return {"problem": problem_of(error).document}
    may_degrade = degraded is not None and policy == "degrade"
    return {"quote": quote, "degraded": degraded, "may_degrade": may_degrade}


async def _job(call: PageCall) -> dict[str, Any] | None:
    """Say how far the answer is that this browser waits for."""
    name = call.query.get("job")
    if name is None:
        return None
    found = await call.ask(asking.find_job, path={"job": name})
    return {
        "id": found["id"],
        "state": found["state"],
        "problem": found["problem"],
        "entry": _release_of(found["answer"]),
    }


async def run(call: PageCall) -> Redirect:
    """Pay for a question and lead to its answer; the same form sent again pays for nothing."""
    asked = read_asked(call)
    body = asked.body(degrade=call.form.get("degrade") == "yes")
    job = await call.ask(asking.begin_job, body, key=call.form.get("key") or None)
    job = await _over(call, job)
    entry = _release_of(job["answer"])
    if entry is not None:
        return Redirect(to=f"/answers/{entry}")
    return Redirect(to=asked.address(call.dataset, job=job["id"]))


async def _over(call: PageCall, job: dict[str, Any]) -> dict[str, Any]:
    """Wait for the end of a job, for a moment."""
    path = {"job": job["id"]}
    for _ in range(int(_PATIENCE / _LOOKS)):
        if JobState(job["state"]).is_over:
            break
        await asyncio.sleep(_LOOKS)
        job = await call.ask(asking.find_job, path=path)
    return job


def _release_of(answer: Mapping[str, Any] | None) -> int | None:
    """Return the entry under which an answer is kept."""
    if answer is None:
        return None
    entries = [read_json(body.encode()) for body in answer["receipt"]]
    return next((int(one["index"]) for one in entries if one["kind"] == "release"), None)
