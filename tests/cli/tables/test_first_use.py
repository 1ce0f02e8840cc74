"""The first ten minutes: what a newcomer types, in an empty folder."""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.errors import MissingExtra, PrivacyWarning
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit
from discreet.tables import load, protect
from discreet.tables.results.example import region_counts

TOUR = Path(__file__).parents[3] / "docs/tutorials/tour.md"
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    return tmp_path


@pytest.fixture
def people(empty_folder):
    """A file in which every row is one person, and nothing says which."""
    rows = [f"{20 + i % 50},{'north' if i % 3 else 'south'}" for i in range(2000)]
    Path("people.csv").write_text("\n".join(["age,region", *rows]) + "\n")
    return empty_folder


def run(*args, code=0, entered=None):
    result = CliRunner().invoke(app, [*map(str, args)], input=entered)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def protected(*more, unit="record", code=0):
    base = ("--name", "people", "--unit", unit, "--epsilon", "3", "--delta", "1e-6")
    return run("protect", "people.csv", *base, *more, code=code)


def shell_lines(begin="discreet demo --write"):
    blocks = re.findall(r"```sh\n(.*?)```", TOUR.read_text(), re.S)
    (block,) = [one for one in blocks if one.startswith(begin)]
    return [shlex.split(line, comments=True) for line in block.splitlines()]


@pytest.mark.lengthy
def test_the_tours_first_block_works_as_written_in_an_empty_folder():
    lines = shell_lines()
    assert len(lines) >= 4
    for program, *words in lines:
        assert program == "discreet"
        run(*words)
    with Path("regions.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 10


@pytest.mark.slow
def test_the_tour_trains_as_written_in_an_empty_folder():
    pytest.importorskip("torch")
    lines = shell_lines("discreet demo learn")
    assert lines.pop(0) == ["discreet", "demo", "learn"]
    told = [run(*words) for _, *words in lines]
    assert "Accuracy on public.csv" in told[-1]


def test_what_is_public_about_columns_may_be_said_at_once(people):
    protected("--bounds", "age=0,120", "--keys", "region=north,south", "--keys", "age=1,2")
    columns = load("people.toml").tables["people"].columns
    assert columns["age"].bounds == (0, 120)
    assert columns["age"].keys == (1, 2)
    assert columns["region"].keys == ("north", "south")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (("--bounds", "age"), "--bounds must be a column and what is public about it"),
        (("--bounds", "age=7"), "--bounds must be two numbers"),
        (("--bounds", "age=9,1"), "the lower one first"),
        (("--bounds", "wage=0,9"), "--bounds must name one of"),
        (("--bounds", "region=0,9"), "region"),
        (("--keys", "age=few,many"), "--keys must be numbers"),
        (("--keys", "region="), "--keys must be a column and what is public about it"),
    ],
)
def test_what_cannot_be_public_about_columns_is_refused(people, said, told):
    assert told in protected(*said, code=2)
    assert os.listdir() == ["people.csv"]


def test_rows_without_a_unit_are_told_of(people):
    assert "Rows without region belong to nobody" in protected(unit="region")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["query", "people", "SELECT", "COUNT(*)", "FROM", "people"], "in quotes: 'SELECT ...'"),
        (["query", "people", COUNT, "--json", "n.json"], "write --json > FILE"),
    ],
)
def test_words_too_many_are_answered_with_what_was_meant(words, told):
    assert told in run(*words, "--epsilon", "1", code=2)


def test_every_command_of_the_tour_has_the_options_that_it_is_given():
    import typer.main

    root = typer.main.get_command(app)
    for block in re.findall(r"```sh\n(.*?)```", TOUR.read_text(), re.S):
        for line in block.splitlines():
            program, *words = shlex.split(line, comments=True) or [""]
            if program != "discreet":
                continue
            command = root
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]
            inner = getattr(command, "commands", {}).values()  # of which one may be left unsaid
            known = {name for c in (command, *inner) for one in c.params for name in one.opts}
            assert {word for word in words if word.startswith("--")} <= known, line


def test_rows_that_are_people_are_protected_as_records(people):
    protected("--rows", 1)
    assert load("people.toml").unit == Unit.record()
    assert "±" in run("query", "people", COUNT, "--epsilon", "0.5")


def test_a_column_called_record_is_not_mistaken(people):
    Path("people.csv").write_text("record,age\n1,20\n2,30\n")
    assert "Say column:record" in protected(code=2)
    protected(unit="column:record")
    assert load("people.toml").unit == Unit.column("record")


def test_a_wrong_unit_is_answered_with_a_guess_and_leaves_nothing(people):
    assert "Did you mean 'region'?" in protected(unit="regoin", code=2)
    assert os.listdir() == ["people.csv"]
    base = ("people.csv", "--name", "people", "--epsilon", 3, "--delta", 1e-6)
    assert "--unit must be given" in run("protect", *base, code=2)
    assert "Where each row is one person, it is record." in run("protect", *base, code=2)


def test_a_dry_run_shows_all_and_writes_nothing(people):
    told = protected("--dry-run", "--policy", "degrade")
    assert "Nothing was written." in told
    assert 'policy = "degrade"' in told
    assert 'unit = { kind = "record" }' in told
    assert os.listdir() == ["people.csv"]
    protected()
    Path("people.toml").rename("mine.toml")
    told = protected("--dry-run")
    assert "has an account 'people' already, for one record" in told
    assert "people.toml" not in os.listdir()


def test_the_policy_is_set_where_data_is_protected_and_stays(people):
    protected("--policy", "degrade")
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger["people"].policy == "degrade"
    run("query", "people", COUNT, "--epsilon", 2.9)
    told = run("quote", "people", f"{COUNT} WHERE age > 30", "--epsilon", 2)
    assert "times the noise would fit" in told
    terms = {"unit": Unit.record(), "guarantee": Guarantee(epsilon=3, delta=1e-6)}
    with pytest.raises(ValueError, match="has the policy degrade, not deny"):
        protect("people.csv", name="people", policy="deny", **terms)


def test_a_policy_that_cannot_be_leaves_no_ledger_behind(people):
    assert "waiting for the next period helps only" in protected("--policy", "wait", code=2)
    assert os.listdir() == ["people.csv"]


def test_weak_guarantees_are_taken_with_a_warning(people):
    said = run("protect", "people.csv", "--name", "people", "--unit", "record", "--epsilon", 12,
               "--delta", 0.5)  # fmt: skip
    assert "Warning: epsilon=12 is above 10" in said
    assert "Warning: delta=0.5 is not far below 1/n even for n=100" in said
    terms = {"unit": Unit.record(), "guarantee": Guarantee(epsilon=3, delta=1e-4)}
    with (
        pytest.warns(PrivacyWarning, match=r"delta=0.0001 is not far below 1/n for n=2000"),
        protect("people.csv", name="p", size=2000, ledger="other.db", **terms),
    ):
        pass


def test_a_fair_guarantee_is_taken_without(people, recwarn):
    assert "Warning" not in protected("--size", 2000)
    assert load("people.toml").size == 2000


def test_the_keys_are_shown_and_a_secret_one_is_told_apart(people):
    told = protected()
    assert "hand out the public one, budget.db.pub" in told
    run("query", "people", COUNT, "--epsilon", "0.5", "--receipt", "receipt.json")
    run("verify", "receipt.json", "--key", "budget.db.pub")
    command = [sys.executable, "-m", "discreet", "verify", "receipt.json", "--key", "budget.db.key"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "this file holds a secret key" in found.stdout + found.stderr
    assert "secret key" in run("ledger", "verify", "--public", "budget.db.key", code=2)


def test_answers_go_into_files(people):
    protected("--rows", 1)
    ask = ("query", "people", "SELECT region, COUNT(*) AS n FROM people GROUP BY region")
    files = ("--csv", "n.csv", "--plot", "n.svg", "--card", "card.json")
    told = run(*ask, "--epsilon", "0.5", *files)
    assert "Wrote n.csv, n.svg, card.json." in told
    with Path("n.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["region"] for row in rows] == ["north", "south"]
    assert float(rows[0]["n_low"]) < float(rows[0]["n"]) < float(rows[0]["n_high"])
    assert Path("n.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--csv", "people.csv"), "people.csv exists already. Nothing was spent."),
        (("--plot", "n.doc"), "must end in .png"),
        (("--csv", "nowhere/n.csv"), "cannot be written"),
        (("--xlsx", "n.txt"), "must end in .xlsx"),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_paid(people, option, why):
    protected()
    assert why in run("query", "people", COUNT, "--epsilon", "0.5", *option, code=2)
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger["people"].used == 0


def test_a_spreadsheet_needs_its_libraries_and_says_so(tmp_path, monkeypatch):
    from discreet.tables.results import files

    monkeypatch.setattr(files, "find_spec", lambda name: None if name != "pandas" else True)
    with pytest.raises(MissingExtra, match="pip install openpyxl"):
        region_counts().to_excel(tmp_path / "n.xlsx")
    monkeypatch.undo()
    counts = region_counts()
    counts.to_excel(tmp_path / "n.xlsx")
    assert pd.read_excel(tmp_path / "n.xlsx")["n"].tolist() == pytest.approx(list(counts["n"]))


def test_a_quote_is_data_for_programs(people):
    protected("--rows", 1)
    quoted = json.loads(run("quote", "people", COUNT, "--epsilon", "0.3", "--json"))
    assert quoted["fits"]
    assert quoted["share"] == pytest.approx(0.1)
    assert quoted["more"] == 9
    assert not json.loads(run("quote", "people", COUNT, "--epsilon", "9", "--json"))["fits"]


def test_questions_take_limits_of_their_own(people):
    protected("--memory", "1GB")
    told = run("query", "people", COUNT, "--epsilon", "0.1", "--memory", "plenty", code=2)
    assert "--memory must be a size" in told
    told = run("query", "people", COUNT, "--epsilon", "0.1", "--seconds", "1e-9", code=2)
    assert "The charge stands" in told
    run("query", "people", f"{COUNT} WHERE age > 1", "--epsilon", "0.1", "--seconds", 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "exactly one of --epsilon, --share and --within."),
        (("--epsilon", "-1"), "--epsilon must be a finite number above 0"),
        (("--epsilon", "90"), "It fits with --epsilon 2."),
        (("--epsilon", "1", "--confidence", "2"), "--confidence must be"),
        (("--within", "5%"), "a relative within needs --of: the size"),
    ],
)
def test_errors_speak_of_options_as_they_are_typed(people, options, told):
    protected("--rows", 1)
    assert told in run("query", "people", COUNT, *options, code=2)


def test_a_name_that_is_not_here_lists_those_that_are(people):
    protected()
    assert "There is people." in run("query", "peopel", COUNT, "--epsilon", 1, code=2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell):
    environment = {
        **os.environ,
        "_DISCREET_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "discreet prot",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "discreet prot",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    command = [sys.executable, "-m", "discreet"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "protect" in found.stdout
    assert "--install-completion" in run("--help")


def test_the_demo_writes_no_file_over_another(people):
    assert "exists already" in run("demo", "--write", "people.csv", code=2)
    assert "ends in .parquet or .csv" in run("demo", "--write", "people.txt", code=2)
    run("demo", "--write", "some.csv", "--rows", 10)
    assert len(Path("some.csv").read_text().splitlines()) == 11


def test_a_typo_is_taken_back_while_nothing_was_asked(people):
    Path("people.csv").write_text("usr,user\n" + "".join(f"{i % 7},{i}\n" for i in range(500)))
    protected(unit="usr")
    told = run("unprotect", "people", "--reason", "wrong unit")
    assert "--name people --account people-2" in told
    assert Path("people.toml.withdrawn").exists()
    assert "never used again" in protected(unit="user", code=2)
    protected("--account", "people-2", unit="user")
    run("query", "people", COUNT, "--epsilon", "0.5")
    assert "was charged, so it cannot be withdrawn" in run("unprotect", "people", code=2)
    assert Path("people.toml").exists()
    assert "withdrawn: wrong unit" in run("ledger", "history")
    run("ledger", "verify")


def test_the_history_shows_questions_and_their_epsilon(people):
    protected("--rows", 1)
    run("query", "people", COUNT, "--epsilon", "0.3")
    run("query", "people", "SELECT AVG(age) AS a FROM people", "--epsilon", "0.7")
    rows = json.loads(run("ledger", "history", "people", "--json"))
    paid = [row for row in rows if row["kind"] == "charge"]
    assert [row["epsilon"] for row in paid] == [0.3, 0.7]
    assert [row["question"] for row in paid] == [COUNT, "SELECT AVG(age) AS a FROM people"]
    page = run("ledger", "history", "people")
    assert "epsilon 0.3" in page
    assert not re.search(r"\d/\d", page.replace("total", ""))
    assert "like the last one, or a pure loss of epsilon up to" in run("ledger", "show", "people")
