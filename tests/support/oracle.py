"""Clipped gradients the slow way: one unit at a time, by plain autograd."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def gradients(model: nn.Module, loss_fn: Callable[..., Tensor], batch: Any, units: int) -> Tensor:
    """Return the flat gradient of each unit: (units, parameters)."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    each = batch[0].shape[0] // units
    rows = []
    for unit in range(units):
        own = tuple(t[unit * each : (unit + 1) * each] for t in batch)
        found = torch.autograd.grad(loss_fn(model, own).sum(), parameters, allow_unused=True)
        rows.append(
            torch.cat(
                [
                    (torch.zeros_like(p) if grad is None else grad).flatten().double()
                    for p, grad in zip(parameters, found, strict=True)
                ]
            )
        )
    return torch.stack(rows)


def clipped_sum(grads: Tensor, norm: float) -> Tensor:
    """Clip each row to the norm, and add them up."""
    norms = grads.norm(dim=1, keepdim=True)
    return (grads * (norm / norms).clamp(max=1)).sum(0)
