"""Prices that come with a request: believed only while account and program are the same."""

import json
import math
from contextlib import suppress
from fractions import Fraction

import pytest
from ledger_requests import ASKED, charge_of, encoded, make_account

from discreet._version import __version__
from discreet.accounting import LaplaceLoss, PureLoss
from discreet.accounting.filters import PRICING
from discreet.accounting.losses import laplace
from discreet.errors import (
    BudgetExceeded,
    LedgerError,
    TamperingFound,
)
from discreet.ledger.checking.replay import _covers
from discreet.ledger.rules import definition as definitions
from discreet.ledger.rules import hold as _holds
from discreet.ledger.rules import state as ledger_state
from discreet.ledger.rules.balance import Balance


class TestPricesOfARequester:
    def ask(self, ledger, account, cost, **more) -> str:
        definition = account._definition(fresh=True)
        proposal = {"code": __version__, "terms": definition.version, **more}
        asked = encoded(entry=charge_of(), costs={"total": cost}, **proposal)
        body, _ = ledger._session._ask(ledger._session._keyring, asked)
        return json.loads(body)["after"]["total"]

    def right(self, account) -> str:
        price = account._definition(fresh=True).total.price(PureLoss(epsilon=0.1))
        return " ".join(map(str, price))

    @pytest.mark.parametrize("cost", ["-5 0", f"-{10**40} 0", "0 -1", "5", "", "1 2 3", "-inf 0"])
    def test_one_of_bad_form_is_not_believed(self, ledger, account, cost):
        with suppress(LedgerError):
            assert self.ask(ledger, account, cost) == self.right(account)
        ledger.verify()
        with pytest.raises(BudgetExceeded):
            account.charge(PureLoss(epsilon=100), **ASKED)

    @pytest.mark.parametrize("cost", [5, None, ["0 0"], "nan 0", "0.5 0", "x"])
    def test_one_that_is_no_price_spoils_nothing(self, ledger, account, cost):
        with suppress(LedgerError):
            assert self.ask(ledger, account, cost) == self.right(account)
        ledger.verify()

    @pytest.mark.parametrize(
        "of", [{"code": "0.0.1"}, {"code": None}, {"terms": "0" * 16}, {"terms": None}]
    )
    def test_one_from_another_version_is_not_believed(self, ledger, account, of):
        assert self.ask(ledger, account, "0 0", **of) == self.right(account)
        ledger.verify()

    def test_one_of_other_formulas_is_not_believed(self, ledger, account):
        definition = account._definition(fresh=True)
        asked = encoded(
            entry=charge_of(pricing=PRICING + 1),
            costs={"total": "0 0"},
            code=__version__,
            terms=definition.version,
        )
        body, _ = ledger._session._ask(ledger._session._keyring, asked)
        assert json.loads(body)["after"]["total"] == self.right(account)
        assert json.loads(body)["pricing"] == PRICING
        ledger.verify()

    def test_one_that_is_too_low_is_found_by_verification(self, ledger, account):
        """Whoever has the key could write it anyway; so it is no more than found."""
        assert self.ask(ledger, account, "0 0") == "0 0"
        with pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 2

    @pytest.fixture
    def repriced(self, monkeypatch):
        """Let the next release of the program know other bounds."""
        old = laplace.laplace_upper

        def forget():
            ledger_state._prices.clear()
            definitions._known.clear()
            definitions.rules_of.cache_clear()

        def change(factor):
            def changed(*, epsilon, order, old=old, factor=factor):
                return old(epsilon=epsilon, order=order) * factor

            monkeypatch.setattr(laplace, "laplace_upper", changed)
            forget()

        yield change
        monkeypatch.undo()
        forget()

    def test_a_better_bound_leaves_old_ledgers_sound(self, ledger, repriced, monkeypatch):
        account = make_account(ledger, epsilon=3, delta=1e-6)
        account.charge(LaplaceLoss(noise_multiplier=5), **ASKED)
        repriced(1 - Fraction(1, 10**6))
        with pytest.raises(TamperingFound):  # the same formulas have the same results
            ledger.verify()
        monkeypatch.setattr(_holds, "PRICING", PRICING + 1)
        ledger.verify()
        repriced(1 + Fraction(1, 10**6))
        ledger.verify()  # numerical bounds leave that much open
        repriced(1 + Fraction(1, 500))
        with pytest.raises(TamperingFound):  # it must not have paid less than it costs
            ledger.verify()

    def test_a_track_that_ends_with_an_entry_is_no_alarm(self):
        entry = {"kind": "charge", "pricing": PRICING}
        before = Balance((0, 0, 0, 0))
        recorded = Balance((10**30 + 1, 0, math.inf, 0))
        assert _covers(entry, before, recorded, Balance((10**30, 0, math.inf, 0)))
        assert not _covers(entry, before, recorded, Balance((2 * 10**30, 0, math.inf, 0)))
        assert not _covers(entry, before, recorded, Balance((10**30, 0, 0, 0)))
