"""A process that trains: plans come in as lines, and what happens goes out as lines of JSON.

The gateway never loads torch: it is large, and while it is loaded nobody would be answered.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from discreet.datasets import clusters
from discreet.service.pages.areas.training.picture import SEED, boundary
from discreet.service.pages.areas.training.plan import DELTA, POINTS, TrainingPlan

__all__ = ["main", "run"]

_FRAMES: Final = 120  # of a run, however many steps it has
_ASKED: Final = 20  # of them tell epsilon, which takes longer to work out than the steps
_PAUSE: Final = 0.035  # seconds between two, so that they can be followed
_HELD_OUT: Final = 1000
_SECONDS: Final = 45.0


def main() -> None:
    """Train what is asked for, one run after the other, until nobody is there any more."""
    os.nice(10)  # whoever pays for an answer goes first
    orders: SimpleQueue[str | None] = SimpleQueue()
    Thread(target=_read, args=(orders,), daemon=True).start()
    while (order := orders.get()) is not None:
        if order == "stop":  # it came when the run was over already
            continue
        told = json.loads(order)
        plan, is_paced = TrainingPlan.of(told["plan"]), bool(told["is_paced"])
        try:
            # Whatever is said meanwhile means that this run is not wanted any more.
            for event in run(plan, is_paced=is_paced, is_over=lambda: not orders.empty()):
                _tell(event)
        except Exception as error:
            _tell({"kind": "failed", "why": f"{type(error).__name__}: {error}"})
        _tell({"kind": "end"})


def run(
    plan: TrainingPlan, *, is_paced: bool = False, is_over: Callable[[], bool] = lambda: False
) -> Iterator[dict[str, Any]]:
    """Train a logistic classifier twice, by plain SGD and by DP-SGD; yield how both are doing."""
    import torch
    from torch import nn
    from torch.nn.functional import binary_cross_entropy_with_logits as entropy

    from discreet.learn import prepare

    torch.set_num_threads(1)

    def points(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        table = clusters(n, seed=seed)
        places = torch.stack([torch.tensor(table[axis]) for axis in ("x", "y")], dim=1)
        return places.float(), torch.tensor(table["group"]).float()

    def each_loss(model: nn.Module, rows: Any) -> torch.Tensor:
        return entropy(model(rows[0]).squeeze(1), rows[1], reduction="none")

    def started() -> nn.Linear:
        model = nn.Linear(2, 1)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        return model

    places, groups = points(POINTS, SEED)
    unseen = points(_HELD_OUT, SEED + 1)

    @torch.no_grad()
    def standing(model: nn.Linear) -> dict[str, Any]:
        right = (model(unseen[0]).squeeze(1) > 0) == (unseen[1] > 0.5)
        (across, up), offset = model.weight[0].tolist(), model.bias.item()
        return {
            "line": boundary(across, up, offset),
            "loss": float(each_loss(model, unseen).mean()),
            "accuracy": float(right.float().mean()),
        }

    plain, model = started(), started()
    plain_sgd = torch.optim.SGD(plain.parameters(), lr=plan.rate)
    private = prepare(
        model,
        torch.optim.SGD(model.parameters(), lr=plan.rate),
        (places, groups),
        noise_multiplier=plan.noise,
        delta=DELTA,
        steps=plan.steps,
        batch_size=plan.batch,
        population=POINTS,
        clip=plan.clip,
        progress=False,
    )
    every = -(-plan.steps // _FRAMES)
    frames = -(-plan.steps // every)
    asked = max(1, frames // _ASKED) * every
    begun = time.monotonic()
    yield {
        "kind": "step", "step": 0, "plain": standing(plain),
        "private": {**standing(model), "epsilon": 0.0},
    }  # fmt: skip
    for step, batch in enumerate(private.batches(), start=1):
        private.step(batch, each_loss)
        drawn = torch.randperm(POINTS)[: plan.batch]
        plain_sgd.zero_grad()
        each_loss(plain, (places[drawn], groups[drawn])).mean().backward()
        plain_sgd.step()
        is_last = step == plan.steps
        if step % every and not is_last:
            continue
        cost = private.spent.epsilon if is_last or step % asked == 0 else None
        yield {
            "kind": "step", "step": step, "plain": standing(plain),
            "private": {**standing(model), "epsilon": cost},
        }  # fmt: skip
        if is_over() or time.monotonic() - begun > _SECONDS:
            private.close()
            return
        if is_paced:
            time.sleep(max(0.0, begun + step / every * _PAUSE - time.monotonic()))
    yield {"kind": "finished", "epsilon": private.spent.epsilon, "told": str(private.spent)}


def _read(orders: "SimpleQueue[str | None]") -> None:
    for line in sys.stdin:
        orders.put(line.strip())
    orders.put(None)


def _tell(event: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(event, allow_nan=False)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
