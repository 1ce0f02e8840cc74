"""`discreet ledger` and `discreet verify`: the whole story, plain JSON, one-line refusals."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.accounting import GaussianLoss, LaplaceLoss, PureLoss
from discreet.cli import app
from discreet.cli.ledger.burn_down import bar, burn_down_lines
from discreet.cli.ledger.opening import place
from discreet.cli.ledger.pages import LONG
from discreet.cli.ledger.words import about, loss_words
from discreet.ledger import Ledger
from discreet.ledger.plots import Point, burn_down
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee, Unit

SECRET_QUERY = "select salary where name = 'Bö'"
SECRET_VALUE = 918273
NOBODY = 65534


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Let no variable of the machine, and no earlier state, play a part."""
    for name in ("DISCREET_LEDGER", "DISCREET_LEDGER_KEY", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def run(*args, **environment):
    return CliRunner().invoke(app, [str(a) for a in args], env=environment)


def did(*args, **environment):
    result = run(*args, **environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def facts(*args):
    return json.loads(did(*args, "--json"))


@pytest.fixture
def book():
    did("ledger", "init", "--name", "example.com/budget")
    return "budget.db"


@pytest.fixture(scope="module")
def used_ledger(tmp_path_factory):
    """A ledger with one account, used for everything that an account is used for; made once."""
    folder = tmp_path_factory.mktemp("used")
    with Ledger.open(folder / "budget.db", name="example.com/budget") as ledger:
        (folder / "budget.db.pub").write_text(f"{ledger.vkey}\n")
        guarantee = Guarantee(epsilon=5, delta=1e-6)
        account = ledger.create(
            "salaries", unit=Unit.record(), neighbours="add_remove", guarantee=guarantee
        )
        account.limit(Guarantee(epsilon=1, delta=1e-6), analyst="bö")
        account.register("payroll", version="2026-11", identities=["s3://payroll"])
        account.charge(LaplaceLoss(noise_multiplier=2), who="ana", purpose="report")
        account.answer(
            DiscreteLaplace(sensitivity=1, scale=8),
            lambda: SECRET_VALUE,
            who="bö",
            purpose="report",
            query=SECRET_QUERY,
        )
        step = GaussianLoss(noise_multiplier=100)
        job = account.reserve(step * 100, who="trainer", purpose="model")
        job.spend(step * 2)
    return folder


@pytest.fixture
def spent(used_ledger, tmp_path):
    for name in ("budget.db", "budget.db.key", "budget.db.pub"):
        shutil.copy(used_ledger / name, tmp_path)
    return "budget.db"


# --- the story ---


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


# --- what is shown ---


def test_accounts_as_json(spent):
    said = facts("ledger", "accounts")
    assert set(said) == {"origin", "size", "testing", "accounts"}
    assert (said["origin"], said["size"], said["testing"]) == ("example.com/budget", 9, False)
    (account,) = said["accounts"]
    with Ledger.open(spent, read_only=True) as ledger:
        used = ledger["salaries"].used
    assert account == {
        "name": "salaries",
        "unit": {"kind": "record"},
        "neighbours": "add_remove",
        "epsilon": 5,
        "delta": 1e-6,
        "policy": "deny",
        "used": used,
        "remaining": 1 - used,
    }


def test_show_as_json_and_what_still_fits_does(spent):
    said = facts("ledger", "show", "salaries", "--who", "bö")
    assert {budget["name"] for budget in said["budgets"]} == {
        *("total", "analyst=b%C3%B6"),
    }
    assert said["sources"] == [{"name": "payroll", "version": "2026-11"}]
    assert said["jobs"] == [{"entry": 7, "who": "trainer", "purpose": "model", "left": 98}]
    assert said["burn_down"][0]["used"] == 0
    assert said["burn_down"][-1]["used"] == said["used"]
    fits = said["fits"]
    assert fits["epsilon"] < facts("ledger", "show", "salaries")["fits"]["epsilon"]
    with Ledger.open(spent) as ledger:
        account = ledger["salaries"]
        more = PureLoss(epsilon=fits["epsilon"] * 1.002)
        assert not account.quote(more, who="bö", purpose="x")
        louder = GaussianLoss(noise_multiplier=fits["noise_multiplier"] * 0.998)
        assert not account.quote(louder, who="bö", purpose="x")
        quiet = GaussianLoss(noise_multiplier=fits["noise_multiplier"])
        assert account.quote(quiet, who="bö", purpose="x")
        account.charge(PureLoss(epsilon=fits["epsilon"]), who="bö", purpose="x")


def test_a_unit_with_periods_is_shown_period_by_period(book):
    daily = ("--unit", "column:u", "--per", "day", "--epsilon", 1)
    did("ledger", "create", "visits", *daily)
    assert facts("ledger", "show", "visits")["used"] == 0
    did("ledger", "show", "visits")
    today = datetime.now(UTC).date()
    with Ledger.open(book) as ledger:
        ledger["visits"].charge(
            PureLoss(epsilon=0.25), who="ana", purpose="x", periods=[today, "2001-02-03"]
        )
    said = facts("ledger", "show", "visits")
    assert {b["name"] for b in said["budgets"]} == {f"total:{today}", "total:2001-02-03"}
    assert said["fits"]["epsilon"] == 0.75 or said["fits"]["period"] != str(today)
    assert "day drawn on" in did("ledger", "show", "visits")


def test_history_tells_who_paid_what_and_how_much_was_used_after(spent):
    rows = facts("ledger", "history")
    keys = {"index", "time", "kind", "account", "who", "purpose", "loss", "about", "used_after"}
    assert all(set(row) == keys for row in rows)
    assert [row["index"] for row in rows] == list(range(9))
    assert rows[4]["about"] == "laplace, noise multiplier 2"
    assert rows[4]["loss"] == {"kind": "laplace", "noise_multiplier": 2, "version": 1}
    assert set(rows[5]["used_after"]) == {"total", "analyst=b%C3%B6"}
    assert rows[-1]["used_after"]["total"] == facts("ledger", "show", "salaries")["used"]
    page = did("ledger", "history", "salaries")
    for words in ("ana, report", "laplace, noise", "100 x gaussian", "2 steps of job", "16.4%"):
        assert words in page
    last = facts("ledger", "history", "salaries", "--last", 2)
    assert [row["kind"] for row in last] == ["reserve", "spend"]
    assert did("ledger", "history", "--last", 1, COLUMNS="60").startswith("entry 8\n")


def test_a_long_history_shows_its_end_and_says_so(book):
    did("ledger", "create", "long", "--unit", "record", "--epsilon", 1000)
    with Ledger.open(book) as ledger:
        for _ in range(LONG):
            ledger["long"].charge(PureLoss(epsilon=1), who="ana", purpose="x")
    page = did("ledger", "history", "long", COLUMNS="100")
    assert page.startswith(f"The last {LONG} entries; say --last N for more.")
    assert len(page.splitlines()) == LONG + 3
    assert "account" not in page
    assert len(facts("ledger", "history", "long")) == LONG + 1
    assert len(did("ledger", "history", "--last", LONG + 2, COLUMNS="100").splitlines()) > LONG + 3


def test_no_value_query_or_key_is_ever_printed(spent, tmp_path):
    pages = [
        did("ledger", *command, *more)
        for command in (["accounts"], ["show", "salaries"], ["history"], ["verify"])
        for more in ([], ["--json"])
    ]
    pages += [did("ledger", "prove", 6), did("ledger", "checkpoint"), did("ledger", "rotate")]
    secrets = json.loads((tmp_path / "budget.db.key").read_text())
    with Ledger.open(spent, read_only=True) as ledger:
        entry = ledger.history()[5]
    for page in pages:
        assert "select" not in page
        assert str(SECRET_VALUE) not in page
        assert secrets["private"] not in page
        assert secrets["salt"] not in page
    assert all(entry["query"] not in page for page in pages[:-3])


def test_a_narrow_terminal_cuts_nothing(spent):
    for command in (["accounts"], ["show", "salaries"], ["history"]):
        page = did("ledger", *command, COLUMNS="60")
        assert max(map(len, page.splitlines())) <= 60
        assert "\N{HORIZONTAL ELLIPSIS}" not in page
        wide = did("ledger", *command, COLUMNS="80")
        assert max(map(len, wide.splitlines())) <= 80
        assert "\N{HORIZONTAL ELLIPSIS}" not in wide


@pytest.mark.parametrize("command", [["accounts"], ["show", "Gehälter 工资"], ["history"]])
def test_names_in_any_script_on_terminals_with_and_without_it(book, command):
    did("ledger", "create", "Gehälter 工资", "--unit", "column:[bold]Größe", "--epsilon", 1)
    page = did("ledger", *command, COLUMNS="100")
    assert "工资" in page
    if command[0] != "history":
        assert "[bold]" in page
    plain = CliRunner(charset="ascii").invoke(app, ["ledger", *command], env={"COLUMNS": "100"})
    assert plain.exit_code == 0, plain.output
    assert plain.stdout_bytes.isascii()
    assert rb"\u5de5\u8d44" in plain.stdout_bytes


def test_an_entry_cannot_move_the_cursor(spent):
    with sqlite3.connect(spent) as database:
        database.execute("UPDATE entries SET body = replace(body, 'ana', '\\u001b[2J') WHERE idx=4")
    database.close()
    page = did("ledger", "history", "salaries")
    assert "\x1b" not in page
    assert r"\x1b[2J" in page


def test_an_empty_ledger(book):
    assert "No account yet" in did("ledger", "accounts")
    assert facts("ledger", "accounts")["accounts"] == []
    assert "the ledger" in did("ledger", "history")
    assert "1 entries verified" in did("ledger", "verify")
    assert run("ledger", "show", "salaries").exit_code == 2
    did("ledger", "create", "new", "--unit", "record", "--epsilon", 1)
    assert "Nothing was used yet" in did("ledger", "show", "new")
    did("ledger", "show", "new", "--plot", "new.png")


def test_a_ledger_for_tests_says_so():
    did("ledger", "init", "--testing")
    did("ledger", "create", "a", "--unit", "record", "--epsilon", 1)
    assert "protect nobody" in did("ledger", "accounts")
    assert "protect nobody" in did("ledger", "show", "a")


# --- bars and burn-downs ---


def test_the_burn_down_of_a_long_account_is_thinned_and_ends_where_the_account_is(book):
    did("ledger", "create", "long", "--unit", "record", "--epsilon", 1000)
    with Ledger.open(book) as ledger:
        account = ledger["long"]
        for _ in range(150):
            account.charge(PureLoss(epsilon=1), who="ana", purpose="x")
        account.charge(PureLoss(epsilon=1), who="ana", purpose="x", query="q")
        points = burn_down(account, points=20)
        assert 15 <= len(points) <= 21
        assert points[-1].used == account.used == 0.151
        assert [p.used for p in points] == sorted(p.used for p in points)
        assert all(p.used == (p.entry - 1) / 1000 for p in points)
        every = burn_down(account)
        assert [p.entry for p in every] == list(range(1, 153))


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("width", [10, 40, 200])
def test_burn_downs_of_any_size_fit_and_go_down(is_plain, width):
    points = [Point(n, "2026-11-15T08:00:00.000000Z", n / 1000) for n in range(0, 1000, 7)]
    lines = burn_down_lines(points, width=width, is_plain=is_plain)
    assert max(map(len, lines)) <= max(width, 14)
    ink = [len(line.rstrip()) for line in lines[:-2]]
    assert ink == sorted(ink)
    assert ink[0] < ink[-1]
    assert all(line.isascii() for line in lines) or not is_plain


def test_bars_never_round_away_a_little():
    assert bar(0.0, is_plain=True) == ".........."
    assert bar(1e-12, is_plain=True) == "#........."
    assert bar(1 - 1e-12, is_plain=True) == "#########."
    assert bar(1.0, is_plain=True) == "##########"
    assert bar(0.0) == "\u2591" * 10
    assert bar(1.0) == "\u2588" * 10
    assert bar(1e-12)[0] == "\u258f"
    assert {len(bar(n / 97)) for n in range(98)} == {10}


def test_a_plot(spent, tmp_path):
    result = did("ledger", "show", "salaries", "--plot", "burn.png")
    assert "Wrote burn.png" in result
    assert (tmp_path / "burn.png").read_bytes().startswith(b"\x89PNG")
    for bad, why in (("burn.foo", "must end in"), ("no/such/burn.png", "cannot be written")):
        refused = run("ledger", "show", "salaries", "--plot", bad)
        assert refused.exit_code == 2
        assert why in refused.stderr


def test_a_plot_without_matplotlib(spent, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused = run("ledger", "show", "salaries", "--plot", "burn.png")
    assert refused.exit_code == 2
    assert "discreet.ledger needs matplotlib" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_plot_of_a_name_that_fonts_and_formulas_do_not_know(book, tmp_path):
    did("ledger", "create", "$工资_{$", "--unit", "record", "--epsilon", 1)
    did("ledger", "show", "$工资_{$", "--plot", "burn.png")
    assert (tmp_path / "burn.png").read_bytes().startswith(b"\x89PNG")


# --- verification ---


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


# --- witnesses ---


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


# --- refusals ---

MAKE = ["ledger", "create", "a", "--unit", "record"]
GRANT = ["ledger", "grant", "salaries", "--who", "me", "--reason", "x"]
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


COMMANDS = [
    *("init", "create", "limit", "grant", "accounts", "show", "history", "verify", "prove"),
    *("checkpoint", "witness", "rotate", "export", "import", "backup"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command):
    assert f"discreet ledger {command}" in did("ledger", command, "--help", COLUMNS="120")


def test_help_of_the_group_and_of_verify():
    page = did("ledger")
    assert all(command in page for command in COMMANDS)
    assert "discreet verify receipt.json" in did("verify", "--help", COLUMNS="120")


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


def test_words():
    assert place("postgresql://ana:hush@db.example/x?sslmode=require") == (
        "postgresql://db.example/x"
    )
    sampled = {"kind": "sampled", "rate": 0.01, "inner": {"kind": "gaussian", "sigma": 2}}
    assert loss_words(sampled) == "sampled, rate 0.01, of gaussian, sigma 2"
    assert loss_words({"kind": "pure", "epsilon": "8/1"}) == "pure, epsilon 8"
    assert about({"kind": "witness", "vkey": "example.org/w1+ab+cd"}) == (
        "cosigned by example.org/w1"
    )


# --- answers, clocks, old exports, several witnesses ---


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


def test_the_clock_is_confirmed_by_somebody(book):
    assert "confirms" in did("ledger", "clock", "--who", "chris", "--reason", "back again")
    assert [entry["kind"] for entry in facts("ledger", "history")][-1] == "clock"
    assert run("ledger", "clock", "--who", "", "--reason", "x").exit_code == 2


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


def test_a_request_starts_from_where_this_witness_was_last(book):
    did("ledger", "witness", "--witness", "w1", "--name", "w1.example")
    did("ledger", "create", "more", "--unit", "record", "--epsilon", 1)
    did("ledger", "witness", "--witness", "w2", "--name", "w2.example")
    did("ledger", "witness", "--request", "ask.txt", "--witness-key", "w1/witness.pub")
    assert Path("ask.txt").read_text().startswith("old 1\n")
    did("ledger", "witness", "--cosign", "ask.txt", "--witness", "w1", "--out", "note.txt")
