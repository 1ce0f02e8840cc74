"""Bad input gets one line and exit code 2, and leaves no trace."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import did, facts, run

from discreet.ledger import Ledger

MAKE = ["ledger", "create", "a", "--unit", "record"]
GRANT = ["ledger", "grant", "salaries", "--who", "me", "--reason", "x"]
POLICY = ["ledger", "policy", "salaries", "--who", "me", "--reason", "x"]
BAD = [
    (["ledger", "accounts", "--ledger", "none.db"], "there is no ledger at none.db"),
    (["ledger", "show", "none"], "no account 'none'"),
    (["ledger", "history", "none"], "no account 'none'"),
    (["ledger", "history", "--last", "0"], "--last"),
    (["ledger", "nonsense"], "nonsense"),
    ([*MAKE], "--epsilon"),
    ([*MAKE, "--epsilon", "-1"], "epsilon must be"),
    ([*MAKE, "--epsilon", "nan"], "epsilon must be"),
    ([*MAKE, "--epsilon", "lots"], "epsilon must be"),
    ([*MAKE, "--epsilon", "1", "--delta", "2"], "delta must be"),
    ([*MAKE, "--epsilon", "1", "--neighbours", "all"], "neighbours must be"),
    ([*MAKE, "--epsilon", "1", "--policy", "beg"], "beg"),
    ([*MAKE, "--epsilon", "1", "--policy", "wait"], "period"),
    ([*MAKE, "--epsilon", "1", "--kind", "zcdp"], "delta above 0"),
    ([*MAKE, "--epsilon", "1", "--per", "day"], "period"),
    (["ledger", "create", "a", "--unit", "person", "--epsilon", "1"], "unit must be record"),
    (["ledger", "create", "a", "--unit", "column:", "--epsilon", "1"], "name of a column"),
    (["ledger", "create", "a/b", "--unit", "record", "--epsilon", "1"], "must not contain '/'"),
    (["ledger", "create", "salaries", "--unit", "record", "--epsilon", "1"], "already has"),
    (["ledger", "limit", "salaries", "--epsilon", "1"], "Say which"),
    (["ledger", "limit", "salaries", "--epsilon", "1", "--every", "moon"], "every must be"),
    (GRANT, "say what to widen"),
    ([*GRANT, "--epsilon", "9", "--line", "analyst=eve"], "no limit"),
    (["ledger", "grant", "salaries", "--epsilon", "9"], "--who"),
    ([*POLICY, "beg"], "beg"),
    ([*POLICY, "wait"], "period"),
    (["ledger", "policy", "none", "deny", "--who", "me", "--reason", "x"], "no account 'none'"),
    (["ledger", "policy", "salaries", "deny", "--reason", "x"], "--who"),
    (["ledger", "policy", "salaries", "deny", "--who", "me", "--reason", ""], "reason must be"),
    ([*MAKE, "--epsilon", "1", "--who", ""], "who must be"),
    (["ledger", "prove", "99"], "no entry 99"),
    (["ledger", "prove", "some"], "integer"),
    (["ledger", "prove", "1", "--witnessed"], "no witness"),
    (["ledger", "prove", "1", "--out", "no/such/receipt.json"], "cannot be written"),
    (["ledger", "verify", "none.ndjson"], "none.ndjson"),
    (["ledger", "verify", "budget.db.pub"], "not an exported ledger"),
    (["ledger", "verify", "--pinned", "none.txt"], "none.txt"),
    (["ledger", "verify", "--pinned", "budget.db.pub"], "no checkpoint"),
    (["ledger", "verify", "--public", "budget.db.key"], "public key"),
    (["ledger", "verify", "x.ndjson", "--incremental"], "verified whole"),
    (["ledger", "export", "no/such/all.ndjson"], "no/such"),
    (["ledger", "import", "none.ndjson", "--ledger", "new.db"], "none.ndjson"),
    (["ledger", "backup", "no/such/copy.db"], "could not be made"),
    (["ledger", "witness"], "say one of"),
    (["ledger", "witness", "--request", "a", "--add", "b"], "say one of"),
    (["ledger", "witness", "--witness", "none"], "no readable key"),
    (["ledger", "witness", "--cosign", "budget.db.pub"], "--witness FOLDER"),
    (["ledger", "witness", "--cosign", "budget.db.pub", "--witness", "none"], "not a request"),
    (["ledger", "witness", "--add", "none.txt"], "--witness-key"),
    (["ledger", "create", "b", "--unit", "record", "--epsilon", "1", "--key", "x"], "its key"),
    (["verify", "receipt.json"], "--key"),
]
NOBODY = 65534


@contextmanager
def as_nobody():
    """Be somebody whom permissions bind, also where the tests run as root."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(me)


@pytest.mark.lengthy
def test_bad_input_gets_one_line_and_exit_code_2(spent):
    for args, hint in BAD:
        result = run(*args)
        assert result.exit_code == 2, (args, result.output)
        assert result.stdout == "", args
        assert len(result.stderr.splitlines()) == 1, args
        assert result.stderr.startswith("discreet: "), args
        assert hint in result.stderr, (args, result.stderr)
    with Ledger.open(spent, read_only=True) as ledger:
        assert ledger.size == 9  # nothing of it left a trace


def test_a_receipt_that_cannot_be_read(book):
    assert run("verify", "none.json", "--key", "budget.db.pub").exit_code == 2
    did("ledger", "prove", 0, "--out", "receipt.json")
    assert run("verify", "receipt.json", "--key", "none.pub").exit_code == 2
    said = facts("verify", "receipt.json", "--key", "budget.db.pub")
    assert (said["proven"], said["origin"]) == (True, "example.com/budget")
    refused = run("verify", "receipt.json", "--key", "budget.db.pub", "--answer", "budget.db.pub")
    assert refused.exit_code == 1
    assert "not about this answer" in refused.stderr


def test_reading_leaves_the_ledger_as_it_is(spent, tmp_path):
    before = (tmp_path / spent).read_bytes()
    for command in (["accounts"], ["show", "salaries"], ["history"], ["verify"], ["prove", "1"]):
        did("ledger", *command)
    assert (tmp_path / spent).read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_a_read_only_ledger_is_shown_and_not_written(monkeypatch):
    make = ("ledger", "create", "a", "--unit", "record", "--epsilon", 1)
    with tempfile.TemporaryDirectory() as name:  # in a folder that nobody may enter, too
        folder = Path(name)
        monkeypatch.chdir(folder)
        did("ledger", "init")
        did(*make)
        did("ledger", "show", "a")
        did("ledger", "verify")
        for path in [folder, *folder.iterdir()]:
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
            path.chmod(0o500 if path == folder else 0o400)
        with as_nobody():
            did("ledger", "show", "a")
            did("ledger", "verify")
            refused = run(*make)
        folder.chmod(0o700)
        monkeypatch.undo()
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert len(refused.stderr.splitlines()) == 1
    assert "Nothing was written" in refused.stderr


def test_without_its_key_a_ledger_is_shown_and_not_written(spent, tmp_path):
    (tmp_path / "budget.db.key").rename(tmp_path / "away.key")
    did("ledger", "show", "salaries")
    did("ledger", "verify")
    refused = run("ledger", "create", "a", "--unit", "record", "--epsilon", 1)
    assert refused.exit_code == 2
    assert "without its key" in refused.stderr
    did("ledger", "create", "a", "--unit", "record", "--epsilon", 1, "--key", "away.key")
