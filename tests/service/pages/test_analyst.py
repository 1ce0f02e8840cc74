"""An analyst in a browser: sees the price while typing, pays, and keeps what was paid for."""

import csv
import io
import json
import re
from urllib.parse import urlencode

import httpx
import pytest
from page_sites import barriers, demo_gateway, is_wider_than_screen, sign_in

from discreet.ledger.verifier import NotProven, check_receipt

pytestmark = pytest.mark.needs("chromium")

BY_EDUCATION = (
    "SELECT education, COUNT(*) AS people, AVG(income) AS income, AVG(age) AS age\n"
    "FROM people GROUP BY education ORDER BY education"
)
COUNT = "SELECT COUNT(*) AS n FROM salaries"


def asked(question, amount, pay="epsilon", **more):
    return urlencode({"question": question, "pay": pay, "amount": amount, **more})


def remaining(site, dataset, who="ana"):
    url = f"{site.address}/v1/datasets/{dataset}"
    return httpx.get(url, headers=site.header(who)).json()["remaining"]


def twin(page):
    """Return the JSON of the page that is shown, for the same browser."""
    address = page.get_by_role("link", name="This page as JSON").evaluate("link => link.href")
    found = page.request.get(address)
    assert found.ok
    return found.json()


@pytest.fixture
def analyst(page, site):
    sign_in(page, site, "ana")
    return page


def test_the_price_is_told_while_one_types_and_costs_nothing(analyst, site):
    page = analyst
    page.goto(f"{site.address}/datasets/people")
    before = remaining(site, "people")
    page.get_by_label("Question, in SQL").press_sequentially(BY_EDUCATION.split("\n")[0] + " ")
    page.get_by_role("alert").wait_for()  # no FROM yet: it says so, and goes on
    page.get_by_label("Question, in SQL").press_sequentially("FROM people GROUP BY education")
    price = page.get_by_role("region", name="What it would cost")
    price.wait_for()
    assert "about 19 more like it fit" in price.inner_text()
    assert re.search(r"COUNT\(\*\)\s+within [\d.]+", price.inner_text())
    assert re.search(r"5\d\.\d in 100", price.inner_text())
    first = price.inner_text()
    page.get_by_label("Amount").fill("10%")
    price.filter(has_text="about 9 more").wait_for()
    assert price.inner_text() != first
    assert remaining(site, "people") == before
    assert "amount=10%25" in page.url  # the page's address is its query
    page.reload()
    assert "about 9 more like it fit" in price.inner_text()


def test_names_of_the_schema_go_in_with_a_click(analyst, site):
    page = analyst
    page.goto(f"{site.address}/datasets/salaries")
    page.get_by_label("Question, in SQL").fill("SELECT COUNT(*) FROM ")
    page.get_by_role("button", name="salaries", exact=True).click()
    assert page.get_by_label("Question, in SQL").input_value() == "SELECT COUNT(*) FROM salaries"


def test_it_runs_and_the_budget_falls(analyst, site):
    page = analyst
    before = remaining(site, "people")
    page.goto(f"{site.address}/datasets/people?{asked(BY_EDUCATION, '5%', 'share')}")
    page.get_by_role("button", name="Run and pay 5%").click()
    page.wait_for_url("**/answers/*")
    assert before - remaining(site, "people") == pytest.approx(0.05, abs=0.001)
    figures = page.locator("svg.figure")
    assert figures.count() == 3  # all aggregates, not just the first one
    assert figures.first.locator("circle.dot").count() == 6
    found = twin(page)
    rows = page.locator("tbody tr")
    assert rows.count() == len(found["answer"]["rows"]) == 6
    for shown, row in zip(rows.all(), found["answer"]["rows"], strict=True):
        cells = shown.locator("th, td").all_inner_texts()
        assert cells[0] == row["education"]
        assert cells[1] == f"{row['people']:,.0f}"
        assert cells[2:4] == [f"{row['people_low']:,.0f}", f"{row['people_high']:,.0f}"]
    with page.expect_download() as kept:
        page.get_by_role("link", name="CSV").click()
    table = list(csv.DictReader(io.StringIO(kept.value.path().read_text())))
    assert [float(one["people"]) for one in table] == [
        one["people"] for one in found["answer"]["rows"]
    ]


def test_the_same_question_is_answered_again_for_nothing(analyst, site):
    page, query = analyst, asked(COUNT, "0.1")
    places = []
    for _ in range(2):
        page.goto(f"{site.address}/datasets/salaries?{query}")
        page.get_by_role("button", name=re.compile("Run and pay")).click()
        page.wait_for_url("**/answers/*")
        places.append((page.url, remaining(site, "salaries")))
    assert places[0] == places[1]


def test_a_receipt_is_kept_and_verifies(analyst, site):
    page = analyst
    page.goto(f"{site.address}/datasets/salaries?{asked(COUNT, '0.11')}")
    page.get_by_role("button", name=re.compile("Run and pay")).click()
    page.wait_for_url("**/answers/*")
    with page.expect_download() as kept:
        page.get_by_role("link", name="Receipt", exact=True).click()
    text = kept.value.path().read_text()
    page.get_by_role("link", name="its receipt").click()
    page.wait_for_url("**/receipts/*")
    assert json.loads(text)["entries"] == twin(page)["entries"]
    checkpoint = httpx.get(f"{site.address}/v1/ledger/checkpoint").json()
    assert check_receipt(text, checkpoint["vkey"]).entries[-1]["kind"] == "release"
    forged = text.replace('\\"who\\":\\"ana\\"', '\\"who\\":\\"eve\\"')
    assert forged != text
    with pytest.raises(NotProven):
        check_receipt(forged, checkpoint["vkey"])


def test_what_was_asked_is_listed_for_whoever_asked_it(analyst, site, open_page):
    page = analyst
    page.goto(f"{site.address}/datasets/salaries?{asked(COUNT, '0.12')}")
    page.get_by_role("button", name=re.compile("Run and pay")).click()
    page.wait_for_url("**/answers/*")
    page.goto(f"{site.address}/datasets/salaries/history")
    page.get_by_role("link", name=COUNT).first.click()
    page.wait_for_url("**/answers/*")
    other = open_page(site.address)
    sign_in(other, site, "audrey")
    other.goto(f"{site.address}/datasets/salaries/history")
    assert "asked by ana" in other.get_by_role("main").inner_text()
    assert COUNT not in other.content()


def test_what_it_means_follows_the_belief_that_the_reader_chooses(analyst, site):
    page = analyst
    page.goto(f"{site.address}/datasets/salaries?{asked(COUNT, '0.5')}")
    meaning = page.get_by_role("region", name="What this answer tells about one person")
    assert "chance of 10% beforehand, gives it at most 15.5% afterwards" in meaning.inner_text()
    page.get_by_label("Attacker's belief, %").fill("50")
    meaning.filter(has_text="gives it at most 62.3% afterwards").wait_for()
    page.wait_for_url("**prior=50*")
    assert twin(page)["meaning"]["sentences"][0] in meaning.inner_text()


def test_nobody_pays_for_what_is_not_shown(analyst, site):
    """Between a key and the price that follows from it, the button rests."""
    page = analyst
    page.goto(f"{site.address}/datasets/salaries?{asked(COUNT, '0.1')}")
    page.route("**/datasets/salaries?*", lambda route: None)  # the price never comes
    page.get_by_label("Amount").fill("4")
    page.get_by_role("button", name=re.compile("Run and pay")).click(force=True)
    page.wait_for_timeout(500)
    assert "/answers/" not in page.url


@pytest.fixture
def small(tmp_path):
    """A gateway of its own, whose budgets a test may use up."""
    with demo_gateway(tmp_path) as made:
        yield made


def test_an_exhausted_budget_refuses_or_degrades(open_page, small):
    page = open_page(small.address)
    sign_in(page, small, "ana")
    page.goto(f"{small.address}/datasets/salaries?{asked(COUNT, '4')}")
    page.get_by_role("button", name="Run and pay 80%").click()
    page.wait_for_url("**/answers/*")
    # Salaries degrade: the wider bars are shown before they are paid.
    other = "SELECT COUNT(*) AS n FROM salaries WHERE years > 10"
    page.goto(f"{small.address}/datasets/salaries?{asked(other, '4')}")
    shown = twin(page)
    assert not shown["quote"]["fits"]
    usual, wider = (shown[one]["expected"][0]["half_width"] for one in ("quote", "degraded"))
    assert wider > 2 * usual
    assert shown["degraded"]["expected"][0]["words"] in page.content()
    page.get_by_role("button", name="Run with these wider bars").click()
    page.wait_for_url("**/answers/*")
    assert twin(page)["answer"]["epsilon"] == pytest.approx(1, abs=0.01)
    # Nothing is left now, and the way out is told.
    page.goto(f"{small.address}/datasets/salaries?{asked(other.replace('10', '20'), '4')}")
    text = page.get_by_role("main").inner_text()
    assert "The budget has no room for this" in text
    assert "may grant more" in text
    assert page.get_by_role("button", name=re.compile("Run")).count() == 0


def test_where_more_noise_is_not_offered_a_smaller_price_is(open_page, small):
    page = open_page(small.address)
    sign_in(page, small, "ana")
    page.goto(f"{small.address}/datasets/people?{asked('SELECT COUNT(*) AS n FROM people', '9')}")
    assert page.get_by_role("button", name=re.compile("Run")).count() == 0
    page.get_by_role("link", name=re.compile("Ask with epsilon")).click()
    page.get_by_role("button", name=re.compile("Run and pay")).wait_for()


PAGES = [
    "/datasets",
    "/datasets/people",
    f"/datasets/people?{asked(BY_EDUCATION, '1%', 'share')}",
    f"/datasets/salaries?{asked(COUNT, '9')}",
    "/datasets/salaries?" + asked("SELECT salry FROM salaries", "1"),
    "/datasets/salaries/history",
    "answer",
    "receipt",
]


def _open(page, site, path):
    """Open a page; an answer is paid for first, with little."""
    if path.startswith("/"):
        page.goto(f"{site.address}{path}")
        return
    page.goto(f"{site.address}/datasets/people?{asked(BY_EDUCATION, '1%', 'share')}")
    page.get_by_role("button", name=re.compile("Run and pay")).click()
    page.wait_for_url("**/answers/*")
    if path == "receipt":
        page.get_by_role("link", name="its receipt").click()
        page.wait_for_url("**/receipts/*")


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(open_page, site, scheme):
    page = open_page(site.address, color_scheme=scheme)
    sign_in(page, site, "ana")
    for path in PAGES:
        _open(page, site, path)
        assert (path, barriers(page)) == (path, [])


def test_a_phone_shows_it_without_scrolling_sideways(open_page, site):
    page = open_page(site.address, viewport={"width": 360, "height": 740})
    sign_in(page, site, "ana")
    for path in PAGES:
        _open(page, site, path)
        assert (path, is_wider_than_screen(page)) == (path, False)


def test_it_works_without_scripts(open_page, site):
    page = open_page(site.address, java_script_enabled=False)
    sign_in(page, site, "ana")
    page.goto(f"{site.address}/datasets/salaries")
    page.get_by_label("Question, in SQL").fill(COUNT)
    page.get_by_label("Pay by").select_option("epsilon")
    page.get_by_label("Amount").fill("0.13")
    page.get_by_role("button", name="Show the price").click()
    page.get_by_role("button", name=re.compile("Run and pay")).click()
    page.wait_for_url("**/answers/*")
    assert page.locator("svg.figure").count() == 1


def test_the_keyboard_alone_asks_and_pays(analyst, site):
    page = analyst
    page.goto(f"{site.address}/datasets/salaries?{asked(COUNT, '0.14')}")
    page.get_by_label("Question, in SQL").focus()
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/answers/*")
