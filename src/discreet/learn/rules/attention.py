"""The rule of attention with a learnt bias, such as one for each distance of two positions."""

from typing import Any, cast

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from discreet.learn.following.contributions import Dense
from discreet.learn.following.recorder import Recorder
from discreet.learn.rules.fallback import fallback
from discreet.learn.rules.shared import mixing, per_unit_sum


def attention(
    rec: Recorder,
    func: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Follow a bias that is added to the scores; they are written out, which torch does not."""
    if attn_mask is None or not rec.is_followed(attn_mask) or is_causal:
        arguments = (query, key, value, attn_mask, dropout_p, is_causal)
        named = {"scale": scale, "enable_gqa": enable_gqa}
        return cast("Tensor", fallback(rec, func, *arguments, **named))
    if any(rec.is_followed(operand) for operand in (query, key, value)):
        raise mixing(func.__name__)
    (axis,) = rec.results or (None,)
    if axis is not None and axis.dim >= query.dim() - 2:
        raise mixing(func.__name__)
    if enable_gqa:
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    by = query.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.matmul(query * by, key.transpose(-2, -1)) + rec.plain(attn_mask)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(attn_mask, Dense(per_unit_sum(rec, grad, axis, attn_mask.shape)))

    scores = rec.watch(scores, attn_mask, then=then)
    weights = torch.softmax(scores, -1).to(value.dtype)
    return torch.matmul(F.dropout(weights, dropout_p), value)
