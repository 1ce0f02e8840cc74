"""`discreet audit leaks`."""

import json

import typer
from typer.testing import CliRunner

from discreet.audit import Planted
from discreet.cli.audit.leaks import leaks

app = typer.Typer()
app.command()(leaks)


def run(*args):
    return CliRunner().invoke(app, [str(one) for one in args])


def test_a_table_is_planted_and_found_again(tmp_path):
    table, logs = tmp_path / "people.csv", tmp_path / "logs"
    logs.mkdir()
    assert run("--plant", table, "--rows", 30).exit_code == 0
    planted = Planted.read(table)
    assert planted.rows == 30
    (logs / "app.log").write_text("started\n")
    clean = run(logs, "--table", table)
    assert clean.exit_code == 0
    assert "passed: no canary came out" in clean.output
    (logs / "app.log").write_text(f"denied {planted.table['email'][3]}\n")
    found = run(logs, "--table", table)
    assert found.exit_code == 1
    assert "email[3] as text, in file app.log" in found.output
    assert "\\n" not in found.output
    assert f"{logs}: LEAKED: 1 thing came out" in " ".join(found.output.split())  # lines may break
    facts = json.loads(run(logs, "--table", table, "--json").output)
    assert facts[str(logs)]["leaks"][0]["what"] == "email[3]"


def test_what_is_missing_is_said(tmp_path):
    assert "--plant" in str(run(tmp_path).exception)
    table = tmp_path / "people.csv"
    run("--plant", table)
    assert "exists already" in str(run("--plant", table).exception)
    assert "rows must be" in str(run("--plant", tmp_path / "b.csv", "--rows", "lots").exception)
