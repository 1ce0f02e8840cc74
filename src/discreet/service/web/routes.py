"""All routes, in one table: the application, its document and its tests are made from it."""

from discreet.service.identity.login import Role
from discreet.service.web import bodies
from discreet.service.web.handlers import asking, books, custody, health
from discreet.service.web.metrics import MEDIA_TYPE, Metrics
from discreet.service.web.route import ANYBODY, Handler, Number, Route

__all__ = ["routes"]

_ANALYST = (Role.ANALYST,)
_CUSTODIAN = (Role.CUSTODIAN,)
_OF_QUESTION = ("refused", "budget-exceeded", "unavailable")
_OF_ANSWER = (*_OF_QUESTION, "already-charged", "missed", "conflict")
_OF_ACT = ("conflict", "unavailable")
_LAST = Number(
    name="last", summary="How many of the latest entries to look at.", default=100, most=1000
)


def routes(metrics: Metrics, document: Handler, *, is_metered_openly: bool) -> list[Route]:
    """Return all routes; ``document`` serves their own description."""
    return [*_asking(), *_books(), *_custody(), *_health(metrics, document, is_metered_openly)]


def _asking() -> list[Route]:
    return [
        Route(
            method="GET", path="/v1/me", name="me", roles=ANYBODY,
            summary="Who the gateway takes you for", handler=asking.me, answer=bodies.LoginBody,
        ),
        Route(
            method="GET", path="/v1/datasets", name="datasets", roles=ANYBODY,
            summary="The datasets that you may see", handler=asking.datasets,
            answer=bodies.DatasetsBody,
        ),
        Route(
            method="GET", path="/v1/datasets/{dataset}", name="dataset", roles=ANYBODY,
            summary="What is public about a dataset: tables, columns, bounds, budget",
            handler=asking.dataset, answer=bodies.DatasetBody,
            problems=("unavailable",),
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/quote", name="quote", roles=_ANALYST,
            summary="What a question costs and how far off its answer would be; free",
            handler=asking.quote, body=bodies.QuestionBody, answer=bodies.QuoteBody,
            problems=_OF_QUESTION,
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/query", name="query", roles=_ANALYST,
            summary="Pay for a question and answer it; what was answered before is free",
            handler=asking.query, body=bodies.QuestionBody, answer=bodies.AnswerBody,
            problems=_OF_ANSWER, takes_key=True, is_remembered=True,
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/plan", name="plan", roles=_ANALYST,
            summary="Price many questions together, and with release pay and answer them",
            handler=asking.plan, body=bodies.PlanBody, answer=bodies.PlannedBody,
            problems=_OF_ANSWER, takes_key=True,
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/jobs", name="begin_job", roles=_ANALYST,
            summary="Answer a question in the background", handler=asking.begin_job,
            body=bodies.QuestionBody, answer=bodies.JobBody, status=202, problems=("unavailable",),
            takes_key=True,
        ),
        Route(
            method="GET", path="/v1/jobs/{job}", name="job", roles=_ANALYST,
            summary="How far a job of yours is, and what came out", handler=asking.find_job,
            answer=bodies.JobBody, problems=("unavailable",),
        ),
    ]  # fmt: skip


def _books() -> list[Route]:
    return [
        Route(
            method="GET", path="/v1/datasets/{dataset}/budgets", name="budgets", roles=ANYBODY,
            summary="What is left: your budgets, or all of them for custodians and auditors",
            handler=books.budgets, answer=bodies.BudgetsBody, problems=("unavailable",),
        ),
        Route(
            method="GET", path="/v1/datasets/{dataset}/releases", name="releases", roles=ANYBODY,
            summary="Entries of the ledger: your own, or all for custodians and auditors",
            handler=books.entries, answer=bodies.EntriesBody, numbers=(_LAST,),
            problems=("unavailable",),
        ),
        Route(
            method="GET", path="/v1/receipts/{entry}", name="receipt", roles=ANYBODY,
            summary="An entry with the proof that it is in the ledger", handler=books.receipt,
            answer=bodies.ReceiptBody, problems=("unavailable",),
        ),
        Route(
            method="GET", path="/v1/ledger/checkpoint", name="checkpoint", roles=None,
            summary="The signed checkpoint of the ledger, and the key that signs it",
            handler=books.checkpoint, answer=bodies.CheckpointBody, problems=("unavailable",),
        ),
        Route(
            method="GET", path="/v1/ledger/consistency", name="consistency", roles=None,
            summary="The proof that the ledger of an earlier checkpoint was only added to",
            handler=books.consistency, answer=bodies.ConsistencyBody,
            numbers=(
                Number(name="old", summary="Entries of the earlier checkpoint.", default=1),
                Number(name="new", summary="Entries of the later one; 0: as it is now.", default=0),
            ),
            problems=("unavailable", "conflict"),
        ),
    ]  # fmt: skip


def _custody() -> list[Route]:
    return [
        Route(
            method="POST", path="/v1/datasets", name="register", roles=_CUSTODIAN,
            summary="Protect a table in the gateway's data folder, and serve it",
            handler=custody.register, body=bodies.RegistrationBody, answer=bodies.DatasetBody,
            status=201, problems=_OF_ACT,
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/grants", name="grant", roles=_CUSTODIAN,
            summary="Widen the total or a limit", handler=custody.grant, body=bodies.GrantBody,
            answer=bodies.ActBody, problems=_OF_ACT,
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/limits", name="limit", roles=_CUSTODIAN,
            summary="Limit an analyst, a purpose or a period", handler=custody.limit,
            body=bodies.LimitBody, answer=bodies.ActBody, problems=_OF_ACT,
        ),
        Route(
            method="PUT", path="/v1/datasets/{dataset}/policy", name="policy", roles=_CUSTODIAN,
            summary="Change what happens at exhaustion", handler=custody.policy,
            body=bodies.PolicyBody, answer=bodies.ActBody, problems=_OF_ACT,
        ),
        Route(
            method="POST", path="/v1/datasets/{dataset}/reopen", name="reopen", roles=_CUSTODIAN,
            summary="Let a dataset that rests after missed deadlines answer again",
            handler=custody.reopen, body=bodies.ReasonBody, answer=bodies.ActBody, problems=_OF_ACT,
        ),
        Route(
            method="GET", path="/v1/keys", name="keys", roles=_CUSTODIAN,
            summary="All API keys, without their secrets", handler=custody.keys,
            answer=bodies.KeysBody, problems=("unavailable",),
        ),
        Route(
            method="POST", path="/v1/keys", name="make_key", roles=_CUSTODIAN,
            summary="Make an API key; its secret is shown once", handler=custody.make_key,
            body=bodies.NewKeyBody, answer=bodies.KeyMadeBody, status=201, problems=_OF_ACT,
        ),
        Route(
            method="DELETE", path="/v1/keys/{key}", name="revoke_key", roles=_CUSTODIAN,
            summary="End an API key for good, within a second everywhere",
            handler=custody.revoke_key, answer=bodies.ActBody, problems=_OF_ACT,
        ),
    ]  # fmt: skip


def _health(metrics: Metrics, document: Handler, is_metered_openly: bool) -> list[Route]:
    return [
        Route(
            method="GET", path="/healthz", name="alive", roles=None,
            summary="Whether the process answers", handler=health.alive, answer=bodies.StatusBody,
        ),
        Route(
            method="GET", path="/readyz", name="ready", roles=None,
            summary="Whether ledger and records answer", handler=health.ready,
            answer=bodies.StatusBody, problems=("unavailable",),
        ),
        Route(
            method="GET", path="/metrics", name="metrics",
            roles=None if is_metered_openly else (Role.CUSTODIAN, Role.AUDITOR),
            summary="Numbers for Prometheus, none of which follows from data",
            handler=health.metrics_page(metrics), media_type=MEDIA_TYPE, problems=("unavailable",),
        ),
        Route(
            method="GET", path="/v1/openapi.json", name="openapi", roles=None,
            summary="This document", handler=document,
        ),
    ]  # fmt: skip
