"""Torch functions that look at numbers to compute the same, written so that they need not."""

from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.learn.following.axis.labels import times_units
from discreet.learn.following.axis.refusals import refusal


def _one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    if num_classes < 0:
        raise refusal("one_hot", "counts the classes in the batch", advice="Give num_classes.")
    places = torch.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == places).to(torch.int64)


def _embedding_bag(
    input: Tensor,  # noqa: A002
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    *_: Any,
    **__: Any,
) -> Tensor:
    if offsets is not None or input.dim() != 2:
        raise refusal("embedding_bag", "takes bags of several lengths from one row of tokens")
    if max_norm is not None or scale_grad_by_freq:
        raise refusal("embedding_bag", "has max_norm or scale_grad_by_freq, which mix examples")
    rows = F.embedding(input, weight).sum(1)
    weights = per_sample_weights
    return rows if weights is None else rows + weights.sum(1, keepdim=True)


def _chunk(tensor: Tensor, chunks: int, dim: int = 0) -> Any:
    each = times_units(tensor.shape[dim])
    if each is None:
        return torch.ops.aten.chunk(tensor, chunks, dim)
    if each % chunks:
        raise refusal("chunk", "splits the examples of a batch")
    return _split(tensor, tensor.shape[dim] // each * (each // chunks), dim)


def _split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    size, parts = tensor.shape[dim], split_size_or_sections
    each = times_units(size)
    if each is None or isinstance(parts, (list, tuple)):
        return torch.functional.split(tensor, parts, dim)
    part = times_units(parts)
    if part is None or each % part:
        raise refusal("split", "splits the examples of a batch")
    return tuple(tensor.narrow(dim, k * parts, parts) for k in range(each // part))


STAND_INS: Final[dict[Any, Any]] = {
    F.one_hot: _one_hot,
    F.embedding_bag: _embedding_bag,
    torch.chunk: _chunk,
    Tensor.chunk: _chunk,
    torch.split: _split,
    Tensor.split: _split,
}
