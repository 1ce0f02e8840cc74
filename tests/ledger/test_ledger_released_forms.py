"""What was written once stays readable: a log and a receipt made by the first version."""

from pathlib import Path

import pytest

from discreet.ledger import Export, Ledger
from discreet.ledger.verifier import NotProven, check_receipt

RELEASED = Path(__file__).parent / "released"
VKEY = (RELEASED / "vkey.txt").read_text().strip()


def test_an_old_receipt_is_proven():
    receipt = (RELEASED / "receipt.json").read_text()
    assert check_receipt(receipt, VKEY)
    with pytest.raises(NotProven):
        check_receipt(receipt.replace("ana", "eve"), VKEY)


def test_an_old_log_is_imported_and_verified(tmp_path):
    assert Export(RELEASED / "ledger.jsonl").verify(vkey=VKEY).size == 6
    with Ledger.imported(RELEASED / "ledger.jsonl", tmp_path / "new.db", vkey=VKEY) as ledger:
        assert ledger.verify().size == ledger.size == 6
        assert 0 < ledger["salaries"].used < 1
