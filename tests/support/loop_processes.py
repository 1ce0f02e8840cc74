"""Loops of other libraries, in two processes as torchrun starts them, and in one to compare."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from private_runs import begin, make_data, weights
from run_processes import noticing_sums, warm_processes
from small_lightning import small_module
from torch.utils.data import DataLoader, TensorDataset

from discreet.ledger import Ledger
from discreet.privacy import Guarantee, Unit
from discreet.testing import SeededSource

TOKENS, LENGTH, ROWS, STEPS = 13, 6, 60, 4


def texts() -> dict[str, torch.Tensor]:
    ids = torch.randint(TOKENS, (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids, "labels": ids}


def open_account(folder: Path) -> None:
    with Ledger.open(folder / "budget.db", testing=True) as ledger:
        ledger.create(
            "people",
            unit=Unit.record(),
            neighbours="add_remove",
            guarantee=Guarantee(epsilon=9, delta=1e-5),
        )


def in_two_processes(function: Callable[..., Any], folder: Path) -> list[dict[str, Any]]:
    """Return what ``function(folder, rank)`` returned in each of two processes."""
    context = warm_processes()
    ranks = [context.Process(target=_one, args=(function, folder, rank)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(300)
    assert [process.exitcode for process in ranks] == [0, 0]
    return [torch.load(folder / f"rank{rank}.pt", weights_only=True) for rank in range(2)]


def _one(function: Callable[..., Any], folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    names |= {"GROUP_RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29_500}
    os.environ.update({name: str(value) for name, value in names.items()})
    os.environ["TORCHELASTIC_RUN_ID"] = "test"
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=2
    )
    try:
        torch.save(function(folder, rank), folder / f"rank{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()


def trained_by_hugging_face(folder: Path, rank: int) -> dict[str, Any]:
    """Train a small language model and return what this process ended with."""
    import transformers

    torch.manual_seed(rank)  # everybody but the first begins with other weights, to no effect
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": LENGTH, "vocab_size": TOKENS}
    config = transformers.GPT2Config(
        bos_token_id=0, eos_token_id=0, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **shape
    )
    model, rows = transformers.GPT2LMHeadModel(config), texts()
    with (
        Ledger.open(folder / "budget.db", create=False) as ledger,
        # The folder tests/datasets looks like a package of that name to those who search for one.
        mock.patch("transformers.trainer.is_datasets_available", return_value=False),
        noticing_sums() as sums,
    ):
        from discreet.learn.huggingface import make_trainer

        args = transformers.TrainingArguments(
            output_dir=str(folder / "out"),
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_steps=1,
            save_steps=3,
            eval_strategy="steps",
            eval_steps=2,
        )
        source = SeededSource(7 + rank)
        private = begin(
            model, rows, seed=None, source=source, steps=STEPS, account=ledger["people"]
        )
        public = [{name: value[i] for name, value in rows.items()} for i in range(16)]
        trainer = make_trainer(private, args=args, eval_dataset=public)
        trainer.train()
        history = trainer.state.log_history
        private.close()
    return {
        "is_plain": trainer.model_wrapped is model,
        "sums": sums,
        "weights": weights(model),
        "spent": private.spent.epsilon,
        "taken": private.steps_taken,
        "evaluated": [entry["eval_loss"] for entry in history if "eval_loss" in entry],
        "rate": private.optimizer.param_groups[0]["lr"],
    }


def trained_by_lightning(folder: Path, rank: int) -> dict[str, Any]:
    """Train a small LightningModule and return what this process ended with."""
    from discreet.learn.lightning import make_trainer

    module, data = small_module(seed=rank), make_data(100)
    public = DataLoader(TensorDataset(*make_data(16, seed=1)), batch_size=4)
    with (
        Ledger.open(folder / "budget.db", create=False) as ledger,
        noticing_sums() as sums,
        begin(
            module,
            data,
            seed=None,
            source=SeededSource(7 + rank),
            steps=STEPS,
            account=ledger["people"],
        ) as private,
    ):
        trainer = make_trainer(
            private,
            default_root_dir=folder,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        trainer.fit(module, val_dataloaders=public)
        is_plain = trainer.strategy.model is module
        trainer.save_checkpoint(folder / "end.ckpt")
    return {
        "is_plain": is_plain,
        "sums": sums,
        "weights": weights(module),
        "spent": private.spent.epsilon,
        "taken": private.steps_taken,
    }
