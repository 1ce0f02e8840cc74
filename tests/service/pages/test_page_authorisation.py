"""Every page, every role, and no login: who gets in, written down once more, by hand."""

import itertools
import re

import pytest
from gateway_sites import make_site
from page_sites import GUARD, signed_in

from discreet.service.pages.mounting import every_page
from discreet.service.pages.page import Action, Page

EVERYBODY = {"analyst", "custodian", "auditor"}
ANYBODY = EVERYBODY | {None}
LOOKERS = {"custodian", "auditor"}

# Who may. What is not here, nobody may.
MATRIX = [
    ("GET", "/", ANYBODY),
    ("GET", "/sign-in", ANYBODY),
    ("POST", "/sign-in", ANYBODY),
    ("POST", "/sign-out", ANYBODY),
    ("GET", "/datasets", EVERYBODY),
    ("GET", "/datasets/people", EVERYBODY),
    ("POST", "/datasets/people", {"analyst"}),
    ("GET", "/datasets/people/history", EVERYBODY),
    ("GET", "/answers/0", {"analyst"}),
    ("GET", "/answers/0.csv", {"analyst"}),
    ("GET", "/receipts/0", EVERYBODY),
    ("GET", "/receipts/0/file", EVERYBODY),
    ("GET", "/audit", ANYBODY),
    ("GET", "/audit/log", {"auditor"}),
    ("GET", "/audit/mechanisms", {"auditor"}),
    ("GET", "/audit/receipt", ANYBODY),
    ("GET", "/gallery", ANYBODY),
    ("GET", "/gallery/choice", ANYBODY),
    ("GET", "/gallery/differencing", ANYBODY),
    ("GET", "/gallery/noise", ANYBODY),
    ("GET", "/gallery/reconstruction", ANYBODY),
    ("GET", "/gallery/survey", ANYBODY),
    ("GET", "/gallery/tradeoff", ANYBODY),
    ("GET", "/custody", LOOKERS),
    ("GET", "/custody/protect", {"custodian"}),
    ("POST", "/custody/protect", {"custodian"}),
    ("GET", "/custody/datasets/people", LOOKERS),
    ("GET", "/custody/datasets/people/grant", {"custodian"}),
    ("POST", "/custody/datasets/people/grant", {"custodian"}),
    ("POST", "/custody/datasets/people/limit", {"custodian"}),
    ("POST", "/custody/datasets/people/policy", {"custodian"}),
    ("POST", "/custody/datasets/people/reopen", {"custodian"}),
    ("GET", "/custody/datasets/people/spending", LOOKERS),
    ("GET", "/custody/datasets/people/spending.csv", LOOKERS),
    ("GET", "/custody/datasets/people/cards", LOOKERS),
    ("GET", "/custody/datasets/people/cards/0", LOOKERS),
    ("GET", "/custody/datasets/people/cards/0/card.md", LOOKERS),
    ("GET", "/custody/datasets/people/cards/0/registry.yaml", LOOKERS),
    ("GET", "/custody/datasets/people/entries.csv", LOOKERS),
    ("GET", "/custody/datasets/people/entries.json", LOOKERS),
    ("GET", "/custody/keys", {"custodian"}),
    ("POST", "/custody/keys", {"custodian"}),
    ("POST", "/custody/keys/nosuchkey/revoke", {"custodian"}),
    ("GET", "/custody/ledger", LOOKERS),
    ("POST", "/custody/ledger", LOOKERS),
    ("GET", "/custody/ledger.ndjson", LOOKERS),
    ("GET", "/custody/registry.csv", LOOKERS),
    ("GET", "/custody/registry.json", LOOKERS),
    ("GET", "/explorer", ANYBODY),
    ("POST", "/explorer/ask", ANYBODY),
    ("POST", "/explorer/policy", ANYBODY),
    ("POST", "/explorer/reveal", ANYBODY),
    ("POST", "/explorer/start-over", ANYBODY),
    ("GET", "/training", ANYBODY),
    ("GET", "/training/steps", ANYBODY),
]
QUERIES = {"/training/steps": "?by=luck"}  # which is refused, as it would go on for seconds
NAMED = {"dataset": "people", "entry": "0", "job": "0" * 32, "key": "nosuchkey"}
WHO = {"analyst": "ana", "custodian": "chris", "auditor": "audrey", None: None}
PAST_THE_DOOR = {200, 303, 404, 409, 422}  # whatever the request was worth


def filled(path):
    return re.sub(r"{(\w+)}", lambda found: NAMED[found[1]], path)


def method(one):
    return "POST" if isinstance(one, Action) else "GET"


def test_the_matrix_has_every_page():
    table = [(method(one), filled(one.path)) for one in every_page()]
    assert sorted(table) == sorted((row[0], row[1]) for row in MATRIX)
    assert len(set(table)) == len(table)


def test_no_page_takes_an_address_of_programs():
    taken = ("/v1", "/healthz", "/readyz", "/metrics", "/assets")
    assert [one.path for one in every_page() if one.path.startswith(taken)] == []


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"), explorer=True)


@pytest.fixture(scope="module")
def clients(shared_site):
    """A client for each role, signed in."""
    with shared_site.served() as stranger:
        yield {None: stranger} | {
            role: _signed_in(stranger, shared_site, who) for role, who in WHO.items() if who
        }


def _signed_in(stranger, site, who):
    from starlette.testclient import TestClient

    client = TestClient(stranger.app, raise_server_exceptions=False)
    client.portal = stranger.portal  # one event loop, on which the gateway lives
    signed_in(client, site, who)
    return client


@pytest.mark.parametrize(
    ("row", "role"),
    [
        pytest.param(row, role, id=f"{row[0]} {row[1]} {role}")
        for row, role in itertools.product(MATRIX, WHO)
    ],
)
def test_who_gets_in(clients, shared_site, row, role):
    kind, path, allowed = row
    client = clients[role]
    if path == "/sign-out" and role is not None:  # not with the session of the other rows
        client = _signed_in(clients[None], shared_site, WHO[role])
    guard = GUARD.search(client.get("/sign-in").text)[1]
    headers = {"Origin": "http://testserver", "Accept": "text/html"}
    body = {"guard": guard, "key": "k"} if kind == "POST" else None
    found = client.request(
        kind, path + QUERIES.get(path, ""), data=body, headers=headers, follow_redirects=False
    )
    if role in allowed:
        assert found.status_code in PAST_THE_DOOR, found.text
        assert not found.headers.get("location", "").startswith("/sign-in?next="), path
    elif role is None:
        assert found.status_code == 303
        assert found.headers["location"].startswith("/sign-in?next=")
    else:
        assert found.status_code == 403


@pytest.mark.parametrize("page", [one for one in every_page() if isinstance(one, Page)],
                         ids=lambda one: one.name)  # fmt: skip
@pytest.mark.parametrize("role", WHO)
def test_a_twin_is_for_whom_its_page_is(clients, shared_site, page, role):
    client = clients[None]
    header = shared_site.header(WHO[role])
    found = client.get(filled(page.twin), headers=header)
    if page.roles is None or role in page.roles:
        assert found.status_code in PAST_THE_DOOR
        assert found.headers["content-type"] in ("application/json", "application/problem+json")
    else:
        assert found.status_code == (401 if role is None else 403)
        assert found.headers["content-type"] == "application/problem+json"


def _without_guards(page):
    """What the page of a refused download holds, but for what its forms draw anew."""
    return re.sub(r'name="(guard|key)" value="[\w-]+"', "", page)


@pytest.mark.parametrize("path", sorted({row[1] for row in MATRIX if "people" in row[1]}))
def test_a_dataset_out_of_sight_is_as_one_that_is_not_there(clients, shared_site, path):
    client = clients[None]
    header = shared_site.header("scoped custodian" if "/custody/" in path else "scoped")
    twin = path if path.endswith((".csv", ".json")) else f"{path}.json"
    hidden, missing = (
        client.get(twin.replace("people", name), headers=header) for name in ("people", "nothing")
    )
    assert hidden.status_code == missing.status_code in (403, 404)
    assert _without_guards(hidden.text) == _without_guards(missing.text)
