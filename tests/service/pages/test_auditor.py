"""What an auditor sees in a real browser: the log, a receipt proven, and forged ones refused."""

import json

import httpx
import pytest
from page_sites import barriers, is_wider_than_screen, sign_in

from discreet.audit import kept_catalogue
from discreet.ledger.log.keys import SigningKey

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def paid(site):
    """An answer that was paid for, and its receipt."""
    with httpx.Client(base_url=site.address, headers=site.header("ana"), timeout=60) as client:
        body = {"question": "SELECT COUNT(*) AS n FROM salaries", "epsilon": 0.1}
        answer = client.post("/v1/datasets/salaries/query", json=body).json()
        receipt = client.get(f"/v1/receipts/{answer['entry'] + 1}").json()
    return answer, receipt


def checkpoint(site):
    return httpx.get(f"{site.address}/v1/ledger/checkpoint").json()


def verify(page, receipt, *, answer=None, key=None):
    """Paste a receipt and press the button; return what the page says."""
    page.get_by_label("Receipt", exact=True).fill(receipt)
    if key is not None:
        page.get_by_label("Public key of the log").fill(key)
    if answer is not None:
        page.get_by_text("An answer, and witnesses").click()
        page.get_by_label("The answer that came with it").set_input_files(
            {"name": "answer.json", "mimeType": "application/json", "buffer": answer}
        )
    page.locator("#verdict").evaluate("one => { delete one.dataset.verdict; }")
    page.get_by_role("button", name="Verify", exact=True).click()
    page.locator("#verdict[data-verdict]").wait_for()
    return page.locator("#verdict").inner_text()


def test_a_receipt_is_proven_to_a_stranger(open_page, site, paid):
    answer, receipt = paid
    page = open_page(f"{site.address}/audit/receipt")
    said = verify(page, json.dumps(receipt), answer=answer["document"].encode())
    assert "Proven" in said
    assert "Not proven" not in said
    assert "ana" in said
    assert "The bytes given are those" in said


def test_a_forged_one_is_refused_and_the_step_is_told(open_page, site, paid):
    _answer, receipt = paid
    page = open_page(f"{site.address}/audit/receipt")
    text = json.dumps(receipt)
    forged = {
        "The entries": text.replace("ana", "bob"),
        "The form": text.replace("entries", "Entries"),
    }
    stranger = SigningKey.generate(checkpoint(site)["vkey"].partition("+")[0])
    for title, changed in forged.items():
        said = verify(page, changed)
        assert "Not proven" in said
        assert title in page.locator("#verdict li.bad").inner_text(), said
    assert "not signed by the key" in verify(page, text, key=stranger.vkey)
    own = checkpoint(site)["vkey"]
    assert "not about this answer" in verify(page, text, key=own, answer=b"another")


def test_one_byte_changed_by_the_page_itself_is_refused(open_page, site, paid):
    page = open_page(f"{site.address}/audit/receipt")
    verify(page, json.dumps(paid[1], separators=(",", ":")))
    for _ in range(20):  # no byte of this text is for the eye only
        page.get_by_role("button", name="Change one byte and verify").click()
        page.get_by_text("The receipt in the form is as it was.").wait_for()
        assert page.locator("#verdict").get_attribute("data-verdict") == "bad"


def test_a_receipt_of_the_gateway_is_opened_by_its_entry(open_page, site, paid):
    page = open_page(site.address)
    sign_in(page, site, "audrey")
    page.goto(f"{site.address}/audit/log")
    page.get_by_role("link", name=f"Verify entry {paid[0]['entry'] + 1}").click()
    page.locator("#verdict[data-verdict=good]").wait_for()


def test_a_stranger_is_shown_no_receipt(site, paid):
    found = httpx.get(f"{site.address}/audit/receipt.json?entry={paid[0]['entry']}").json()
    assert found["receipt"] == ""
    assert found["vkey"] == checkpoint(site)["vkey"]


def test_a_browser_that_cannot_check_says_so(open_page, site):
    page = open_page(f"{site.address}/audit")
    page.add_init_script("crypto.subtle.importKey = () => Promise.reject(new DOMException('no'))")
    page.goto(f"{site.address}/audit/receipt")
    page.locator("#unable").wait_for()
    assert "Nothing was checked" in page.locator("#unable").inner_text()
    assert "discreet verify" in page.locator("#unable").inner_text()
    assert not page.locator("#check").is_visible()


def test_the_log_is_shown_to_have_only_grown(open_page, site):
    before = checkpoint(site)["checkpoint"]
    with httpx.Client(base_url=site.address, headers=site.header("ana"), timeout=60) as client:
        for n in range(3):
            body = {"question": f"SELECT COUNT(*) AS n FROM salaries WHERE years > {n}",
                    "epsilon": 0.01}  # fmt: skip
            assert client.post("/v1/datasets/salaries/query", json=body).status_code == 200
    page = open_page(f"{site.address}/audit")
    page.locator("#remembered").wait_for()
    size = before.split("\n")[1]
    forged = before.replace(f"\n{size}\n", f"\n{int(size) - 1}\n")
    for note, said in [(before, "good"), (forged, "bad"), ("no", "bad")]:
        page.locator("#earlier").fill(note)
        page.locator("#verdict").evaluate("one => { delete one.dataset.verdict; }")
        page.get_by_role("button", name="Check").click()
        page.locator("#verdict[data-verdict]").wait_for()
        assert page.locator("#verdict").get_attribute("data-verdict") == said


def test_a_browser_remembers_the_log_and_finds_another_one(open_page, site):
    page = open_page(f"{site.address}/audit")
    page.locator("#remembered").wait_for()
    page.reload()
    page.locator("#verdict[data-verdict=good]").wait_for()
    name = page.evaluate("Object.keys(localStorage).find((one) => one.includes('checkpoint'))")
    other = SigningKey.generate("example.com/other").vkey
    page.evaluate(
        "([name, key]) => localStorage.setItem(name, JSON.stringify("
        "{...JSON.parse(localStorage.getItem(name)), key}))",
        [name, other],
    )
    page.reload()
    page.locator("#verdict[data-verdict=bad]").wait_for()
    assert "kept until a log continues it" in page.locator("#remembered").inner_text()


def test_the_table_of_mechanisms_is_what_is_kept(open_page, site):
    kept = kept_catalogue()
    page = open_page(site.address)
    sign_in(page, site, "audrey")
    page.goto(f"{site.address}/audit/mechanisms")
    rows = page.get_by_role("main").get_by_role("rowheader").all_inner_texts()
    assert rows == [line.name for line in kept.report.lines]
    assert kept.day in page.get_by_role("main").inner_text()
    twin = httpx.get(
        f"{site.address}/audit/mechanisms.json", headers=site.header("audrey"), timeout=60
    ).json()
    assert twin["lines"] == kept.report.to_dict()["lines"]


PATHS = ["/audit", "/audit/receipt", "/audit/log", "/audit/mechanisms"]


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(open_page, site, paid, scheme):
    page = open_page(site.address, color_scheme=scheme)
    sign_in(page, site, "audrey")
    for path in [*PATHS, f"/audit/receipt?entry={paid[0]['entry']}"]:
        page.goto(f"{site.address}{path}")
        if "entry" in path:
            page.locator("#verdict[data-verdict]").wait_for()
        assert barriers(page) == [], path


def test_a_phone_shows_it_without_scrolling_sideways(open_page, site, paid):
    page = open_page(site.address, viewport={"width": 360, "height": 740})
    sign_in(page, site, "audrey")
    for path in [*PATHS, f"/audit/receipt?entry={paid[0]['entry']}"]:
        page.goto(f"{site.address}{path}")
        page.wait_for_load_state("networkidle")
        assert not is_wider_than_screen(page), path
