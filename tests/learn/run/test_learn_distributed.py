"""Two processes train as one: the same batches, the same sum, noise once, one payer."""

from pathlib import Path

import pytest
import torch
from private_runs import begin, ids, loss_fn, nothing, train, weights
from run_processes import sums_before_noise, together, warm_processes

from discreet.errors import ParameterError
from discreet.learn import Adaptive
from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit

pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.skipif(
        not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
        reason="needs torch.distributed with gloo",
    ),
]


def run(folder: Path, **options: object) -> list[dict[str, object]]:
    """Return what each of two processes ended with."""
    context = warm_processes()
    ranks = [context.Process(target=together, args=(folder, r, 2, options)) for r in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
    assert [process.exitcode for process in ranks] == [0, 0]
    (folder / "meeting").unlink(missing_ok=True)
    return [torch.load(folder / f"rank{r}.pt", weights_only=True) for r in range(2)]


def assert_same_sum(first: torch.Tensor, wanted: torch.Tensor) -> None:
    gap = (first - wanted).norm() / wanted.norm()
    assert gap < 1e-6


@pytest.mark.lengthy
def test_two_processes_train_what_one_does(tmp_path):
    first, second = run(tmp_path, wrapped=True)
    single = begin()
    sums = sums_before_noise(single, loss_fn)
    assert len(first["sums"]) == 3
    assert second["sums"] == []  # it never holds a sum of all that has no noise
    assert_same_sum(first["sums"][0], sums[0])
    assert torch.equal(first["weights"], second["weights"])
    # Rounding to the grid may take the last bit of a sum up here and down there: that shows later.
    torch.testing.assert_close(first["weights"], weights(single.model), rtol=0, atol=1e-4)
    assert first["spent"] == second["spent"] == single.spent.epsilon
    assert first["taken"] == second["taken"] == 3


@pytest.mark.lengthy
def test_noise_is_drawn_once_by_the_first(tmp_path):
    noise = weights(train(begin(), nothing).model)
    for end in run(tmp_path, silent=True):
        assert torch.equal(end["weights"], noise)


@pytest.mark.lengthy
def test_users_and_adaptive_clipping_are_shared_too(tmp_path):
    first, second = run(tmp_path, users=True, adaptive=True)
    single = begin(
        units=ids(100, users=30),
        rows_per_unit=2,
        batch_size=10,
        clip=Adaptive(initial=0.2, count_noise=2.0),
    )
    sums = sums_before_noise(single, loss_fn)
    assert_same_sum(first["sums"][0], sums[0])
    assert first["clip"] == second["clip"] == single.clip != 0.2
    assert torch.equal(first["weights"], second["weights"])


@pytest.mark.lengthy
@pytest.mark.parametrize("fails", [False, True])
def test_the_first_process_pays_for_all(tmp_path, fails):
    with Ledger.open(tmp_path / "budget.db", testing=True) as ledger:
        account = ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=5, delta=1e-5),
        )
    if fails:
        with pytest.raises(AssertionError):  # both end, neither waits for the other
            run(tmp_path, charged=True, fails=True)
    else:
        run(tmp_path, charged=True)
    with Ledger.open(tmp_path / "budget.db", create=False) as ledger:
        account = ledger["people"]
        kinds = [entry["kind"] for entry in account.history()]
        assert kinds.count("reserve") == (0 if fails else 1)
        assert kinds.count("spend") == (0 if fails else 3)
        ledger.verify()


def test_processes_of_torchrun_that_are_not_connected_are_refused(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ParameterError, match=r"init_process_group\(\) before"):
        begin()
    monkeypatch.setenv("WORLD_SIZE", "1")
    begin()
