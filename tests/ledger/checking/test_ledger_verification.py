"""Verification that goes on from an earlier one, and witnesses."""

import hashlib
import json
from contextlib import suppress

import pytest
from ledger_requests import ASKED, charge_of, make_account, pure, sql, submit

from discreet.accounting import PureLoss
from discreet.errors import (
    LedgerError,
    TamperingFound,
)
from discreet.ledger import Witness
from discreet.ledger.log.notes import add_signature, cosign, sign_checkpoint
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee


class TestVerificationThatGoesOn:
    def test_a_witness_in_between_is_no_alarm(self, ledger, account, tmp_path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        witness = Witness.create(tmp_path / "w", name="w.example/1")
        done = ledger.verify()
        ledger.witness(witness)
        done = ledger.verify(since=done)
        assert (done.start, done.size) == (3, 4)
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        done = ledger.verify(since=done)
        ledger.witness(witness)
        ledger.witness(witness)
        assert ledger.verify(since=done).size == ledger.verify().size == 7

    def test_a_cosigned_checkpoint_of_nothing_is_refused(self, ledger, tmp_path):
        witness = Witness.create(tmp_path / "w", name="w.example/1")
        note = sign_checkpoint(ledger._session._keyring.any(), 0, hashlib.sha256().digest())
        cosigned = add_signature(note, cosign(witness._key, note, 5))
        with pytest.raises(LedgerError):
            ledger.add_cosignature(cosigned, vkey=witness.vkey)
        with pytest.raises(LedgerError):
            submit(ledger, {"kind": "witness", "note": cosigned, "vkey": witness.vkey, "key": "x"})
        assert ledger.verify().size == 1

    @pytest.mark.parametrize("name", ["query", "loss"])
    def test_an_old_entry_that_is_read_again_is_proven(self, ledger, account, path, name):
        receipt = account.charge(PureLoss(epsilon=0.5), query="q", **ASKED)
        done = ledger.verify()
        account.release(receipt, b'{"value":1,"error":1,"confidence":0.5}')
        (body,) = sql(path, "SELECT body FROM entries WHERE idx = 2")[0]
        altered = json.loads(body)
        altered |= {"query": "0" * 64} if name == "query" else {"loss": pure(0.001)}
        text = json.dumps(altered, sort_keys=True, separators=(",", ":"))
        sql(path, "UPDATE entries SET body = ? WHERE idx = 2", text)
        with pytest.raises(TamperingFound) as error:
            ledger.verify(since=done)
        assert error.value.entry == 2

    def test_what_was_paid_for_a_question_is_no_matter_of_an_old_entry(self, ledger, path):
        account = make_account(ledger)
        account.limit(Guarantee(epsilon=1), analyst="*")
        noisy = DiscreteLaplace(sensitivity=1, scale=2)
        account.answer(noisy, lambda: 5, query="q", **ASKED)
        (body,) = sql(path, "SELECT body FROM entries WHERE idx = 3")[0]
        cheap = body.replace('"2/1"', '"2000/1"')
        assert cheap != body
        sql(path, "UPDATE entries SET body = ? WHERE idx = 3", cheap)
        with suppress(TamperingFound):
            account.recall("q", who="bo", purpose="x")
            assert {b.name: b.used for b in account.budgets()}["analyst=*:bo"] == 0.5

    @pytest.mark.parametrize("place", [-1, 2**62 + 5, 2**63 - 1])
    def test_a_row_outside_of_the_log_is_found_and_pays_nothing(self, ledger, account, path, place):
        entry = charge_of(epsilon=1, key="key/a/daily")
        entry |= {"index": 2, "after": {"total": "0 0"}, "time": "x", "previous": "y"}
        row = (place, "a", "key/a/daily", json.dumps(entry), b"")
        sql(path, "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", *row)
        with pytest.raises(TamperingFound):
            ledger.verify()
        with pytest.raises(TamperingFound):
            account.charge(PureLoss(epsilon=1), key="daily", **ASKED)
        assert ledger.size == 2
