"""A gateway in a process of its own, and a browser that complains of whatever a page does wrong."""

import os
import shutil
from urllib.parse import urlsplit

import pytest
from page_sites import demo_gateway


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The demo, served by a process; one for all tests of a file."""
    with demo_gateway(tmp_path_factory.mktemp("demo")) as made:
        yield made


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Open pages in contexts of their own; fail on console errors and on requests elsewhere.

    ``expects`` are errors that a test means to see: parts of their texts, such as ``409``.
    """
    wrong, contexts = [], []

    def opened(address, *, expects=(), **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        home = urlsplit(address).netloc

        def look(request):
            parts = urlsplit(request.url)
            if parts.scheme not in ("data", "blob") and parts.netloc != home:
                wrong.append(f"a request elsewhere: {request.url}")

        def hear(told):
            if told.type == "error" and not any(one in told.text for one in expects):
                wrong.append(told.text)

        page.on("request", look)
        page.on("console", hear)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def page(open_page, site):
    """The front page, in a window of its own."""
    return open_page(site.address)
