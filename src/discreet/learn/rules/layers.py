# ruff: noqa: A002 - arguments have the names that torch gave them
"""Rules of layers: embeddings, convolutions, normalisations."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import Dense, Lookup, wide
from discreet.learn.following.recorder import Kept, Recorder
from discreet.learn.norms import norms as _kernels
from discreet.learn.rules.convolution import Convolution, Geometry
from discreet.learn.rules.row_dots import dots
from discreet.learn.rules.shared import as_autocast, constant, mixing, positions, wanted


def embedding(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Follow the reading of rows of a table."""
    if max_norm is not None or scale_grad_by_freq:
        raise ParameterError(
            "an embedding with max_norm or scale_grad_by_freq mixes the examples of a batch. "
            "Make it without these options.",
            parameter="model",
        )
    axis = rec.axis(input)
    out = func(input, rec.plain(weight), padding_idx)
    kept = Kept(input)

    def then(grad: Tensor) -> None:
        assert axis is not None
        index = rec.by_unit(kept.get(), axis).reshape(rec.units, -1)
        rows = positions(rec, grad, axis)
        if padding_idx is not None:
            rows = rows.masked_fill((index == padding_idx % weight.shape[0])[..., None], 0)
        rec.put(weight, Lookup(index, rows, weight.shape[0]))

    return rec.watch(out, weight, then=then)


def embedding_bag(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Follow sums or means of rows of a table, one bag for each row of ``input``."""
    if offsets is not None or mode == "max" or max_norm is not None or scale_grad_by_freq:
        raise ParameterError(
            "of nn.EmbeddingBag only bags of one length are handled: a two-dimensional input, "
            "mode 'sum' or 'mean', no max_norm and no scale_grad_by_freq.",
            parameter="model",
        )
    axis = rec.axis(input)
    out = func(
        input,
        rec.plain(weight),
        mode=mode,
        per_sample_weights=per_sample_weights,
        padding_idx=padding_idx,
    )

    def then(grad: Tensor) -> None:
        assert axis is not None
        weights = torch.ones_like(input, dtype=grad.dtype)
        if per_sample_weights is not None:
            weights = per_sample_weights.detach()
        if padding_idx is not None:
            weights = weights.masked_fill(input == padding_idx % weight.shape[0], 0)
        if mode == "mean":
            weights = weights / weights.sum(1, keepdim=True).clamp_min(1)
        rows = grad[:, None, :] * weights[:, :, None]
        index = rec.by_unit(input, axis).reshape(rec.units, -1)
        rows = rec.rows_by_unit(rows, axis)
        rec.put(weight, Lookup(index, rows.reshape(rec.units, index.shape[1], -1), weight.shape[0]))

    return rec.watch(out, weight, then=then)


def convolution(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Follow a convolution, or a transposed one, in one to three dimensions."""
    is_transposed = "transpose" in func.__name__
    names = ["input", "weight", "bias", "stride", "padding"]
    names += ["output_padding", "groups", "dilation"] if is_transposed else ["dilation", "groups"]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, weight, bias = given["input"], given["weight"], given.get("bias")
    axis, space = rec.axis(x), weight.dim() - 2
    if (axis is not None and axis.dim != 0) or x.dim() != space + 2:
        raise ParameterError(
            f"{func.__name__} wants the examples along the first axis of its input.",
            parameter="model",
        )
    x = as_autocast(x)
    padding = given.get("padding", 0)
    if isinstance(padding, str):
        x, padding = _padded(x, padding, weight, _tuple(given.get("dilation", 1), space))
    geometry = Geometry(
        stride=_tuple(given.get("stride", 1), space),
        padding=_tuple(padding, space),
        dilation=_tuple(given.get("dilation", 1), space),
        output_padding=_tuple(given.get("output_padding", 0), space),
        groups=given.get("groups", 1),
        is_transposed=is_transposed,
    )
    settings: dict[str, Any] = {
        "stride": geometry.stride,
        "padding": geometry.padding,
        "dilation": geometry.dilation,
        "groups": geometry.groups,
    }
    if is_transposed:
        settings["output_padding"] = geometry.output_padding
    out = func(x, constant(rec, weight), constant(rec, bias), **settings)
    kept = Kept(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grad = rec.rows_by_unit(grad, axis)
        if rec.is_followed(weight):
            rows = rec.rows_by_unit(kept.get(), axis)
            rec.put(weight, Convolution(rows, grad, weight.shape, geometry, rec.units))
        if bias is not None and rec.is_followed(bias):
            sums = grad.flatten(2).sum(2, dtype=wide(grad[:0]).dtype)
            rec.put(bias, Dense(sums.view(rec.units, -1, sums.shape[1]).sum(1)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then)


def _tuple(value: Any, length: int) -> tuple[int, ...]:
    found = (value,) * length if isinstance(value, int) else tuple(value)
    return found * length if len(found) == 1 else found


def _padded(
    x: Tensor, padding: str, weight: Tensor, dilation: tuple[int, ...]
) -> tuple[Tensor, int]:
    if padding == "same":
        pads: list[int] = []
        for size, spread in zip(reversed(weight.shape[2:]), reversed(dilation), strict=True):
            total = spread * (size - 1)
            pads += [total // 2, total - total // 2]
        x = F.pad(x, pads)
    return x, 0


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
    kept, mean, rstd = Kept(x), mean.detach(), rstd.detach()

    def then(grad: Tensor) -> None:
        assert axis is not None
        scale, shift = _kernels.norm_affine_grads(
            positions(rec, grad.flatten(-dims), axis),
            positions(rec, kept.get().flatten(-dims), axis),
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
    kept, mean, rstd = Kept(x), mean.detach(), rstd.detach()

    def then(grad: Tensor) -> None:
        assert axis is not None
        products, sums = dots(grad.flatten(2), kept.get().flatten(2))
        each = channels // num_groups
        scale = (products - mean.repeat_interleave(each, 1) * sums) * rstd.repeat_interleave(
            each, 1
        )
        for owner, grads in ((weight, scale), (bias, sums)):
            if owner is not None and rec.is_followed(owner):
                grads = rec.rows_by_unit(grads, axis)
                rec.put(owner, Dense(grads.view(rec.units, -1, channels).sum(1)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then)


def refuse_batch_norm(rec: Recorder, func: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Refuse statistics over a batch."""
    raise ParameterError(
        "batch norm computes statistics over the batch, so no example has a gradient of its own. "
        "Replace it: model = discreet.learn.fix(model).",
        parameter="model",
    )


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
        raise refuse_batch_norm(rec, func)  # type: ignore[misc]
    return group_norm(rec, F.group_norm, input, input.shape[1], weight, bias, eps)
