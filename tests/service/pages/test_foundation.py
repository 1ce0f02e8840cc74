"""What all pages have in common, in a real browser."""

import pytest
from page_sites import barriers, is_wider_than_screen, sign_in

pytestmark = pytest.mark.needs("chromium")


def test_signing_in_and_out(page, site):
    sign_in(page, site, "ana")
    assert page.get_by_text("ana", exact=True).is_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("banner").get_by_role("link", name="Sign in").wait_for()


def test_a_key_that_opens_nothing_is_told_and_can_be_tried_again(page, site):
    page.goto(f"{site.address}/sign-in?next=/datasets")
    page.get_by_label("API key").fill("dk_abc_def")
    page.get_by_role("main").get_by_role("button").click()
    assert "opens nothing" in page.get_by_role("alert").inner_text()
    page.get_by_label("API key").fill(site.keys["ana"])
    page.get_by_role("main").get_by_role("button").click()
    page.wait_for_url("**/datasets")


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/sign-in"])
def test_nothing_stands_in_anybodys_way(open_page, site, path, scheme):
    page = open_page(f"{site.address}{path}", color_scheme=scheme)
    assert barriers(page) == []


@pytest.mark.parametrize("path", ["/", "/sign-in"])
def test_a_phone_shows_it_without_scrolling_sideways(open_page, site, path):
    page = open_page(f"{site.address}{path}", viewport={"width": 360, "height": 740})
    assert not is_wider_than_screen(page)


def test_the_theme_that_is_chosen_stays(open_page, site):
    page = open_page(site.address, color_scheme="light")

    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = ground()
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = ground()
    assert light != dark
    page.reload()
    assert ground() == dark


def test_it_works_without_scripts(open_page, site):
    page = open_page(site.address, java_script_enabled=False)
    sign_in(page, site, "ana")


def test_the_keyboard_gets_to_the_content_first(page):
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_link_from_elsewhere_leads_to_the_page_and_signs_nobody_out(browser, site):
    """The browser holds a strict cookie back for such a link; the page loads itself once more."""
    context = browser.new_context()
    try:
        page = context.new_page()
        sign_in(page, site, "ana")
        page.goto(site.address.replace("127.0.0.1", "localhost"))  # which is another site
        link = "a => { document.body.append(Object.assign(document.createElement('a'), a)) }"
        page.evaluate(link, {"href": f"{site.address}/datasets", "textContent": "elsewhere"})
        page.get_by_role("link", name="elsewhere").click()
        page.get_by_role("heading", name="Datasets").wait_for()
        assert page.url == f"{site.address}/datasets"
        page.goto(f"{site.address}/datasets/people")
        assert page.get_by_role("button", name="Sign out").is_visible()
    finally:
        context.close()
