"""What the rules have in common: casts, axes, sums over what was broadcast."""

from typing import Any

import torch
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.axis.labels import Axis
from discreet.learn.following.recorder import Recorder
from discreet.learn.norms.dispatch import wide


def as_autocast(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return what autocast would compute with, so that the same numbers are kept."""
    device = x.device.type
    if not torch.is_autocast_enabled(device) or not x.is_floating_point():
        return x
    return x.to(dtype or torch.get_autocast_dtype(device))


def positions(rec: Recorder, tensor: Tensor, axis: Axis) -> Tensor:
    """Return (units, positions, features)."""
    return rec.by_unit(tensor, axis).reshape(rec.units, -1, tensor.shape[-1])


def wanted(rec: Recorder, *tensors: Tensor | None) -> list[Tensor]:
    return [t for t in tensors if t is not None and rec.is_followed(t)]


def constant(rec: Recorder, tensor: Any) -> Any:
    return rec.plain(tensor) if rec.is_followed(tensor) else tensor


def per_unit(rec: Recorder, grad: Tensor, axis: Axis) -> Tensor:
    """Return (units, *shape), with the units' axis as long in it as one unit's rows."""
    grad = rec.by_unit(grad, axis)
    if axis.each != 1:  # (units, each, *rest): back to where the axis was
        return grad.movedim(1, axis.dim + 1)
    return grad.unsqueeze(1).movedim(1, axis.dim + 1) if axis.dim else grad.unsqueeze(1)


def per_unit_sum(rec: Recorder, grad: Tensor, axis: Axis, shape: torch.Size) -> Tensor:
    """Sum each unit's part over what was broadcast, to the shape of the parameter."""
    grad = per_unit(rec, grad, axis)
    extra = grad.dim() - 1 - len(shape)
    over = list(range(1, 1 + extra))
    over += [
        1 + extra + d
        for d, size in enumerate(shape)
        if size == 1 and grad.shape[1 + extra + d] != 1
    ]
    grad = wide(grad)
    if over:
        grad = grad.sum(over, keepdim=True)
    return grad.reshape(rec.units, *shape)


def summed(grads: Tensor) -> Tensor:
    """Sum (units, positions, features) over positions."""
    if grads.shape[1] == 1:
        return wide(grads.squeeze(1))
    return grads.sum(1, dtype=wide(grads[:0]).dtype)


def mixing(name: str) -> ParameterError:
    return ParameterError(
        f"{name} sums over the examples of a batch, so no example has a gradient of its own. "
        "Compute each example's loss from that example alone.",
        parameter="model",
    )
