"""Cookies, forms and headers of pages: what is refused, and what every answer says."""

import time
from dataclasses import replace

import pytest
from gateway_sites import make_site
from page_sites import FORM_KEY, GUARD, signed_in
from starlette.testclient import TestClient

from discreet.errors import ParameterError
from discreet.service import Gateway, GatewaySettings, Records, Role, create, create_app, revoke
from discreet.service.pages.mounting import every_page
from discreet.service.pages.page import Page
from discreet.service.pages.serving.headers import CONTENT_SECURITY_POLICY
from discreet.service.pages.serving.session import LASTS, SessionSeal

HERE = {"Origin": "http://testserver"}
ASKED = {
    "question": "SELECT COUNT(*) AS n FROM people", "pay": "epsilon", "amount": "0.1",
    "confidence": "0.95", "prior": "10",
}  # fmt: skip


@pytest.fixture
def site(tmp_path):
    """A gateway in this process; no browser is needed."""
    return make_site(tmp_path)


def begin(client, site, token, **headers):
    guard = GUARD.search(client.get("/sign-in").text)[1]
    return client.post(
        "/sign-in",
        data={"guard": guard, "token": token, "next": "/datasets"},
        headers=HERE | headers,
        follow_redirects=False,
    )


def is_in(client):
    return client.get("/datasets", follow_redirects=False).status_code == 200


def charges(client, site):
    found = client.get("/v1/datasets/people/releases", headers=site.header("audrey")).json()
    return [one for one in found["entries"] if one["kind"] == "charge"]


def test_the_cookie_is_for_this_gateway_alone(client, site):
    told = begin(client, site, site.keys["ana"]).headers["set-cookie"]
    name, *attributes = told.split("; ")
    assert name.startswith("discreet=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes)
    assert not any(one.startswith(("Domain", "Secure")) for one in attributes)
    assert site.keys["ana"] not in told


def test_with_tls_it_is_for_encrypted_connections_only(site, tmp_path):
    settings = GatewaySettings(ledger=str(tmp_path / "b.db"), public_url="https://discreet.example")
    with Records.open(settings.records_location) as records:
        seal = SessionSeal(records, settings)
        told = seal.set_cookie(seal.begin("dk_x"))
    assert told.startswith("__Host-discreet=")
    assert "; Secure" in told
    assert "Domain" not in told


def test_a_cookie_is_known_to_every_worker_and_forged_ones_to_none(site):
    settings = site.settings
    with (
        Records.open(settings.records_location) as one,
        Records.open(settings.records_location) as two,
    ):
        mine, other = SessionSeal(one, settings), SessionSeal(two, settings)
        session = mine.begin(site.keys["ana"])
        text = mine.sealed(session)
        assert other.opened(text) == session
        assert other.is_guarded(session, mine.guard(session))
        for at in range(0, len(text), 7):  # one letter changed anywhere
            changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
            assert other.opened(changed) in (None, session)  # unused bits of base64 say the same
        assert [other.opened(one) for one in ("", "x", text[:-8], "\N{SNOWMAN}")] == [None] * 4


def test_a_cookie_of_another_gateway_opens_nothing(site, tmp_path):
    elsewhere = GatewaySettings(ledger=str(tmp_path / "else.db"))
    with Records.open(elsewhere.records_location) as records:
        seal = SessionSeal(records, elsewhere)
        text = seal.sealed(seal.begin(site.keys["ana"]))
    with site.served() as client:
        assert not is_in(_with(client, text))


def test_a_cookie_ends_after_eight_hours(site):
    with Records.open(site.settings.records_location) as records:
        seal = SessionSeal(records, site.settings)
        early = SessionSeal(records, site.settings, clock=lambda: time.time() - LASTS)
        old, new = (one.sealed(one.begin(site.keys["ana"])) for one in (early, seal))
    with site.served() as client:
        assert not is_in(_with(client, old))
        assert is_in(_with(client, new))


def _with(client, cookie):
    client.cookies.clear()
    client.cookies.set("discreet", cookie)
    return client


def test_a_revoked_key_ends_its_sessions_within_a_second(site):
    with Records.open(site.settings.records_location) as records, site.served() as client:
        key, text = create(records, who="eve", roles=[Role.ANALYST])
        begin(client, site, text)
        assert is_in(client)
        revoke(records, key.id)
        time.sleep(1.1)
        assert not is_in(client)


def test_signing_in_gives_the_session_another_name(client, site):
    """Whoever knew the stranger's session knows nothing of the one that follows."""
    client.get("/")
    before = client.cookies["discreet"]
    guard = signed_in(client, site, "ana")
    after = client.cookies["discreet"]
    assert before != after
    _with(client, before)
    assert GUARD.search(client.get("/sign-in").text)[1] != guard


def test_a_token_that_no_cookie_can_hold_is_refused(site):
    with Records.open(site.settings.records_location) as records:
        seal = SessionSeal(records, site.settings)
        with pytest.raises(ParameterError, match="too long for a cookie"):
            seal.sealed(seal.begin("x" * 4000))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("no guard", {"guard": ""}),
        ("another guard", {"guard": "0" * 64}),
        ("elsewhere", {"Origin": "https://evil.example"}),
        ("no origin", {"Origin": ""}),
        ("null", {"Origin": "null"}),
        ("another port", {"Origin": "http://testserver:81"}),
        ("another scheme", {"Origin": "https://testserver"}),
    ],
)
def test_a_form_from_elsewhere_pays_for_nothing(client, site, name, more):
    guard = signed_in(client, site, "ana")
    form = {**ASKED, "key": "k", "guard": guard} | {k: v for k, v in more.items() if k == "guard"}
    headers = HERE | {k: v for k, v in more.items() if k == "Origin"}
    found = client.post("/datasets/people", data=form, headers=headers, follow_redirects=False)
    assert found.status_code == 403
    assert "not of this browser's session" in found.text.replace("&#39;", "'")
    assert charges(client, site) == []


def test_a_guard_of_another_session_is_refused(client, site):
    signed_in(client, site, "ben")
    theirs = GUARD.search(client.get("/").text)[1]
    client.cookies.clear()
    signed_in(client, site, "ana")
    form = {**ASKED, "key": "k", "guard": theirs}
    found = client.post("/datasets/people", data=form, headers=HERE, follow_redirects=False)
    assert found.status_code == 403


def test_a_form_sent_twice_is_paid_once(client, site):
    guard = signed_in(client, site, "ana")
    text = client.get("/datasets/people", params=ASKED).text
    form = {**ASKED, "key": FORM_KEY.findall(text)[-1], "guard": guard}
    found = [
        client.post("/datasets/people", data=form, headers=HERE, follow_redirects=False)
        for _ in range(3)
    ]
    assert {one.status_code for one in found} == {303}
    assert len({one.headers["location"] for one in found}) == 1
    assert found[0].headers["location"].startswith("/answers/")
    assert len(charges(client, site)) == 1


def test_looking_at_prices_is_free(client, site):
    signed_in(client, site, "ana")
    for _ in range(3):
        assert client.get("/datasets/people", params=ASKED).status_code == 200
    assert charges(client, site) == []


def test_whoever_tries_keys_is_slowed_down(tmp_path):
    site = make_site(tmp_path, failed_logins_per_minute=12)
    with site.served() as client:
        found = [begin(client, site, f"dk_{n}").status_code for n in range(6)]
    assert found[0] == 303
    assert found[-1] == 429


def test_whoever_asks_without_a_login_is_slowed_down_too(tmp_path):
    site = make_site(tmp_path, requests_per_minute=60)
    with site.served() as client:
        pages = [client.get("/sign-in").status_code for _ in range(6)]
        facts = [client.get("/v1/ledger/checkpoint").status_code for _ in range(8)]
        page = client.get("/sign-in")
        assert client.get("/healthz").status_code == 200
    assert pages == [200] * 6
    assert facts[-1] == page.status_code == 429  # one count for both
    assert "too many requests" in page.text.lower()


def test_where_a_sign_in_leads_is_here(client, site):
    for to in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:x"):
        page = client.get("/sign-in", params={"next": to}).text
        assert 'name="next" value="/"' in page
        guard = GUARD.search(page)[1]
        form = {"guard": guard, "token": site.keys["ana"], "next": to}
        found = client.post("/sign-in", data=form, headers=HERE, follow_redirects=False)
        assert found.headers["location"] == "/"


def test_a_link_from_elsewhere_finds_the_session_at_the_second_try(client, site):
    """Strict cookies stay at home when a link elsewhere leads here; the page loads itself anew."""
    signed_in(client, site, "ana")
    cookie = client.cookies["discreet"]
    client.cookies.clear()
    found = client.get("/datasets", headers={"Sec-Fetch-Site": "cross-site"})
    assert found.status_code == 200
    assert "http-equiv=refresh" in found.text
    assert "set-cookie" not in found.headers  # which would end the session that the browser has
    assert is_in(_with(client, cookie))


@pytest.mark.parametrize("page", [one for one in every_page() if isinstance(one, Page)],
                         ids=lambda one: one.name)  # fmt: skip
def test_every_page_tells_the_browser_to_trust_nobody(client, site, page):
    signed_in(client, site, "ana")
    path = page.path.replace("{dataset}", "people")
    for address in (path, page.twin.replace("{dataset}", "people")):
        headers = client.get(address).headers
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
    assert "unsafe" not in CONTENT_SECURITY_POLICY


def test_what_fails_inside_says_nothing_of_it(site, monkeypatch):
    async def broken(call):
        raise ValueError("salary 4711 of person 7")

    page = next(one for one in every_page() if one.name == "front")
    table = ((replace(page, view=broken),),)
    monkeypatch.setattr("discreet.service.pages.mounting.AREAS", table)
    app = create_app(Gateway.open(site.settings))
    with TestClient(app) as client:
        for path in ("/", "/index.json"):
            found = client.get(path)
            assert found.status_code == 500
            assert "4711" not in found.text
            assert "Its log says where" in found.text


def test_pages_can_be_left_out(tmp_path):
    site = make_site(tmp_path, pages=False)
    with site.served() as client:
        assert client.get("/", headers={"Accept": "text/html"}).status_code == 404
        assert client.get("/v1/me", headers=site.header("ana")).status_code == 200
