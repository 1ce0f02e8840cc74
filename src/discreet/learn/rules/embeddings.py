# ruff: noqa: A002 - arguments have the names that torch gave them
"""Rules of tables that are read: embeddings, and bags of them."""

from typing import Any

import torch
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import Lookup
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.rules.shared import positions


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
    saved = SavedInput(input)

    def then(grad: Tensor) -> None:
        assert axis is not None
        index = rec.by_unit(saved.get(), axis).reshape(rec.units, -1)
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
    if offsets is not None:
        raise ParameterError(
            "nn.EmbeddingBag with offsets puts the bags of all examples into one row, and numbers "
            "decide whose bag an index belongs to. Pass a two-dimensional input, a bag for each "
            "row, filled up with padding_idx= to one length.",
            parameter="model",
        )
    if mode == "max" or max_norm is not None or scale_grad_by_freq:
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
