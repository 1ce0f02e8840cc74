"""A Trainer in two processes trains what it trains in one: noise once, one payer, one model."""

import pytest
import torch
from loop_processes import STEPS, in_two_processes, open_account, trained_by_hugging_face

from discreet.learn.run.checkpoint_file import read
from discreet.ledger import Ledger

pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.skipif(
        not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
        reason="needs torch.distributed with gloo",
    ),
]


def test_two_processes_train_what_one_does_and_pay_once(tmp_path):
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    open_account(tmp_path / "two")
    open_account(tmp_path / "one")
    first, second = in_two_processes(trained_by_hugging_face, tmp_path / "two")
    single = trained_by_hugging_face(tmp_path / "one", 0)

    assert first["taken"] == second["taken"] == single["taken"] == STEPS
    assert first["spent"] == second["spent"] == single["spent"]
    assert len(first["sums"]) == len(single["sums"]) == STEPS
    assert second["sums"] == []  # noise is added once, and it never holds a sum without
    gap = (first["sums"][0] - single["sums"][0]).norm() / single["sums"][0].norm()
    assert gap < 1e-6
    assert torch.equal(first["weights"], second["weights"])
    torch.testing.assert_close(first["weights"], single["weights"], rtol=0, atol=1e-3)
    assert first["is_plain"]  # DistributedDataParallel would add up raw gradients
    assert first["evaluated"] == second["evaluated"]
    assert first["evaluated"] == pytest.approx(single["evaluated"], abs=1e-3)
    assert first["rate"] == second["rate"] == single["rate"]

    with Ledger.open(tmp_path / "two" / "budget.db", create=False) as ledger:
        kinds = [entry["kind"] for entry in ledger["people"].history()]
        assert (kinds.count("reserve"), kinds.count("spend")) == (1, STEPS)
    saved = read(tmp_path / "two" / "out" / "checkpoint-3" / "private.pt")
    assert saved["state"]["taken"] == 3
