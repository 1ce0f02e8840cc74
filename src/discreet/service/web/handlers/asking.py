"""What analysts do: look at what there is, ask for a price, ask."""

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet._json import read_json
from discreet.errors import DiscreetError
from discreet.service.records.jobs import GatewayJob, JobState
from discreet.service.web.handlers.answers import answer_document, plan_document, quote_document
from discreet.service.web.problems import internal, problem_of
from discreet.service.web.route import WebCall, WebReply
from discreet.tables import Protected

if TYPE_CHECKING:
    from discreet.service.web.bodies import PlanBody, QuestionBody

__all__ = ["begin_job", "dataset", "datasets", "find_job", "me", "plan", "query", "quote"]


async def me(call: WebCall) -> WebReply:
    """Say who the gateway takes the caller for."""
    login = call.who
    return WebReply(
        document={
            "who": login.who,
            "roles": sorted(login.roles),
            "datasets": call.gateway.desk.visible(login),
        }
    )


async def datasets(call: WebCall) -> WebReply:
    """List what a login may see."""
    return WebReply(document={"datasets": call.gateway.desk.visible(call.who)})


async def dataset(call: WebCall) -> WebReply:
    """Say what is public about a dataset."""
    served = call.gateway.desk.served(call.who, call.dataset)
    document = await call.gateway.desk.free(partial(_described, served.tables), call.who)
    return WebReply(document={**document, "answer_after": served.seconds})


def _described(tables: Protected) -> dict[str, Any]:
    catalog, guarantee = tables.catalog, tables.account.guarantee
    return {
        "name": tables.name,
        "unit": str(catalog.unit),
        "neighbours": str(catalog.neighbours),
        "guarantee": {"epsilon": float(guarantee.epsilon), "delta": float(guarantee.delta)},
        "policy": tables.account.policy,
        "remaining": tables.remaining,
        "size": catalog.size,
        "rows": catalog.rows,
        "groups": catalog.groups,
        "tables": [
            {
                "name": table.name,
                "is_public": table.is_public,
                "columns": [
                    {
                        "name": column.name,
                        "type": column.type,
                        "kind": column.kind,
                        "bounds": None
                        if column.bounds is None
                        else [float(end) for end in column.bounds],
                        "keys": None if column.keys is None else list(column.keys),
                    }
                    for column in table.columns
                ],
            }
            for table in catalog.tables
        ],
    }


async def quote(call: WebCall) -> WebReply:
    """Say what a question costs."""
    body: QuestionBody = call.body
    found = await call.gateway.desk.quote(call.who, call.dataset, body.question, body.offer())
    return WebReply(document=quote_document(found))


async def query(call: WebCall) -> WebReply:
    """Pay and answer."""
    body: QuestionBody = call.body
    result = await call.gateway.desk.answer(
        call.who, call.dataset, body.question, body.offer(key=call.key), degrade=body.degrade
    )

    def again() -> bytes:
        document = answer_document(result, is_recalled=True)
        return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()

    return WebReply(
        document=answer_document(result), again=again, version=result.facts.get("data_version")
    )


async def plan(call: WebCall) -> WebReply:
    """Price many questions together, and answer them if that is asked for."""
    body: PlanBody = call.body
    desk = call.gateway.desk
    workload = await desk.plan(
        call.who, call.dataset, body.questions, body.offer(key=call.key), weights=body.weights
    )
    answers = await desk.release(call.who, call.dataset, workload) if body.release else None
    return WebReply(document=await desk.free(partial(plan_document, workload, answers), call.who))


async def begin_job(call: WebCall) -> WebReply:
    """Answer in the background."""
    body: QuestionBody = call.body
    body.offer()  # what cannot be paid like this is refused now

    async def work() -> bytes:
        try:
            document = (await query(call)).document
        except DiscreetError as error:
            return problem_of(error).body
        except Exception as error:
            return internal(error).body
        return json.dumps(document, allow_nan=False).encode()

    # Another question with the same key is another job, which the key then refuses.
    key = None if call.key is None else f"{call.key} {body.model_dump_json()}"
    made = await call.gateway.jobs.begin(call.who, call.dataset, work, key=key)
    return WebReply(document=_job_document(made), status=202)


async def find_job(call: WebCall) -> WebReply:
    """Say how far a job is, and what came out."""
    return WebReply(
        document=_job_document(await call.gateway.jobs.find(call.who, call.path["job"]))
    )


def _job_document(job: GatewayJob) -> dict[str, Any]:
    outcome = None if job.outcome is None else read_json(job.outcome)
    return {
        "id": job.id,
        "dataset": job.dataset,
        "state": str(job.state),
        "answer": outcome if job.state is JobState.DONE else None,
        "problem": outcome if job.state is JobState.FAILED else None,
    }
