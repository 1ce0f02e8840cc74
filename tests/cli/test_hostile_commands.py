"""No command ends in a traceback, whatever is typed: all commands and options, from the tree."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_commands import VALUES, furnish, leaves
from rich.cells import cell_len
from typer.testing import CliRunner

from discreet.cli import app

# Demonstrations, training and gateways take long where they work: those have tests of their own.
TAKES_LONG = (("demo",), ("train",), ("attack", "membership"), ("serve",))
LEAVES = [leaf for leaf in leaves() if not {leaf.words[:1], leaf.words[:2]} & {*TAKES_LONG}]
LONG = [leaf for leaf in leaves() if leaf not in LEAVES and leaf.params]
DOCUMENTS = {("ledger", "prove"), ("ledger", "checkpoint")}  # signed: a line is as it is
KNOWN = "a mistake of discreet itself"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("furnished")
    before = os.getcwd()
    os.chdir(folder)
    try:
        furnish()
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(autouse=True)
def elsewhere(furnished, tmp_path, monkeypatch):
    for name in ("DISCREET_LEDGER", "DISCREET_LEDGER_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("DISCREET_DEBUG", "1")  # so that a mistake shows where it happened
    shutil.copytree(furnished, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")


def check(line, note=""):
    result = CliRunner().invoke(app, line, input="")
    known = result.exception is None or isinstance(result.exception, SystemExit)
    assert known, (note, line, result.exception)
    assert result.exit_code in (0, 1, 2), (note, line)
    assert "Traceback" not in result.output, (note, line)
    is_document = "--json" in line or (tuple(line[:2]) in DOCUMENTS and result.exit_code == 0)
    if not is_document:
        assert wide_lines(result.output) == [], (note, line)
    if result.exit_code == 2:
        assert len(result.stderr) > len("discreet: ") + 10, (note, line)
    return result


def wide_lines(text):
    """Return lines over 80 columns; one word is left whole, since a path or a key is copied."""
    lines = text.splitlines()
    return [one for one in lines if cell_len(one) > 80 and len(one.split()) > 1]


@pytest.mark.lengthy
@pytest.mark.parametrize("leaf", [*leaves()], ids=lambda leaf: " ".join(leaf.words) or "none")
def test_help_fits_80_columns_and_shows_every_option_whole(leaf):
    for length in range(len(leaf.words) + 1):
        page = CliRunner().invoke(app, [*leaf.words[:length], "--help"])
        assert page.exit_code == 0
        assert [line for line in page.output.splitlines() if cell_len(line) > 80] == []
    names = [name for one in leaf.params for name in one.opts if name.startswith("--")]
    assert [name for name in names if name not in page.output] == []


def fixed(leaf):
    """Yield a line without each parameter, and some with other values, not always the same."""
    for i, param in enumerate(leaf.params):
        yield leaf.line({param.name: None})
        for j in range(2):
            yield leaf.line({param.name: VALUES[(5 * i + 11 * j) % len(VALUES)]})


@pytest.mark.lengthy
@pytest.mark.parametrize("leaf", [*LEAVES, *LONG], ids=lambda leaf: " ".join(leaf.words) or "none")
def test_every_option_of_every_command_is_refused_or_works(leaf):
    for line in fixed(leaf) if leaf in LEAVES else hopeless(leaf):
        check(line)


def hopeless(leaf):
    """Yield lines that are refused before anything long begins, since a number is none."""
    for i, param in enumerate(leaf.params):
        if not getattr(param, "is_flag", False) and param.param_type_name == "option":
            for j in range(2):
                value = VALUES[(4 * i + 11 * j) % len(VALUES)]
                yield leaf.line({"delta": "nan", "rows": "nan", param.name: value})


@pytest.mark.lengthy
def test_demonstrations_work_whatever_they_are_told_to_write_to():
    assert check(["demo", "--rows", "300"]).exit_code == 0
    assert check(["demo", "--rows", "50", "--write", "mine.parquet"]).exit_code == 0
    for value in VALUES[::5]:
        check(["demo", "--rows", "50", "--write", value])
        check(["demo", "--rows", "50", "--write", f"{value}.parquet"])


@pytest.mark.lengthy
def test_a_gateway_is_checked_whatever_it_is_told():
    Path("gateway.toml").write_text('ledger = "budget.db"\ndatasets = ["people.toml"]\n')
    assert check(["serve", "--check"]).exit_code == 0
    for value in VALUES:
        for name in ("config", "host", "port", "pg-port", "workers"):
            check(["serve", "--check", f"--{name}={value}"])
    check(["serve", "--check", "--demo", "--config", "gateway.toml"])


@pytest.mark.slow
def test_training_works_whatever_its_words_are():
    for old in (*Path().glob("budget.db*"), Path("people.toml")):
        old.unlink()
    check(["protect", "people.parquet", "--name", "people", "--unit", "person_id", "--rows", "1",
           "--epsilon", "30", "--delta", "1e-6", "--bounds", "age=0,100"])  # fmt: skip
    (leaf,) = [leaf for leaf in LONG if leaf.words == ("train", "table")]
    assert check(leaf.line({"out": "model"})).exit_code == 0
    for i, name in enumerate(("features", "held_out", "model", "which", "out", "plot", "who")):
        for j in range(2):
            check(leaf.line({name: VALUES[(7 * i + 13 * j) % len(VALUES)]}))


@pytest.mark.lengthy
def test_lines_at_random_are_refused_or_work():
    """Always the same ones: a change is blamed for what it did. The audit draws new ones."""
    drawing = random.Random(3)
    for _ in range(60):
        check(drawing.choice(LEAVES).drawn(drawing))


@pytest.mark.slow
def test_many_lines_at_random_are_refused_or_work():
    seed = random.SystemRandom().getrandbits(32)
    drawing = random.Random(seed)
    for _ in range(3000):
        check(drawing.choice(LEAVES).drawn(drawing), note=f"random.Random({seed})")


@pytest.mark.parametrize(
    "line",
    [
        "epsilon --noise-multiplier 4 --delta 1e-300",
        "epsilon -m laplace --noise-multiplier 4 --rate 0.1 --steps 100 --delta 1e-300",
        "calibrate --epsilon 1 --delta 0",
        "calibrate -m pure --epsilon 1 --delta 0",
        "calibrate --epsilon 0.5 --delta 1e-6 --rate 5e-324",
        f"calibrate --epsilon 0.5 --delta 1e-6 --steps {'9' * 400}",
        "epsilon --delta 1e-6 --noise-multiplier 1e300 --steps 10",
        "query people SELECT+COUNT(*)+FROM+people --epsilon 1e-300",
        "verify receipt.json --key --",
        f"ledger grant people --who a --reason b --epsilon {'9' * 400}",
        "ledger clock --who a --reason b --ledger none --key .",
        "tradeoff --noise-multiplier 4 --plot budget.db",
        "ledger init --ledger postgresql://nobody@127.0.0.1:1/none --key .",
        "ledger init --ledger new.db --key ..",
        "epsilon --noise-multiplier 4 --rate 1e-300 --steps 10 --delta 1e-6",
        "audit mechanism operator:neg --epsilon 1 --pair [0,1] --samples 200 --confidence 5e-324",
        "audit leaks --plant canaries.csv --rows 1e12",
    ],
)
def test_what_ended_in_a_traceback_once_does_not(line):
    check([word.replace("+", " ") for word in line.split()])


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "words",
    [
        ["epsilon", "--delta", "1e-300", "--noise-multiplier", "1e300"],
        ["query", "people", "SELECT COUNT(*) FROM people", "--epsilon", "1e-300"],
        ["quote", "\udcff", "SELECT '\udcff'"],
        ["verify", "budget.db.key", "--key", "budget.db.key"],
        ["ledger", "backup", "/dev/full"],
        ["protect", "binary", "--name", "\udcff", "--epsilon", "1", "--delta", "1e-6"],
    ],
    ids=lambda words: words[0],
)
def test_processes_end_without_a_traceback(words, monkeypatch):
    monkeypatch.delenv("DISCREET_DEBUG")
    argv = [os.fsencode(word) for word in (sys.executable, "-m", "discreet", *words)]
    run = subprocess.run(argv, capture_output=True, check=False)
    assert run.returncode in (0, 1, 2), run.stderr
    assert b"Traceback" not in run.stderr
    assert KNOWN.encode() not in run.stderr


def test_a_mistake_shows_no_data_and_no_traceback(monkeypatch):
    def broken(*_, **__):
        raise ValueError("Alice earns 918273")

    monkeypatch.delenv("DISCREET_DEBUG")
    monkeypatch.setattr("discreet.cli.explain.commands.explanation", broken)
    result = CliRunner().invoke(app, ["explain", "--epsilon", "1"])
    assert result.exit_code == 2
    assert KNOWN in result.stderr
    assert "ValueError" in result.stderr
    assert "918273" not in result.output
