"""`discreet ledger witness`: beside the ledger, and by files that go there and back."""

import shutil
from pathlib import Path

import pytest
from command_line import did, facts, run


def test_a_witness_beside_the_ledger(spent):
    did("ledger", "witness", "--witness", "w1", "--name", "example.org/w1")
    did("ledger", "prove", 4, "--witnessed", "--out", "receipt.json")
    said = facts(
        *("verify", "receipt.json", "--key", "budget.db.pub", "--witness", "w1/witness.pub")
    )
    assert said["proven"]
    assert [one["name"] for one in said["witnesses"]] == ["example.org/w1"]
    did("ledger", "witness", "--witness", "w1")
    # Nor is a witness made anew where there is one.
    assert run("ledger", "witness", "--witness", "w1", "--name", "example.org/w2").exit_code == 2


@pytest.mark.lengthy
def test_a_witness_that_only_files_reach_also_after_the_key_was_rotated(spent, tmp_path):
    there = ("--witness", "w1", "--out", "note.txt")
    for turn in range(3):
        did("ledger", "witness", "--request", "ask.txt")
        assert (tmp_path / "ask.txt").read_text().startswith(f"old {[0, 9, 11][turn]}\n")
        new = ("--name", "example.org/w1", "--vkey", "budget.db.pub") if turn == 0 else ()
        did("ledger", "witness", "--cosign", "ask.txt", *there, *new)
        did("ledger", "witness", "--add", "note.txt", "--witness-key", "w1/witness.pub")
        if turn < 2:
            did("ledger", "rotate")
    did("ledger", "verify", "--public", "budget.db.pub")
    did("ledger", "prove", 4, "--witnessed", "--out", "receipt.json")
    did("verify", "receipt.json", "--key", "budget.db.pub", "--witness", "w1/witness.pub")


def test_a_witness_cosigns_no_old_copy(spent):
    shutil.copy(spent, "old.db")
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    did("ledger", "witness", "--witness", "w1", "--name", "example.org/w1")
    did("ledger", "witness", "--request", "ask.txt", "--ledger", "old.db")
    refused = run("ledger", "witness", "--cosign", "ask.txt", "--witness", "w1")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "An old copy was restored" in refused.stderr


def test_a_request_that_starts_elsewhere_tells_from_where_it_must(spent):
    did("ledger", "witness", "--witness", "w1", "--name", "example.org/w1")
    did("ledger", "witness", "--request", "ask.txt", "--since", 3)
    refused = run("ledger", "witness", "--cosign", "ask.txt", "--witness", "w1")
    assert refused.exit_code == 2
    assert "it must start from 9" in refused.stderr
    did("ledger", "witness", "--request", "ask.txt", "--witness-key", "w1/witness.pub")
    did("ledger", "witness", "--cosign", "ask.txt", "--witness", "w1")


def test_a_request_starts_from_where_this_witness_was_last(book):
    did("ledger", "witness", "--witness", "w1", "--name", "w1.example")
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    did("ledger", "witness", "--witness", "w2", "--name", "w2.example")
    did("ledger", "witness", "--request", "ask.txt", "--witness-key", "w1/witness.pub")
    assert Path("ask.txt").read_text().startswith("old 1\n")
    did("ledger", "witness", "--cosign", "ask.txt", "--witness", "w1", "--out", "note.txt")
