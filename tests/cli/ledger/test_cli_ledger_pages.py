"""What `discreet ledger` shows: accounts, history, bars and burn-downs, on any terminal."""

import json
import sqlite3
import sys
from datetime import UTC, datetime

import pytest
from command_line import SECRET_VALUE, did, facts, run
from typer.testing import CliRunner

from discreet.accounting import GaussianLoss, PureLoss
from discreet.cli import app
from discreet.cli.ledger.burn_down import bar, burn_down_lines
from discreet.cli.ledger.opening import place
from discreet.cli.ledger.pages import LONG
from discreet.cli.ledger.words import about, loss_words
from discreet.ledger import Ledger, Point, burn_down


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
    assert all(set(row) == keys | {"question", "epsilon", "delta"} for row in rows)
    assert rows[4]["epsilon"] == 0.5
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


@pytest.mark.lengthy
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


@pytest.mark.lengthy
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


@pytest.mark.lengthy
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


@pytest.mark.lengthy
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


@pytest.mark.lengthy
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


@pytest.mark.lengthy
def test_a_plot_of_a_name_that_fonts_and_formulas_do_not_know(book, tmp_path):
    did("ledger", "create", "$工资_{$", "--unit", "record", "--epsilon", 1)
    did("ledger", "show", "$工资_{$", "--plot", "burn.png")
    assert (tmp_path / "burn.png").read_bytes().startswith(b"\x89PNG")


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
