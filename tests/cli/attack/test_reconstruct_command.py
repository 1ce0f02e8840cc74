"""`discreet attack reconstruct`: bits before and after."""

import json

import pytest
from typer.testing import CliRunner

from discreet.cli import app


def run(*words):
    return CliRunner().invoke(app, ["attack", "reconstruct", *words], env={"COLUMNS": "80"})


@pytest.mark.lengthy
def test_the_page_has_both_and_fits(tmp_path):
    picture = tmp_path / "bits.png"
    result = run("--people", "48", "--questions", "192", "--noise", "0", "--plot", str(picture))
    assert result.exit_code == 0, result.output
    assert "Without protection" in result.output
    assert "192 of 192 questions about 48 people were answered" in " ".join(result.output.split())
    assert "100%" in result.output
    assert "the guarantee allows  at most 73.2%" in result.output
    assert max(map(len, result.output.splitlines()[:12])) <= 80
    assert picture.stat().st_size > 1000


@pytest.mark.lengthy
def test_programs_get_json():
    facts = json.loads(run("--people", "32", "--questions", "64", "--json").stdout)
    assert facts["before"]["details"]["answered"] == 64
    assert facts["after"]["allowed"] == pytest.approx(0.731, abs=1e-3)
    alone = json.loads(run("--people", "32", "--each", "--json").stdout)
    assert alone["before"]["success"] == 1
    assert alone["after"]["details"]["questions"] == 32


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--people", "1"], "people"),
        (["--people", "many"], "people"),
        (["--questions", "1e9"], "questions"),
        (["--noise", "-1"], "noise"),
        (["--epsilon", "-1"], "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(words, named):
    result = run(*words)
    assert result.exit_code == 2
    assert named in result.stderr


@pytest.mark.lengthy
@pytest.mark.parametrize("words", [["--questions", "20"], ["--each"]])
def test_all_questions_are_answered_whatever_their_number(words):
    facts = json.loads(run("--people", "10", *words, "--json").stdout)
    assert facts["after"]["details"]["answered"] == facts["after"]["details"]["questions"]
