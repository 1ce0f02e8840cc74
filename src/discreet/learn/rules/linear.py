# ruff: noqa: A002 - arguments have the names that torch gave them
"""Rules of matrix products: linear layers, as torch and as people write them."""

from typing import Any, cast

from torch import Tensor

from discreet.learn.following.contributions import Dense, Outer
from discreet.learn.following.recorder import Recorder, SavedInput
from discreet.learn.rules.fallback import fallback
from discreet.learn.rules.shared import as_autocast, constant, mixing, positions, summed, wanted


def linear(
    rec: Recorder,
    func: Any,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Follow ``x @ weight.T + bias``."""
    x, axis = as_autocast(input), rec.axis(input)
    if axis is not None and axis.dim == input.dim() - 1:
        raise mixing("linear")
    out = func(x, constant(rec, weight), constant(rec, bias))
    saved = SavedInput(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grads = positions(rec, grad, axis)
        if rec.is_followed(weight):
            rec.put(weight, Outer(grads, positions(rec, saved.get(), axis)))
        if bias is not None and rec.is_followed(bias):
            rec.put(bias, Dense(summed(grads)))

    return rec.watch(out, *wanted(rec, weight, bias), then=then, is_new=True)


def matmul(rec: Recorder, func: Any, input: Tensor, other: Tensor) -> Tensor:
    """Follow ``x @ weight``; anything else goes to the fallback."""
    axis = rec.axis(input)
    if rec.is_followed(input) or other.dim() != 2 or input.dim() < 2:
        return cast("Tensor", fallback(rec, func, input, other))
    if axis is not None and axis.dim == input.dim() - 1:
        raise mixing("matmul")
    x = as_autocast(input)
    out = func(x, rec.plain(other))
    saved = SavedInput(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        rec.put(other, Outer(positions(rec, saved.get(), axis), positions(rec, grad, axis)))

    return rec.watch(out, other, then=then, is_new=True)


def addmm(
    rec: Recorder,
    func: Any,
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    **scales: Any,
) -> Tensor:
    """Follow ``bias + x @ weight``."""
    axis = rec.axis(mat1)
    if scales or rec.is_followed(mat1) or input.dim() != 1 or (axis is not None and axis.dim):
        return cast("Tensor", fallback(rec, func, input, mat1, mat2, **scales))
    x = as_autocast(mat1)
    out = func(constant(rec, input), x, constant(rec, mat2))
    saved = SavedInput(x)

    def then(grad: Tensor) -> None:
        assert axis is not None
        grads = positions(rec, grad, axis)
        if rec.is_followed(mat2):
            rec.put(mat2, Outer(positions(rec, saved.get(), axis), grads))
        if rec.is_followed(input):
            rec.put(input, Dense(summed(grads)))

    return rec.watch(out, *wanted(rec, input, mat2), then=then, is_new=True)
