"""Imports of exports, also old and altered ones."""

import pytest
from ledger_requests import ASKED

from discreet.accounting import PureLoss
from discreet.errors import (
    TamperingFound,
)
from discreet.ledger import Export, Ledger


class TestImports:
    @pytest.fixture
    def exported(self, ledger, account, tmp_path):
        receipt = account.charge(PureLoss(epsilon=0.5), **ASKED)
        account.release(receipt, b"forty-two")
        ledger.export(tmp_path / "log.ndjson")
        return tmp_path / "log.ndjson"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"who":"ana"', '"who":"bob"'),
            ('"who":"ana"', '"who":"ana" '),
            ("Zm9ydHktdHdv", "Zm9ydHktc2l4"),  # the answer
        ],
    )
    def test_a_file_swapped_after_it_was_verified_is_not_taken(
        self, exported, tmp_path, monkeypatch, old, new
    ):
        verify = Export.verify

        def swapping(self, **options):
            verified = verify(self, **options)
            text = exported.read_text()
            assert old in text
            exported.write_text(text.replace(old, new))
            return verified

        monkeypatch.setattr(Export, "verify", swapping)
        with pytest.raises(TamperingFound):
            Ledger.imported(exported, tmp_path / "copy.db")
        monkeypatch.undo()
        exported.write_text(exported.read_text().replace(new, old))
        with Ledger.imported(exported, tmp_path / "copy.db") as copy:  # nothing was left there
            assert copy.verify().size == 4

    def test_an_old_export_is_told_by_a_pinned_checkpoint(self, ledger, exported, tmp_path):
        ledger["a"].charge(PureLoss(epsilon=0.1), **ASKED)
        with pytest.raises(TamperingFound):
            Ledger.imported(exported, tmp_path / "copy.db", pinned=ledger.checkpoint())
        assert not (tmp_path / "copy.db").exists()
        new = tmp_path / "new.ndjson"
        ledger.export(new)
        with Ledger.imported(new, tmp_path / "copy.db", pinned=ledger.checkpoint()) as copy:
            assert copy.size == 5
