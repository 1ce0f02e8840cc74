"""A folder with a ledger, an account for devices, and a collection of moods."""

import pytest
from command_line import did


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Let no variable of the machine, and no earlier state, play a part."""
    for name in ("DISCREET_LEDGER", "DISCREET_LEDGER_KEY", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def book(tmp_path):
    did("ledger", "init", "--name", "example.com/budget")
    did(
        *("ledger", "create", "devices", "--unit", "column:device"),
        *("--neighbours", "replace_one", "--epsilon", 10),
    )
    (tmp_path / "moods.txt").write_text("bad\nfair\ngood\n", encoding="utf-8")
    return "budget.db"


TERMS = ("--epsilon", 2, "--per-day", 2, "--lifetime", 10, "--minimum", 100, "--who", "ana")


@pytest.fixture
def moods(book):
    return did("collect", "init", "moods", "--account", "devices", "--values", "moods.txt", *TERMS)
