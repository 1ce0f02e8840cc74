"""Every route, every role, and no login: who gets in, written down once more, by hand."""

import itertools
import time

import pytest
from gateway_sites import COUNT, GRANT, KEY

from discreet.service import Records, Role, create, revoke
from discreet.service.desk.gateway import Gateway
from discreet.service.web.app import every_route
from discreet.service.web.metrics import Metrics

EVERYBODY = {"analyst", "custodian", "auditor"}

# Who may, with a request that is good otherwise. What is not here, nobody may.
MATRIX = [
    ("GET", "/v1/me", None, EVERYBODY),
    ("GET", "/v1/datasets", None, EVERYBODY),
    ("GET", "/v1/datasets/people", None, EVERYBODY),
    ("POST", "/v1/datasets/people/quote", COUNT, {"analyst"}),
    ("POST", "/v1/datasets/people/query", COUNT, {"analyst"}),
    ("POST", "/v1/datasets/people/plan", {"questions": [COUNT["question"]], "epsilon": 0.1},
     {"analyst"}),
    ("POST", "/v1/datasets/people/jobs", COUNT, {"analyst"}),
    ("GET", "/v1/jobs/0123456789abcdef", None, {"analyst"}),
    ("GET", "/v1/datasets/people/budgets", None, EVERYBODY),
    ("GET", "/v1/datasets/people/releases", None, EVERYBODY),
    ("GET", "/v1/receipts/0", None, EVERYBODY),
    ("GET", "/v1/ledger/checkpoint", None, EVERYBODY | {None}),
    ("GET", "/v1/ledger/consistency", None, EVERYBODY | {None}),
    ("POST", "/v1/datasets", {"declaration": "name = 'x'"}, {"custodian"}),
    ("POST", "/v1/datasets/people/grants", GRANT, {"custodian"}),
    ("POST", "/v1/datasets/people/limits", {"epsilon": 1, "analyst": "zoe"}, {"custodian"}),
    ("PUT", "/v1/datasets/people/policy", {"policy": "degrade", "reason": "board"}, {"custodian"}),
    ("POST", "/v1/datasets/people/reopen", {"reason": "looked"}, {"custodian"}),
    ("GET", "/v1/keys", None, {"custodian"}),
    ("POST", "/v1/keys", KEY, {"custodian"}),
    ("DELETE", "/v1/keys/nosuchkey", None, {"custodian"}),
    ("GET", "/healthz", None, EVERYBODY | {None}),
    ("GET", "/readyz", None, EVERYBODY | {None}),
    ("GET", "/metrics", None, {"custodian", "auditor"}),
    ("GET", "/v1/openapi.json", None, EVERYBODY | {None}),
]  # fmt: skip
WHO = {"analyst": "ana", "custodian": "chris", "auditor": "audrey", None: None}
PAST_THE_DOOR = {200, 201, 202, 404, 409, 422}  # whatever the request was worth


def test_the_matrix_has_every_route(site):
    gateway = Gateway.open(site.settings)
    try:
        routes = {(one.method, one.path) for one in every_route(gateway, Metrics())}
    finally:
        gateway.close()
    named = {"people": "{dataset}", "0123456789abcdef": "{job}", "0": "{entry}"}
    named["nosuchkey"] = "{key}"
    listed = {
        (method, "/".join(named.get(part, part) for part in path.split("/")))
        for method, path, _, _ in MATRIX
    }
    assert listed == routes


@pytest.mark.parametrize(
    ("row", "role"),
    [
        pytest.param(row, role, id=f"{row[0]} {row[1]} {role}")
        for row, role in itertools.product(MATRIX, WHO)
    ],
)
def test_who_gets_in(shared_client, shared_site, row, role):
    method, path, body, allowed = row
    found = shared_client.request(method, path, json=body, headers=shared_site.header(WHO[role]))
    if role in allowed:
        assert found.status_code in PAST_THE_DOOR, found.text
    else:
        assert found.status_code == (401 if role is None else 403), found.text
        assert found.headers["content-type"] == "application/problem+json"


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory):
    from gateway_sites import make_site

    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def shared_client(shared_site):
    with shared_site.served() as client:
        yield client


@pytest.mark.parametrize("path", [row[1] for row in MATRIX if "/datasets/people" in row[1]])
def test_a_dataset_out_of_sight_is_as_one_that_is_not_there(shared_client, shared_site, path):
    method, _, body, allowed = next(row for row in MATRIX if row[1] == path)
    who = "scoped custodian" if "analyst" not in allowed else "scoped"
    hidden, missing = (
        shared_client.request(
            method, path.replace("people", name), json=body, headers=shared_site.header(who)
        )
        for name in ("people", "nothing")
    )
    assert hidden.status_code == missing.status_code == 404
    assert hidden.content == missing.content


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "Bearer x", "Bearer dk_abc_def", "bearer  \t",
     "Bearer " + "a" * 20_000, "Bearer eyJhbGciOiJub25lIn0.e30."],
)  # fmt: skip
def test_what_is_no_login_is_refused_alike(shared_client, header):
    found = shared_client.get("/v1/me", headers={"Authorization": header} if header else {})
    assert found.status_code == 401
    assert found.headers["www-authenticate"].startswith("Bearer")
    assert found.content == shared_client.get("/v1/me").content


def test_two_logins_in_one_request_are_none(shared_client, shared_site):
    token = f"Bearer {shared_site.keys['ana']}"
    found = shared_client.get(
        "/v1/me", headers=[("Authorization", token), ("Authorization", token)]
    )
    assert found.status_code == 400


def test_a_revoked_key_and_an_expired_one_open_nothing(site):
    with Records.open(site.settings.records_location) as records, site.served() as client:
        key, text = create(records, who="eve", roles=[Role.ANALYST])
        _, short = create(records, who="eve", roles=[Role.ANALYST], expires=time.time() + 1.2)
        time.sleep(1.1)
        bearers = [{"Authorization": f"Bearer {one}"} for one in (text, short)]
        assert client.get("/v1/me", headers=bearers[0]).status_code == 200
        revoke(records, key.id)
        time.sleep(1.1)
        assert [client.get("/v1/me", headers=one).status_code for one in bearers] == [401, 401]


def test_the_name_that_a_ledger_gets_is_that_of_the_login(client, site):
    for body in ({**COUNT, "who": "ben"}, {**COUNT, "analyst": "ben"}):
        found = client.post("/v1/datasets/people/query", json=body, headers=site.header("ana"))
        assert found.status_code == 422
    client.post("/v1/datasets/people/query", json=COUNT, headers=site.header("ana"))
    listed = client.get("/v1/datasets/people/releases", headers=site.header("audrey")).json()
    assert {one["who"] for one in listed["entries"] if one["kind"] == "charge"} == {"ana"}


def test_an_analyst_sees_own_entries_and_receipts_only(client, site):
    entries = {}
    for who in ("ana", "ben"):
        body = {**COUNT, "epsilon": 0.1 if who == "ana" else 0.2}
        path = "/v1/datasets/people/query"
        entries[who] = client.post(path, json=body, headers=site.header(who)).json()["entry"]
    mine = client.get("/v1/datasets/people/releases", headers=site.header("ana")).json()["entries"]
    assert [one["kind"] for one in mine] == ["charge", "release"]
    status = {
        (who, whose): client.get(
            f"/v1/receipts/{entries[whose]}", headers=site.header(who)
        ).status_code
        for who in ("ana", "ben", "audrey")
        for whose in ("ana", "ben")
    }
    assert {pair for pair, found in status.items() if found == 200} == {
        ("ana", "ana"), ("ben", "ben"), ("audrey", "ana"), ("audrey", "ben"),
    }  # fmt: skip


def test_a_custodian_of_some_datasets_gives_no_more_than_that(client, site):
    header = site.header("scoped custodian")

    def make(**more):
        body = {**KEY, **more}
        return client.post("/v1/keys", json=body, headers=header).status_code

    assert make() == 403
    assert make(datasets=["people"]) == 403
    assert make(datasets=["others", "people"]) == 403
    assert make(datasets=[]) == 403
    assert make(datasets=["others"]) == 201
    listed = client.get("/v1/keys", headers=header).json()["keys"]
    assert all(one["datasets"] == ["others"] for one in listed)
    whole = client.get("/v1/keys", headers=site.header("chris")).json()["keys"]
    beyond = next(one["id"] for one in whole if one["datasets"] is None)
    assert client.delete(f"/v1/keys/{beyond}", headers=header).status_code == 404
    declared = {"declaration": "name = 'x'"}
    assert client.post("/v1/datasets", json=declared, headers=header).status_code == 403


def test_what_is_told_of_all_datasets_is_not_for_logins_of_some(client, site):
    """Whoever sees the others only does not learn that there are people."""
    header = site.header("scoped custodian")
    for method, path, body, roles in MATRIX:
        if "custodian" in roles and "people" not in path and method == "GET":
            found = client.request(method, path, json=body, headers=header)
            assert "people" not in found.text or path.endswith("openapi.json"), path
    assert client.get("/metrics", headers=header).status_code == 403
    assert client.get("/metrics", headers=site.header("chris")).status_code == 200
