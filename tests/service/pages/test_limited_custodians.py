"""A custodian of some datasets sees those, acts on those, and learns nothing of the others."""

import pytest
from gateway_sites import make_site
from page_sites import signed_in
from starlette.testclient import TestClient

from discreet.ledger import Ledger

WHO = "scoped custodian"  # of others, not of people
ORIGIN = {"Origin": "http://testserver"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def client(site):
    with site.served() as made:
        yield made


@pytest.fixture(scope="module")
def browser(site, client):
    made = TestClient(client.app, raise_server_exceptions=False)
    made.portal = client.portal
    return made, signed_in(made, site, WHO)


def seen(client, site, path, who=WHO):
    return client.get(path, headers=site.header(who))


def test_only_own_populations_are_shown(client, site):
    view = seen(client, site, "/custody.json").json()
    assert [one["name"] for one in view["populations"]] == ["others"]
    assert view["idle"] == []
    assert view["may_protect"] is False


def test_the_registry_and_the_keys_are_of_own_datasets_only(client, site):
    found = seen(client, site, "/custody/registry.json").json()["releases"]
    assert {one["dataset"] for one in found} <= {"others"}
    keys = seen(client, site, "/custody/keys.json").json()
    assert all(one["datasets"] == ["others"] for one in keys["keys"])
    assert (keys["datasets"], keys["may_open_all"]) == (["others"], False)


@pytest.mark.parametrize("path", ["/custody/ledger.ndjson", "/custody/protect.json"])
def test_what_is_about_all_datasets_is_refused(client, site, path):
    assert seen(client, site, path).status_code == 403


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("grant", {"epsilon": "30", "delta": "1e-6", "reason": "x", "line": "total"}),
        ("limit", {"epsilon": "1", "delta": "0", "analyst": "zoe"}),
        ("policy", {"policy": "degrade", "reason": "x"}),
        ("reopen", {"reason": "x"}),
    ],
)
def test_acts_on_others_datasets_are_as_on_none(site, browser, act, said):
    client, guard = browser
    told = []
    with Ledger.open(site.settings.ledger, read_only=True) as log:
        size = log.size
        for name in ("people", "nothing"):
            path = f"/custody/datasets/{name}/{act}"
            found = client.post(path, data={"guard": guard, "key": "k", **said}, headers=ORIGIN)
            told.append((found.status_code, "no dataset of this name" in found.text))
        assert told == [(404, True), (404, True)]
        assert log.size == size


def test_a_key_for_more_than_ones_own_is_refused(site, browser):
    client, guard = browser
    said = {"guard": guard, "key": "k", "who": "eve", "role.analyst": "yes"}
    for more in ({"dataset.people": "yes"}, {"scope": "all"}):
        found = client.post("/custody/keys", data=said | more, headers=ORIGIN)
        assert found.status_code == 403


def test_a_table_is_not_protected_by_whoever_looks_after_some(site, browser):
    client, guard = browser
    said = {"guard": guard, "key": "k", "source": "people.parquet", "name": "new", "unit": "person",
            "epsilon": "1", "delta": "0"}  # fmt: skip
    assert client.post("/custody/protect", data=said, headers=ORIGIN).status_code == 403


def test_a_secret_is_told_to_its_own_session_and_page_once(site, browser):
    client, guard = browser
    said = {"guard": guard, "key": "k", "who": "dora", "role.analyst": "yes",
            "dataset.others": "yes"}  # fmt: skip
    found = client.post("/custody/keys", data=said, headers=ORIGIN, follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (303, "/custody/keys")
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "dk_" not in cookie  # sealed
    other = TestClient(client.app, raise_server_exceptions=False)
    other.portal = client.portal
    signed_in(other, site, WHO)
    name, _, told = cookie.partition(";")[0].partition("=")
    other.cookies.set(name, told)
    assert "dk_" not in other.get("/custody/keys").text  # of another session
    assert "dk_" not in client.get("/custody").text
    assert "dk_" not in client.get("/custody/keys.json").text
    assert 'value="dk_' in client.get("/custody/keys").text
    assert "dk_" not in client.get("/custody/keys").text
