"""``trainer.fit`` on a private run: its steps are the run's, and nothing else forms a gradient."""

import warnings

import pytest
import torch
from loop_processes import in_two_processes, open_account, trained_by_lightning
from private_runs import begin, loss_fn, make_data, make_model, weights
from small_lightning import small_module
from torch.utils.data import DataLoader, TensorDataset

from discreet.errors import ParameterError, SensitiveValue
from discreet.learn import resume
from discreet.learn.lightning import make_trainer
from discreet.ledger import Ledger

pytestmark = [pytest.mark.lengthy, pytest.mark.needs("lightning")]
STEPS = 6


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lightning about loaders and loggers
        yield


def public(rows: int = 16):
    return DataLoader(TensorDataset(*make_data(rows, seed=1)), batch_size=8)


def run(module, **options):
    torch.manual_seed(0)
    return begin(module, make_data(100), **{"steps": STEPS, **options})


def trainer_of(private, folder, **options):
    settings = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    settings |= {"enable_checkpointing": False, "default_root_dir": folder}
    return make_trainer(private, **{**settings, **options})


def test_training_is_that_of_the_run(tmp_path):
    module = small_module()
    private = run(module)
    trainer = trainer_of(private, tmp_path)
    trainer.fit(module)
    assert private.steps_taken == trainer.global_step == STEPS
    assert trainer.callback_metrics["epsilon"].item() == pytest.approx(private.spent.epsilon)

    plain = begin(make_model(), make_data(100), steps=STEPS)
    for batch in plain.batches():
        plain.step(batch, loss_fn)
    assert torch.equal(weights(module), weights(plain.model))
    assert all(p.grad is None for p in module.parameters())
    assert module.losses_shown == []  # what hooks are given after a batch is not the loss


def test_a_loss_of_ones_own_and_a_dict_do_as_well(tmp_path):
    ends = []
    for kind, given in (("rows", None), ("dict", None), ("mean", loss_fn), ("alone", None)):
        module = small_module(kind=kind)
        trainer_of(run(module), tmp_path, loss_fn=given).fit(module)
        ends.append(weights(module))
    assert all(torch.equal(end, ends[0]) for end in ends)


def test_epochs_validation_and_schedules_are_kept(tmp_path):
    module = small_module()
    private = run(module, steps=15)
    schedule = torch.optim.lr_scheduler.LambdaLR(private.optimizer, lambda step: 1 / (1 + step))
    trainer = trainer_of(private, tmp_path, scheduler=schedule)
    trainer.fit(module, val_dataloaders=public())
    assert trainer.current_epoch == 3  # of 5 steps, as 20 of 100 are drawn in each
    assert module.validated == 3 * 2
    assert "val_loss" in trainer.callback_metrics
    assert private.optimizer.param_groups[0]["lr"] == 1 / 16


def test_fewer_steps_or_epochs_end_the_run_early(tmp_path):
    module = small_module()
    private = run(module, steps=15)
    trainer_of(private, tmp_path, max_steps=2).fit(module)
    assert private.steps_taken == 2
    trainer_of(private, tmp_path, max_epochs=1).fit(module)
    assert private.steps_taken == 7
    trainer_of(private, tmp_path, max_steps=100).fit(module)
    assert private.steps_taken == private.steps_planned == 15


def test_a_checkpoint_has_the_run_beside_it(tmp_path):
    from lightning.pytorch.callbacks import ModelCheckpoint

    module = small_module()
    private = run(module)
    keeping = ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=2, save_top_k=1)
    options = {"enable_checkpointing": True, "callbacks": [keeping], "max_steps": 4}
    trainer_of(private, tmp_path, **options).fit(module)
    private.close()
    assert [path.name for path in sorted(tmp_path.glob("*.pt"))] == ["epoch=0-step=4.private.pt"]

    again = small_module()
    optimizer = torch.optim.SGD(again.parameters(), lr=1.0)
    path = tmp_path / "epoch=0-step=4.private.pt"
    private = resume(path, again, optimizer, make_data(100), progress=False)
    assert torch.equal(weights(again), weights(module))
    trainer = trainer_of(private, tmp_path)
    with pytest.raises(ParameterError, match=r"discreet\.learn\.resume"):
        trainer.fit(again, ckpt_path=path.with_name("epoch=0-step=4.ckpt"))
    trainer.fit(again)
    assert private.steps_taken == private.spent.steps == STEPS


def test_products_in_bf16_are_those_of_a_loss_with_autocast(tmp_path):
    module = small_module()
    trainer_of(run(module), tmp_path, precision="bf16-mixed").fit(module)

    def low(model, rows):
        with torch.autocast("cpu", torch.bfloat16):
            return loss_fn(model, rows)

    plain = begin(make_model(), make_data(100), steps=STEPS)
    for batch in plain.batches():
        plain.step(batch, low)
    assert torch.equal(weights(module), weights(plain.model))


# --- what is refused, before anything is spent


@pytest.mark.parametrize(
    "settings",
    [
        {"accumulate_grad_batches": 2},
        {"gradient_clip_val": 0.5},
        {"overfit_batches": 2},
        {"precision": "bf16-true"},
        {"precision": "64-true"},
        {"strategy": "ddp"},
        {"devices": 2},
        {"accelerator": "cpu"},
    ],
)
def test_settings_that_would_leave_the_run_are_refused(tmp_path, settings):
    with pytest.raises(ParameterError) as caught:
        trainer_of(run(small_module()), tmp_path, **settings)
    assert caught.value.parameter in settings


def test_other_modules_and_other_data_are_refused(tmp_path):
    module = small_module()
    private = run(module)
    trainer = trainer_of(private, tmp_path)
    with pytest.raises(ParameterError, match="prepared with"):
        trainer.fit(small_module())
    with pytest.raises(ParameterError, match="training data is the run's"):
        trainer.fit(module, public())
    with pytest.raises(ParameterError, match="training data is the run's"):
        trainer.fit(module, train_dataloaders=public())
    module.automatic_optimization = False
    with pytest.raises(ParameterError, match="automatic_optimization"):
        trainer.fit(module)
    with pytest.raises(ParameterError, match="LightningModule"):
        trainer_of(begin(), tmp_path)
    assert private.spent.steps == 0


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("mean", "reduces over the examples"),
        ("logs", "reaches for the Trainer"),
        ("asks", "reaches for the Trainer"),
        ("steps", "reaches for the Trainer"),
    ],
)
def test_steps_that_show_or_mix_rows_are_refused(tmp_path, kind, told):
    module = small_module(kind=kind)
    private = run(module)
    before = weights(module)
    with pytest.raises(ParameterError, match=told):
        trainer_of(private, tmp_path).fit(module)
    assert private.spent.steps == 0
    assert torch.equal(weights(module), before)


def test_hooks_see_a_ticket_in_place_of_the_batch(tmp_path):
    module = small_module()
    module.on_after_batch_transfer = lambda batch, index: batch[0]
    private = run(module)
    with pytest.raises(SensitiveValue, match="drawn inside the step"):
        trainer_of(private, tmp_path).fit(module)
    assert private.spent.steps == 0


def test_an_optimiser_that_steps_in_a_hook_is_refused(tmp_path):
    module = small_module()
    private = run(module)
    other = torch.optim.SGD(module.parameters(), lr=1.0)
    module.on_train_batch_start = lambda batch, index: other.step() and None
    with pytest.raises(ParameterError, match="belong to a private run"):
        trainer_of(private, tmp_path).fit(module)


# --- several processes


@pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="needs torch.distributed with gloo",
)
def test_two_processes_train_what_one_does_and_pay_once(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        open_account(tmp_path / name)
    first, second = in_two_processes(trained_by_lightning, tmp_path / "two")
    single = trained_by_lightning(tmp_path / "one", 0)
    assert first["taken"] == second["taken"] == single["taken"] == 4
    assert first["spent"] == second["spent"] == single["spent"]
    assert len(first["sums"]) == 4
    assert second["sums"] == []  # noise is added once, and it never holds a sum without
    gap = (first["sums"][0] - single["sums"][0]).norm() / single["sums"][0].norm()
    assert gap < 1e-6
    assert torch.equal(first["weights"], second["weights"])
    torch.testing.assert_close(first["weights"], single["weights"], rtol=0, atol=1e-3)
    assert first["is_plain"]  # DistributedDataParallel would add up raw gradients
    assert (tmp_path / "two" / "end.private.pt").exists()
    with Ledger.open(tmp_path / "two" / "budget.db", create=False) as ledger:
        kinds = [entry["kind"] for entry in ledger["people"].history()]
        assert (kinds.count("reserve"), kinds.count("spend")) == (1, 4)
