"""The documentation as a site: complete, by itself, and found by those who search it."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from gateway_sites import make_site
from playwright.sync_api import sync_playwright
from starlette.testclient import TestClient

from discreet.errors import ParameterError
from discreet.service import Gateway, GatewaySettings, check_servable, create_app

ROOT = Path(__file__).parents[1]
# What a newcomer types, and a page that must be among the first three that are found.
SEARCHES = {
    "epsilon": "explain-a-guarantee",
    "quote": "tables",
    "error bars": "read-results",
    "budget": "share-a-budget",
    "postgresql": "postgresql",
    "opacus": "migrate-from-opacus",
    "laplace": "mechanisms",
    "median": "private-quantiles",
    "receipt": "receipt",
    "randomized response": "randomized-response",
}
# What is shown, once it is the answer to what was typed.
SHOWN = """word => {
  const all = [...document.querySelectorAll(".md-search-result__item .md-search-result__link")];
  return all.length > 0 && all[0].href.includes("h=" + word) && all.map(one => one.pathname);
}"""
FOUND = ".md-search-result__item .md-search-result__link"

pytestmark = pytest.mark.lengthy


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of a site that was built as `make docs` does, warnings being errors."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Wants(HTMLParser):
    """What a page leads to, loads, and has as places; and scripts that are in the page itself."""

    def __init__(self, page):
        super().__init__()
        self.links, self.loads, self.places, self.scripts = [], [], set(), 0
        self.feed(page.read_text())

    def handle_starttag(self, tag, attrs):
        said = dict(attrs)
        self.places |= {said[name] for name in ("id", "name") if said.get(name)}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        elif tag == "link":
            self.loads.append(said["href"])
        elif "src" in said or "srcset" in said:
            self.loads.append(said.get("src") or said["srcset"])
        elif tag == "script" and said.get("type") != "application/json":
            self.scripts += 1


@pytest.fixture(scope="module")
def pages(site):
    return {page: Wants(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}


def test_no_link_is_dead(site, pages):
    dead = set()
    for page, wants in pages.items():
        for link in (*wants.links, *wants.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            named = pages[there].places if there in pages else {place}
            if not there.is_file() or (place and place not in named):
                dead.add(f"{page.relative_to(site)} -> {link}")
    assert len(pages) > 100
    assert dead == set()


def test_nothing_is_loaded_from_elsewhere_and_no_script_is_in_a_page(site, pages):
    loaded = {load for wants in pages.values() for load in wants.loads}
    assert [load for load in loaded if "//" in load] == []
    assert [page.name for page, wants in pages.items() if wants.scripts] == []
    for sheet in site.rglob("*.css"):
        urls = [url.strip("'\"") for url in re.findall(r"url\(([^)]*)\)", sheet.read_text())]
        own = [url for url in urls if not url.startswith(("data:", "#"))]
        assert [url for url in own if not (sheet.parent / url).is_file()] == [], sheet


@pytest.fixture(scope="module")
def gateway(site, tmp_path_factory):
    """Return the address of a gateway that serves the site."""
    with make_site(tmp_path_factory.mktemp("gateway"), docs=site).running() as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as made:
        yield made.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])


class Reader:
    """A page of a browser, and whatever went wrong in it."""

    def __init__(self, page):
        self.page, self.wrong, self.asked = page, [], set()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))

    def _said(self, message):
        if message.type == "error":
            self.wrong.append(message.text)


@pytest.fixture
def reader(browser):
    with browser.new_page() as page:
        yield Reader(page)


@pytest.mark.needs("chromium")
def test_newcomers_find_what_they_type(reader, gateway):
    reader.page.goto(f"{gateway}/docs")
    for typed, wanted in SEARCHES.items():
        box = reader.page.get_by_role("textbox", name="Search")
        box.fill("")
        box.press_sequentially(typed)
        paths = reader.page.wait_for_function(SHOWN, arg=typed.split()[0]).json_value()
        found = list(dict.fromkeys(paths))[:3]  # the pages, each with several places
        assert any(wanted in path for path in found), (typed, found)
    assert reader.wrong == []
    assert reader.asked == {urlsplit(gateway).netloc}


@pytest.mark.needs("chromium")
def test_formulas_are_drawn_and_pages_fit_a_phone(reader, gateway, site):
    reader.page.set_viewport_size({"width": 360, "height": 800})
    for page in [site / "index.html", *sorted((site / "proofs").glob("*.html"))]:
        reader.page.goto(f"{gateway}/docs/{page.relative_to(site)}")
        assert reader.page.locator(".katex-error").count() == 0, page
        formulas = reader.page.locator(".arithmatex").count()
        assert reader.page.locator(".arithmatex .katex").count() >= formulas, page
        assert reader.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, page
    assert reader.wrong == []


@pytest.mark.needs("chromium")
def test_the_search_needs_no_server(reader, site):
    reader.page.goto((site / "index.html").as_uri())
    reader.page.get_by_role("textbox", name="Search").press_sequentially("epsilon")
    reader.page.locator(FOUND).first.wait_for()
    assert reader.asked == {""}


def test_a_gateway_serves_it_and_nothing_beside_it(site, tmp_path):
    app = create_app(Gateway.open(GatewaySettings(ledger=str(tmp_path / "budget.db"), docs=site)))
    with TestClient(app) as client:
        start = client.get("/docs")
        assert start.status_code == 200
        assert start.url.path == "/docs/index.html"
        assert "default-src 'none'; script-src 'self'" in start.headers["content-security-policy"]
        again = {"If-None-Match": start.headers["etag"]}
        assert client.get("/docs/index.html", headers=again).status_code == 304
        for path in ("nowhere.html", "proofs", "../budget.db", "%2e%2e/budget.db", "..%2f.."):
            refused = client.get(f"/docs/{path}")
            assert refused.status_code == 404, path
            assert refused.headers["content-type"] == "application/problem+json"
        assert client.post("/docs/index.html").status_code == 405


def test_a_folder_without_a_site_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="docs must be the folder of a built site"):
        check_servable(GatewaySettings(datasets=(tmp_path / "a.toml",), docs=tmp_path))
