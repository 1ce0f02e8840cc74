"""Asking over HTTP: prices, answers, keys of requests, exhaustion, jobs, plans."""

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gateway_sites import COUNT, make_site, people

import discreet
from discreet.ledger import Ledger, Receipt
from discreet.tables import Result, read_quote

QUERY = "/v1/datasets/people/query"
BY_REGION = {
    "question": "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people GROUP BY region",
    "epsilon": 1,
}


def test_a_quote_is_free_and_the_answer_costs_what_it_said(client, site):
    header = site.header("ana")
    quoted = client.post("/v1/datasets/people/quote", json=COUNT, headers=header).json()
    before = client.get("/v1/datasets/people/budgets", headers=header).json()["remaining"]
    answer = client.post(QUERY, json=COUNT, headers=header).json()
    assert before == 1
    assert answer["left"] == pytest.approx(quoted["remaining"])
    assert read_quote({k: v for k, v in quoted.items() if k != "text"}).share == quoted["share"]


def test_an_answer_can_be_rebuilt_and_its_receipt_proves_it(client, site):
    from discreet.ledger.verifier import check_receipt

    header = site.header("ana")
    answer = client.post(QUERY, json=BY_REGION, headers=header).json()
    document = answer["document"].encode()
    receipt = Receipt(bodies=tuple(answer["receipt"]))
    result = Result.from_json(document, receipt=receipt, left=answer["left"])
    assert result.to_json() == document
    assert [row["region"] for row in answer["rows"]] == ["north", "south"]
    assert answer["rows"][0]["n"] == result["n"][0]
    entry = json.loads(answer["receipt"][1])["index"]
    proof = client.get(f"/v1/receipts/{entry}", headers=header).text
    vkey = client.get("/v1/ledger/checkpoint").json()["vkey"]
    assert "proves" in str(check_receipt(proof, vkey, answer=document)) or check_receipt(
        proof, vkey, answer=document
    )


@pytest.mark.parametrize(
    "payment",
    [{"epsilon": 0.2}, {"epsilon": "1/5"}, {"share": "1%"}, {"share": 0.01}, {"within": 40},
     {"within": "10%", "of": 400}, {"share": "1/99"}, {"within": "81/2"},
     {"epsilon": 0.2, "confidence": 0.9},
     {"epsilon": 0.2, "purpose": "a report/audit"},
     {"epsilon": 0.2, "bounding": {"kind": "groups", "groups": 1, "rows": 1}}],
)  # fmt: skip
def test_every_way_to_pay(client, site, payment):
    body = {"question": "SELECT region, COUNT(*) AS n FROM people GROUP BY region", **payment}
    if "bounding" not in payment:
        body["question"] = COUNT["question"]
    found = client.post(QUERY, json=body, headers=site.header("ana"))
    assert found.status_code == 200, found.text


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({}, 422, "invalid"),
        ({"question": COUNT["question"]}, 422, "invalid"),
        ({**COUNT, "share": "5%"}, 422, "invalid"),
        ({**COUNT, "epsilon": -1}, 422, "invalid"),
        ({**COUNT, "epsilon": "0/0"}, 422, "invalid"),
        ({**COUNT, "epsilon": True}, 422, "invalid"),
        ({**COUNT, "epsilon": "0.5"}, 422, "invalid"),
        ({**COUNT, "more": 1}, 422, "invalid"),
        ({**COUNT, "question": 7}, 422, "invalid"),
        ({**COUNT, "question": ""}, 422, "invalid"),
        ({**COUNT, "question": "SELECT * FROM people"}, 422, "refused"),
        ({**COUNT, "question": "DROP TABLE people"}, 422, "refused"),
        ({**COUNT, "question": "SELECT \u0000"}, 422, "refused"),
        ({**COUNT, "epsilon": 1000}, 409, "budget-exceeded"),
        ({**COUNT, "epsilon": 1e308}, 422, "invalid"),
        ({**COUNT, "periods": ["2026-01-01"]}, 422, "invalid"),
        ({**COUNT, "bounding": {"kind": "norm"}}, 422, "invalid"),
    ],
)
def test_bad_questions_get_a_problem_and_cost_nothing(client, site, body, status, kind):
    header = site.header("ana")
    found = client.post(QUERY, json=body, headers=header)
    assert (found.status_code, found.json()["type"]) == (status, f"urn:discreet:problem:{kind}"), (
        found.text
    )
    assert found.json()["status"] == status
    assert client.get("/v1/datasets/people/budgets", headers=header).json()["remaining"] == 1


@pytest.mark.parametrize(
    ("content", "media", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 5000, "application/json", 400),
        (b'{"question": "\\ud800"}', "application/json", 400),
        (json.dumps(COUNT).encode(), "text/plain", 415),
        (json.dumps(COUNT).encode(), "", 415),
        (b" " * 100_000, "application/json", 413),
    ],
)
def test_bad_bodies_get_a_problem(client, site, content, media, status):
    header = {**site.header("ana"), "Content-Type": media}
    found = client.post(QUERY, content=content, headers=header)
    assert found.status_code == status, found.text
    assert found.headers["content-type"] == "application/problem+json"


def test_the_same_again_is_free_and_nobody_elses(client, site):
    """A second analyst gets the recorded answer from the ledger, and an entry of its own."""
    first = client.post(QUERY, json=COUNT, headers=site.header("ana")).json()
    again = client.post(QUERY, json=COUNT, headers=site.header("ana")).json()
    other = client.post(QUERY, json=COUNT, headers=site.header("ben")).json()
    assert again == {**first, "is_recalled": True}
    assert other["rows"] == first["rows"]
    listed = client.get("/v1/datasets/people/releases", headers=site.header("audrey")).json()
    proof = client.get(f"/v1/receipts/{first['entry']}", headers=site.header("ben"))
    assert proof.status_code == 200  # of an answer that one was given
    asked = [(one["kind"], one.get("who")) for one in listed["entries"]]
    assert asked[-3:] == [("charge", "ana"), ("release", None), ("reask", "ben")]


def test_an_answer_is_forgotten_when_the_data_changes(client, site):
    header = site.header("ana")
    first = client.post(QUERY, json=COUNT, headers=header).json()
    pq.write_table(people(rows=500, seed=7), site.folder / "data" / "people.parquet")
    time.sleep(1.1)  # data is believed unchanged for a second
    second = client.post(QUERY, json=COUNT, headers=header).json()
    assert not second["is_recalled"]
    assert second["entry"] > first["entry"]


def test_a_request_that_is_repeated_with_its_key_is_charged_once(client, site):
    header = {**site.header("ana"), "Idempotency-Key": "report 7"}
    first = client.post(QUERY, json=COUNT, headers=header).json()
    again = client.post(QUERY, json=COUNT, headers=header).json()
    assert again["entry"] == first["entry"]
    other = {**COUNT, "epsilon": 0.3}
    found = client.post(QUERY, json=other, headers=header)
    assert found.status_code == 422
    assert "belongs to another request" in found.json()["detail"]
    # Another login's key of the same text is another key.
    ben = {**site.header("ben"), "Idempotency-Key": "report 7"}
    assert client.post(QUERY, json=other, headers=ben).status_code == 200


@pytest.mark.parametrize("key", ["", "a" * 101, "caf\xe9"])
def test_keys_of_requests_are_short_and_plain(client, site, key):
    header = {**site.header("ana"), "Idempotency-Key": key.encode("latin-1")}
    assert client.post(QUERY, json=COUNT, headers=header).status_code == 422


def test_a_plan_is_priced_together_and_answered_on_request(client, site):
    header = site.header("ana")
    body = {"questions": [COUNT["question"], BY_REGION["question"]], "epsilon": 1}
    path = "/v1/datasets/people/plan"
    priced = client.post(path, json=body, headers=header).json()
    assert priced["fits"]
    assert priced["answers"] is None
    answered = client.post(path, json={**body, "release": True}, headers=header).json()
    assert [one["columns"] for one in answered["answers"]] == [["n"], ["region", "n", "pay"]]


def test_a_plan_is_charged_once_for_a_key(client, site):
    header = {**site.header("ana"), "Idempotency-Key": "both"}
    body = {"questions": [COUNT["question"], BY_REGION["question"]], "epsilon": 1, "release": True}
    assert client.post("/v1/datasets/people/plan", json=body, headers=header).status_code == 200
    left = client.get("/v1/datasets/people", headers=header).json()["remaining"]
    again = client.post("/v1/datasets/people/plan", json=body, headers=header)
    assert again.json()["type"].endswith("already-charged")
    assert "part of a plan" in again.json()["detail"]
    assert client.get("/v1/datasets/people", headers=header).json()["remaining"] == left


def test_a_job_is_answered_in_the_background_and_fetched_by_its_owner_only(client, site):
    begun = client.post("/v1/datasets/people/jobs", json=COUNT, headers=site.header("ana"))
    assert begun.status_code == 202
    path = f"/v1/jobs/{begun.json()['id']}"
    for _ in range(100):
        found = client.get(path, headers=site.header("ana")).json()
        if found["state"] == "done":
            break
        time.sleep(0.05)
    assert found["answer"]["columns"] == ["n"]
    assert client.get(path, headers=site.header("ben")).status_code == 404
    failed = {**COUNT, "epsilon": 1000}
    begun = client.post("/v1/datasets/people/jobs", json=failed, headers=site.header("ana")).json()
    for _ in range(100):
        found = client.get(f"/v1/jobs/{begun['id']}", headers=site.header("ana")).json()
        if found["state"] == "failed":
            break
        time.sleep(0.05)
    assert found["problem"]["type"].endswith("budget-exceeded")


@pytest.mark.parametrize("policy", ["deny", "degrade"])
def test_at_exhaustion_more_noise_is_offered_before_paying_where_that_is_the_policy(
    tmp_path, policy
):
    site = make_site(tmp_path, policy=policy, epsilon=1)
    header, body = site.header("ana"), {**COUNT, "epsilon": 0.8}
    with site.served() as client:
        client.post(QUERY, json=body, headers=header)
        more = {**body, "question": "SELECT COUNT(*) AS n FROM people WHERE age > 40"}
        quote = client.post("/v1/datasets/people/quote", json=more, headers=header).json()
        assert not quote["fits"]
        assert 0.1 < quote["fits_up_to"] <= 0.2
        assert (quote["offer"] is not None) == (policy == "degrade")
        assert client.post(QUERY, json=more, headers=header).status_code == 409
        found = client.post(QUERY, json={**more, "degrade": True}, headers=header)
        if policy == "deny":
            assert found.status_code == 409
        else:
            assert found.json()["epsilon"] == quote["fits_up_to"]
            wide = found.json()["rows"][0]
            assert wide["n_high"] - wide["n"] > 3 * 1 / 0.2
        nothing = client.post(QUERY, json={**more, "epsilon": 0.7}, headers=header)
        assert nothing.status_code == 409


def test_a_limit_of_one_analyst_binds_that_analyst_only(client, site):
    body = {"epsilon": 0.15, "delta": 1e-6, "analyst": "ana"}
    path = "/v1/datasets/people/limits"
    assert client.post(path, json=body, headers=site.header("chris")).status_code == 200
    asked = [{**COUNT, "question": f"SELECT COUNT(*) AS n FROM people WHERE age > {a}"}
             for a in (20, 30)]  # fmt: skip
    found = [client.post(QUERY, json=one, headers=site.header("ana")) for one in asked]
    assert [one.status_code for one in found] == [200, 409]
    assert client.post(QUERY, json=asked[1], headers=site.header("ben")).status_code == 200
    mine = client.get("/v1/datasets/people/budgets", headers=site.header("ana")).json()["budgets"]
    assert [one["name"] for one in mine] == ["total", "analyst=ana"]
    ben = client.get("/v1/datasets/people/budgets", headers=site.header("ben")).json()["budgets"]
    assert [one["name"] for one in ben] == ["total"]


@pytest.mark.parametrize(
    "question",
    ["SELECT COUNT(*) AS n FROM people", "SELECT region, AVG(age) AS n FROM people GROUP BY region",
     "SELECT MEDIAN(income) AS n FROM people", "SELECT COUNT(DISTINCT region) AS n FROM people"],
)  # fmt: skip
@pytest.mark.lengthy
def test_more_noise_is_charged_once_for_a_key_whichever_worker_is_asked(tmp_path, question):
    site = make_site(tmp_path, policy="degrade", epsilon=1)
    header = {**site.header("ana"), "Idempotency-Key": "first"}
    body = {"question": question, "epsilon": 5, "degrade": True}
    answers, left = [], []
    for _ in range(2):
        with site.served() as client:  # which remembers nothing of the one before
            answers.append(client.post(QUERY, json=body, headers=header))
            assert answers[-1].status_code == 200, answers[-1].text
            left.append(client.get("/v1/datasets/people", headers=header).json()["remaining"])
    first, again = (one.json() for one in answers)
    assert (first["document"], left[0]) == (again["document"], left[1])
    assert again["is_recalled"]
    with site.served() as client:
        grant = {"epsilon": 20, "delta": 1e-6, "reason": "board"}
        client.post("/v1/datasets/people/grants", json=grant, headers=site.header("chris"))
        after = client.post(QUERY, json=body, headers=header).json()
        assert after["document"] == first["document"]
        new = {**body, "question": "SELECT SUM(age) AS n FROM people"}
        refused = client.post(QUERY, json=new, headers=header)
        assert (refused.status_code, refused.json()["errors"][0]["where"]) == (422, "key")


def test_where_the_unit_has_periods_the_next_one_may_be_waited_for(tmp_path):
    """The policy is wait: a day that is used up says so, and the next has a budget of its own."""
    site = make_site(tmp_path, others_only=True)
    rows = people()
    days = pa.array([f"2026-11-{14 + one % 2}" for one in range(len(rows))]).cast(pa.date32())
    pq.write_table(rows.append_column("day", days), tmp_path / "data" / "people.parquet")
    with (
        Ledger.open(site.settings.ledger) as ledger,
        discreet.protect(
            tmp_path / "data" / "people.parquet",
            name="people",
            unit=discreet.Unit.column("person").per("day", time="day"),
            rows=1,
            guarantee=discreet.Guarantee(epsilon=1, delta=1e-6),
            policy="wait",
            ledger=ledger,
            override="other people",
        ) as tables,
    ):
        tables.save(tmp_path / "people.toml")
    header, body = site.header("ana"), {**COUNT, "epsilon": 0.8, "periods": ["2026-11-14"]}
    with site.served() as client:
        assert client.post(QUERY, json=body, headers=header).status_code == 200
        more = {**body, "question": "SELECT COUNT(*) AS n FROM people WHERE age > 40"}
        found = client.post(QUERY, json={**more, "degrade": True}, headers=header)
        assert found.status_code == 409
        assert "Data of 2026-11-15 has a budget of its own: wait" in found.json()["way_out"]
        later = {**more, "periods": ["2026-11-15"]}
        assert client.post(QUERY, json=later, headers=header).status_code == 200
