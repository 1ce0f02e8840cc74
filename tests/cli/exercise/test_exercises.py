"""Exercises: the library answers them, solutions run as shown, and mistakes are told apart."""

import contextlib
import io
import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.exercise.questions import EXERCISES

COURSE = Path(__file__).parents[3] / "docs/course"
NUMBERED = [pytest.param(n, one, id=one.name) for n, one in enumerate(EXERCISES, start=1)]


def run(*args):
    return CliRunner().invoke(app, ["exercise", *map(str, args)])


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize(("number", "one"), NUMBERED)
def test_the_solution_shown_runs_and_its_answer_is_accepted(number, one):
    shown = json.loads(run("show", number, "--solution", "--json").stdout)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(shown["solution"], "<solution>", "exec"), {})
    answer = printed.getvalue().strip()
    assert float(Fraction(answer)) == pytest.approx(shown["answer"])
    told = run("check", number, answer)
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("Right.")
    # Two digits are enough, and one is not.
    assert run("check", number, f"{float(shown['answer']) * 1.004:.17g}").exit_code == 0
    assert run("check", number, f"{float(shown['answer']) * 1.06:.17g}").exit_code == 1


@pytest.mark.parametrize(("number", "one"), NUMBERED)
def test_a_wrong_answer_gets_a_hint_and_not_the_answer(number, one):
    told = run("check", number, "12345678")
    assert told.exit_code == 1
    assert f"Not yet. {one.hint}" in words(told.stdout)
    assert "library says" not in told.stdout


def test_a_known_mistake_is_told_by_name():
    mistakes = [(n, m) for n, one in enumerate(EXERCISES, start=1) for m in one.mistakes]
    assert len(mistakes) > 10
    for number, (mistake, remark) in mistakes:
        told = run("check", number, Fraction(mistake()))
        assert told.exit_code == 1
        assert remark in words(told.stdout)
        assert json.loads(run("check", number, Fraction(mistake()), "--json").stdout)[
            "is_right"
        ] is False  # fmt: skip


def test_answers_are_read_as_people_write_them():
    for answer in ("1/3", "33.3%", "0.333", " 33.3 %"):
        assert run("check", 2, answer).exit_code == 0, answer
    assert run("check", 18, "39,700").exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("check", 1, "lots"), "answer must be a number, got 'lots'"),
        (("check", 1, "nan"), "answer must be a number"),
        (("check", 99, "1"), "there is no exercise 99. There are exercises 1 to"),
        (("show", 0), "There are exercises 1 to"),
        (("show", "one"), "There are exercises 1 to"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(args, said):
    told = run(*args)
    assert told.exit_code == 2
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_the_list_names_all_of_them_and_leads_on():
    shown = run("list").stdout
    assert all(one.name in shown for one in EXERCISES)
    assert "discreet exercise show 1" in shown
    facts = json.loads(run("list", "--json").stdout)
    assert [one["number"] for one in facts] == list(range(1, len(EXERCISES) + 1))
    assert not any("answer" in one for one in facts)


def test_the_course_has_every_question_and_every_page_that_they_name():
    page = words((COURSE / "exercises.md").read_text())
    for number, one in enumerate(EXERCISES, start=1):
        assert f"{number}. **{one.name.capitalize()}.** {words(one.question)}" in page, one.name
        assert (COURSE / one.page).exists(), one.page
    assert not re.search(rf"{len(EXERCISES) + 1}\. \*\*", page)
