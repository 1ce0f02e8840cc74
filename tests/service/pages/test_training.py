"""The training in a real browser: the boundary moves, and epsilon is the accountant's."""

import re
from fractions import Fraction

import httpx
import pytest
from page_sites import barriers, is_wider_than_screen

from discreet.accounting import GaussianLoss, epsilon

pytestmark = pytest.mark.needs("chromium")
QUERY = "by=noise&noise=2&steps=40&batch=80&clip=1&rate=1"


@pytest.fixture
def training(open_page, site):
    page = open_page(f"{site.address}/training?{QUERY}")
    page.set_default_timeout(90_000)
    return page


def accounted(noise, batch, steps):
    """What the accountant says of such a run, worked out here."""
    step = GaussianLoss(noise_multiplier=noise).sampled(rate=Fraction(batch, 400))
    return epsilon(step * steps, delta=1e-5)


def test_the_boundary_moves_and_epsilon_is_the_accountants(training):
    training.evaluate(
        """() => {
          window.seen = { plain: new Set(), private: new Set() };
          for (const kind of ["plain", "private"]) {
            const line = document.querySelector(`[data-learner=${kind}] .boundary`);
            new MutationObserver(() => window.seen[kind].add(line.getAttribute("x1")))
              .observe(line, { attributes: true });
          }
        }"""
    )
    training.get_by_role("button", name="Train", exact=True).click()
    training.get_by_text("Finished:").wait_for()
    places = training.evaluate("[window.seen.plain.size, window.seen.private.size]")
    assert min(places) > 10
    shown = training.locator("[data-learner=private] [data-value=epsilon]").inner_text()
    assert shown == f"{accounted(2, 80, 40):.3g}"
    accuracy = training.locator("[data-learner=plain] [data-value=accuracy]").inner_text()
    assert int(accuracy.removesuffix("%")) > 85
    for name in ("loss", "accuracy", "epsilon"):
        assert training.locator(f"[data-curve={name}] canvas").count() == 1


def test_noise_follows_epsilon_and_epsilon_follows_noise(training):
    with training.expect_response(re.compile(r"/training\?")):
        training.locator("#noise").fill("4")
    training.locator("#plan[data-noise='4.0']").wait_for()
    found = float(training.locator("#plan").get_attribute("data-epsilon"))
    assert found == pytest.approx(accounted(4, 80, 40))
    with training.expect_response(re.compile(r"/training\?")):
        training.locator("#epsilon").fill("1")
    training.locator("#plan:not([data-noise='4.0'])").wait_for()
    noise = float(training.locator("#plan").get_attribute("data-noise"))
    assert 0.99 < accounted(noise, 80, 40) <= 1
    assert training.locator("output[data-shows=noise]").inner_text() == f"{noise:.3g}"


def test_a_run_can_be_stopped_and_begun_again(training):
    training.locator("#steps").fill("300")
    training.get_by_role("button", name="Train", exact=True).click()
    training.get_by_text("Training.", exact=True).wait_for()
    training.get_by_role("button", name="Stop").click()
    assert training.get_by_text("Stopped.").is_visible()
    training.locator("#steps").fill("20")
    training.get_by_role("button", name="Train", exact=True).click()
    training.get_by_text("after 20 of 20 steps").wait_for()


def test_a_finished_run_without_scripts_and_its_twin(open_page, site):
    page = open_page(f"{site.address}/training?{QUERY}", java_script_enabled=False)
    page.set_default_timeout(90_000)
    page.get_by_role("button", name="Train to the end").click()
    page.get_by_text("Finished:").wait_for()
    assert page.locator("[data-learner=private] .boundary").get_attribute("x1")
    found = httpx.get(f"{site.address}/training.json?{QUERY}&run=yes", timeout=90).json()
    run = found["run"]
    assert run["private"]["epsilon"] == found["plan"]["epsilon"] == accounted(2, 80, 40)
    assert run["plain"]["accuracy"] > 0.85
    assert run["loss"]["x"][-1] == 40
    assert run["loss"]["series"][0]["y"][-1] < run["loss"]["series"][0]["y"][0]


def test_what_cannot_be_chosen_is_told(site):
    for query, word in (("batch=0", "batch"), ("steps=1e9", "steps"), ("by=luck", "by")):
        found = httpx.get(f"{site.address}/training.json?{query}")
        assert word in found.json()["problem"]["detail"]
        stream = httpx.get(f"{site.address}/training/steps?{query}")
        assert stream.status_code == 422


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(open_page, site, scheme):
    page = open_page(f"{site.address}/training?{QUERY}&run=yes", color_scheme=scheme)
    assert barriers(page) == []


def test_a_phone_shows_it_without_scrolling_sideways(open_page, site):
    address = f"{site.address}/training?{QUERY}&run=yes"
    page = open_page(address, viewport={"width": 360, "height": 740})
    page.locator("[data-curve=epsilon] canvas").wait_for()
    assert not is_wider_than_screen(page)
