"""Clocks that stand still, run back or jump ahead."""

import pytest
from ledger_requests import ASKED, make_account, resigned

from discreet.accounting import PureLoss
from discreet.errors import (
    BudgetExceeded,
    LedgerError,
    TamperingFound,
)
from discreet.ledger import Ledger
from discreet.ledger.rules import entry as _entries
from discreet.privacy import Guarantee


class TestClocks:
    def test_one_that_jumps_opens_no_allowance(self, ledger):
        account = make_account(ledger, epsilon=10)
        account.limit(Guarantee(epsilon=1), analyst="*", every="month")
        account.charge(PureLoss(epsilon=1), **ASKED)
        for year in (2031, 2099, 9999):
            ledger._session._scribe._clock = lambda year=year: f"{year}-01-01T00:00:00.000000Z"
            with pytest.raises(LedgerError, match="clock"):
                account.charge(PureLoss(epsilon=1), **ASKED)
        ledger._session._scribe._clock = _entries.now
        with pytest.raises(BudgetExceeded):
            account.charge(PureLoss(epsilon=1), **ASKED)
        assert ledger.verify().size == 4

    def test_somebody_may_confirm_it(self, ledger, account):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        ledger._session._scribe._clock = lambda: "2031-01-01T00:00:00.000000Z"
        ledger.accept_clock(who="chris", reason="back from the archive")
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        assert ledger.verify().size == 5

    def test_a_history_that_jumps_without_it_is_not_verified(self, ledger, account, path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        ledger.close()
        resigned(path, lambda bodies: bodies[3].update(time="2031-01-01T00:00:00.000000Z"))
        with Ledger.open(path, read_only=True) as found, pytest.raises(TamperingFound) as error:
            found.verify()
        assert error.value.entry == 3
