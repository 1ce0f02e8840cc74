"""The two models and what they learn from. It loads torch, so only the process that trains does."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as entropy

from discreet.datasets import clusters
from discreet.learn import Private, prepare
from discreet.service.pages.areas.training.picture import SEED, boundary
from discreet.service.pages.areas.training.plan import DELTA, POINTS, TrainingPlan

__all__ = ["Lesson"]

_HELD_OUT = 1000


class Lesson:
    """Both models side by side, from the same start, on the same points."""

    def __init__(self, plan: TrainingPlan) -> None:
        torch.set_num_threads(1)
        self._plan = plan
        self._places, self._groups = _points(POINTS, SEED)
        self._unseen = _points(_HELD_OUT, SEED + 1)
        self.plain, self.model = _started(), _started()
        self._sgd = torch.optim.SGD(self.plain.parameters(), lr=plan.rate)
        self.private: Private = prepare(
            self.model,
            torch.optim.SGD(self.model.parameters(), lr=plan.rate),
            (self._places, self._groups),
            noise_multiplier=plan.noise,
            delta=DELTA,
            steps=plan.steps,
            batch_size=plan.batch,
            population=POINTS,
            clip=plan.clip,
            progress=False,
        )

    def step(self, batch: Any) -> None:
        """Take one step with each."""
        self.private.step(batch, _losses)
        drawn = torch.randperm(POINTS)[: self._plan.batch]
        self._sgd.zero_grad()
        _losses(self.plain, (self._places[drawn], self._groups[drawn])).mean().backward()
        self._sgd.step()

    @torch.no_grad()
    def standing(self, model: nn.Linear) -> dict[str, Any]:
        """Say how one of them is doing, on points that neither has seen."""
        places, groups = self._unseen
        right = (model(places).squeeze(1) > 0) == (groups > 0.5)
        (across, up), offset = model.weight[0].tolist(), model.bias.item()
        return {
            "line": boundary(across, up, offset),
            "loss": float(_losses(model, self._unseen).mean()),
            "accuracy": float(right.float().mean()),
        }


def _points(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    table = clusters(n, seed=seed)
    places = torch.stack([torch.tensor(table[axis]) for axis in ("x", "y")], dim=1)
    return places.float(), torch.tensor(table["group"]).float()


def _started() -> nn.Linear:
    model = nn.Linear(2, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def _losses(model: nn.Module, rows: Any) -> torch.Tensor:
    return entropy(model(rows[0]).squeeze(1), rows[1], reduction="none")
