"""Answers of pages: for whoever asked, whichever worker is asked, however long it takes."""

import re
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from gateway_sites import make_site
from page_sites import FORM_KEY, GUARD, demo_gateway, signed_in

from discreet.service.pages.areas.analyst import asking

ASKED = {
    "question": "SELECT region, COUNT(*) AS n FROM people GROUP BY region", "pay": "epsilon",
    "amount": "1", "confidence": "0.95", "prior": "10",
}  # fmt: skip


@pytest.fixture
def site(tmp_path):
    """A gateway in this process; no browser is needed."""
    return make_site(tmp_path)


def run(client, **more):
    """Send the form of the page, as a browser would; return where it leads."""
    text = client.get("/datasets/people", params={**ASKED, **more}).text
    guard, key = GUARD.search(text)[1], FORM_KEY.findall(text)[-1]
    found = client.post(
        "/datasets/people",
        data={**ASKED, **more, "guard": guard, "key": key},
        headers={"Origin": str(client.base_url).rstrip("/")},
        follow_redirects=False,
    )
    assert found.status_code == 303, found.text
    return found.headers["location"]


def test_answers_are_for_whoever_asked(client, site):
    signed_in(client, site, "ana")
    place = run(client)
    entry = place.rpartition("/")[2]
    addresses = [place, f"{place}.json", f"{place}.csv", f"/receipts/{entry}"]
    assert [client.get(one).status_code for one in addresses] == [200] * 4
    client.cookies.clear()
    signed_in(client, site, "ben")
    assert [client.get(one).status_code for one in addresses] == [404] * 4
    client.cookies.clear()
    signed_in(client, site, "audrey")  # who checks the books sees proofs, and no answers
    assert [client.get(one).status_code for one in addresses] == [403, 403, 403, 200]


def test_whoever_gets_an_answer_that_others_paid_for_sees_it(client, site):
    signed_in(client, site, "ana")
    place = run(client)
    client.cookies.clear()
    signed_in(client, site, "ben")
    assert client.get(place).status_code == 404
    again = run(client)
    assert again == place
    assert client.get(again).status_code == 200


@pytest.mark.parametrize("entry", ["0", "2", "99999", "-1", "x", "1" * 40, "\N{SUPERSCRIPT TWO}"])
def test_what_is_no_answer_is_not_found(client, site, entry):
    signed_in(client, site, "ana")
    for path in (f"/answers/{entry}", f"/answers/{entry}.csv", f"/receipts/{entry}"):
        assert client.get(path).status_code == 404


def test_a_browser_that_waited_long_enough_looks_again(client, site, monkeypatch):
    monkeypatch.setattr(asking, "_PATIENCE", 0)
    signed_in(client, site, "ana")
    place = run(client)
    assert parse_qs(urlsplit(place).query)["job"]
    for _ in range(600):
        text = client.get(place).text
        if "Your answer is there" in text:
            break
        assert "being answered" in text
        time.sleep(0.05)
    address = re.search(r'href="(/answers/\d+)"', text)[1]
    assert client.get(address).status_code == 200


def test_what_was_refused_after_all_is_told_on_the_page(client, site):
    """The budget may go between a price and the payment."""
    signed_in(client, site, "ana")
    place = run(client, amount="25")  # of 20
    text = client.get(place).text
    assert "The budget has no room for this" in text
    assert "would bring the budget" in text


def test_a_job_of_somebody_else_is_not_found(client, site, monkeypatch):
    monkeypatch.setattr(asking, "_PATIENCE", 0)
    signed_in(client, site, "ana")
    place = run(client)
    client.cookies.clear()
    signed_in(client, site, "ben")
    assert client.get(place).status_code == 404


def test_no_value_of_a_row_is_in_the_pages_before_an_answer_is_paid(client, site):
    signed_in(client, site, "ana")
    text = client.get("/datasets/people", params=ASKED).text
    assert "north" not in text
    assert "south" not in text


def test_every_worker_knows_the_session(tmp_path):
    with demo_gateway(tmp_path, workers=2) as site:
        with httpx.Client(base_url=site.address) as client:
            signed_in(client, site, "ana")
            cookies = dict(client.cookies)
        found = {  # a connection of its own each time, so that both workers are asked
            httpx.get(f"{site.address}/datasets", cookies=cookies).status_code for _ in range(20)
        }
    assert found == {200}
