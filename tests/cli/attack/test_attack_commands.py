"""The commands: before and after, words, JSON and pictures."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from discreet.cli import app
from discreet.datasets import salaries, voters


def ran(*words):
    return CliRunner().invoke(app, ["attack", *map(str, words)])


@pytest.fixture
def people(tmp_path):
    parquet.write_table(pa.table(voters(500)), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.mark.lengthy
@pytest.mark.parametrize("command", ["linkage", "difference"])
def test_generated_data_is_attacked_without_and_with_protection(command, tmp_path):
    pytest.importorskip("matplotlib")
    shown = ran(command, "--plot", tmp_path / "both.png")
    assert shown.exit_code == 0, shown.output
    assert "Without protection" in shown.output
    assert "the guarantee allows" in shown.output
    assert (tmp_path / "both.png").stat().st_size > 1000
    read = json.loads(ran(command, "--json").stdout)
    assert read["before"]["success"] > 0.9 > 0.6 > read["after"]["success"]


def test_files_are_searched_for_the_worst_columns(people):
    assert "the worst 2 of 3" in " ".join(
        ran("linkage", people, "--quasi", "zip,birth_date,sex", "--worst", 2).output.split()
    )
    read = json.loads(ran("linkage", people, "--json").stdout)
    assert "after" not in read
    assert len(read["before"]["details"]["columns"]) == 3


def test_files_are_joined(people):
    words = ["linkage", people, "--quasi", "zip,birth_date", "--auxiliary", people]
    read = json.loads(ran(*words, "--truth", "voter", "--json").stdout)
    assert read["before"]["success"] > 0.9


@pytest.mark.lengthy
def test_salaries_of_a_file_are_recovered(tmp_path):
    parquet.write_table(pa.table(salaries(100)), tmp_path / "pay.parquet")
    words = ["difference", tmp_path / "pay.parquet", "--secret", "salary", "--rounding", "5"]
    read = json.loads(ran(*words, "--json").stdout)
    assert read["before"]["success"] == 1
    assert read["after"]["success"] < 0.5


@pytest.mark.parametrize(
    "words",
    [
        ["linkage", "--quasi", "zip"],
        ["linkage", "none.parquet"],
        ["linkage", "people.txt", "--worst", "2"],
        ["difference", "--secret", "salary"],
        ["difference", "--minimum", "none"],
        ["difference", "--rounding", "-1"],
        ["linkage", "--epsilon", "0"],
        ["linkage", "--truth", "voter"],
        ["linkage", "none.parquet", "--epsilon", "2"],
        ["linkage", "none.parquet", "--worst", "2", "--auxiliary", "other.parquet"],
        ["linkage", "--plot", "picture.txt"],
        ["difference", "--plot", "picture.txt"],
        ["reconstruct", "--plot", "none/at/all.png"],
    ],
)
def test_what_makes_no_sense_is_refused(words):
    result = ran(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("discreet: ")


def test_options_are_named_as_typed_and_nested_columns_refused(people, tmp_path):
    assert "--worst must be" in ran("linkage", people, "--worst", "0").stderr
    parquet.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "nested.parquet")
    result = ran("linkage", tmp_path / "nested.parquet")
    assert result.exit_code == 2
    assert "holds lists" in " ".join(result.stderr.split())
