# ruff: noqa: A002 - arguments have the names that torch gave them
"""Rules of what is done number by number: a parameter added, multiplied or repeated."""

from typing import Any, cast

from torch import Tensor

from discreet.errors import ParameterError
from discreet.learn.following.contributions import Dense
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.norms.dispatch import wide
from discreet.learn.rules.fallback import fallback
from discreet.learn.rules.shared import constant, per_unit_sum


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
    """Follow a parameter that is repeated for every unit."""
    out = func(rec.plain(input), *sizes, **named).clone()
    (axis,) = rec.results or (None,)
    if axis is not None:
        own = axis.dim - (out.dim() - input.dim())
        grown = [
            d
            for d in range(input.dim())
            if out.shape[out.dim() - input.dim() + d] != input.shape[d]
        ]
        if (own >= 0 and input.shape[own] != 1) or any(input.shape[d] != 1 for d in grown):
            raise ParameterError(
                f"{func.__name__} of a parameter along an axis that is longer than 1 is not "
                "handled. Use expand on an axis of length 1.",
                parameter="model",
            )

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(input, Dense(per_unit_sum(rec, grad, axis, input.shape)))

    return rec.watch(out, input, then=then)
