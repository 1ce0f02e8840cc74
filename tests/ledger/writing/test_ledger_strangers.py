"""Strangers may write the mailbox but have no key: nothing of theirs is signed or believed."""

import contextlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from ledger_requests import ASKED, LONG, charge_of, encoded, forgeries, grant_of, wait_until

from discreet.accounting import PureLoss
from discreet.errors import (
    TamperingFound,
)
from discreet.ledger import Ledger
from discreet.ledger.log.keys import SigningKey
from discreet.ledger.stores.sqlite import mailbox as _mailbox
from discreet.ledger.stores.sqlite.mailbox import SLOTS, Mailbox
from discreet.ledger.writing.group_commit import GroupCommit
from discreet.privacy import Guarantee

needs_mailbox = pytest.mark.skipif(sys.platform == "win32", reason="no mailbox on Windows")


def posted(box: Mailbox) -> bool:
    page = box._page
    return page[_mailbox._POSTED :][:SLOTS] != page[_mailbox._DONE :][:SLOTS]


def refuse(batch):
    raise RuntimeError("there is no key here")


@contextlib.contextmanager
def stranger(path):
    """Open the mailbox as somebody who may write the files."""
    box = Mailbox(path)
    box.commit_together([], lambda batch: [])
    try:
        yield box
    finally:
        box.close()


def carried_out_for(ledger, account, box, requests) -> list[bytes]:
    """Let a stranger post while the ledger writes; return what it was answered."""
    work, has_entered = ledger._session._scribe.work, threading.Event()

    def slow(transaction, batch):
        if not has_entered.is_set():
            has_entered.set()
            wait_until(lambda: posted(box))
        return work(transaction, batch)

    ledger._session._scribe.work = slow
    try:
        with ThreadPoolExecutor(2) as pool:
            mine = pool.submit(account.charge, PureLoss(epsilon=0.1), **ASKED)
            assert has_entered.wait(LONG)
            theirs = pool.submit(box.commit_together, requests, refuse)
            mine.result(LONG)
            return theirs.result(LONG)
    finally:
        ledger._session._scribe.work = work


@needs_mailbox
class TestWithoutTheKeyInTheMailbox:
    def test_nothing_that_a_stranger_posts_is_carried_out(self, ledger, account, path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        tried = forgeries(ledger, account)
        size = ledger.size
        with stranger(path) as box:
            answers = carried_out_for(ledger, account, box, list(tried.values()))
        assert len(answers) == len(tried)
        for answer in answers:
            assert b"somebody who has the key" in answer
        assert ledger.size == size + 1  # the charge that was under way
        assert account.guarantee == Guarantee(epsilon=1)
        ledger.verify()

    def test_what_has_the_key_is_carried_out_there(self, ledger, account, path):
        """Otherwise the test above would show nothing."""
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        request = ledger._session._sealing.seal(encoded(entry=grant_of(account, 50)))
        with stranger(path) as box:
            carried_out_for(ledger, account, box, [request])
        assert account.guarantee == Guarantee(epsilon=50)

    def test_a_request_that_was_seen_pays_once(self, ledger, account, path):
        entry = charge_of()
        request = ledger._session._sealing.seal(encoded(entry=entry))
        ledger._session._carry_out([request])
        size = ledger.size
        with stranger(path) as box:
            carried_out_for(ledger, account, box, [request, request])
        assert ledger.size == size + 1
        assert [one["key"] for one in account.history()].count(entry["key"]) == 1

    @pytest.mark.parametrize("how", ["plain", "noise", "other key", "old answer", "refusal"])
    def test_a_strangers_answer_is_not_believed(self, ledger, account, path, how):
        before = account.charge(PureLoss(epsilon=0.1), **ASKED)
        true = b"+" + before.bodies[0].encode()
        asked = ledger._session._sealing.seal(encoded(entry=charge_of()))
        mine = SigningKey.generate("example.com/ledger")

        def forged(request: bytes) -> bytes:
            return {
                "plain": true,
                "noise": os.urandom(32) + true,
                "other key": mine.seal(true, to=request),
                "old answer": ledger._session._sealing.seal(true, to=asked),
                "refusal": bytes(32) + b'!["LedgerError",["no"],{}]',
            }[how]

        has_entered, forgeries_made = threading.Event(), []

        def lie(batch):
            if not has_entered.is_set():
                has_entered.set()
                wait_until(lambda: posted(box))
                return [b""] * len(batch)
            if forgeries_made:  # whoever is lied to three times in a row gives up
                raise ValueError("one lie is enough")
            forgeries_made.extend(batch)
            return [forged(request) for request in batch]

        with stranger(path) as box, ThreadPoolExecutor(2) as pool:
            lying = pool.submit(box.commit_together, [b"hold"], lie)
            assert has_entered.wait(LONG)
            receipt = pool.submit(account.charge, PureLoss(epsilon=0.2), **ASKED).result(LONG)
            lying.result(LONG)
        assert forgeries_made
        assert receipt.index == before.index + 1
        assert ledger.prove(receipt).is_proven
        assert account.used == pytest.approx(0.3)

    def test_who_is_only_ever_lied_to_is_told(self, ledger, account):
        true = account.charge(PureLoss(epsilon=0.1), **ASKED).bodies[0].encode()
        ledger._session._group = GroupCommit(lambda batch: [b"+" + true for _ in batch])
        with pytest.raises(TamperingFound):
            account.charge(PureLoss(epsilon=0.1), **ASKED)


class TestAKeyThatWasRotatedOut:
    def test_a_request_sealed_with_it_is_not_carried_out(self, ledger, account):
        stolen = ledger._session._keyring.key(ledger.vkey)
        ledger.rotate()
        size = ledger.size
        request = stolen.seal(encoded(entry=grant_of(account, 50)))
        (answer,) = ledger._session._carry_out([request])
        assert stolen.unsealed(answer, to=request) is None  # nor answered under it
        assert ledger.size == size
        assert account.guarantee == Guarantee(epsilon=1)

    def test_somebody_who_does_not_know_of_it_yet_goes_on(self, ledger, account, path):
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        with Ledger.open(path) as other:
            other.rotate()
            other.rotate()
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        assert account.used == pytest.approx(0.2)
        ledger.verify()

    def test_an_answer_under_it_is_not_believed(self, ledger, account):
        stolen = ledger._session._keyring.key(ledger.vkey)
        ledger.rotate()
        body = account.charge(PureLoss(epsilon=0.1), **ASKED).bodies[0].encode()
        ledger._session._group = GroupCommit(
            lambda batch: [stolen.seal(b"+" + body, to=r) for r in batch]
        )
        with pytest.raises(TamperingFound):
            account.charge(PureLoss(epsilon=0.1), **ASKED)
