"""The budget explorer in a real browser: from the first answer to the last refusal."""

import re

import pytest
from page_sites import barriers, is_wider_than_screen

pytestmark = pytest.mark.needs("chromium")

COUNT = "SELECT COUNT(*) AS people FROM salaries WHERE years >= {}"


@pytest.fixture
def explorer(open_page, site):
    return open_page(f"{site.address}/explorer")


def twin(page):
    """What programs see of the same session."""
    return page.evaluate("fetch('/explorer.json').then((answer) => answer.json())")


def price(page, question, epsilon):
    """Choose, and wait for the price, which comes by itself."""
    with page.expect_response(re.compile(r"/explorer\?")):
        page.get_by_label("Your question").fill(question)
        page.locator("#epsilon").fill(str(epsilon))
    page.locator(f"#price input[name=epsilon][value='{float(epsilon)}']").first.wait_for(
        state="attached"
    )


def ask(page, question=None, epsilon=None):
    if question is not None:
        price(page, question, epsilon)
    with page.expect_navigation():
        page.locator("#price form button").click()


def choose_policy(page, name):
    page.get_by_label(re.compile(name)).check()
    with page.expect_navigation():
        page.get_by_role("button", name="Set the policy").click()


def test_an_answer_is_priced_first_and_then_paid(explorer):
    price(explorer, COUNT.format(3), 0.5)
    assert "10%" in explorer.locator("#price").inner_text()
    assert twin(explorer)["left"] == 1
    ask(explorer)
    assert explorer.get_by_role("article").count() == 1
    assert explorer.get_by_role("article").locator("svg .bar").count() == 3
    found = twin(explorer)
    assert 0.89 < found["left"] < 0.9 + 1e-9
    assert found["answers"][0]["question"] == COUNT.format(3)
    assert (
        "90%" in explorer.locator(".gauge").inner_text()
        or "89%" in explorer.locator(".gauge").inner_text()
    )


def test_asking_again_costs_nothing(explorer):
    ask(explorer, COUNT.format(4), 0.5)
    before = twin(explorer)
    ask(explorer, COUNT.format(4), 0.5)
    after = twin(explorer)
    assert after["left"] == before["left"]
    assert after["answers"] == before["answers"]


def test_to_exhaustion_denied_and_then_degraded(explorer):
    """Three answers at 1.6 leave 0.2 of 5: not enough for another one, but for a noisier one."""
    for years in range(3):
        ask(explorer, COUNT.format(years), 1.6)
    price(explorer, COUNT.format(9), 1.6)
    assert "does not fit any more" in explorer.locator("#price").inner_text()
    ask(explorer)
    told = explorer.get_by_role("alert").inner_text()
    assert "would bring the budget" in told
    assert "Nothing was spent" in told
    assert len(twin(explorer)["answers"]) == 3
    choose_policy(explorer, "Degrade")
    button = explorer.get_by_role("button", name="Take the noisier answer")
    with explorer.expect_navigation():
        button.click()
    last, *before = twin(explorer)["answers"]
    assert last["question"] == COUNT.format(9)
    assert last["epsilon"] == pytest.approx(0.2, rel=0.01)
    (wide,), (narrow,) = (one["measures"][0]["points"] for one in (last, before[0]))
    assert wide["half_width"] > 5 * narrow["half_width"]
    price(explorer, COUNT.format(10), 0.5)
    ask(explorer)
    assert "would bring the budget" in explorer.get_by_role("alert").inner_text()
    assert twin(explorer)["left"] < 0.01


def test_the_truth_is_hidden_until_it_is_asked_for(explorer):
    ask(explorer, "SELECT department, COUNT(*) AS n FROM salaries GROUP BY department", 1)
    hidden = twin(explorer)
    assert hidden["people"] is None
    assert all("mark" not in one for one in hidden["answers"][0]["measures"][0]["points"])
    assert explorer.locator("svg .mark").count() == 0
    with explorer.expect_navigation():
        explorer.get_by_role("button", name="Show the truth").click()
    shown = twin(explorer)
    departments = [one["department"] for one in shown["people"]]
    points = shown["answers"][0]["measures"][0]["points"]
    assert len(departments) == 100
    assert [one["mark"] for one in points] == [departments.count(one["label"]) for one in points]
    assert explorer.locator("svg .mark").count() == len(points)


def test_two_visitors_never_see_each_others_session(open_page, site):
    one, other = (open_page(f"{site.address}/explorer") for _ in range(2))
    ask(one, COUNT.format(6), 2)
    assert twin(other)["answers"] == []
    assert twin(other)["left"] == 1
    ask(other, COUNT.format(7), 0.5)
    for page in (one, other):
        with page.expect_navigation():
            page.get_by_role("button", name="Show the truth").click()
    mine, theirs = twin(one), twin(other)
    assert [answer["question"] for answer in mine["answers"]] == [COUNT.format(6)]
    assert [answer["question"] for answer in theirs["answers"]] == [COUNT.format(7)]
    assert mine["people"] != theirs["people"]


def test_starting_over_is_about_other_people(explorer):
    ask(explorer, COUNT.format(2), 0.5)
    with explorer.expect_navigation():
        explorer.get_by_role("button", name="Show the truth").click()
    before = twin(explorer)["people"]
    with explorer.expect_navigation():
        explorer.get_by_role("button", name="Hire a hundred new people").click()
    fresh = twin(explorer)
    assert (fresh["answers"], fresh["left"], fresh["is_revealed"]) == ([], 1, False)
    with explorer.expect_navigation():
        explorer.get_by_role("button", name="Show the truth").click()
    assert twin(explorer)["people"] != before


def test_what_cannot_be_answered_privately_says_why(explorer):
    with explorer.expect_response(re.compile(r"/explorer\?")):
        explorer.get_by_label("Your question").fill("SELECT * FROM secrets")
    told = explorer.get_by_role("alert")
    told.wait_for()
    assert "secrets" in told.inner_text()
    assert explorer.locator("#price form").count() == 0


def test_methods_of_composition_are_compared(explorer):
    for years in range(2):
        ask(explorer, COUNT.format(years), 0.5)
    found = {one["name"]: one["epsilon"] for one in twin(explorer)["methods"]}
    assert found["basic"] == pytest.approx(1)
    assert found["pld"] <= found["renyi"] <= found["basic"] + 1e-9 < found["advanced"]
    price(explorer, COUNT.format(1), 0.05)
    ahead = {one["label"]: one["y"][-1] for one in twin_of(explorer)["ahead"]["series"]}
    assert ahead["PLD"] < ahead["Rényi"] < ahead["Advanced"] < ahead["Basic"]
    assert explorer.locator("#ahead canvas").count() == 1


def twin_of(page):
    """The twin of the very address that the browser shows."""
    return page.evaluate(
        "fetch('/explorer.json' + location.search).then((answer) => answer.json())"
    )


def test_it_works_without_scripts(open_page, site):
    page = open_page(f"{site.address}/explorer", java_script_enabled=False)
    page.get_by_label("Your question").fill(COUNT.format(5))
    page.get_by_role("button", name="See the price").click()
    page.locator("#price form button").click()
    assert page.get_by_role("article").count() == 1
    assert COUNT.format(5) in page.get_by_role("article").inner_text()


@pytest.mark.needs("axe")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_anybodys_way(open_page, site, scheme):
    page = open_page(f"{site.address}/explorer", color_scheme=scheme)
    assert barriers(page) == []
    ask(page, "SELECT department, AVG(salary) AS pay FROM salaries GROUP BY department", 0.5)
    with page.expect_navigation():
        page.get_by_role("button", name="Show the truth").click()
    page.get_by_text("All 100 people").click()
    assert barriers(page) == []


def test_a_phone_shows_it_without_scrolling_sideways(open_page, site):
    page = open_page(f"{site.address}/explorer", viewport={"width": 360, "height": 740})
    ask(page, "SELECT department, AVG(salary) AS pay FROM salaries GROUP BY department", 0.5)
    assert not is_wider_than_screen(page)
