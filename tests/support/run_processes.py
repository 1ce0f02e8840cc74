"""Runs that tests start in processes of their own: to be killed, or to train together."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from private_runs import begin, ids, loss_fn, make_data, make_model, nothing, train, weights

from discreet.learn import Adaptive, resume
from discreet.learn.noise.grid_noise import add_noise_
from discreet.learn.run import step as _stepping
from discreet.ledger import Ledger
from discreet.testing import SeededSource

STEPS, SAVE_EVERY = 24, 3


def warm_processes() -> Any:
    """Return how to start processes that need not import everything anew."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["torch._dynamo", "scipy.fft", "discreet.learn.checkpoints", "discreet.testing"]
    )
    return context


def training(folder: Path) -> None:
    """Begin a run, or go on with one, and note every step whose result exists."""
    torch.set_num_threads(1)
    checkpoint = folder / "run.pt"
    with Ledger.open(folder / "budget.db", create=False) as ledger:
        account, data, model = ledger["people"], make_data(100), make_model()
        if checkpoint.exists():
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            private = resume(checkpoint, model, optimizer, data, account=account, progress=False)
        else:
            private = begin(model, data, seed=None, account=account, steps=STEPS)
            private.save(checkpoint)
        with private, (folder / "results").open("a") as results:
            for batch in private.batches():
                private.step(batch, loss_fn)
                results.write(f"{private.steps_taken}\n")
                results.flush()
                os.fsync(results.fileno())
                if private.steps_taken % SAVE_EVERY == 0:
                    private.save(checkpoint)
                time.sleep(0.002)  # so that there is something to be killed
            private.save(checkpoint)
        torch.save(model.state_dict(), folder / "model.pt")


@contextmanager
def noticing_sums() -> Iterator[list[torch.Tensor]]:
    """Yield a list of each step's clipped sum as it was when noise was about to be added."""
    sums: list[torch.Tensor] = []

    def look(buffer: torch.Tensor, **options: Any) -> None:
        sums.append(buffer.clone())
        add_noise_(buffer, **options)

    with mock.patch.object(_stepping, "add_noise_", look):
        yield sums


def sums_before_noise(private: Any, function: Any) -> list[torch.Tensor]:
    """Train, and return each step's clipped sum without noise."""
    with noticing_sums() as sums:
        train(private, function)
    return sums


def together(folder: Path, rank: int, size: int, options: dict[str, Any]) -> None:
    """Train as one of several processes; leave the weights, and what the others saw, in files."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=size
    )
    try:
        torch.save(one_of(rank, folder, **options), folder / f"rank{rank}.pt")
    finally:
        torch.distributed.destroy_process_group()


def one_of(
    rank: int,
    folder: Path,
    *,
    silent: bool = False,
    wrapped: bool = False,
    users: bool = False,
    adaptive: bool = False,
    charged: bool = False,
    fails: bool = False,
) -> dict[str, Any]:
    """Train, and return what this process ended with."""
    # Everybody but the first begins with other weights and another source, to no effect.
    model = make_model(seed=rank)
    options: dict[str, Any] = {"source": SeededSource(7 + rank), "seed": None}
    if wrapped:
        model = torch.nn.parallel.DistributedDataParallel(model)
    if users:
        options |= {"units": ids(100, users=30), "rows_per_unit": 2, "batch_size": 10}
    if adaptive:
        options["clip"] = Adaptive(initial=0.2, count_noise=2.0)
    if not charged:
        return _ended(begin(model, micro_batch_size=6, **options), silent=silent)
    with Ledger.open(folder / "budget.db", create=False) as ledger:
        private = begin(model, account=ledger["people"], steps=3 if not fails else 30, **options)
        return _ended(private, silent=silent)


def _ended(private: Any, *, silent: bool) -> dict[str, Any]:
    sums = sums_before_noise(private, nothing if silent else loss_fn)
    return {
        "sums": sums,
        "weights": weights(private.model),
        "clip": private.clip,
        "spent": private.spent.epsilon,
        "taken": private.steps_taken,
    }
