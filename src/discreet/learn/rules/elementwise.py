# ruff: noqa: A002 - arguments have the names that torch gave them
"""Rules of what is done number by number: a parameter added, multiplied or repeated."""

from typing import Any, cast

import torch
from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import Dense
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.norms.dispatch import wide
from discreet.learn.rules.fallback import fallback
from discreet.learn.rules.shared import constant, per_unit, per_unit_sum


def add(rec: Recorder, func: Any, input: Any, other: Any, **options: Any) -> Tensor:
    """Follow a parameter that is added to a batch."""
    if options or not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other, **options))
    owner = input if rec.is_followed(input) else other
    out = func(constant(rec, input), constant(rec, other))
    (axis,) = rec.results or (None,)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(per_unit_sum(rec, grad, axis, owner.shape)))

    return rec.watch(out, owner, then=then)


def multiply(rec: Recorder, func: Any, input: Any, other: Any) -> Tensor:
    """Follow a parameter that a batch is multiplied with."""
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        return cast("Tensor", fallback(rec, func, input, other))
    owner, x = (input, other) if rec.is_followed(input) else (other, input)
    out = func(constant(rec, input), constant(rec, other))
    (axis,) = rec.results or (None,)
    saved = SavedInput(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(owner, Dense(per_unit_sum(rec, wide(grad) * saved.get(), axis, owner.shape)))

    return rec.watch(out, owner, then=then)


def expand(rec: Recorder, func: Any, input: Tensor, *sizes: Any, **named: Any) -> Tensor:
    """Follow a parameter that is repeated for every unit, once or several times."""
    out = func(rec.plain(input), *sizes, **named).clone()
    (axis,) = rec.results or (None,)
    shape = (1,) * (out.dim() - input.dim()) + tuple(input.shape)
    own = 1 if axis is None else shape[axis.dim]
    if axis is not None and axis.inner % own:
        raise ParameterError(
            f"{func.__name__} of a parameter gives each example a part of it, rather than all of "
            "it. Repeat it as often as there are examples, along an axis of their own.",
            parameter="model",
        )

    def then(grad: Tensor) -> None:
        assert axis is not None
        # Each axis is so many copies of the parameter's own.
        grads = per_unit(rec, grad, axis)
        pairs = [
            n for own, all_ in zip(shape, grads.shape[1:], strict=True) for n in (all_ // own, own)
        ]
        copies = list(range(1, 2 * len(shape), 2))
        total = wide(grads).reshape(rec.units, *pairs).sum(copies) if copies else wide(grads)
        rec.put(input, Dense(total.reshape(rec.units, *input.shape)))

    return rec.watch(out, input, then=then)


def setitem(rec: Recorder, func: Any, input: Tensor, index: Any, value: Any) -> None:
    """Follow a parameter that takes the place of what a mask marks: ``x[mask] = parameter``."""
    axis = rec.axis(input)
    is_mask = isinstance(index, Tensor) and index.dtype == torch.bool
    if rec.is_followed(input) or not is_mask or axis is None or index.dim() <= axis.dim:
        raise ParameterError(
            "of assignments of a trainable parameter only x[mask] = parameter is handled, with a "
            "mask of x's first axes. Use torch.where(mask, parameter, x).",
            parameter="model",
        )
    func(input, index, rec.plain(value))
    mask = index.view(*index.shape, *[1] * (input.dim() - index.dim()))

    def then(grad: Tensor) -> None:
        rec.put(value, Dense(per_unit_sum(rec, grad * mask, axis, value.shape)))

    rec.watch(input, value, then=then)
