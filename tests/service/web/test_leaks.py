"""No canary comes out of any route, log, metric or file; leaks that are planted do, and are found.

Each scan fails a gateway that leaks nothing with probability at most 1e-9.
"""

import json
import logging
import math

import pytest
from gateway_sites import GRANT, KEY
from planted_sites import QUESTIONS, planted_site, rows_of

from discreet import audit
from discreet.audit import WebRequest
from discreet.service import Gateway, create_app
from discreet.service.desk.desk import Desk
from discreet.service.web import memory, problems, resource
from discreet.service.web.handlers import answers

pytestmark = pytest.mark.lengthy
DATASET = "/v1/datasets/people"


@pytest.fixture
def planted():
    return audit.plant(rows=300)


@pytest.fixture
def site(planted, tmp_path):
    return planted_site(planted, tmp_path)


def requests(site):
    """Yield every route, by everybody, with good questions and with bad ones."""

    def one(who, method, path, body=None, **more):
        headers = {**site.header(who), "Content-Type": "application/json", **more}
        content = b"" if body is None else json.dumps(body).encode()
        return WebRequest(path=path, method=method, headers=headers, body=content)

    for number, question in enumerate(QUESTIONS):
        body = {"question": question, "epsilon": 0.01}
        yield one("ana", "POST", f"{DATASET}/quote", body)
        key = {"Idempotency-Key": f"key {number}"}
        yield one("ana", "POST", f"{DATASET}/query", body, **key)
        yield one("ana", "POST", f"{DATASET}/query", body, **key)
        yield one("ben", "POST", f"{DATASET}/query", body)
        yield one("ana", "POST", f"{DATASET}/jobs", {**body, "epsilon": 0.02})
    plan = {"questions": QUESTIONS[:2], "epsilon": 0.1, "release": True}
    yield one("ana", "POST", f"{DATASET}/plan", plan)
    for who in ("ana", "ben", "chris", "audrey", "scoped", None):
        for path in (
            "/v1/me", "/v1/datasets", DATASET, f"{DATASET}/budgets", f"{DATASET}/releases?last=500",
            *(f"/v1/receipts/{number}" for number in range(30)), "/v1/jobs/none", "/v1/keys",
            "/v1/ledger/checkpoint", "/v1/ledger/consistency", "/healthz", "/readyz", "/metrics",
            "/v1/openapi.json", "/nowhere", f"{DATASET}/query",
        ):  # fmt: skip
            yield one(who, "GET", path)
    for path, body in (
        (f"{DATASET}/grants", GRANT), (f"{DATASET}/limits", {"epsilon": 1, "analyst": "zoe"}),
        (f"{DATASET}/reopen", {"reason": "looked"}), ("/v1/keys", KEY),
        ("/v1/datasets", {"declaration": "name = 'x'"}),
    ):  # fmt: skip
        yield one("chris", "POST", path, body)
    yield one("chris", "PUT", f"{DATASET}/policy", {"policy": "degrade", "reason": "board"})
    yield one("ana", "POST", f"{DATASET}/query", {"question": QUESTIONS[0], "epsilon": 99})


def scanned(site, planted, *, wrap=lambda app: app):
    app = wrap(create_app(Gateway.open(site.settings)))

    async def surface(scope, receive, send):
        await app(scope, receive, send)

    return audit.scan(
        surface,
        planted,
        requests=requests(site),
        folders=[site.folder],
        excluded=[site.folder / "data" / "people.csv"],
        epsilon=0.5,  # what all of the questions cost together
    )


def test_nothing_comes_out_of_any_route_log_metric_or_file(site, planted):
    report = scanned(site, planted)
    assert report.passed, report
    assert report.outputs > 500


# Leaks, each planted in a test build ---------------------------------------------------------


def tell_aggregates(site, planted, patch):
    """Log the exact sums that an answer was made from."""
    ask = Desk.answer

    async def answer(self, *args, **more):
        for team in ("amber", "blue", "green", "red"):
            pay = [one["salary"] for one in rows_of(planted) if one["team"] == team]
            logging.getLogger("discreet.service").debug("%s: sum %r", team, math.fsum(pay))
        return await ask(self, *args, **more)

    patch.setattr(Desk, "answer", answer)


def tell_errors(site, planted, patch):
    """Answer with str(exception), whose words may be a row's."""

    async def answer(self, *args, **more):
        raise KeyError(rows_of(planted)[0]["name"])

    patch.setattr(Desk, "answer", answer)
    patch.setattr(resource, "internal", lambda error: problems.problem("internal", str(error)))


def log_errors(site, planted, patch):
    """Write the traceback of what failed to the log."""

    async def answer(self, *args, **more):
        raise KeyError(rows_of(planted)[0]["email"])

    def internal(error):
        logging.getLogger("discreet.service").error("failed", exc_info=error)
        return problems.problem("internal", "something failed.")

    patch.setattr(Desk, "answer", answer)
    patch.setattr(resource, "internal", internal)


def show_every_key(site, planted, patch):
    """List the groups that exist, without a threshold."""
    made = answers.answer_document

    def document(result, **more):
        return {**made(result, **more), "groups": sorted(set(planted.table["city"]))}

    patch.setattr("discreet.service.web.handlers.asking.answer_document", document)


def show_in_header(site, planted, patch):
    """Count what is in the engine's cache by the names in it."""
    patch.setattr(
        resource, "_HEADERS",
        (*resource._HEADERS, (b"x-cache", rows_of(planted)[3]["name"].encode())),
    )  # fmt: skip


def hash_identities(site, planted, patch):
    """Tag answers with unsalted digests of the rows behind them."""
    import hashlib

    tag = hashlib.sha256(str(planted.table["person_id"][5]).encode()).hexdigest()
    patch.setattr(resource, "_HEADERS", (*resource._HEADERS, (b"x-trace", tag.encode())))


def meter_salaries(site, planted, patch):
    """Give Prometheus a number that follows from the data."""
    page = resource.Metrics.page

    def more(self, gateway):
        return (
            page(self, gateway)
            + "".join(f"pay {one!r}\n" for one in planted.table["salary"][:9]).encode()
        )

    patch.setattr(resource.Metrics, "page", more)


def leave_a_file(site, planted, patch):
    """Keep what was read beside the ledger."""
    ask = Desk.answer

    async def answer(self, *args, **more):
        (site.folder / "debug.csv").write_text("\n".join(planted.table["email"][:20]))
        return await ask(self, *args, **more)

    patch.setattr(Desk, "answer", answer)


def name_people_in_problems(site, planted, patch):
    """Say in a refusal which value did not fit."""
    made = problems.problem

    def problem(name, detail, **facts):
        return made(name, detail + f" (as in {planted.table['name'][8]})", **facts)

    patch.setattr(problems, "problem", problem)


def keep_rows_in_receipts(site, planted, patch):
    """Put an example row beside a proof."""
    made = answers.receipt_document

    def document(receipt):
        return {**made(receipt), "example": str(rows_of(planted)[2])}

    patch.setattr("discreet.service.web.handlers.books.receipt_document", document)


PLANTED = [
    tell_aggregates, tell_errors, log_errors, show_every_key, show_in_header, hash_identities,
    meter_salaries, leave_a_file, name_people_in_problems, keep_rows_in_receipts,
]  # fmt: skip


# One of them with every change; all of them in `make audit`.
LEAKS = [PLANTED[0], *(pytest.param(leak, marks=pytest.mark.slow) for leak in PLANTED[1:])]


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_a_planted_leak_is_found(site, planted, monkeypatch, leak):
    leak(site, planted, monkeypatch)
    report = scanned(site, planted)
    assert not report.passed, report


# The wrong analyst ----------------------------------------------------------------------------


QUESTIONS_OF_OTHERS = "SELECT region, COUNT(*) AS n FROM others GROUP BY region"


def test_a_cache_that_forgets_who_asked_is_found(site, monkeypatch):
    """The ledger hands recorded answers on, for their price; a cache would do so for none."""
    body = {"question": QUESTIONS_OF_OTHERS, "epsilon": 0.1}

    def entries_of_ben():
        with site.served() as client:
            for who in ("ana", "ben"):
                client.post("/v1/datasets/others/query", json=body, headers=site.header(who))
            path = "/v1/datasets/others/releases"
            return client.get(path, headers=site.header("ben")).json()["entries"]

    assert [one["kind"] for one in entries_of_ben()] == ["reask"]
    get, put = memory.AnswerMemory.get, memory.AnswerMemory.put
    monkeypatch.setattr(memory.AnswerMemory, "get", lambda self, key: get(self, ("", *key[1:])))
    monkeypatch.setattr(
        memory.AnswerMemory, "put",
        lambda self, key, version, body: put(self, ("", *key[1:]), version, body),
    )  # fmt: skip
    body["epsilon"] = 0.2
    assert [one["kind"] for one in entries_of_ben()] == ["reask"]  # nothing new: it was a leak
