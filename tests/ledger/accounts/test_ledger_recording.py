"""An answer that is paid for reaches whoever asked, also when it cannot be put on record."""

from pathlib import Path

import pytest
from ledger_requests import ASKED

from discreet.errors import LedgerUnavailable
from discreet.ledger.accounts import answers
from discreet.mechanisms import DiscreteLaplace
from discreet.testing import temporary_tables

NOISY = DiscreteLaplace(sensitivity=1, scale=10)


@pytest.fixture
def full_after_the_charge(monkeypatch):
    def full(*_, **__):
        raise LedgerUnavailable("the disk is full. Nothing was written.")

    monkeypatch.setattr(answers, "release", full)


def test_an_answer_outlives_a_disk_that_fills_up(account, full_after_the_charge):
    with pytest.warns(RuntimeWarning, match=r"disk is full.*keep it") as warned:
        release = account.answer(NOISY, lambda: 10**6, **ASKED)
    assert release.value == pytest.approx(10**6, abs=10**4)
    assert [entry["kind"] for entry in release.receipt.entries] == ["charge"]
    assert account.used == pytest.approx(0.1)
    assert Path(warned[0].filename).name == Path(__file__).name, "points at the caller's line"


def test_a_table_answers_when_the_ledger_goes_away_after_the_charge(
    full_after_the_charge, monkeypatch
):
    with temporary_tables(epsilon=3) as T:
        account = type(T.account)

        def gone(_):
            raise LedgerUnavailable("the connection is lost.")

        monkeypatch.setattr(account, "remaining", property(gone))
        with pytest.warns(RuntimeWarning, match="could not be put on record"):
            answer = T.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
        assert answer.value == pytest.approx(2000, abs=100)
        assert "Left of the budget: unknown" in str(answer)
        assert answer.card()["accounting"]["budget_left"] is None
        monkeypatch.undo()
        assert T.account.used > 0
