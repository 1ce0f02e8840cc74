"""The survey's page asks, answers by coins alone, and shows the estimate of everybody."""

import os
import shutil

import pytest

from discreet.local.wire import report_length, sort_out


@pytest.fixture(scope="module")
def survey(example):
    pytest.importorskip("uvicorn")
    return example("browser_survey")


@pytest.fixture
def page():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        opened = browser.new_page()
        opened.set_default_timeout(60_000)
        yield opened
        browser.close()


@pytest.mark.lengthy
@pytest.mark.needs("chromium")
def test_a_person_answers_once_and_sees_the_estimate(survey, page):
    wrong, asked = [], []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    page.on("request", lambda request: asked.append(request))
    with survey.opened_survey() as open_survey:
        answer = page.goto(open_survey.address)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        page.get_by_text("0 answers; 250 are needed.").wait_for()
        page.get_by_role("button", name="Yes").click()
        page.get_by_text("All that was sent:").wait_for()
        assert page.get_by_role("button", name="No").is_disabled()

        open_survey.send([0] * 4000 + [1] * 1000)
        page.get_by_text("of 5,001 say yes: between").wait_for()
        shown = page.locator("#estimate").inner_text()
        published = open_survey.estimate()["published"]
        assert f"{100 * published['estimate']['counts'][1] / 5001:.1f}% of" in shown
        assert page.locator("#chart polygon.band").count() == 1

        page.reload()
        page.get_by_text("This browser has answered").wait_for()
        assert page.get_by_role("button", name="Yes").is_disabled()
        parameters = open_survey.collection.parameters

    # All that ever left the browser: files of this site, and the one report that the coins made.
    assert all(one.url.startswith(open_survey.address) for one in asked)
    assert all("?" not in one.url for one in asked)
    (sent,) = [one.post_data_buffer for one in asked if one.method == "POST"]
    assert len(sent) == report_length(parameters)
    assert sort_out(parameters, [sent]).accepted == 1
    assert wrong == []


@pytest.mark.lengthy
@pytest.mark.needs("chromium")
def test_what_leaves_a_browser_does_not_follow_from_the_answer(survey, page):
    """New browsers say yes until one reports yes and one no: few are needed, if coins decide."""
    reported = set()
    with survey.opened_survey() as open_survey:
        for _ in range(70):
            context = page.context.browser.new_context()
            other = context.new_page()
            other.goto(open_survey.address)
            other.get_by_role("button", name="Yes").click()
            other.get_by_text("All that was sent:").wait_for()
            reported.add(other.locator("#told").inner_text().split("“")[1].split("”")[0])
            context.close()
            if len(reported) == 2:
                return
    pytest.fail("all alike 70 times in a row, which has a chance of 0.732**70 < 1e-9")


@pytest.mark.lengthy
def test_the_estimate_converges_in_the_terminal(survey, capsys):
    survey.main(["--browsers", "5000"])
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    rows = [line.split() for line in told.splitlines() if " to " in line and "%" in line]
    assert rows[0][0] == "250"
    assert rows[-1][0] == "5,000"
    widths = [line[-1].count("#") for line in (rows[0], rows[-1])]
    assert widths[0] > widths[1] > 0
