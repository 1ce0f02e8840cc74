"""The gallery: each picture says what the library says, moves with its controls, and has a twin."""

import math

import httpx
import pytest
from page_sites import barriers, is_wider_than_screen

from discreet.accounting import tradeoff
from discreet.mechanisms import DiscreteLaplace, Exponential, Gaussian, NoisyMax

pytestmark = pytest.mark.needs("chromium")

PICTURES = ["noise", "survey", "choice", "tradeoff", "differencing", "reconstruction"]


@pytest.fixture(scope="module")
def told(site):
    """Return the twin of a picture."""

    def asked(name, expects=200, **query):
        found = httpx.get(f"{site.address}/gallery/{name}.json", params=query, timeout=60)
        assert found.status_code == expects, found.text
        return found.json()

    return asked


@pytest.mark.parametrize("noise", ["laplace", "discrete-laplace", "gaussian", "discrete-gaussian"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_laws_are_laws_and_pure_noise_stays_within_its_band(told, noise, epsilon):
    law = told("noise", noise=noise, epsilon=epsilon, digits=2)
    if not law["has_delta"]:
        assert max(map(abs, law["loss"])) <= epsilon * (1 + 1e-9)
        assert law["delta"] == 0
    else:
        assert max(map(abs, law["loss"])) > epsilon
        assert 0 < law["delta"] <= 0.01
    spacing = law["every"] if law["is_whole"] else law["outputs"][1] - law["outputs"][0]
    if law["every"] == 1:
        assert math.fsum(law["with"]) * spacing == pytest.approx(1, abs=0.01)
    for low, p, high in zip(law["band"]["low"], law["without"], law["band"]["high"], strict=True):
        assert low <= p <= high


def test_the_chance_of_an_output_is_how_often_the_mechanism_gives_it(told):
    law = told("noise", noise="discrete-laplace", epsilon=1)
    mechanism = DiscreteLaplace.calibrated(epsilon=1, sensitivity=1)
    n = 20_000
    drawn = mechanism.release([40] * n).tolist()
    for output, chance in zip(law["outputs"], law["without"], strict=True):
        # Hoeffding: off by more than this has probability 2 exp(-2 n band^2) < 1e-15.
        assert abs(drawn.count(output) / n - chance) < 0.03


def test_surveys_hold_the_truth_as_often_as_they_say_and_an_address_is_one_picture(told):
    found = told("survey", rate=30, people=1000, epsilon=1)
    assert found == told("survey", rate=30, people=1000, epsilon=1)
    assert found["surveys"] != told("survey", rate=30, people=1000, epsilon=1, draw=2)["surveys"]
    right = sum(told("survey", people=500, draw=draw)["right"] for draw in range(1, 6))
    assert right >= 0.85 * 200  # below has chance under 1e-7 where each is right in 19 of 20
    wide, narrow = (
        told("survey", epsilon=epsilon, people=2000)["surveys"][0] for epsilon in (0.2, 4)
    )
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


def test_chances_are_those_of_the_mechanisms(told):
    found = told("choice", scores="3, 2, 0", epsilon=2, monotone="yes")
    for kind, law in zip(
        found["kinds"],
        [
            Exponential(epsilon=2, sensitivity=1, monotone=True),
            None,
            NoisyMax(epsilon=2, sensitivity=1, monotone=True),
        ],
        strict=True,
    ):
        assert sum(kind["chances"]) == pytest.approx(1)
        if law is not None:
            assert kind["chances"] == pytest.approx(law.probabilities([3, 2, 0]).tolist())
    best = [kind["best"] for kind in found["kinds"]]
    assert best[1] > max(best[0], best[2])


def test_scores_that_cannot_be_read_are_told_in_the_page(open_page, site):
    page = open_page(f"{site.address}/gallery/choice?scores=3,many")
    assert "numbers with commas" in page.get_by_role("alert").inner_text()


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("noise", {"noise": "cauchy"}), ("noise", {"epsilon": "nan"}), ("noise", {"epsilon": 9}),
        ("survey", {"people": 10**9}), ("tradeoff", {"digits": "many"}),
        ("differencing", {"minimum": "7"}), ("reconstruction", {"people": "4096"}),
    ],
)  # fmt: skip
def test_work_has_bounds(told, name, query):
    assert told(name, expects=422, **query)["type"].endswith("invalid")


def test_curves_are_those_of_the_accountant(told):
    found = told("tradeoff", epsilon=1, digits=3)
    noise = Gaussian.calibrated(epsilon=1, delta=1e-3, sensitivity=1)
    curve = next(one for one in found["curves"] if one["title"] == "Gaussian noise")
    expected = tradeoff(noise.loss, false_positive_rates=found["alarms"])
    assert curve["misses"] == pytest.approx(expected.tolist())
    promise = found["curves"][0]["misses"]
    assert all(p <= m + 1e-9 for p, m in zip(promise, curve["misses"], strict=True))


def test_attacks_succeed_without_protection_and_fail_with_it(told):
    found = told("differencing", minimum=10, epsilon="0.5")
    assert found["before"]["success"] == 1
    assert found["after"]["success"] <= 0.5
    found = told("reconstruction", people=64, questions=256, noise=1, epsilon="0.5")
    assert found["before"]["success"] > 0.95
    assert found["after"]["interval"][0] <= found["after"]["allowed"]
    assert found["after"]["success"] < 0.8


def test_a_slider_moves_the_picture_and_the_address(open_page, site):
    page = open_page(f"{site.address}/gallery/survey")
    page.locator("#epsilon").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert page.locator('output[for="epsilon"]').inner_text() == "2"
    page.wait_for_url("**epsilon=2*")
    page.locator("#live .figures").filter(has_text="88.1%").wait_for()  # e^2 / (1 + e^2), rounded
    page.locator("#live canvas").first.wait_for()


def test_it_works_without_scripts(open_page, site):
    page = open_page(f"{site.address}/gallery/tradeoff", java_script_enabled=False)
    page.get_by_role("button", name="Show").click()
    assert "an attacker misses at least" in page.locator("#live").inner_text()


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(open_page, site, scheme):
    page = open_page(f"{site.address}/gallery", color_scheme=scheme)
    assert barriers(page) == []
    for name in PICTURES:
        page.goto(f"{site.address}/gallery/{name}")
        page.locator("#live canvas").first.wait_for()
        assert barriers(page) == [], name


def test_a_phone_shows_it_without_scrolling_sideways(open_page, site):
    page = open_page(f"{site.address}/gallery", viewport={"width": 360, "height": 740})
    for name in PICTURES:
        page.goto(f"{site.address}/gallery/{name}")
        page.locator("#live canvas").first.wait_for()
        assert not is_wider_than_screen(page), name
