"""`discreet ledger` from the first entry on: budgets, keys, clocks, copies, and its help."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import SECRET_VALUE, did, facts, run

from discreet.accounting import GaussianLoss, LaplaceLoss
from discreet.ledger import Ledger
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit

COMMANDS = [
    *(
        "init",
        "create",
        "limit",
        "grant",
        "policy",
        "accounts",
        "show",
        "history",
        "verify",
        "prove",
    ),
    *("checkpoint", "witness", "rotate", "export", "import", "backup", "clock", "rollback"),
]


@pytest.mark.lengthy
def test_from_the_first_entry_to_a_receipt_that_a_stranger_checks(tmp_path):
    did("ledger", "init", "--name", "example.com/budget")
    did("ledger", "create", "salaries", "--unit", "record", "--epsilon", 5, "--delta", "1e-6")
    did("ledger", "limit", "salaries", "--analyst", "bö", "--epsilon", 1)
    with Ledger.open("budget.db") as ledger:
        account = ledger["salaries"]
        account.register("payroll", version="2026-11", identities=["s3://payroll"])
        account.charge(LaplaceLoss(noise_multiplier=2), who="ana", purpose="report")
        counted = DiscreteLaplace(sensitivity=1, scale=8)
        account.answer(counted, lambda: SECRET_VALUE, who="bö", purpose="report")
        step = GaussianLoss(noise_multiplier=100)
        account.reserve(step * 100, who="trainer", purpose="model").spend(step * 2)
    page = did("ledger", "show", "salaries")
    assert "epsilon 5, delta 1e-06" in page
    assert "Source payroll, version 2026-11" in page
    assert "98 steps not begun" in page
    assert "What was left of the total" in page
    assert "Protects one record, add_remove" in page
    rows = facts("ledger", "history", "salaries")
    assert [row["kind"] for row in rows] == [
        *("account", "budget", "source", "charge", "charge", "release", "reserve", "spend")
    ]
    assert did("ledger", "verify").startswith("example.com/budget: 9 entries verified")
    release = next(row["index"] for row in rows if row["kind"] == "release")
    did("ledger", "prove", release, "--out", "receipt.json")
    # The stranger has nothing but the receipt and the public key.
    apart = tmp_path / "apart"
    apart.mkdir()
    shutil.copy("receipt.json", apart)
    shutil.copy("budget.db.pub", apart / "ledger.pub")
    command = [sys.executable, "-m", "discreet", "verify", "receipt.json", "--key", "ledger.pub"]
    ran = subprocess.run(command, cwd=apart, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("proven: these entries are in the log of example.com/budget")
    assert f"entry {release}, release" in ran.stdout
    text = (apart / "receipt.json").read_text()
    (apart / "receipt.json").write_text(text.replace("report", "repork"))
    ran = subprocess.run(command, cwd=apart, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("NOT PROVEN")


def test_init_makes_three_files_says_where_and_never_overwrites(tmp_path):
    page = did("ledger", "init")
    for name in ("budget.db", "budget.db.key", "budget.db.pub"):
        assert str(tmp_path / name) in page
        assert (tmp_path / name).exists()
    assert "witness" in page
    before = (tmp_path / "budget.db.pub").read_bytes()
    assert "exists already" in run("ledger", "init").stderr
    with Ledger.open("budget.db", read_only=True) as ledger:
        assert ledger.vkey == before.decode().strip()
    result = run("ledger", "init", "--ledger", "other.db", "--public", "budget.db.pub")
    assert result.exit_code == 2
    assert "never overwritten" in result.stderr
    assert (tmp_path / "budget.db.pub").read_bytes() == before
    assert not (tmp_path / "other.db").exists()


def test_the_ledger_and_its_key_come_from_the_environment(tmp_path):
    where = {"DISCREET_LEDGER": str(tmp_path / "l.db"), "DISCREET_LEDGER_KEY": "elsewhere.key"}
    did("ledger", "init", **where)
    did("ledger", "create", "a", "--unit", "record", "--epsilon", 1, **where)
    assert (tmp_path / "elsewhere.key").exists()
    assert "epsilon 1" in did("ledger", "accounts", **where)


def test_units_periods_policies_and_kinds(book):
    did("ledger", "create", "rows", "--unit", "record", "--epsilon", 1)
    common = ("--epsilon", 1, "--delta", "1e-6")
    daily = ("--unit", "column:user_id", "--per", "day", "--policy", "wait")
    did("ledger", "create", "days", *daily, *common, "--kind", "zcdp")
    swap = ("--unit", "household:hh", "--neighbours", "replace_one", "--policy", "degrade")
    did("ledger", "create", "homes", *swap, *common)
    with Ledger.open(book, read_only=True) as ledger:
        assert ledger["rows"].guarantee == Guarantee(epsilon=1)
        assert ledger["days"].unit == Unit.column("user_id").per("day")
        assert ledger["days"].policy == "wait"
        assert ledger["homes"].unit == Unit.household("hh")
        assert ledger["homes"].neighbours == "replace_one"
    assert facts("ledger", "show", "days")["kind"] == "zcdp"


@pytest.mark.lengthy
def test_export_import_backup(spent, tmp_path):
    assert "9 entries" in did("ledger", "export", "all.ndjson")
    said = facts("ledger", "verify", "all.ndjson")
    assert (said["verified"], said["entries"], said["origin"]) == (True, 9, "example.com/budget")
    assert "put its secret key" in did("ledger", "import", "all.ndjson", "--ledger", "new.db")
    did("ledger", "backup", "copy.db")
    shown = facts("ledger", "show", "salaries")
    for copy in ("new.db", "copy.db"):
        assert facts("ledger", "show", "salaries", "--ledger", copy) == shown
        did("ledger", "verify", "--ledger", copy)
    for again in (["import", "all.ndjson"], ["export", "all.ndjson"], ["backup", "copy.db"]):
        assert run("ledger", *again).exit_code == 2
    text = (tmp_path / "all.ndjson").read_text()
    (tmp_path / "all.ndjson").write_text(text.replace('"who":"ana"', '"who":"bob"'))
    bad = run("ledger", "verify", "all.ndjson")
    assert bad.exit_code == 1
    assert "entry 4" in bad.stderr
    assert run("ledger", "import", "all.ndjson", "--ledger", "bad.db").exit_code == 1
    assert not (tmp_path / "bad.db").exists()


def test_a_grant_widens_and_stays_on_record(spent):
    why = ("--who", "the board", "--reason", "second survey")
    did("ledger", "grant", "salaries", "--epsilon", 8, *why)
    did("ledger", "grant", "salaries", "--epsilon", 2, "--line", "analyst=bö", *why)
    said = facts("ledger", "show", "salaries")
    assert (said["epsilon"], said["delta"]) == (8, 1e-6)
    limits = {budget["name"]: budget["epsilon"] for budget in said["budgets"]}
    assert limits == {"total": 8, "analyst=b%C3%B6": 2}
    assert "second survey" in facts("ledger", "history")[-1]["about"]
    narrower = run("ledger", "grant", "salaries", "--epsilon", 1, *why)
    assert narrower.exit_code == 2
    assert "only be widened" in narrower.stderr


def test_a_policy_changes_and_who_did_it_stays_on_record(spent):
    why = ("--who", "the board", "--reason", "rough will do")
    told = did("ledger", "policy", "salaries", "degrade", *why)
    assert told == "Set the policy of salaries to degrade.\n"
    assert facts("ledger", "show", "salaries")["policy"] == "degrade"
    assert "at the end: degrade" in did("ledger", "show", "salaries")
    row = facts("ledger", "history", "salaries")[-1]
    assert (row["kind"], row["who"]) == ("policy", "the board")
    assert row["about"] == "the policy is degrade: rough will do"
    page = did("ledger", "history", "salaries", "--last", 1, COLUMNS="120")
    assert "the policy is degrade: rough will do" in page
    did("ledger", "verify")


def test_who_opens_accounts_and_limits_them_is_on_record(book):
    did("ledger", "create", "rows", "--unit", "record", "--epsilon", 1, "--who", "chris")
    did("ledger", "limit", "rows", "--analyst", "ana", "--epsilon", 1, "--who", "dee")
    did("ledger", "limit", "rows", "--analyst", "bo", "--epsilon", 1)
    rows = facts("ledger", "history", "rows")
    assert [row["who"] for row in rows] == ["chris", "dee", None]


def test_acts_are_in_the_history_of_the_ledger_and_of_their_account(spent):
    with Ledger.open(spent) as ledger:
        ledger.act("key.revoked", who="chris", subject="ana-2", reason="a lost laptop")
        ledger.act("dataset.reopened", who="dee", subject="salaries", account="salaries")
    rows = facts("ledger", "history", "--last", 2)
    assert [row["about"] for row in rows] == [
        *("key.revoked ana-2: a lost laptop", "dataset.reopened salaries")
    ]
    assert [row["account"] for row in rows] == [None, "salaries"]
    assert facts("ledger", "history", "salaries")[-1] == rows[-1]
    page = did("ledger", "history", "--last", 2)
    assert "key.revoked" in page
    assert "chris" in page
    did("ledger", "show", "salaries")
    assert facts("ledger", "verify")["entries"] == 11
    did("ledger", "prove", 9, "--out", "receipt.json")
    assert "act key.revoked" in did("verify", "receipt.json", "--key", "budget.db.pub")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command):
    assert f"discreet ledger {command}" in did("ledger", command, "--help", COLUMNS="120")


def test_help_of_the_group_and_of_verify():
    page = did("ledger")
    assert all(command in page for command in COMMANDS)
    assert "discreet verify receipt.json" in did("verify", "--help", COLUMNS="120")


@pytest.mark.lengthy
def test_help_loads_no_ledger():
    code = (
        "import sys, discreet.cli\n"
        "sys.argv = ['discreet', 'ledger', 'show', '--help']\n"
        "try: discreet.cli.main()\n"
        "except SystemExit: pass\n"
        "print('discreet.ledger' in sys.modules, 'numpy' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "False False"


def test_the_clock_is_confirmed_by_somebody(book):
    assert "confirms" in did("ledger", "clock", "--who", "chris", "--reason", "back again")
    assert [entry["kind"] for entry in facts("ledger", "history")][-1] == "clock"
    assert run("ledger", "clock", "--who", "", "--reason", "x").exit_code == 2


def test_an_older_copy_goes_on_with_a_custodians_word(book):
    did("ledger", "backup", "copy.db")
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    shutil.copyfile("copy.db", "budget.db")
    refused = run("ledger", "create", "other", "--unit", "record", "--epsilon", 1)
    assert refused.exit_code == 1
    assert "discreet ledger rollback" in refused.stderr
    said = did("ledger", "rollback", "--who", "chris", "--reason", "the disk died")
    assert "once had" in said
    assert [entry["kind"] for entry in facts("ledger", "history")][-1] == "rollback"
    did("ledger", "create", "other", "--unit", "record", "--epsilon", 1)
    assert run("ledger", "rollback", "--who", "chris", "--reason", "again").exit_code == 2


def test_an_old_export_is_not_imported_against_a_newer_checkpoint(book):
    did("ledger", "export", "old.ndjson")
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    did("ledger", "checkpoint", "--out", "pin.txt")
    old = ("ledger", "import", "old.ndjson", "--ledger", "new.db")
    refused = run(*old, "--pinned", "pin.txt")
    assert refused.exit_code == 1
    assert "rolled back" in refused.stderr
    assert not Path("new.db").exists()
    did(*old)
