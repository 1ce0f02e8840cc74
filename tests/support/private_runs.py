"""Small private runs for tests: data, a model, a loss, and the gradients computed one by one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from discreet.learn import Private, prepare
from discreet.learn.noise.grid_noise import grid_of
from discreet.testing import SeededSource

FEATURES, CLASSES = 4, 3


def make_data(rows: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return features and labels that a linear model can learn."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, FEATURES, generator=generator)
    return features, (features @ torch.linspace(-1, 1, FEATURES) > 0).long()


def make_model(*, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, CLASSES))


def loss_fn(model: nn.Module, batch: Any) -> Tensor:
    """Return the losses of a micro-batch, as a tuple or a dict of features and labels."""
    features, labels = batch.values() if isinstance(batch, dict) else batch
    return nn.functional.cross_entropy(model(features.float()), labels, reduction="none")


def nothing(model: nn.Module, batch: Any) -> Tensor:
    """Return losses whose gradients are zero, so that a step is made of noise alone."""
    return loss_fn(model, batch) * 0


def is_late(rows: Tensor) -> bool:
    """Say whether rows are a step's: traced ones have no numbers, made-up ones are five at most.

    A loss can not be written like this by accident: its own look at the size would be refused.
    """
    with torch._C.DisableTorchFunction():
        return type(rows) is Tensor and rows.shape[0] > 5


def failing() -> Callable[..., Tensor]:
    """Return a loss that fails from the first step on, but not while it is tried out."""
    late = []

    def fails(model: nn.Module, batch: Any) -> Tensor:
        losses = loss_fn(model, batch)
        if late or is_late(losses):
            late.append(True)
            return losses / (1 // 0)
        return losses

    return fails


def begin(
    model: nn.Module | None = None, data: Any = None, *, seed: int | None = 7, **options: Any
) -> Private:
    """Prepare a small run; with seeded batches and noise unless the seed is None."""
    model = make_model() if model is None else model
    settings: dict[str, Any] = {
        "delta": 1e-5,
        "batch_size": 20,
        "clip": 1.0,
        "progress": False,
    }
    if "epsilon" not in options:
        settings["noise_multiplier"] = 1.0
    if "epochs" not in options:
        settings["steps"] = 3
    if seed is not None:
        settings["source"] = SeededSource(seed)
    optimizer = options.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=1.0)
    return prepare(model, optimizer, make_data(100) if data is None else data, **settings | options)


def train(private: Private, function: Callable[..., Tensor] = loss_fn, *, steps: int = 10**9):
    """Make the steps that are left, or the first few of them."""
    for batch, _ in zip(private.batches(), range(steps), strict=False):
        private.step(batch, function)
    return private


def weights(model: nn.Module) -> Tensor:
    """Return all parameters, side by side."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).double()


def gradient_of(*, clip: float, **options: Any) -> Tensor:
    """Return what the first step of a run adds up: with its noise taken away.

    The same seed gives the same batch and the same noise, whatever the losses are.
    """
    ends = []
    for function in (loss_fn, nothing):
        private = begin(clip=clip, optimizer=None, **options)
        start = weights(private.model)
        train(private, function, steps=1)
        ends.append(start - weights(private.model))  # the learning rate is 1
    return (ends[0] - ends[1]) * private._promise.sampling.expected


def clipped_sum(
    model: nn.Module, units: Sequence[Sequence[int]], data: tuple[Tensor, Tensor], clip: float
) -> Tensor:
    """Add up the clipped gradients of units, one at a time, in double precision."""
    model = model.double()
    total = torch.zeros_like(weights(model))
    for rows in units:
        features, labels = data[0][list(rows)].double(), data[1][list(rows)]
        loss = nn.functional.cross_entropy(model(features), labels)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        flat = torch.cat([grad.reshape(-1) for grad in grads])
        total += flat * min(1.0, clip / float(flat.norm()))
    model.float()
    return total


def tolerance(clip: float) -> float:
    """Return how far rounding to the grid, twice, and single precision may move an entry."""
    size = weights(make_model()).numel()
    return 2 * grid_of(sensitivity=clip, size=size) + 1e-5


def ids(rows: int, *, users: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, users, rows)


class Items(Dataset):
    """A map-style dataset, as people write them."""

    def __init__(self, features, labels):
        self.features, self.labels = features, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]
