"""`discreet audit all` and `discreet audit mechanism`."""

import json

import pytest
from command_line import did, facts, run

from discreet import audit

MINE = """
import numpy as np

rng = np.random.default_rng(5)

def noisy(value, n):
    return value + rng.laplace(size=n)

def one(value):
    return value + rng.laplace()

class Inner:
    @staticmethod
    def short(value, n):
        return value + rng.laplace(scale=0.3, size=n)

def fails(value, n):
    raise KeyError("secret 918273")

def leaves(value):
    raise SystemExit(0)

number = 3
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A name of its own for each test, since Python keeps what it imported.
    name = "mine_" + tmp_path.name.replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MINE)
    (tmp_path / f"{name}_broken.py").write_text("1 / 0\n")
    return name


@pytest.mark.lengthy
def test_a_function_of_this_folder_passes_or_is_flagged(mine):
    line = ["audit", "mechanism", f"{mine}:noisy", "--epsilon", "1", "--batch"]
    assert did(*line, "--pair", "[0, 1]").startswith("passed: claimed epsilon=1")
    assert did(*line, "--pair", "0,1").startswith("passed: ")
    flagged = run(*line, "--pair", "[0, 2]")
    assert flagged.exit_code == 1
    assert flagged.stdout.startswith("FAILED: ")
    inner = run("audit", "mechanism", f"{mine}:Inner.short", "--epsilon", "1", "--batch",
                "--pair", "0,1")  # fmt: skip
    assert inner.exit_code == 1
    bits = run(*line, "--pair", "[0.0, 1.0]", "--low-bits")
    assert bits.exit_code == 1


def test_one_call_at_a_time_and_json(mine):
    told = facts("audit", "mechanism", f"{mine}:one", "--epsilon", "1", "--delta", "0",
                 "--pair", "[0, 1]", "--samples", "2000", "--confidence", "0.99")  # fmt: skip
    assert told["passed"]
    assert told["samples"] == 2000
    assert told["power"] > 1


@pytest.mark.parametrize(
    ("function", "pair", "told"),
    [
        ("{}:none", "0,1", "has no function none"),
        ("{}:number", "0,1", "has no function number"),
        ("{}_absent:f", "0,1", "there is no module"),
        ("{}_broken:f", "0,1", "failed with ZeroDivisionError"),
        ("{}.noisy", "0,1", "MODULE:FUNCTION"),
        ("../x:f", "0,1", "MODULE:FUNCTION"),
        ("{}:noisy", "0", "--pair must be two"),
        ("{}:noisy", "[0, 1, 2]", "--pair must be two"),
        ("{}:noisy", "[" * 9000, "--pair must be two"),
        ("{}:fails", "0,1", "failed with KeyError"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_line(mine, function, pair, told):
    result = run("audit", "mechanism", function.format(mine), "--epsilon", "1", "--batch",
                 "--pair", pair)  # fmt: skip
    assert result.exit_code == 2
    assert told in result.stderr
    assert "918273" not in result.output


def test_a_function_that_leaves_has_no_verdict(mine):
    result = run("audit", "mechanism", f"{mine}:leaves", "--epsilon", "1", "--pair", "0,1")
    assert result.exit_code == 2
    assert "left the program" in result.stderr


def test_samples_have_a_limit(mine):
    for line in (["all"], ["mechanism", f"{mine}:noisy", "--epsilon", "1", "--pair", "0,1"]):
        result = run("audit", *line, "--samples", "1e12")
        assert result.exit_code == 2
        assert "samples" in result.stderr


@pytest.mark.lengthy
def test_some_of_the_catalogue_as_text_json_and_files():
    text = did("audit", "all", "--only", "warner", "--only", "Response of 2", "--samples", "2000",
               "--processes", "1", "--csv", "table.csv", "--write", "page.md")  # fmt: skip
    lines = text.splitlines()
    assert [line.split()[0] for line in lines] == [
        "mechanism", "RandomizedResponse", "Warner", "Warner,", "3",
    ]  # fmt: skip
    assert max(map(len, lines[:-1])) <= 80
    with open("table.csv") as table, open("page.md") as page:
        assert len(table.readlines()) == 4
        assert "<!-- catalogue -->\n| mechanism | claim |" in page.read()
    told = facts("audit", "all", "--only", "warner", "--samples", "500", "--processes", "1")
    assert [line["name"] for line in told["lines"]] == ["Warner", "Warner, forced yes"]


@pytest.mark.lengthy
def test_a_page_keeps_its_words_and_one_without_a_place_is_not_touched(tmp_path):
    line = ["audit", "all", "--only", "warner", "--samples", "200", "--processes", "1"]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- catalogue -->\nold\n<!-- /catalogue -->\nafter\n")
    did(*line, "--write", page)
    assert page.read_text().startswith("before\n<!-- catalogue -->\n| mechanism")
    assert page.read_text().endswith("<!-- /catalogue -->\nafter\n")
    page.write_text("my notes")
    assert run(*line, "--write", page).exit_code == 2
    assert page.read_text() == "my notes"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--csv", "a.txt"), ("--write", "a.txt"), ("--csv", "none/at/all.csv"), ("--only", "nothing"),
     ("--only", " "), ("--false-alarm", "2"), ("--processes", "0")],
)  # fmt: skip
def test_bad_options_are_refused_before_anything_runs(option, value, monkeypatch):
    def never(*_, **__):
        raise AssertionError("an audit began")

    monkeypatch.setattr("discreet.audit.catalogue.running._line", never)
    result = run("audit", "all", option, value)
    assert result.exit_code == 2
    assert option in result.stderr


def test_a_refuted_claim_exits_with_one(monkeypatch):
    line = audit.CatalogueLine(name="x", claimed=1, delta=0, upper=1, lower=2, power=1.1,
                               samples=9, seconds=0, event="")  # fmt: skip
    report = audit.CatalogueReport(lines=(line,), false_alarm=1e-6, seconds=0)
    monkeypatch.setattr("discreet.audit.run_catalogue", lambda *_, **__: report)
    result = run("audit", "all", "--json")
    assert result.exit_code == 1
    assert not json.loads(result.stdout)["passed"]
