"""`discreet demo`: the way of a new user, on one page."""

import os
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from discreet.cli import app
from discreet.cli.demo import tables as demo

REAL = os.environ.get("DISCREET_DATA")


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)


def run(*args, **environment):
    return CliRunner().invoke(app, ["demo", *map(str, args)], env=environment)


@pytest.mark.lengthy
def test_the_page_goes_from_protecting_to_verifying():
    result = run("--rows", 20_000)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    for step in (
        "Guarantee(epsilon=3, delta=1e-06) for all records of one person_id",
        "% of the budget; about 5 more like it fit",
        "left 83.3% of the budget of 'people' after it",
        "Left of the budget: 83.3%",
        "nothing charged",
        "* would show raw rows. Nothing was spent.",
        "proven: these entries are in the log",
        "the answer is the one that entry 3 commits to",
        "6 entries verified",
        "78.3% of the budget is left",
    ):
        assert step in words, step
    assert len(re.findall(r"\d \N{PLUS-MINUS SIGN} \d", result.stdout)) >= 20


@pytest.mark.lengthy
def test_a_terminal_of_plain_ascii_can_show_it():
    class Ascii:
        encoding = "ascii"

        def __init__(self):
            self.written = ""

        def write(self, text):
            self.written += text.encode("ascii").decode()
            return len(text)

        def flush(self):
            pass

    file = Ascii()
    demo.run_demo(Console(file=file, width=80), data=None, rows=2000)
    assert "+/-" in file.written


@pytest.mark.lengthy
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_tiny_tables_end_well(rows):
    assert run("--rows", rows).exit_code == 0


@pytest.fixture
def data(tmp_path):
    rows = ["age,income", *(f"{20 + i % 60},{1000 * (i % 70)}" for i in range(500))]
    rows += ["x,y", "40,", ",,", "-3,secret-secret", "nan,inf"]
    (tmp_path / "people.csv").write_text("\n".join(rows))
    return tmp_path


@pytest.mark.lengthy
def test_own_data_by_option_and_by_variable(data):
    for result in (run("--data", data), run(DISCREET_DATA=str(data))):
        assert result.exit_code == 0, result.output
        assert "for one record" in result.stdout
        assert "secret" not in result.output


def test_rows_and_data_exclude_each_other(data):
    for result in (run("--data", data, "--rows", 7), run("--rows", 7, DISCREET_DATA=str(data))):
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "read whole" in " ".join(result.stderr.split())


def test_a_folder_without_people_says_what_is_wanted(tmp_path):
    result = run("--data", tmp_path)
    assert result.exit_code == 2
    assert "people.csv" in result.stderr
    (tmp_path / "people.csv").write_text("age,wage\n1,2\n")
    result = run("--data", tmp_path)
    assert result.exit_code == 2
    assert "income" in result.stderr


@pytest.mark.parametrize(
    "args",
    [["--rows", "0"], ["--rows", "x"], ["--rows", "1" + "0" * 400], ["--data", "no/such/folder"]],
)
def test_bad_input_is_one_line(args):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.needs("real data")
def test_the_real_folder_answers_or_says_why_not():
    result = run("--data", REAL)
    assert result.exit_code == 0 or "has none of the files" in result.stderr
