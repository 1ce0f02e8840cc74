"""Rotations of the key, also interrupted ones."""

from pathlib import Path

import pytest
from ledger_requests import ASKED, make_account

from discreet.accounting import PureLoss
from discreet.errors import (
    LedgerError,
)
from discreet.ledger import Ledger
from discreet.ledger.log import keyring as _keyring
from discreet.ledger.log.keyring import Keyring
from discreet.ledger.log.keys import SigningKey


class Crash(BaseException):
    """The process ends here."""


def crash(*args, **options):
    raise Crash


class TestRotation:
    def test_two_at_once_lose_no_key(self, ledger, path, monkeypatch):
        begin = Keyring.begin_rotation
        refused = []
        with Ledger.open(path) as other:

            def late(self, vkey):
                new = begin(self, vkey)
                if self is ledger._session._keyring:
                    with pytest.raises(LedgerError) as error:
                        other.rotate()
                    refused.append(error.value)
                return new

            monkeypatch.setattr(Keyring, "begin_rotation", late)
            ledger.rotate()
            assert refused
            monkeypatch.undo()
            make_account(other).charge(PureLoss(epsilon=0.1), **ASKED)
            other.rotate()
        with Ledger.open(path) as again:
            assert again.verify().size == 5
            again["a"].charge(PureLoss(epsilon=0.1), **ASKED)

    def crash_after_writing(self, ledger, patch):
        submit_to = ledger._session.submit

        def submitting(entry):
            receipt = submit_to(entry)
            patch.setattr(Keyring, "settle", crash)
            return receipt

        ledger._session.submit = submitting

    def test_a_crash_in_any_step_of_several_loses_no_key(self, path, monkeypatch):
        Ledger.open(path).close()
        for _ in range(2):  # recorded, but the key is not in its place
            with Ledger.open(path) as ledger, monkeypatch.context() as patch:
                self.crash_after_writing(ledger, patch)
                with pytest.raises(Crash):
                    ledger.rotate()
        with Ledger.open(path) as ledger:  # not recorded, and the next key waits
            assert ledger.size == 3
            ledger._session.submit = crash
            with pytest.raises(Crash):
                ledger.rotate()
        with Ledger.open(path) as ledger:
            make_account(ledger)
            with pytest.raises(LedgerError, match="remove that file"):
                ledger.rotate()
            ledger._session._keyring.next_path.unlink()
            ledger.rotate()
            make_account(ledger, "b")
            assert ledger.verify().size == 6

    def test_a_crash_while_founding_loses_no_key(self, path, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(Keyring, "settle", crash)
            with pytest.raises(Crash):
                Ledger.open(path)
        with Ledger.open(path) as ledger:
            make_account(ledger)
            assert ledger.verify().size == 2
        assert Path(f"{path}.key").exists()

    def test_a_key_on_the_move_is_found(self, ledger, account, path, monkeypatch):
        """Another process puts it in its place between two looks."""
        with Ledger.open(path) as other:
            with monkeypatch.context() as patch:
                patch.setattr(Keyring, "settle", lambda self, vkey: None)
                other.rotate()
            load, moved = SigningKey.load, []

            def loaded(place):
                if str(place).endswith(".next") and not moved:
                    moved.append(place)
                    other._session._keyring.settle(other.vkey)
                return load(place)

            monkeypatch.setattr(_keyring.SigningKey, "load", staticmethod(loaded))
            account.charge(PureLoss(epsilon=0.1), **ASKED)
            assert moved
        account.charge(PureLoss(epsilon=0.1), **ASKED)
        ledger.verify()
