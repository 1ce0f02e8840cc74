"""The folder of real data: by argument, by variable, or a clear word that there is none."""

import subprocess
import sys

import pytest

from discreet.datasets import folder
from discreet.errors import ParameterError


@pytest.fixture
def no_variable(monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)


def test_the_argument_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", "no/such/folder")
    assert folder(tmp_path) == tmp_path
    assert folder(str(tmp_path)) == tmp_path


def test_the_variable_is_next(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    assert folder() == tmp_path


@pytest.mark.usefixtures("no_variable")
def test_without_either_the_error_names_both():
    with pytest.raises(ParameterError, match="--data or DISCREET_DATA") as caught:
        folder()
    assert caught.value.parameter == "data"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "x.csv").write_text("a\n")
    with pytest.raises(ParameterError, match="is not a folder"):
        folder(tmp_path / "x.csv")
    with pytest.raises(ParameterError, match="does not exist"):
        folder(tmp_path / "y")


@pytest.mark.lengthy
def test_words_and_demo_data_load_nothing_heavy():
    code = (
        "import sys, discreet.privacy, discreet.datasets\n"
        "print([m for m in ('scipy', 'rich', 'typer', 'cryptography') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
