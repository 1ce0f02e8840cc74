"""A site that collects, and a browser for its pages."""

import os
import shutil

import pytest
from device_sites import device_site


@pytest.fixture(scope="module")
def site():
    with device_site() as made:
        yield made


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        yield opened
        opened.close()


@pytest.fixture(params=["discreet-local.js", "discreet-local.min.js"])
def module(request):
    """Each module that a site may serve: the readable one, and the minified one."""
    return request.param


@pytest.fixture
def device(chromium, site):
    """Return a page of a new device, on which ``local`` is the module; errors fail the test."""
    context, wrong = chromium.new_context(), []

    def opened(module="discreet-local.min.js"):
        site.use(module)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
        page.goto(site.address)
        assert page.evaluate("() => local.openCollection.length === 1")
        return page

    yield opened
    context.close()
    assert wrong == []
