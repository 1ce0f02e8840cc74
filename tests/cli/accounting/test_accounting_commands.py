"""`discreet epsilon`, `calibrate`, `tradeoff`: right numbers, all digits, one-line refusals."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from discreet.accounting import GaussianLoss, delta
from discreet.cli import app
from discreet.cli.numbers import digits

RUN = ["--noise-multiplier", "4", "--rate", "0.01", "--steps", "10000"]


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


def facts(*args):
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_epsilon_of_a_training_run():
    said = facts("epsilon", "--mechanism", "gaussian", *RUN, "--delta", "1e-5")
    assert set(said) == {"epsilon_upper", "epsilon_lower", "delta", "method", "seconds"}
    assert 0.9468 < said["epsilon_lower"] <= said["epsilon_upper"] < 0.9470
    assert said["delta"] == 1e-5
    page = run("epsilon", *RUN, "--delta", "1e-5").stdout
    assert "epsilon is at most 0.9468" in page
    assert "1e-05" in page


def test_compare_shows_every_method():
    args = ("epsilon", "-m", "pure", "--epsilon-each", 0.01, "--steps", 10000, "--delta", "1e-5")
    said = facts(*args, "--compare")
    by_name = {method["name"]: method for method in said["methods"]}
    assert by_name["basic"]["epsilon"] == pytest.approx(100)
    assert by_name["optimal"]["epsilon"] == pytest.approx(4.37638, abs=1e-5)
    assert by_name["central_limit"]["epsilon"] is None
    assert by_name["central_limit"]["is_bound"] is False
    assert all(method["seconds"] >= 0 for method in by_name.values())
    page = run(*args, "--compare").stdout
    assert all(name in page for name in by_name)
    assert "4.37639" in page


@pytest.mark.parametrize(
    ("options", "upper"),
    [
        (["-m", "laplace", "--noise-multiplier", "2"], 0.5),
        (["-m", "discrete-laplace", "--noise-multiplier", "2", "--sensitivity", "3"], 0.5),
        (["-m", "randomized-response", "--epsilon-each", "1", "--steps", "3"], 3),
        (["-m", "randomized-response", "--epsilon-each", "1", "--categories", "8"], 1),
        (["-m", "exponential", "--epsilon-each", "1/4"], 0.25),
        (["-m", "pure", "--epsilon-each", "0.5", "--rate", "0.01"], 0.006466),
        (["-m", "approximate", "--epsilon-each", "0.5", "--delta-each", "0"], 0.5),
    ],
)
def test_pure_mechanisms_at_delta_zero(options, upper):
    assert facts("epsilon", *options, "--delta", "0")["epsilon_upper"] == pytest.approx(
        upper, rel=1e-3
    )


def test_mechanisms_that_need_delta():
    gaussian = facts("epsilon", "--noise-multiplier", 1, "--delta", "1e-6")["epsilon_upper"]
    assert gaussian == pytest.approx(4.8866, abs=1e-4)
    whole = ("-m", "discrete-gaussian", "--noise-multiplier", 4, "--delta", "1e-6")
    assert facts("epsilon", *whole)["epsilon_upper"] == pytest.approx(1.03, abs=0.05)
    concentrated = facts("epsilon", "-m", "zcdp", "--rho", 0.5, "--delta", "1e-6")
    assert concentrated["epsilon_upper"] == pytest.approx(5.2215, abs=1e-4)


def test_an_infinite_epsilon_is_null_and_said():
    said = facts("epsilon", "--noise-multiplier", 1, "--delta", 0)
    assert said["epsilon_upper"] is None
    assert "infinite" in run("epsilon", "--noise-multiplier", 1, "--delta", 0).stdout


@pytest.mark.lengthy
def test_calibration_is_safe_as_printed():
    args = ("calibrate", "--epsilon", 3, "--delta", "1e-5", "--rate", 0.01, "--steps", 1000)
    said = facts(*args)
    multiplier = said["noise_multiplier"]
    loss = GaussianLoss(noise_multiplier=multiplier).sampled(rate=0.01) * 1000
    assert delta(loss, epsilon=3) <= 1e-5
    smaller = GaussianLoss(noise_multiplier=multiplier * 0.9999).sampled(rate=0.01) * 1000
    assert delta(smaller, epsilon=3) > 1e-5
    assert said["epsilon_lower"] <= said["epsilon_upper"] <= 3
    assert f"noise multiplier = {multiplier:g}" in run(*args).stdout


def test_calibration_of_an_epsilon_each_rounds_down():
    said = facts("calibrate", "-m", "pure", "--epsilon", 1, "--delta", 0, "--steps", 3)
    assert said["epsilon_each"] == 0.333333
    assert said["epsilon_upper"] <= 1


def test_tradeoff_in_the_terminal_and_as_json():
    page = run("tradeoff", *RUN).stdout
    assert page.count("*") >= 40
    assert "advantage is at most 0.10" in page
    assert max(map(len, page.splitlines())) <= 80
    said = facts("tradeoff", "--noise-multiplier", 1)
    pairs = dict(zip(said["false_positive_rates"], said["false_negative_rates"], strict=True))
    assert pairs[0.05] == pytest.approx(0.7405, abs=1e-4)
    assert said["advantage"] == pytest.approx(0.3829, abs=1e-4)


@pytest.mark.lengthy
def test_tradeoff_as_a_picture(tmp_path):
    file = tmp_path / "curve.png"
    result = run("tradeoff", "--noise-multiplier", 1, "--plot", file)
    assert result.exit_code == 0, result.output
    assert file.read_bytes().startswith(b"\x89PNG")
    assert "curve.png" in result.stdout.replace("\n", "")


def test_digits_never_vanish():
    said = run("epsilon", "-m", "pure", "--epsilon-each", "1e-7", "--delta", "0").stdout
    assert "1e-07" in said
    assert digits(1.2345678e-7, up=True) == "1.23457e-07"
    assert digits(1.2345678e-7, up=False) == "1.23456e-07"


BAD = [
    (["epsilon", "--noise-multiplier", "4"], "--delta"),
    (["epsilon", "--delta", "1e-5"], "needs --noise-multiplier"),
    (["epsilon", "--noise-multiplier", "-1", "--delta", "1e-5"], "--noise-multiplier must be"),
    (["epsilon", "--noise-multiplier", "much", "--delta", "1e-5"], "--noise-multiplier must be"),
    (["epsilon", "--noise-multiplier", "1", "--delta", "1.5"], "delta must be"),
    (["epsilon", "--noise-multiplier", "1", "--delta", "1e-5", "--rate", "2"], "rate must be"),
    (["epsilon", "--noise-multiplier", "1", "--delta", "1e-5", "--steps", "0"], "steps must be"),
    (["epsilon", "--noise-multiplier", "1", "--delta", "1e-5", "--steps", "1.5"], "steps must be"),
    (["epsilon", "--epsilon-each", "1", "--delta", "0"], "does not describe gaussian"),
    (["epsilon", "-m", "coin", "--delta", "0"], "coin"),
    (
        [
            "epsilon",
            "-m",
            "randomized-response",
            "--epsilon-each",
            "1",
            "--rate",
            ".1",
            "--delta",
            "0",
        ],
        "replace_one",
    ),
    (["epsilon", "-m", "discrete-gaussian", "--noise-multiplier", "nan", "--delta", "0"], "noise"),
    (["calibrate", "--delta", "1e-5"], "--epsilon"),
    (["calibrate", "--epsilon", "0", "--delta", "1e-5"], "epsilon must be"),
    (["calibrate", "--epsilon", "1", "--delta", "0"], "delta above 0"),
    (["tradeoff"], "needs --noise-multiplier"),
]


@pytest.mark.parametrize(("args", "hint"), BAD)
def test_bad_input_gets_one_line_and_exit_code_2(args, hint):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("discreet: ")
    assert hint in result.stderr


@pytest.mark.parametrize("command", ["epsilon", "calibrate", "tradeoff"])
def test_help_teaches_by_example(command):
    page = run(command, "--help").stdout
    assert f"discreet {command} " in page
    assert "--mechanism" in page


@pytest.mark.lengthy
def test_help_loads_no_accountant():
    code = (
        "import sys, discreet.cli\n"
        "sys.argv = ['discreet', 'epsilon', '--help']\n"
        "try: discreet.cli.main()\n"
        "except SystemExit: pass\n"
        "print('scipy' in sys.modules, 'discreet.accounting' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "False False"
