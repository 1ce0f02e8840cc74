"""What a custodian does in a browser: protect, look after budgets and keys, verify, hand on."""

import csv
import io
import json
import random
import re
import shutil
import time
from urllib.parse import urlencode

import httpx
import pytest
from page_sites import barriers, is_wider_than_screen, sign_in, signed_in

from discreet.ledger import Export, Ledger
from discreet.service import Records
from discreet.service.records.misses import add_miss

pytestmark = pytest.mark.needs("chromium")

SAID = {
    "source": "other.csv", "unit": "patient_id", "rows": "10", "low.age": "0", "high.age": "120",
    "keys.ward": "north, south", "epsilon": "3", "delta": "1e-6", "policy": "deny",
}  # fmt: skip
PLACES = (
    "/custody", "/custody/protect", "/custody/datasets/people", "/custody/datasets/people/spending",
    "/custody/datasets/people/grant?epsilon=4", "/custody/datasets/people/cards", "/custody/keys",
    "/custody/ledger", f"/custody/protect?{urlencode({**SAID, 'name': 'x', 'step': 'people'})}",
    f"/custody/protect?{urlencode({**SAID, 'name': 'x', 'step': 'columns'})}",
    f"/custody/protect?{urlencode({**SAID, 'name': 'x', 'step': 'budget'})}",
    f"/custody/protect?{urlencode({**SAID, 'name': 'x', 'step': 'check'})}",
)  # fmt: skip


@pytest.fixture(scope="module")
def asked(site):
    """The site, with a file to protect in its folder, and something spent by two."""
    folder = site.config.parent / "data"
    for name, seed in (("visits", 1), ("other", 2)):
        dice = random.Random(seed)
        people = [dice.randrange(10**9) for _ in range(900)]
        with (folder / f"{name}.csv").open("w", newline="") as file:
            write = csv.writer(file)
            write.writerow(["patient_id", "age", "ward", "cost"])
            for _ in range(2000):
                ward = dice.choice(["north", "south"])
                write.writerow([dice.choice(people), dice.randrange(95), ward, dice.random()])
    shutil.copy(folder / "people.parquet", folder / "copy.parquet")
    for epsilon, purpose in ((0.1, "report"), (0.2, "report"), (0.3, "research")):
        question = f"SELECT COUNT(*) AS n FROM people WHERE age > {100 * epsilon:.0f}"
        body = {"question": question, "epsilon": epsilon, "purpose": purpose}
        assert told(site, "POST", "/v1/datasets/people/query", "ana", body)["rows"]
    return site


@pytest.fixture
def custodian(asked, open_page):
    """A window of chris, signed in."""
    opened = open_page(asked.address)
    sign_in(opened, asked, "chris")
    return opened


def told(site, method, path, who, body=None):
    """Return what a program is told."""
    found = httpx.request(
        method, f"{site.address}{path}", json=body, headers=site.header(who), timeout=60
    )
    assert found.status_code < 300, found.text
    return found.json()


def log_of(site):
    return Ledger.open(site.config.parent / "budget.db", create=False, read_only=True)


def entries(site):
    with log_of(site) as log:
        return log.history()


def test_a_table_is_protected_step_by_step(custodian, asked):
    page = custodian
    page.goto(f"{asked.address}/custody")
    page.get_by_role("navigation", name="Custody").get_by_role("link", name="Protect").click()
    page.get_by_label("File in the gateway's data folder").select_option("visits.csv")
    page.get_by_label("Name of the dataset").fill("clinic")
    page.get_by_role("button", name="Go on").click()
    assert page.get_by_label("Which column says").input_value() == "patient_id"  # by its name
    page.get_by_label("Rows of one unit").fill("10")
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("age: lowest").fill("0")
    page.get_by_label("age: highest").fill("120")
    page.get_by_label("ward: all values").fill("north, south")
    page.get_by_role("button", name="Go on").click()
    meaning = page.locator("#meaning")
    assert "95.3%" in meaning.inner_text()
    page.get_by_label("Epsilon").fill("1")
    page.get_by_text("73.2%").wait_for()  # as it is typed, before it is set
    page.get_by_role("button", name="Look at all").click()
    size = len(entries(asked))
    declaration = page.locator("pre").inner_text()
    assert 'ward = { keys = ["north", "south"] }' in declaration
    assert "epsilon = 1\n" in declaration
    examples = page.get_by_role("region", name="Example questions").inner_text()
    assert "SELECT AVG(age)" in examples
    assert "would show raw rows" in examples
    assert len(entries(asked)) == size  # a trial writes nothing
    page.get_by_role("button", name="Protect clinic").click()
    page.wait_for_url("**/custody/datasets/clinic?done=protected")
    assert page.get_by_role("status").inner_text().startswith("The table is protected")
    body = {"question": "SELECT ward, COUNT(*) AS n FROM clinic GROUP BY ward", "epsilon": 0.1}
    assert told(asked, "POST", "/v1/datasets/clinic/quote", "ana", body)["fits"]
    assert [one["who"] for one in entries(asked) if one.get("subject") == "clinic"] == ["chris"]


@pytest.mark.parametrize(
    ("step", "wrong", "shown", "what_to_do"),
    [
        ("people", {"source": "../budget.db"}, "The table", "choose one of the files"),
        ("people", {"name": "people"}, "The table", "Choose another name"),
        ("people", {"name": "a/b"}, "The table", "without a slash"),
        ("columns", {"unit": "nobody"}, "Whose rows", "choose the column"),
        ("columns", {"rows": "-3"}, "Whose rows", "whole number of at least 1"),
        ("columns", {"period": "day"}, "Whose rows", "choose the column that says when"),
        ("budget", {"low.age": "120", "high.age": "0"}, "What is public", "the lower one first"),
        ("budget", {"high.age": ""}, "What is public", "both ends"),
        ("budget", {"high.age": "x"}, "What is public", "such as 0 and 120"),
        ("budget", {"keys.ward": "north, north"}, "What is public", "listed once"),
        ("check", {"epsilon": "-1"}, "The budget", "epsilon"),
        ("check", {"epsilon": "much"}, "The budget", "must be a number, such as 3"),
        ("check", {"delta": "2"}, "The budget", "delta"),
        ("check", {"policy": "wait"}, "The budget", "period"),
        ("check", {"account": "people"}, "Look and protect", "has the unit"),
    ],
)
def test_what_is_wrong_is_told_at_its_step(asked, step, wrong, shown, what_to_do):
    query = urlencode({**SAID, "name": "more", **wrong, "step": step})
    view = told(asked, "GET", f"/custody/protect.json?{query}", "chris")
    assert [one["title"] for one in view["steps"] if one["is_now"]] == [shown]
    assert what_to_do in view["problem"]["detail"]
    assert view["trial"] is None


def test_a_bad_bound_is_marked_and_can_be_mended(custodian, asked):
    query = urlencode({**SAID, "name": "mended", "high.age": "x", "step": "budget"})
    custodian.goto(f"{asked.address}/custody/protect?{query}")
    assert "such as 0 and 120" in custodian.get_by_role("alert").inner_text()
    mended = custodian.get_by_label("age: highest")
    assert mended.get_attribute("aria-invalid") == "true"
    mended.fill("120")
    custodian.get_by_role("button", name="Go on").click()
    custodian.get_by_label("Epsilon").wait_for()


def test_a_copy_gets_no_other_budget_and_the_trial_says_so(asked):
    size = len(entries(asked))
    query = urlencode({"source": "copy.parquet", "unit": "person_id", "epsilon": "1", "delta": "0",
                       "step": "check"})  # fmt: skip
    view = told(asked, "GET", f"/custody/protect.json?{query}", "chris")
    assert "is that of account 'people'" in view["problem"]["detail"]
    assert len(entries(asked)) == size


def test_a_second_table_shares_a_budget(custodian, asked):
    query = urlencode({"source": "copy.parquet", "name": "again", "unit": "person_id",
                       "account": "people", "step": "check"})  # fmt: skip
    custodian.goto(f"{asked.address}/custody/protect?{query}")
    custodian.get_by_role("button", name="Protect again").click()
    custodian.wait_for_url("**/custody/datasets/again*")
    (people,) = (
        one
        for one in told(asked, "GET", "/custody.json", "chris")["populations"]
        if one["name"] == "people"
    )
    assert [one["name"] for one in people["datasets"]] == ["again", "people"]


def test_a_budget_is_widened_once_it_was_said_what_that_means(custodian, asked):
    custodian.goto(f"{asked.address}/custody/datasets/salaries/grant")
    custodian.get_by_label("Epsilon").fill("2")
    custodian.get_by_text("only ever widens: epsilon is 5").wait_for()
    custodian.get_by_label("Epsilon").fill("6")
    custodian.get_by_role("heading", name="Then").wait_for()
    custodian.get_by_label("Reason").fill("board of 3 May")
    custodian.get_by_role("button", name="Grant it").click()
    custodian.wait_for_url("**/custody/datasets/salaries?done=grant*")
    assert told(asked, "GET", "/v1/datasets/salaries", "ana")["guarantee"]["epsilon"] == 6
    entry = entries(asked)[-1]
    assert (entry["kind"], entry["who"], entry["reason"]) == ("grant", "chris", "board of 3 May")


def test_limits_and_the_policy_are_set(custodian, asked):
    custodian.goto(f"{asked.address}/custody/datasets/salaries")
    custodian.get_by_text("Limit an analyst").click()
    custodian.get_by_label("Analyst").fill("*")
    custodian.get_by_label("Begins anew").select_option("month")
    custodian.get_by_label("Epsilon", exact=True).fill("1.5")
    custodian.get_by_role("button", name="Set the limit").click()
    custodian.get_by_text("The limit holds").wait_for()
    assert custodian.get_by_text("each analyst, each month: epsilon 1.5").is_visible()
    custodian.get_by_text("What happens when it is spent").click()
    custodian.get_by_label("Deny").check()
    custodian.get_by_label("Reason", exact=True).fill("rough answers misled us")
    custodian.get_by_role("button", name="Change the policy").click()
    custodian.get_by_text("The policy holds").wait_for()
    assert told(asked, "GET", "/v1/datasets/salaries", "ana")["policy"] == "deny"
    kinds = [(one["kind"], one["who"]) for one in entries(asked)[-2:]]
    assert kinds == [("budget", "chris"), ("policy", "chris")]


def test_a_dataset_that_rests_is_reopened(custodian, asked):
    with Records.open(f"{asked.config.parent / 'budget.db'}.gateway") as records:
        for _ in range(5):
            add_miss(records, "salaries")
    custodian.goto(f"{asked.address}/custody")
    assert custodian.get_by_text("rests", exact=True).is_visible()
    custodian.goto(f"{asked.address}/custody/datasets/salaries")
    assert "This dataset rests" in custodian.get_by_role("alert").inner_text()
    custodian.get_by_label("Reason to reopen").fill("the disk was full")
    custodian.get_by_role("button", name="Reopen").click()
    custodian.get_by_text("The dataset answers again").wait_for()
    assert custodian.get_by_role("alert").count() == 0
    assert entries(asked)[-1]["act"] == "dataset.reopened"


def test_a_key_is_shown_once_and_in_no_address(custodian, asked):
    seen = []
    custodian.on("request", lambda request: seen.append(request.url))
    custodian.goto(f"{asked.address}/custody/keys")
    custodian.get_by_label("For whom").fill("dora")
    custodian.get_by_label("people").check()
    custodian.get_by_role("button", name="Make the key").click()
    secret = custodian.get_by_label("Secret").input_value()
    assert secret.startswith("dk_")
    assert not any(secret in address for address in seen)
    header = {"Authorization": f"Bearer {secret}"}
    for _ in range(100):  # workers know it within a second
        told = httpx.get(f"{asked.address}/v1/me", headers=header)
        if told.status_code == 200:
            break
        time.sleep(0.05)
    assert told.json()["datasets"] == ["people"]
    custodian.reload()
    assert secret not in custodian.content()
    assert custodian.get_by_label("Secret").count() == 0
    custodian.get_by_role("button", name=re.compile("of dora")).click()
    custodian.get_by_text("opens nothing any more").wait_for()
    for _ in range(100):
        found = httpx.get(f"{asked.address}/v1/me", headers=header).status_code
        if found == 401:
            break
        time.sleep(0.1)
    assert found == 401
    acts = [(one["act"], one["who"]) for one in entries(asked) if one["kind"] == "act"]
    assert acts[-2:] == [("key.created", "chris"), ("key.revoked", "chris")]


def test_a_key_needs_a_dataset_and_a_role(custodian, open_page, asked):
    page = open_page(asked.address, expects=("422",))
    sign_in(page, asked, "chris")
    page.goto(f"{asked.address}/custody/keys")
    page.get_by_label("For whom").fill("dora")
    page.get_by_role("button", name="Make the key").click()
    assert "tick at least one" in page.get_by_role("alert").inner_text()


def test_all_of_the_ledger_is_verified_beside_everything_else(custodian, asked):
    custodian.goto(f"{asked.address}/custody/ledger")
    custodian.get_by_role("button", name="Verify all of it").click()
    found = custodian.get_by_text(re.compile(r"All \d+ entries verify"))
    found.wait_for()
    view = told(asked, "GET", "/custody/ledger.json", "audrey")
    assert view["check"]["state"] == "done"
    assert view["check"]["outcome"]["entries"] == view["size"] == len(entries(asked))


def test_the_ledger_that_is_taken_along_verifies(asked, tmp_path):
    found = httpx.get(f"{asked.address}/custody/ledger.ndjson", headers=asked.header("audrey"))
    (tmp_path / "ledger.ndjson").write_bytes(found.content)
    assert Export(tmp_path / "ledger.ndjson").verify().size == len(entries(asked))


def test_the_registry_says_what_was_released_and_no_value_of_it(custodian, asked):
    with custodian.expect_download() as caught:
        custodian.goto(f"{asked.address}/custody")
        custodian.get_by_role("link", name="Registry as CSV").click()
    text = caught.value.path().read_text()
    rows = [one for one in csv.DictReader(io.StringIO(text)) if one["dataset"] == "people"]
    assert [(one["who"], one["purpose"]) for one in rows][:3] == [
        ("ana", "report"), ("ana", "report"), ("ana", "research"),
    ]  # fmt: skip
    assert rows[0]["question"].startswith("SELECT COUNT(*)")
    assert float(rows[0]["epsilon"]) == 0.1
    same = told(asked, "GET", "/custody/registry.json", "chris")["releases"]
    with log_of(asked) as log:
        kept = [json.loads(log.answer_of(one["entry"])) for one in same]
    for one in kept:
        for column in one["columns"]:
            assert str(column["values"][0]) not in text


def test_a_card_holds_no_value_and_makes_a_draft_for_the_registry(custodian, asked):
    custodian.goto(f"{asked.address}/custody/datasets/people/cards")
    custodian.get_by_role("link", name=re.compile(r"card \d+")).last.click()
    custodian.get_by_role("heading", name=re.compile("Release card")).wait_for()
    entry = int(custodian.url.rpartition("/")[2])
    with log_of(asked) as log:
        value = json.loads(log.answer_of(entry))["columns"][0]["values"][0]
    assert str(value) not in custodian.content()
    with custodian.expect_download() as caught:
        custodian.get_by_role("link", name="Card as Markdown").click()
    card = caught.value.path().read_text()
    assert card.startswith("# Release card")
    assert str(value) not in card
    for label in ("Name of the product", "Curators", "What it is for", "Region", "Your names"):
        custodian.get_by_label(label).fill("Counts")
    custodian.get_by_label("What it is", exact=True).fill("Counts")
    with custodian.expect_download() as caught:
        custodian.get_by_role("button", name="Draft for the registry").click()
    draft = json.loads(caught.value.path().read_text())
    assert draft["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 0.1


def test_what_was_spent_adds_up_to_what_is_used(asked):
    view = told(asked, "GET", "/custody/datasets/people/spending.json", "audrey")
    budgets = told(asked, "GET", "/v1/datasets/people/budgets", "audrey")
    (total,) = (one["used"] for one in budgets["budgets"] if one["name"] == "total")
    assert sum(one["used"] for one in view["spent"]) == pytest.approx(total)
    found = sorted((one["who"], one["purpose"], one["charges"]) for one in view["spent"])
    assert found == [("ana", "report", 2), ("ana", "research", 1)]


def test_an_auditor_looks_and_changes_nothing(asked, open_page):
    page = open_page(asked.address, expects=("403",))
    sign_in(page, asked, "audrey")
    page.goto(f"{asked.address}/custody/datasets/people")
    assert page.get_by_role("heading", name="What is left").is_visible()
    assert page.get_by_role("main").locator("form").count() == 0
    page.goto(f"{asked.address}/custody/protect")
    assert "needs the role custodian" in page.get_by_role("alert").inner_text()


def test_a_form_of_another_session_does_nothing(asked):
    size = len(entries(asked))
    with (
        httpx.Client(base_url=asked.address) as client,
        httpx.Client(base_url=asked.address) as other,
    ):
        signed_in(client, asked, "chris")
        guard = signed_in(other, asked, "chris")
        found = client.post(
            "/custody/datasets/people/policy",
            data={"guard": guard, "key": "k", "policy": "degrade", "reason": "x"},
            headers={"Origin": asked.address},
        )
    assert found.status_code == 403
    assert len(entries(asked)) == size


@pytest.mark.parametrize("path", [one for one in PLACES if "?" not in one])
def test_a_twin_says_what_its_page_says(asked, path):
    assert told(asked, "GET", f"{path}.json", "chris")


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_a_custodians_way(asked, open_page, scheme):
    page = open_page(asked.address, color_scheme=scheme)
    sign_in(page, asked, "chris")
    for path in PLACES:
        page.goto(f"{asked.address}{path}", wait_until="networkidle")
        assert barriers(page) == [], path


def test_a_phone_shows_it_without_scrolling_sideways(asked, open_page):
    page = open_page(asked.address, viewport={"width": 360, "height": 740})
    sign_in(page, asked, "chris")
    for path in PLACES:
        page.goto(f"{asked.address}{path}", wait_until="networkidle")
        assert not is_wider_than_screen(page), path


def test_a_table_is_protected_by_keyboard_alone_and_without_scripts(asked, open_page):
    page = open_page(asked.address, java_script_enabled=False)
    sign_in(page, asked, "chris")
    query = urlencode({**SAID, "name": "plain", "step": "budget"})
    page.goto(f"{asked.address}/custody/protect?{query}")
    page.get_by_label("Epsilon").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Protect plain").wait_for()
