"""Jobs, releases and answers, and questions that are asked again."""

import hashlib
import json
from contextlib import suppress

import pytest
from ledger_requests import ASKED, exported, make_account, sql

from discreet.accounting import PureLoss
from discreet.errors import (
    LedgerError,
    TamperingFound,
)
from discreet.ledger import Export, Ledger
from discreet.ledger.log.notes import sign_checkpoint
from discreet.ledger.log.tree import Tree
from discreet.ledger.verifier import leaf_hash
from discreet.mechanisms import DiscreteLaplace
from discreet.privacy import Guarantee


class TestReleases:
    def test_of_a_job_that_never_began_there_is_none(self, ledger, account):
        job = account.reserve(PureLoss(epsilon=1), **ASKED)
        with pytest.raises(LedgerError, match="no step of this job"):
            account.release(job.receipt, b"412")
        job.close()
        assert account.used == 0
        with pytest.raises(LedgerError, match="no step of this job"):
            account.release(job.receipt, b"412")
        assert "release" not in [entry["kind"] for entry in ledger.history()]
        ledger.verify()

    def test_of_a_job_that_began_there_is_one_also_when_it_is_over(self, ledger, account):
        step = PureLoss(epsilon=0.1)
        with account.reserve(step * 5, **ASKED) as job:
            job.spend(step)
        account.release(job.receipt, b"412")
        assert account.used == pytest.approx(0.1)
        ledger.verify()

    def test_one_charge_has_one_release(self, ledger, account, path, tmp_path):
        account.release(account.charge(PureLoss(epsilon=1), **ASKED), b"1")
        again = hashlib.sha256(b"2").hexdigest()
        with pytest.raises(LedgerError):
            account.release(ledger.prove(2), b"2")
        lines = exported(ledger, tmp_path / "log.ndjson")
        bodies = [json.loads(line) for line in lines[1:5]]
        second = {**bodies[3], "index": 4, "answer": again}
        second["previous"] = leaf_hash(lines[4].encode()).hex()
        lines.insert(5, json.dumps(second, sort_keys=True, separators=(",", ":")))
        lines[0] = lines[0].replace('"size":4', '"size":5')
        lines.insert(7, json.dumps({"release": 4, "answer": "Mg=="}))
        tree = Tree()
        for line in lines[1:6]:
            tree.add(leaf_hash(line.encode()))
        note = sign_checkpoint(ledger._session._keyring.any(), 5, tree.root())
        lines[-1] = json.dumps({"checkpoint": note})
        forged = tmp_path / "forged.ndjson"
        forged.write_text("\n".join([*lines, ""]))
        with pytest.raises(TamperingFound) as error:
            Export(forged).verify()
        assert error.value.entry == 4
        with pytest.raises(TamperingFound):
            Ledger.imported(forged, tmp_path / "copy.db")

    def test_its_entry_confirms_no_guess(self, ledger, account):
        query = "SELECT COUNT(*) FROM patients WHERE name='Bob'"
        noisy = DiscreteLaplace(sensitivity=1, scale=4)
        release = account.answer(noisy, lambda: 412, query=query, **ASKED)
        entry = release.receipt.entries[1]
        for plan in (query, f"DiscreteLaplace: {query}"):
            assert hashlib.sha256(plan.encode()).hexdigest() != entry["plan"]
        known = {"confidence": 0.95, "error": release.error, "value": release.value}
        text = json.dumps(known, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() != entry["answer"]
        assert hashlib.sha256(release.document).hexdigest() == entry["answer"]

    def test_a_repeated_request_says_so(self, ledger, account):
        loss = PureLoss(epsilon=1)
        receipts = [account.charge(loss, key="daily", **ASKED) for _ in range(3)]
        assert [receipt.is_repeated for receipt in receipts] == [False, True, True]
        assert len({receipt.index for receipt in receipts}) == 1
        assert account.used == 1

    def test_a_reservation_repeated_after_its_end_is_no_open_job(self, ledger, account):
        step = PureLoss(epsilon=0.1)
        account.reserve(step * 3, key="j", **ASKED).close()
        with pytest.raises(LedgerError, match="no open job"):
            account.reserve(step * 3, key="j", **ASKED)
        job = account.reserve(step * 3, key="k", **ASKED)
        job.spend(step)
        assert account.reserve(step * 3, key="k", **ASKED).left == 2


class TestRecall:
    @pytest.fixture
    def account(self, ledger):
        account = make_account(ledger)
        account.limit(Guarantee(epsilon=1), analyst="*")
        return account

    @pytest.mark.parametrize("kept", [b"42", b"\x00raw", b"[]", b"{}", b"null", b"", b"{"])
    def test_what_is_no_answer_of_ours_is_not_recalled(self, account, kept):
        account.release(account.charge(PureLoss(epsilon=0.1), query="q", **ASKED), kept)
        assert account.recall("q", **ASKED) is None
        assert account.recall("q", who="bo", purpose="x") is None
        assert account.used == pytest.approx(0.1)

    def test_nobody_pays_for_an_answer_that_is_gone(self, ledger, account, path):
        noisy = DiscreteLaplace(sensitivity=1, scale=10)
        account.answer(noisy, lambda: 412, query="q", **ASKED)
        budgets, size = account.budgets(), ledger.size
        sql(path, "DELETE FROM answers")
        with suppress(TamperingFound):
            assert account.recall("q", who="bo", purpose="x") is None
        assert (account.budgets(), ledger.size) == (budgets, size)
        with pytest.raises(TamperingFound) as error:
            ledger.verify()
        assert error.value.entry == 4

    def test_nobody_is_told_an_answer_that_was_altered(self, account, path):
        noisy = DiscreteLaplace(sensitivity=1, scale=10)
        account.answer(noisy, lambda: 412, query="q", **ASKED)
        forged = b'{"confidence":0.95,"error":1.0,"value":99999}'
        sql(path, "UPDATE answers SET body = ?", forged)
        with suppress(TamperingFound):
            assert account.recall("q", **ASKED) is None

    def test_error_bars_of_other_confidence_are_not_compared(self, ledger):
        account = make_account(ledger, "b", epsilon=10)
        rough = DiscreteLaplace(sensitivity=1, scale=4)
        fine = DiscreteLaplace(sensitivity=1, scale=1)
        asked = {"query": "q", **ASKED}
        one = account.answer(rough, lambda: 412, confidence=0.5, **asked)
        two = account.answer(fine, lambda: 412, confidence=0.99, **asked)
        assert one.error <= two.error  # which would have been taken for as good
        assert not two.is_recalled
        assert account.recall("q", within=(two.error, 0.99), **ASKED).is_recalled
        assert account.recall("q", within=(two.error, 0.95), **ASKED) is None
