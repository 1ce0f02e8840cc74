"""`discreet attack membership`: before and after, in words, JSON and a picture."""

import json

import pytest
from typer.testing import CliRunner

from discreet.cli import app


def attack(*words):
    return CliRunner().invoke(
        app, ["attack", "membership", *map(str, words)], env={"COLUMNS": "80"}
    )


@pytest.mark.lengthy
def test_frequencies_before_and_after_with_a_picture(tmp_path):
    picture = tmp_path / "both.svg"
    result = attack("--against", "frequencies", "--epsilon", 1, "--plot", picture)
    assert result.exit_code == 0, result.output
    assert "Without protection" in result.output
    assert "the guarantee allows" in result.output
    assert max(map(len, result.output.splitlines()[:-1])) <= 80
    assert picture.read_text().startswith("<?xml")


@pytest.mark.slow
@pytest.mark.parametrize("against", ["model", "text"])
def test_models_before_and_after(against):
    """By chance a private model's lower limit is above with probability below 0.025."""
    result = attack("--against", against, "--json")
    assert result.exit_code == 0, result.output
    both = json.loads(result.output)
    before, after = both["before"], both["after"]
    assert before["interval"][0] > 3 * before["baseline"]
    assert after["success"] < before["interval"][0]
    assert after["allowed"] < 0.01


@pytest.mark.parametrize(
    "words",
    [
        ("--delta", "0"),
        ("--epsilon", "0"),
        ("--epsilon", "nan"),
        ("--rows", "0"),
        ("--rows", 10**6),
        ("--against", "nobody"),
        ("--plot", "none/at/all.png"),
        ("--plot", "picture.txt"),
    ],
)
def test_what_cannot_be_done_is_refused_before_it_begins(words):
    result = attack(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("discreet: ")
    assert "Without protection" not in result.output


@pytest.mark.lengthy
def test_too_few_people_for_the_rate_are_told_so():
    result = attack("--rows", 40)
    assert result.exit_code == 2
    assert "non-members" in result.stderr
