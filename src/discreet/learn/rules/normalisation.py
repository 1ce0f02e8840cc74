# ruff: noqa: A002 - arguments have the names that torch gave them
"""Rules of normalisations: the scale and the shift that follow them."""

from typing import Any, Never

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import Dense
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.norms.linear import norm_affine_grads
from discreet.learn.rules.elementwise import multiply
from discreet.learn.rules.row_dots import dots
from discreet.learn.rules.shared import as_autocast, constant, mixing, positions, wanted


def layer_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Follow the scale and the shift of a layer norm."""
    axis = rec.axis(input)
    dims = len(normalized_shape)
    x = as_autocast(input, torch.float32)
    if axis is not None and axis.dim >= x.dim() - dims:
        raise mixing("layer_norm")
    out, mean, rstd = torch.native_layer_norm(
        x, normalized_shape, constant(rec, weight), constant(rec, bias), eps
    )
    saved, mean, rstd = SavedInput(x), mean.detach(), rstd.detach()

    def then(grad: Tensor) -> None:
        assert axis is not None
        scale, shift = norm_affine_grads(
            positions(rec, grad.flatten(-dims), axis),
            positions(rec, saved.get().flatten(-dims), axis),
            rec.by_unit(mean.flatten(-dims), axis).reshape(rec.units, -1),
            rec.by_unit(rstd.flatten(-dims), axis).reshape(rec.units, -1),
        )
        for owner, grads in ((weight, scale), (bias, shift)):
            if owner is not None and rec.is_followed(owner):
                rec.put(owner, Dense(grads.view(rec.units, *owner.shape)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then)


def group_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Follow the scale and the shift of a group norm."""
    axis = rec.axis(input)
    if axis is not None and axis.dim != 0:
        raise mixing("group_norm")
    x = as_autocast(input, torch.float32)
    rows, channels = x.shape[:2]
    out, mean, rstd = torch.native_group_norm(
        x,
        constant(rec, weight),
        constant(rec, bias),
        rows,
        channels,
        x[:1, :1].numel(),
        num_groups,
        eps,
    )
    saved, mean, rstd = SavedInput(x), mean.detach(), rstd.detach()

    def then(grad: Tensor) -> None:
        assert axis is not None
        # A plain vector has one number for each channel.
        products, sums = dots(*(t.reshape(rows, channels, -1) for t in (grad, saved.get())))
        each = channels // num_groups
        scale = (products - mean.repeat_interleave(each, 1) * sums) * rstd.repeat_interleave(
            each, 1
        )
        for owner, grads in ((weight, scale), (bias, sums)):
            if owner is not None and rec.is_followed(owner):
                grads = rec.rows_by_unit(grads, axis)
                rec.put(owner, Dense(grads.view(rec.units, -1, channels).sum(1)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then)


def rms_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Follow the scale of a root-mean-square norm."""
    assert weight is not None
    return multiply(rec, torch.mul, func(input, normalized_shape, None, eps), weight)


def instance_norm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Follow an instance norm: a group norm with one channel in a group."""
    if running_mean is not None or not use_input_stats:
        refuse_batch_norm(rec, func)
    return group_norm(rec, F.group_norm, input, input.shape[1], weight, bias, eps)


def refuse_batch_norm(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Never:
    """Refuse statistics over a batch."""
    raise ParameterError(
        "batch norm computes statistics over the batch, so no example has a gradient of its own. "
        "Replace it: model = discreet.learn.fix(model).",
        parameter="model",
    )
