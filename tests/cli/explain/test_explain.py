"""`discreet explain`: right numbers, plain words, one-line refusals."""

import json
import math
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet._version import __version__
from discreet.cli import app

COMMAND = [sys.executable, "-m", "discreet"]


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


def facts(*args):
    result = run("explain", "--json", *args)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_version_and_help():
    assert run("--version").stdout == f"discreet {__version__}\n"
    assert "discreet demo" in run("--help").stdout
    assert run().exit_code == 0
    assert "demo" in run().stdout
    page = run("explain", "--help").stdout
    assert "Example" in page
    assert "--epsilon" in page


def test_numbers_at_epsilon_one():
    said = facts("--epsilon", 1, "--delta", "1e-6", "--n", 1000, "--prior", 0.1)
    e = math.e
    assert said["strength"] == "strong"
    assert said["odds"]["with_you"] == pytest.approx((e + 1e-6) / (1 + e))
    assert said["odds"]["without_you"] == pytest.approx((1 - 1e-6) / (1 + e))
    assert said["attacker"]["success"] == said["odds"]["with_you"]
    assert said["attacker"]["advantage"] == pytest.approx((e - 1 + 2e-6) / (e + 1))
    assert said["beliefs"] == [
        {"prior": 0.1, "posterior": pytest.approx(0.1 * e / (0.1 * e + 0.9))}
    ]
    assert [g["size"] for g in said["groups"]] == [2, 5, 10]
    assert said["groups"][1]["epsilon"] == 5
    assert said["groups"][1]["delta"] == pytest.approx(5 * e**4 * 1e-6)
    assert said["replace_one"]["epsilon"] == 2
    assert said["delta_risk"]["expected_exposed"] == pytest.approx(1e-3)
    assert said["delta_risk"]["is_far_below"] is True


def test_words_at_epsilon_one():
    page = " ".join(run("explain", "--epsilon", 1).stdout.split())
    assert "If you take part, at most 73.2 of 100 possible releases" in page
    assert "If you do not, 26.8 of 100" in page
    assert "right at most 73.2 times in 100" in page
    assert "delta is 0" in page


@pytest.mark.parametrize(
    ("epsilon", "band"),
    [("0.1", "strong"), ("10", "moderate"), ("11", "weak"), ("101", "negligible")],
)
def test_the_band_is_in_the_first_line(epsilon, band):
    first = run("explain", "--epsilon", epsilon).stdout.splitlines()[0]
    assert first == f"epsilon = {epsilon}, delta = 0: {band} protection"


def test_a_large_delta_is_called_too_much():
    page = " ".join(run("explain", "--epsilon", 1, "--delta", "0.001", "--n", 1000).stdout.split())
    assert "Too much: use delta of at most 1/(10 n) = 0.0001" in page
    assert "1 exposed on average" in page


def page_of(*args):
    return " ".join(run("explain", *args).stdout.split())


def test_delta_is_judged_in_three_steps():
    of = ("--epsilon", 1, "--n", 1000, "--delta")
    assert "Good: delta is at most 1/n^2 = 1e-06" in page_of(*of, "1e-6")
    assert "Acceptable: delta is at most 1/(10 n) = 0.0001; 1/n^2 = 1e-06 is better" in page_of(
        *of, "1e-4"
    )
    assert "Too much" in page_of(*of, "1.01e-4")
    assert "Acceptable" in page_of("--epsilon", 1, "--delta", "1e-6", "--n", 100_000)
    assert "Too much" in page_of("--epsilon", 1, "--delta", 0.5, "--n", 1)


@pytest.mark.lengthy
def test_no_privacy_loss_means_no_change_of_belief():
    page = page_of("--epsilon", 0)
    assert "1% 1% 10% 10% 50% 50%" in page
    for percent in range(101):
        prior = f"0.{percent:02}" if percent < 100 else "1"
        assert f"after, at most {percent}% {percent}% That" in re.sub(
            "[^\\w%., ]+ ?", "", page_of("--epsilon", 0, "--prior", prior)
        )
    assert "29% 29%" in page_of("--epsilon", 0, "--prior", "0.29")
    assert "29% 52.7%" in page_of("--epsilon", 1, "--prior", "0.29")


@pytest.mark.lengthy
@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0, 1e300) | st.integers(0, 10**400),
    delta=st.floats(0, 1),
    n=st.integers(1, 10**12),
    prior=st.floats(0, 1),
)
def test_any_valid_input_is_explained(epsilon, delta, n, prior):
    args = ("--epsilon", repr(epsilon), "--delta", repr(delta), "--n", n, "--prior", repr(prior))
    said = facts(*args)
    assert 0.5 <= said["attacker"]["success"] <= 1
    assert prior <= said["beliefs"][0]["posterior"] <= 1
    assert said["groups"][-1]["delta"] >= said["delta"]
    page = run("explain", *args)
    assert page.exit_code == 0
    assert max(map(len, page.stdout.splitlines())) <= 80


BAD = [
    (["explain"], "--epsilon"),
    (["explain", "--epsilon", "-1"], "epsilon must be"),
    (["explain", "--epsilon", "nan"], "epsilon must be"),
    (["explain", "--epsilon", "inf"], "epsilon must be"),
    (["explain", "--epsilon", "lots"], "epsilon must be"),
    (["explain", "--epsilon", "1", "--delta", "1.5"], "delta must be"),
    (["explain", "--epsilon", "1", "--delta", "-1e-9"], "delta must be"),
    (["explain", "--epsilon", "1", "--n", "0"], "n must be"),
    (["explain", "--epsilon", "1", "--n", "2.5"], "n must be"),
    (["explain", "--epsilon", "1", "--n", "1" + "0" * 400], "n must be at most"),
    (["explain", "--epsilon", "1", "--n", "1" + "0" * 5000], "n must be"),
    (["explain", "--epsilon", "1", "--prior", "2"], "prior must be"),
    (["explain", "--epsilon", "1", "--colour"], "--colour"),
    (["expalin"], "expalin"),
]


@pytest.mark.parametrize(("args", "hint"), BAD)
def test_bad_input_gets_one_line_and_exit_code_2(args, hint):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("discreet: ")
    assert hint in result.stderr


@pytest.mark.lengthy
def test_as_a_module_and_through_a_pipe():
    ran = subprocess.run([*COMMAND, "explain", "--epsilon", "1"], capture_output=True, text=True)
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert "\x1b" not in ran.stdout  # no colours where nobody sees them


@pytest.mark.lengthy
def test_a_terminal_that_knows_ascii_only():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(
        [*COMMAND, "explain", "--epsilon", "1", "--delta", "1e-6"],
        capture_output=True,
        env=environment,
        check=True,
    )
    assert ran.stdout.isascii()


@pytest.mark.lengthy
def test_explaining_needs_no_mechanisms():
    code = (
        "import sys; sys.argv = ['discreet', 'explain', '--epsilon', '1', '--json']\n"
        "import discreet.cli\n"
        "try: discreet.cli.main()\n"
        "except SystemExit: pass\n"
        "print('scipy' in sys.modules, 'discreet.mechanisms' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "False False"
