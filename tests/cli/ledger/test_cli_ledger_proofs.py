"""`discreet ledger verify`, `prove` and `checkpoint`: nothing altered, nothing taken back."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from command_line import did, facts, run
from typer.testing import CliRunner

from discreet.cli import app
from discreet.ledger import Ledger
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit


def alter(path, sql):
    with sqlite3.connect(path) as database:
        assert database.execute(sql).rowcount
    database.close()


def test_verification_names_the_bad_entry_and_exits_with_1(spent):
    alter(spent, "UPDATE entries SET body = replace(body, '\"ana\"', '\"bob\"') WHERE idx = 4")
    result = run("ledger", "verify")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("discreet: entry 4 ")
    assert len(result.stderr.splitlines()) == 1
    told = run("ledger", "verify", "--json")
    assert told.exit_code == 1
    said = json.loads(told.stdout)
    assert (said["verified"], said["entry"]) == (False, 4)


def test_a_ledger_that_makes_no_sense_is_one_line_and_never_a_traceback(spent):
    alter(spent, "UPDATE facts SET value = '{' WHERE name = 'account/salaries'")
    result = run("ledger", "show", "salaries")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "discreet ledger verify" in result.stderr
    assert run("ledger", "verify").exit_code == 1


def test_incremental_verification_goes_on_and_notices_an_old_copy(spent, tmp_path):
    shutil.copy(spent, "old.db")
    first = facts("ledger", "verify", "--incremental")
    assert (first["verified"], first["entries"], first["since"]) == (True, 9, 0)
    assert first["state"].startswith(str(tmp_path / "state" / "discreet"))
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    again = facts("ledger", "verify", "--incremental")
    assert (again["entries"], again["since"]) == (10, 9)
    rolled_back = run("ledger", "verify", "--incremental", "--ledger", "old.db")
    assert rolled_back.exit_code == 1
    assert "rolled back" in rolled_back.stderr
    # What it says for itself is sound; only who remembers notices.
    did("ledger", "verify", "--ledger", "old.db")


def test_a_state_of_ones_own(spent, tmp_path):
    assert "Remembered in mine.json" in did("ledger", "verify", "--state", "mine.json")
    said = facts("ledger", "verify", "--incremental", "--state", "mine.json")
    assert (said["since"], said["state"]) == (9, "mine.json")
    (tmp_path / "mine.json").write_text("{}")
    assert run("ledger", "verify", "--incremental", "--state", "mine.json").exit_code == 2


@pytest.mark.lengthy
def test_pinned_checkpoints_and_public_keys(spent):
    shutil.copy(spent, "old.db")
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    did("ledger", "checkpoint", "--out", "now.txt")
    did("ledger", "verify", "--pinned", "now.txt", "--public", "budget.db.pub")
    assert run("ledger", "verify", "--pinned", "now.txt", "--ledger", "old.db").exit_code == 1
    did("ledger", "init", "--ledger", "other.db")
    did("ledger", "verify", "--incremental")
    did("ledger", "rotate")
    did("ledger", "checkpoint", "--public", "new.pub")
    did("ledger", "export", "all.ndjson")
    for what in ([], ["--incremental"], ["all.ndjson"]):
        for known in ("budget.db.pub", "new.pub"):
            did("ledger", "verify", *what, "--public", known)
        wrong = run("ledger", "verify", *what, "--vkey", "other.db.pub")
        assert (wrong.exit_code, wrong.stdout) == (1, "")
        assert "public key" in wrong.stderr


@pytest.mark.lengthy
def test_a_checkpoint_is_printed_as_it_was_signed(spent, tmp_path):
    did("ledger", "checkpoint", "--out", "now.txt", "--public", "now.pub")
    printed = CliRunner().invoke(app, ["ledger", "checkpoint"]).stdout_bytes
    with Ledger.open(spent, read_only=True) as ledger:
        assert printed == (tmp_path / "now.txt").read_bytes() == ledger.checkpoint().encode()
        assert (tmp_path / "now.pub").read_text() == f"{ledger.vkey}\n"
    said = facts("ledger", "checkpoint")
    assert set(said) == {"origin", "size", "root", "note"}
    assert said["note"].encode() == printed


def test_progress_shows_on_a_terminal_and_nowhere_else(spent):
    assert run("ledger", "verify").stderr == ""
    terminal = run("ledger", "verify", "--json", FORCE_COLOR="1")
    assert "verifying" in terminal.stderr
    assert json.loads(terminal.stdout)["verified"]


def test_a_release_is_proven_together_with_its_answer(book):
    with Ledger.open("budget.db") as ledger:
        account = ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=1),
        )
        count = DiscreteLaplace(sensitivity=1, scale=4)
        release = account.answer(count, lambda: 412, who="ana", purpose="report")
        index = release.receipt.entries[1]["index"]
    did("ledger", "prove", index, "--out", "receipt.json", "--answer", "answer.json")
    said = facts("verify", "receipt.json", "--key", "budget.db.pub", "--answer", "answer.json")
    assert said["proven"] is True
    assert said["answer"] == index
    Path("answer.json").write_bytes(Path("answer.json").read_bytes().replace(b"value", b"Value"))
    wrong = run("verify", "receipt.json", "--key", "budget.db.pub", "--answer", "answer.json")
    assert wrong.exit_code == 1
    none = run("ledger", "prove", 0, "--out", "r.json", "--answer", "a.json")
    assert none.exit_code == 2
    assert "no release" in none.stderr
